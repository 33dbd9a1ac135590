"""Any command: a process that is judged by its exit status and its last line.

A line ``{"lifefold": {"cost_usd": 0.12, "input_tokens": 1, "output_tokens": 2}}`` has the total of the session up to
then. Totals in the forms of Claude Code and Codex are read, too, because scripts run these programs; several
conversations add up. Claude Code's ``--output-format json --verbose`` is an array of all messages in one line.
"""

from typing import Any, Final

import msgspec

from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import hostile, reading, verdicts
from lifefold.interpreters.adapters.adapter import Brief, Conversation, Now, Reports
from lifefold.interpreters.adapters.claude import Claude
from lifefold.interpreters.adapters.codex import Codex
from lifefold.interpreters.adapters.facts import ConversationBegan, Cost, Counted, Ended, Spent, Tokens
from lifefold.interpreters.adapters.login import Login
from lifefold.interpreters.adapters.reading import Reading

_SIGNALS: Final = 128
_KNOWN: Final = (Claude(), Codex())


class _Line(msgspec.Struct, frozen=True):
    """The relevant fields of a line, of any type, because agents write them."""

    type: Any = None
    lifefold: Any = None


_DECODER: Final = hostile.decoder(_Line)
_ARRAYS: Final = msgspec.json.Decoder(list[dict[str, Any]], float_hook=str)


class Sum(Reading, frozen=True):
    """What was read so far; ``own`` is the last cost in lifefold's own form, which precedes all others."""

    own: Cost | None = None

    @property
    def total(self) -> Cost:
        """The cost of the session."""
        total = Cost()
        for each in self.totals:
            total = total.plus(each.cost)
        return total if self.own is None else self.own


Reads = tuple[Sum, reading.Facts]
"""The next state, and the new facts."""


class Command:
    """A command without a format of its own."""

    name = "command"
    initial = Sum()
    resumable = False
    chooses_conversation = False
    reports = Reports.USD
    tested_versions: tuple[str, ...] = ()
    version_argv: tuple[str, ...] = ()
    login = Login()

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:  # noqa: ARG002  # it has none
        """Return the arguments, which are the command, with the prompt in the place of ``{prompt}``."""
        return tuple(each.replace("{prompt}", brief.prompt) for each in brief.arguments)

    def read(self, state: Sum, line: bytes, now: Now) -> Reads:
        """Return the facts of one line; the last line with text is kept."""
        found = hostile.decoded(_DECODER, line)
        own = own_cost(found.lifefold) if found else None
        if own is not None:
            kept, facts = reading.spent(state, own, Counted.SESSION)
            return msgspec.structs.replace(state, own=own, totals=kept.totals), facts
        text = hostile.plain(line)
        if text:
            state = msgspec.structs.replace(state, last=text[: reading.SENTENCE_CHARS])
        if line.lstrip().startswith(b"["):
            return self._array(state, line, now)
        return _known(state, line, now) if found and hostile.name(found.type) in _TYPES else (state, ())

    def _array(self, state: Sum, line: bytes, now: Now) -> Reads:
        """Read an array of objects; the last ones have the costs."""
        try:
            objects = _ARRAYS.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return state, ()
        facts: reading.Facts = ()
        for each in objects[-hostile.MOST_ITEMS :]:
            text = msgspec.json.encode(each)
            found = hostile.decoded(_DECODER, text)
            if found and hostile.name(found.type) in _TYPES:
                state, more = _known(state, text, now)
                facts += more
        return state, facts

    def finish(self, state: Sum, status: int | None) -> Ended:
        """Return the end of the session: its exit status, and its last line for people."""
        if status == 0:
            return Ended(Outcome.SUCCESS, state.last)
        if status is None:
            how = "ended in an unknown way"
        else:
            how = f"ended by signal {-status}" if status < 0 else f"exit status {status}"
        reason = f"{how}: {state.last}" if state.last else how
        signalled = status is None or status < 0 or status > _SIGNALS
        words = None if signalled else verdicts.known(state.last, status)
        return Ended(words or Outcome.CRASHED, reason)


_TYPES: Final = frozenset({"result", "thread.started", "turn.completed"})


def own_cost(said: Any) -> Cost | None:
    """Return the cost in lifefold's own form; None without any figure that can be."""
    figures = hostile.table(said)
    microusd = hostile.microusd(figures.get("cost_usd"))
    counts = [figures.get(key) for key in ("input_tokens", "output_tokens")]
    if microusd is None and all(hostile.integer(each) is None for each in counts):
        return None
    read, written = map(hostile.count, counts)
    return Cost(Tokens(input=read, output=written), microusd)


def is_cost(line: bytes) -> bool:
    """Tell whether a line is a cost in lifefold's own form."""
    found = hostile.decoded(_DECODER, line)
    return found is not None and own_cost(found.lifefold) is not None


def _known(state: Sum, line: bytes, now: Now) -> Reads:
    """Read a total in the form of a known program."""
    kept: Reading = state
    facts: reading.Facts = ()
    for program in _KNOWN:
        kept, more = program.read(kept, line, now)
        facts += tuple(each for each in more if isinstance(each, ConversationBegan | Spent))
    named = {"conversation": kept.conversation, "totals": kept.totals}
    return msgspec.structs.replace(state, **named), facts
