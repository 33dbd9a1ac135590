"""Any command: a process that is judged by its exit status, by the last result in its output, and by its last line.

A line ``{"lifefold": {"cost_usd": 0.12, "input_tokens": 1, "output_tokens": 2}}`` has the total of the session up to
then. Totals in the forms of Claude Code and Codex are read, too, because scripts run these programs; several
conversations add up. Claude Code's ``--output-format json --verbose`` is an array of all messages in one line.

A result that reports an error is a failure, also with exit status 0.
"""

from typing import Any, Final

import msgspec

from lifefold.core.policy import ends
from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters import hostile, last_words, reading, verdicts
from lifefold.interpreters.adapters.adapter import MAX_LINE_BYTES, Brief, Conversation, Now, Reports
from lifefold.interpreters.adapters.claude import Claude
from lifefold.interpreters.adapters.codex import Codex
from lifefold.interpreters.adapters.facts import ConversationBegan, Cost, Counted, Ended, Spent, Tokens
from lifefold.interpreters.adapters.last_words import LastWords
from lifefold.interpreters.adapters.login import Login
from lifefold.interpreters.adapters.reading import Reading

COMMAND: Final = "command"
"""The name of the adapter; an agent in Python and a service are commands, too."""

_SIGNALS: Final = 128
_KNOWN: Final = (Claude(), Codex())


class _Line(msgspec.Struct, frozen=True):
    """The relevant fields of a line, of any type, because agents write them."""

    type: Any = None
    lifefold: Any = None


_DECODER: Final = hostile.decoder(_Line)
_ARRAYS: Final = msgspec.json.Decoder(list[dict[str, Any]], float_hook=str)


class Sum(Reading, frozen=True):
    """What was read so far.

    ``own`` is the last cost in lifefold's own form, which precedes all others. ``words`` are those of the last line
    with text, and ``error`` those of the last result if it reports an error. ``reported`` is the total of
    the last fact.
    """

    own: Cost | None = None
    words: LastWords = LastWords()
    error: LastWords | None = None
    reported: Cost = Cost()

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

    name = COMMAND
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
        """Return the facts of one line. A program draws several over each other with carriage returns."""
        facts: reading.Facts = ()
        for part in line.split(b"\r") if len(line) <= MAX_LINE_BYTES else ():
            state, more = _part(state, part, now)
            facts += more
        return state, facts

    def finish(self, state: Sum, status: int | None) -> Ended:
        """Return the end of the session: its exit status, and its last words for people."""
        if status == 0 and state.error is None:
            return Ended(Outcome.SUCCESS, state.words.said)
        if status == 0 and state.error is not None:
            words = state.error
            how, outcome = "its result reports an error, with exit status 0", verdicts.known(words.known)
        else:
            words = state.words
            signalled = status is None or status < 0 or status > _SIGNALS
            how, outcome = _how(status), None if signalled else verdicts.known(words.known, status)
        reason = f"{how}: {words.shown}" if words.shown else how
        is_own = status is not None and status >= 0  # a signal is no end by the program's own will
        return Ended(outcome or Outcome.CRASHED, reason, words.known if is_own else "")


def _how(status: int | None) -> str:
    if status is None:
        return "ended in an unknown way"
    return f"ended by signal {-status}" if status < 0 else f"exit status {status}{ends.in_words(status)}"


def _part(state: Sum, line: bytes, now: Now) -> Reads:
    found = hostile.decoded(_DECODER, line)
    own = own_cost(found.lifefold) if found else None
    if own is not None:
        return _counted(msgspec.structs.replace(state, own=own))
    objects = last_words.objects_of(line)
    words = last_words.of_line(line, objects)
    if words.shown:
        error = last_words.of_result(objects, state.error)
        state = msgspec.structs.replace(state, words=words, error=error)
    before = state.conversation
    if line.lstrip().startswith(b"["):
        state = _array(state, line, now)
    elif found and hostile.name(found.type) in _TYPES:
        state = _known(state, line, now)
    state, spent = _counted(state)
    return state, (*(() if state.conversation == before else (ConversationBegan(state.conversation),)), *spent)


def _counted(state: Sum) -> Reads:
    """Return the new total of the session as a fact, if it is higher than the last one."""
    total = reading.highest(state.reported, state.total)
    if total == state.reported:
        return state, ()
    return msgspec.structs.replace(state, reported=total), (Spent("", total, Counted.SESSION),)


def _array(state: Sum, line: bytes, now: Now) -> Sum:
    """Read an array of objects; the last ones have the costs."""
    try:
        objects = _ARRAYS.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return state
    for each in objects[-hostile.MOST_ITEMS :]:
        text = msgspec.json.encode(each)
        found = hostile.decoded(_DECODER, text)
        if found and hostile.name(found.type) in _TYPES:
            state = _known(state, text, now)
    return state


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


def _known(state: Sum, line: bytes, now: Now) -> Sum:
    """Read a total in the form of a known program."""
    kept: Reading = state
    for program in _KNOWN:
        kept, _ = program.read(kept, line, now)
    return msgspec.structs.replace(state, conversation=kept.conversation, totals=kept.totals)
