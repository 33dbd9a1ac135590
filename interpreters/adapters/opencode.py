"""opencode: ``opencode run --format json``.

Recorded: 1.18.33 (tests/data/adapters). A session prints ``step_start``, ``text``, and ``tool_use`` after a tool.
``step_finish`` has the cost of a step, and ``error`` is final.

*A limit is silent* in that format, and opencode tries again for ever. The log of errors says why a request failed, so
the command line asks for it. *A title* of its own keeps opencode from asking a model for one, at a cost that it
does not report. *A refused tool* ends the session with exit status 0.
"""

import re
from typing import Any, Final

import msgspec

from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import hostile, reading
from lifefold.interpreters.adapters.adapter import Brief, Conversation, Now, Permissions, Reports
from lifefold.interpreters.adapters.facts import Cost, Ended, Tokens, Work
from lifefold.interpreters.adapters.login import Login, LoginFile
from lifefold.interpreters.adapters.reading import Reading, Step

_TITLE_CHARS: Final = 60

_ERRORS: Final = {"ContextOverflowError": Outcome.PROMPT_TOO_LONG, "ProviderAuthError": Outcome.LOGIN_REFUSED}
_STATUSES: Final = {
    401: Outcome.LOGIN_REFUSED,
    402: Outcome.OUT_OF_CREDIT,
    429: Outcome.LIMITED,
    529: Outcome.OVERLOADED,
}
_REFUSED: Final = ("The user rejected permission", "The user has specified a rule which prevents")
LOGGED: Final = re.compile(
    r'^timestamp=\S+ level=ERROR .{0,200}message="stream error" .{0,400}\bsmall=false .{0,200}'
    r'\berror\.error="(?:\w+: )?((?:[^"\\]|\\.){0,2000})"'
)
"""A line of the log that says why a request has failed; opencode then tries again."""


class _Line(msgspec.Struct, frozen=True):
    """The relevant fields of a line, of any type, because agents write them."""

    type: Any = None
    session: Any = msgspec.field(name="sessionID", default=None)
    part: Any = None
    error: Any = None


_DECODER: Final = hostile.decoder(_Line)


class Opencode:
    """opencode without a terminal."""

    name = "opencode"
    initial = Reading()
    resumable = True
    chooses_conversation = False
    reports = Reports.USD
    tested_versions = ("1.18.33",)
    version_argv = ("opencode", "--version")
    login = Login(
        variables=("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENCODE_API_KEY", "OPENROUTER_API_KEY"),
        settings=("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"),
        files=(LoginFile(".local/share", "opencode/auth.json", "XDG_DATA_HOME"),),
        elsewhere="apiKey of a provider in its settings; some models need no login",
    )

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        """Return the command line; what an agent may do by default is in opencode's own settings."""
        words = ["opencode", "run", "--format", "json", "--print-logs", "--log-level", "ERROR"]
        if conversation is not None and conversation.begun:
            words.append(f"--session={conversation.id}")
        else:
            words.append(f"--title={hostile.sentence(brief.prompt, _TITLE_CHARS) or self.name}")
        if brief.model:
            words.append(f"--model={brief.model}")
        if brief.permissions is Permissions.READ:
            words.append("--agent=plan")
        if brief.permissions is Permissions.ALL:
            words.append("--auto")
        return (*words, *brief.arguments, "--", brief.prompt)

    def resume_argv(self, conversation: Conversation) -> tuple[str, ...]:
        """Return the command that resumes a session at a terminal."""
        return ("opencode", f"--session={conversation.id}")

    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        """Return the facts of one line."""
        found = hostile.decoded(_DECODER, line)
        if found is None:
            text = hostile.plain(line)
            logged = LOGGED.match(text)
            return reading.troubled(state, logged[1], now) if logged else (reading.noted(state, text), ())
        state, facts = reading.began(state, hostile.name(found.session))
        state, more = _facts(state, found, now)
        return state, facts + more

    def finish(self, state: Reading, status: int | None) -> Ended:
        """Return the end of the session. A conversation that does not exist is told in a line of text."""
        if state.outcome is None and "Session not found" in state.last:
            return Ended(Outcome.CONVERSATION_LOST, state.last)
        return reading.closed(state, status)


def _facts(state: Reading, line: _Line, now: Now) -> Step:
    part = hostile.table(line.part)
    match line.type:
        case "step_start":
            return msgspec.structs.replace(state, outcome=None), ()
        case "text":
            return reading.said(state, hostile.sentence(part.get("text")))
        case "tool_use":
            return _tool(state, part)
        case "step_finish":
            return _step(state, part)
        case "error":
            return _error(state, hostile.table(line.error), now)
        case _:
            return state, ()


def _tool(state: Reading, part: dict[str, Any]) -> Step:
    """Read a tool that is over. Its output is the tool's, and no word of the agent."""
    identifier, tool = hostile.name(part.get("callID")), hostile.name(part.get("tool"))
    use = hostile.table(part.get("state"))
    state, began = reading.started(state, Work.TOOL, identifier, tool, hostile.subject(use.get("input")))
    state, over = reading.ended(state, Work.TOOL, identifier, ok=use.get("status") == "completed")
    reason = hostile.sentence(use.get("error"))
    if not reason.startswith(_REFUSED):
        return state, began + over
    state, refused = reading.denied(state, identifier, tool, reason)
    return state, began + over + refused


def _step(state: Reading, part: dict[str, Any]) -> Step:
    """Read the end of a step: its cost, and whether it is the last one."""
    reason = part.get("reason")
    if reason == "stop":
        state = reading.judged(state, Outcome.SUCCESS, state.last)
    elif reason == "length":
        state = reading.judged(state, Outcome.FAILED, "the answer exceeds the longest output of the model")
    tokens = hostile.table(part.get("tokens"))
    cache = hostile.table(tokens.get("cache"))
    used = Tokens(
        hostile.count(tokens.get("input")),
        hostile.count(cache.get("read")),
        hostile.count(cache.get("write")),
        hostile.count(tokens.get("output")) + hostile.count(tokens.get("reasoning")),
    )
    return reading.step_spent(state, hostile.name(part.get("id")), Cost(used, hostile.microusd(part.get("cost"))))


def _error(state: Reading, error: dict[str, Any], now: Now) -> Step:
    """Read an error, which ends the session."""
    data = hostile.table(error.get("data"))
    name, status = hostile.name(error.get("name")), hostile.integer(data.get("statusCode"))
    outcome = _ERRORS.get(name) or (_STATUSES.get(status) if status is not None else None)
    return reading.failed(state, hostile.sentence(data.get("message")) or name, now, outcome)
