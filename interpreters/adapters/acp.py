"""Any program that speaks the Agent Client Protocol (ACP), through the client of lifefold (``acp_client``).

The client runs between the shim and the program, and prints a line of JSON for each fact. Its key ``acp`` is the kind
of the line. So this adapter reads the client's lines, and no message of the protocol.

*Costs.* The protocol has the cost of the whole conversation in money, and the tokens of one turn. Tokens of earlier
sessions are in no message. The client repeats those that the conversation was charged before, so that a total with
money has all tokens, too. Without money the tokens are those of the session.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import hostile, opencode, reading
from lifefold.interpreters.adapters.adapter import Brief, Conversation, Now, Permissions, Reports
from lifefold.interpreters.adapters.facts import Cost, Counted, Ended, Fact, MessageTaken, Tokens, Work
from lifefold.interpreters.adapters.login import Login
from lifefold.interpreters.adapters.reading import Reading

ANY_TOOL: Final = "other"
"""The name of a tool whose kind is not told."""

_STOPS: Final = {
    "end_turn": (Outcome.SUCCESS, ""),
    "max_tokens": (Outcome.FAILED, "the answer exceeds the longest output of the model"),
    "max_turn_requests": (Outcome.TURN_LIMIT, "the agent has used its requests of one turn"),
    "refusal": (Outcome.FAILED, "the agent refuses to go on"),
    "cancelled": (Outcome.FAILED, "the turn was cancelled"),
}
"""The outcome and the reason of each way in which a turn ends."""

_OUTCOMES: Final = {each.value: each for each in Outcome}


class _Line(msgspec.Struct, frozen=True):
    """The relevant fields of a line, of any type, because any process of an agent can write to its output."""

    acp: Any = None
    id: Any = None
    kind: Any = None
    subject: Any = None
    ok: Any = None
    text: Any = None
    reason: Any = None
    outcome: Any = None
    turn: Any = None
    number: Any = None
    amount: Any = None
    currency: Any = None
    input: Any = None
    cache_read: Any = None
    cache_write: Any = None
    output: Any = None


_DECODER: Final = hostile.decoder(_Line)


class Session(msgspec.Struct, frozen=True):
    """What was read of a session: ``before`` are the tokens that its conversation was charged before it."""

    reading: Reading = Reading()
    before: Tokens = Tokens()
    microusd: int | None = None


Step = tuple[Session, tuple[Fact, ...]]


class Acp:
    """A program that speaks the Agent Client Protocol over its standard input and output."""

    name = "acp"
    initial = Session()
    resumable = True
    chooses_conversation = False
    reports = Reports.NOTHING
    tested_versions = (
        "OpenCode 1.18.33",
        "gemini-cli 0.61.0",
        "@agentclientprotocol/claude-agent-acp 0.101.0",
        "@agentclientprotocol/codex-acp 2.6.0",
    )
    version_argv = ()
    login = Login(elsewhere="a place of the program's own")
    client = "lifefold.interpreters.acp_client"
    package = "acp"
    extra = "acp"
    steers = True

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        """Return the arguments of the client, after the program that it is to start."""
        words = [self.name]
        if conversation is not None and conversation.begun:
            charged = conversation.charged
            words += [f"--resume={conversation.id}", f"--charged={charged.input},{charged.output}"]
        if brief.model:
            words.append(f"--model={brief.model}")
        if brief.permissions is not Permissions.DEFAULT:
            words.append(f"--permissions={brief.permissions}")
        if brief.mcp_config:
            words.append("--mcp")
        if brief.inbox:
            words.append(f"--inbox={brief.inbox}")
        return (*words, f"--prompt={brief.prompt}", "--", *brief.arguments)

    def read(self, state: Session, line: bytes, now: Now) -> Step:
        """Return the facts of one line."""
        found = hostile.decoded(_DECODER, line)
        if found is None:
            return _with(state, reading.noted(state.reading, hostile.plain(line)))
        if found.acp == "conversation":
            before = Tokens(input=hostile.count(found.input), output=hostile.count(found.output))
            begun = msgspec.structs.replace(state, before=before)
            return _with(begun, *reading.began(state.reading, hostile.name(found.id)))
        if hostile.name(found.acp) in {"cost", "used"}:
            return _spent(state, found)
        return _with(state, *_facts(state.reading, found, now))

    def finish(self, state: Session, status: int | None) -> Ended:
        """Return the end of the session."""
        return reading.closed(state.reading, status)


def _with(state: Session, after: Reading, facts: tuple[Fact, ...] = ()) -> Step:
    return msgspec.structs.replace(state, reading=after), facts


def _facts(state: Reading, line: _Line, now: Now) -> reading.Step:
    reader = _READERS.get(hostile.name(line.acp))
    return reader(state, line, now) if reader else (state, ())


def _tool(state: Reading, line: _Line, _now: Now) -> reading.Step:
    tool, subject = hostile.name(line.kind) or ANY_TOOL, hostile.sentence(line.subject)
    return reading.started(state, Work.TOOL, hostile.name(line.id), tool, subject)


def _tool_over(state: Reading, line: _Line, _now: Now) -> reading.Step:
    return reading.ended(state, Work.TOOL, hostile.name(line.id), ok=line.ok is True)


def _denied(state: Reading, line: _Line, _now: Now) -> reading.Step:
    tool = hostile.name(line.kind) or ANY_TOOL
    return reading.denied(state, hostile.name(line.id), tool, hostile.sentence(line.reason))


def _text(state: Reading, line: _Line, _now: Now) -> reading.Step:
    return reading.said(state, hostile.sentence(line.text))


def _taken(state: Reading, line: _Line, _now: Now) -> reading.Step:
    number = hostile.count(line.number)
    fresh = reading.once(state, f"taken {number}") if number else None
    return (state, ()) if fresh is None else (fresh, (MessageTaken(number),))


def _turn(state: Reading, _line: _Line, _now: Now) -> reading.Step:
    return msgspec.structs.replace(state, outcome=None), ()


def _turn_over(state: Reading, line: _Line, _now: Now) -> reading.Step:
    outcome, reason = _STOPS.get(
        hostile.name(line.reason), (Outcome.FAILED, "the turn has ended for an unknown reason")
    )
    return reading.judged(state, outcome, reason or state.last), ()


def _failed(state: Reading, line: _Line, now: Now) -> reading.Step:
    outcome = _OUTCOMES.get(hostile.name(line.outcome))
    return reading.failed(state, hostile.sentence(line.text) or "the agent has failed", now, outcome)


def _error(state: Reading, line: _Line, now: Now) -> reading.Step:
    """Read a line of the program's standard error; opencode says there why it tries again."""
    text = hostile.sentence(line.text)
    logged = opencode.LOGGED.match(text)
    return reading.troubled(state, logged[1], now) if logged else (reading.noted(state, text), ())


_READERS: Final[dict[str, Callable[[Reading, _Line, Now], reading.Step]]] = {
    "tool": _tool,
    "tool_over": _tool_over,
    "denied": _denied,
    "text": _text,
    "taken": _taken,
    "turn": _turn,
    "turn_over": _turn_over,
    "failed": _failed,
    "error": _error,
}


def _spent(state: Session, line: _Line) -> Step:
    """Read a new cost of the conversation, or the tokens of one turn, which count once."""
    after = state.reading
    if line.acp == "used":
        used = Tokens(
            hostile.count(line.input),
            hostile.count(line.cache_read),
            hostile.count(line.cache_write),
            hostile.count(line.output),
        )
        fresh = reading.once(after, f"used {hostile.integer(line.turn)}")
        after = after if fresh is None else msgspec.structs.replace(fresh, spent=fresh.spent.plus(Cost(used)))
    elif line.currency == "USD" and (amount := hostile.microusd(line.amount)) is not None:
        state = msgspec.structs.replace(state, microusd=max(amount, state.microusd or 0))
    if state.microusd is None:
        return _with(state, *reading.spent(after, after.spent, Counted.SESSION))
    total = Cost(after.spent.tokens.plus(state.before), state.microusd)
    return _with(state, *reading.spent(after, total, Counted.CONVERSATION))
