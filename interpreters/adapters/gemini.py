"""Gemini CLI: ``gemini --output-format stream-json``.

Recorded: 0.61.0 (tests/data/adapters). A session prints ``init``, ``message``, ``tool_use`` and ``tool_result``. Its
``result`` has ``stats`` of this session, also if it resumes a conversation. While the program tries again, it prints
lines of text. The exit status has a meaning of its own only without a result. With one it is the last eight bits of an
HTTP status. *SIGTERM ends the program with status 0*, and without a result.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import hostile, reading
from lifefold.interpreters.adapters.adapter import Brief, Conversation, Now, Permissions, Reports
from lifefold.interpreters.adapters.facts import Cost, Counted, Ended, ModelCost, Tokens, Work
from lifefold.interpreters.adapters.login import Login, LoginFile
from lifefold.interpreters.adapters.reading import Reading, Step

_MODES: Final = {Permissions.READ: "plan", Permissions.EDIT: "auto_edit", Permissions.ALL: "yolo"}

_STATUSES: Final = {
    41: Outcome.LOGIN_REFUSED,
    42: Outcome.REFUSED_COMMAND,
    44: Outcome.REFUSED_COMMAND,
    52: Outcome.REFUSED_COMMAND,
    53: Outcome.TURN_LIMIT,
    55: Outcome.REFUSED_COMMAND,
}
"""The exit statuses of a session without a result: login, input, sandbox, settings, turn limit, untrusted folder."""

_ATTEMPT: Final = re.compile(
    r"^Attempt \d{1,4} failed(?: with status \d{3})?[:.] (.{1,1000}?)\.{0,2} (?:Retrying|Max )"
)
_QUOTED: Final = re.compile(r"^\[API Error: (.{1,8000})\]", re.DOTALL)


class _Line(msgspec.Struct, frozen=True):
    """The relevant fields of a line, of any type, because agents write them."""

    type: Any = None
    session_id: Any = None
    role: Any = None
    content: Any = None
    tool_id: Any = None
    tool_name: Any = None
    parameters: Any = None
    status: Any = None
    error: Any = None
    stats: Any = None


class _Quoted(msgspec.Struct, frozen=True):
    """The answer of the model service that an error quotes."""

    error: Any = None


_DECODER: Final = hostile.decoder(_Line)
_QUOTED_DECODER: Final = hostile.decoder(_Quoted)


class Gemini:
    """Gemini CLI without a terminal."""

    name = "gemini"
    initial = Reading()
    resumable = True
    chooses_conversation = True
    reports = Reports.TOKENS
    tested_versions = ("0.61.0",)
    version_argv = ("gemini", "--version")
    login = Login(
        variables=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"),
        settings=("GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GENAI_USE_VERTEXAI"),
        files=(LoginFile(".gemini", "oauth_creds.json"),),
        elsewhere="the keychain of the system, a file .env, or the account of a cloud machine",
    )

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        """Return the command line."""
        words = ["gemini", "--output-format=stream-json"]
        if conversation is not None:
            words.append(f"--{'resume' if conversation.begun else 'session-id'}={conversation.id}")
        if brief.model:
            words.append(f"--model={brief.model}")
        if mode := _MODES.get(brief.permissions):
            words.append(f"--approval-mode={mode}")
        return (*words, *brief.arguments, f"--prompt={brief.prompt}")

    def resume_argv(self, conversation: Conversation) -> tuple[str, ...]:
        """Return the command that resumes a conversation at a terminal."""
        return ("gemini", f"--resume={conversation.id}")

    def read(self, state: Reading, line: bytes, now: Now) -> Step:
        """Return the facts of one line."""
        found = hostile.decoded(_DECODER, line)
        if found is None:
            text = hostile.plain(line)
            attempt = _ATTEMPT.match(text)
            return reading.troubled(state, attempt[1], now) if attempt else (reading.noted(state, text), ())
        reader = _READERS.get(hostile.name(found.type))
        return reader(state, found, now) if reader else (state, ())

    def finish(self, state: Reading, status: int | None) -> Ended:
        """Return the end of the session, without a result by the exit status."""
        if state.outcome is None and status in _STATUSES:
            lost = state.last.startswith("Error resuming session")
            return Ended(Outcome.CONVERSATION_LOST if lost else _STATUSES[status], state.last)
        return reading.closed(state, status)


def _init(state: Reading, line: _Line, _now: Now) -> Step:
    return reading.began(state, hostile.name(line.session_id))


def _message(state: Reading, line: _Line, _now: Now) -> Step:
    """Read a message; those of the user are the prompt."""
    return reading.said(state, hostile.sentence(line.content)) if line.role == "assistant" else (state, ())


def _use_of_tool(state: Reading, line: _Line, _now: Now) -> Step:
    identifier, tool = hostile.name(line.tool_id), hostile.name(line.tool_name)
    return reading.started(state, Work.TOOL, identifier, tool, hostile.subject(line.parameters))


def _result_of_tool(state: Reading, line: _Line, _now: Now) -> Step:
    """Read the end of a tool. Its output is the tool's, and no word of the agent."""
    identifier, error = hostile.name(line.tool_id), hostile.table(line.error)
    tool = next((name for known, name in state.open if known == identifier), "")
    state, facts = reading.ended(state, Work.TOOL, identifier, ok=line.status == "success")
    if error.get("type") != "policy_violation":
        return state, facts
    state, more = reading.denied(state, identifier, tool, hostile.sentence(error.get("message")))
    return state, facts + more


def _result(state: Reading, line: _Line, now: Now) -> Step:
    """Read the end of the session: its cost, and its outcome with the sentence of the model service."""
    stats = hostile.table(line.stats)
    models = [
        ModelCost(hostile.name(model), Cost(_tokens(hostile.table(each))))
        for model, each in hostile.table(stats.get("models")).items()
    ]
    state, facts = reading.spent(state, Cost(_tokens(stats)), Counted.SESSION, models)
    if line.status == "success":
        return reading.judged(state, Outcome.SUCCESS, state.last), facts
    error = hostile.table(line.error)
    outcome = Outcome.TURN_LIMIT if error.get("type") == "FatalTurnLimitedError" else None
    state, more = reading.failed(state, _sentence(error.get("message")), now, outcome)
    return state, facts + more


_READERS: Final[dict[str, Callable[[Reading, _Line, Now], Step]]] = {
    "init": _init,
    "message": _message,
    "tool_use": _use_of_tool,
    "tool_result": _result_of_tool,
    "result": _result,
}


def _sentence(message: Any) -> str:
    """Return the sentence of an error; the model service's own, if the error quotes its answer."""
    quoted = _QUOTED.match(message) if isinstance(message, str) else None
    if quoted is None:
        return hostile.sentence(message)
    answer = hostile.decoded(_QUOTED_DECODER, quoted[1].encode(errors="replace"))
    own = hostile.sentence(hostile.table(answer.error).get("message")) if answer else ""
    return own or hostile.sentence(quoted[1])


def _tokens(stats: dict[str, Any]) -> Tokens:
    """Return the tokens; those of thoughts are in the total only."""
    read, cached = hostile.count(stats.get("input_tokens")), hostile.count(stats.get("cached"))
    written = max(hostile.count(stats.get("output_tokens")), hostile.count(stats.get("total_tokens")) - read)
    return Tokens(max(0, read - cached), cached, 0, written)
