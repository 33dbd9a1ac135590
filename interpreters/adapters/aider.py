"""Aider: ``aider --message``.

Recorded: 0.86.2 (tests/data/adapters). Aider prints text in lines of at most eighty characters, so a sentence may go on
in the next line. An answer ends with ``Tokens: … sent, … received. Cost: … message, … session.``. The money is of the
session, and only there for models with a known price. An error begins with its class in LiteLLM, and ends with a
sentence for people. Aider tries again after some errors. *It exits with status 0 also after an error.*

*Commits* of its own are turned off: a model writes their messages, at a cost that aider does not report.

*Conversations.* Aider restores a chat from a file, and prints no name of it. So each conversation has a file of its own
in the worktree, with its chosen identifier. It stays for the next claim if ``.gitignore`` has ``.aider*``. Without a
conversation aider uses the chat of the worktree.
"""

import re
from typing import Final

import msgspec

from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import hostile, reading, verdicts
from lifefold.interpreters.adapters.adapter import Brief, Conversation, Now, Permissions, Reports
from lifefold.interpreters.adapters.facts import Cost, Ended, Tokens, Work
from lifefold.interpreters.adapters.login import Login
from lifefold.interpreters.adapters.reading import Reading, Step

_ERRORS: Final = {
    "AuthenticationError": Outcome.LOGIN_REFUSED,
    "PermissionDeniedError": Outcome.LOGIN_REFUSED,
    "RateLimitError": Outcome.LIMITED,
    "ContextWindowExceededError": Outcome.PROMPT_TOO_LONG,
    "NotFoundError": Outcome.MODEL_UNKNOWN,
    "ServiceUnavailableError": Outcome.OVERLOADED,
    "InternalServerError": Outcome.OVERLOADED,
    "APIConnectionError": Outcome.OVERLOADED,
    "Timeout": Outcome.OVERLOADED,
}
"""The outcomes of LiteLLM's classes of errors."""

_ERROR: Final = re.compile(r"^litellm\.(\w{1,60}): ?(?:\w{1,60}: ?)?(?:\w{1,60}Exception - )?(.*)")
_TOO_LONG: Final = re.compile(r"^Model .{1,200} has hit a token limit!")
_EDIT: Final = re.compile(r"^Applied edit to (.{1,400})$")
_NUMBER: Final = r"(\d{1,9}(?:\.\d{1,9})?[kM]?)"
_SENT: Final = re.compile(rf"^Tokens: .{{0,200}}?{_NUMBER} sent\b")
_WRITTEN: Final = re.compile(rf"\b{_NUMBER} cache write\b")
_HIT: Final = re.compile(rf"\b{_NUMBER} cache hit\b")
_RECEIVED: Final = re.compile(rf"\b{_NUMBER} received\b")
_SESSION: Final = re.compile(r"\bCost: \$[\d.,]{1,20} message, \$([\d.]{1,20}) session\.")
_UNITS: Final = {"k": 1_000, "M": 1_000_000}
_CHAT: Final = "--chat-history-file=.aider.chat."
_FILE: Final = re.compile(rf"^{re.escape(_CHAT)}([0-9A-Za-z-]{{1,64}})\.md$")
_BEGINS: Final = "Aider v"
_AGAIN: Final = "Retrying in"
_COMPLETE: Final = ("received.", "session.")
_GOES_ON: Final = ("Tokens:", "litellm.")
_CHANGE_BEGINS: Final = "<<<<<<< SEARCH"
_CHANGE_ENDS: Final = ">>>>>>> REPLACE"
_FENCE: Final = "```"


class Aider:
    """Aider with one message."""

    name = "aider"
    initial = Reading()
    resumable = True
    chooses_conversation = True
    reports = Reports.USD
    tested_versions = ("0.86.2",)
    version_argv = ("aider", "--version")
    login = Login(
        variables=(
            "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY",
        ),
        settings=("OPENAI_API_BASE",),
        elsewhere="a file .env or .aider.conf.yml",
    )  # fmt: skip

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        """Return the command line; what the program would ask at a terminal is answered by its permissions."""
        words = ["aider", "--no-pretty", "--no-stream", "--no-check-update", "--no-show-release-notes"]
        words += ["--no-auto-commits", "--no-dirty-commits"]
        words += _chat(conversation)
        if brief.model:
            words.append(f"--model={brief.model}")
        if brief.permissions is Permissions.READ:
            words.append("--chat-mode=ask")
        if brief.permissions in {Permissions.EDIT, Permissions.ALL}:
            words.append("--yes-always")
        return (*words, *brief.arguments, f"--message={brief.prompt}")

    def resume_argv(self, conversation: Conversation) -> tuple[str, ...]:
        """Return the command that restores the chat of a conversation; the fleet commits what is left there."""
        return ("aider", *_chat(conversation), "--no-auto-commits", "--no-dirty-commits")

    def beginning(self, argv: tuple[str, ...]) -> Reading:
        """Return the state before the first line: the command line names the conversation."""
        found = next((file for word in argv if (file := _FILE.match(word))), None)
        return Reading(chosen=found[1] if found else "")

    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        """Return the facts of one line; a line that repeats the one before has none."""
        text = hostile.plain(line)
        if text == state.last:
            return state, ()
        paragraph = state.paragraph
        if _is_change(paragraph, text):
            over = text.startswith(_CHANGE_ENDS)
            return msgspec.structs.replace(state, paragraph="" if over else _CHANGE_BEGINS), ()
        if text.startswith(_GOES_ON):
            paragraph = text
        elif paragraph and text and not text.startswith(_AGAIN):
            paragraph = f"{paragraph} {text}"[: reading.SENTENCE_CHARS]
        else:
            return _text(msgspec.structs.replace(state, paragraph=""), text)
        reason, last = state.last, text[: reading.SENTENCE_CHARS]
        state = msgspec.structs.replace(state, paragraph=paragraph, last=last)
        return (
            _failure(state, paragraph, now) if paragraph.startswith("litellm.") else _answer(state, paragraph, reason)
        )

    def finish(self, state: Reading, status: int | None) -> Ended:
        """Return the end of the session."""
        return reading.closed(state, status)


def _chat(conversation: Conversation | None) -> tuple[str, ...]:
    """Return the arguments for the file of a conversation, and for its chat up to now if there is one."""
    if conversation is None:
        return ()
    return (f"{_CHAT}{conversation.id}.md", *(("--restore-chat-history",) if conversation.begun else ()))


def _is_change(paragraph: str, text: str) -> bool:
    """Tell whether a line is of a change to a file, from its marks to its lines: it is no sentence for people."""
    if text.startswith((_CHANGE_BEGINS, _CHANGE_ENDS, _FENCE)):
        return True
    return paragraph == _CHANGE_BEGINS and not text.startswith(_GOES_ON)


def _text(state: Reading, text: str) -> Step:
    """Read a line of text: a changed file, a context that is too long, or a word of the agent."""
    if text.startswith(_AGAIN):
        return state, ()
    if state.chosen and text.startswith(_BEGINS):
        return reading.began(state, state.chosen)
    if _TOO_LONG.match(text):
        return reading.judged(state, Outcome.PROMPT_TOO_LONG, text), ()
    if not _EDIT.match(text):
        return reading.said(state, text)
    state = msgspec.structs.replace(state, last=text[: reading.SENTENCE_CHARS])
    identifier = f"edit {_next_number(state)}"
    state, began = reading.started(state, Work.TOOL, identifier, "edit")
    state, over = reading.ended(state, Work.TOOL, identifier)
    return state, began + over


def _answer(state: Reading, text: str, reason: str) -> Step:
    """Read the cost of an answer, as soon as its sentence is complete: the answer is there, whatever failed before."""
    if not text.endswith(_COMPLETE):
        return state, ()
    state = reading.judged(msgspec.structs.replace(state, paragraph=""), Outcome.SUCCESS, reason)
    used = Tokens(_number(_SENT, text), _number(_HIT, text), _number(_WRITTEN, text), _number(_RECEIVED, text))
    session = _SESSION.search(text)
    money = hostile.microusd(session[1]) if session else None
    before = state.spent.microusd or 0
    cost = Cost(used, None if money is None else max(0, money - before))
    return reading.step_spent(state, f"answer {_next_number(state)}", cost)


def _failure(state: Reading, text: str, now: Now) -> Step:
    """Read an error; its words decide before its class, because a class has several causes."""
    found = _ERROR.match(text)
    if found is None:
        return state, ()
    words = verdicts.verdict(found[2])
    outcome = words if words is Outcome.OUT_OF_CREDIT else _ERRORS.get(found[1], words)
    state = reading.judged(state, outcome, found[2])
    return reading.limited(state, found[2], now) if outcome is Outcome.LIMITED and text.endswith(".") else (state, ())


def _next_number(state: Reading) -> int:
    """Return a number for an edit or an answer, which has none; ``seen`` forgets the first ones of a long session."""
    return int(state.seen[-1].rpartition(" ")[2]) + 1 if state.seen else 0


def _number(pattern: re.Pattern[str], text: str) -> int:
    """Return a number of tokens, which aider rounds to thousands or millions."""
    found = pattern.search(text)
    if found is None:
        return 0
    unit = _UNITS.get(found[1][-1], 1)
    return hostile.count(round(float(found[1].rstrip("kM")) * unit))
