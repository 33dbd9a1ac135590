"""A run as people read it: what was not orderly in it, and what happened around the moment at which it broke."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from lifefold.core.kernel import (
    ActivityEnded,
    Aggregate,
    Cause,
    Envelope,
    Reaction,
    RunnerRecovered,
    System,
    TimerFired,
    react,
)
from lifefold.interpreters.search.trace import WIDTH, Trace, wrapped
from lifefold.interpreters.search.unreduced import Happening
from lifefold.interpreters.simulate.choices import Name
from lifefold.interpreters.simulate.inputs import Entry
from lifefold.interpreters.simulate.simulation import Run

AROUND: Final = 15
"""How many inputs before the end are shown."""


def happenings(system: System, entries: Iterable[Entry]) -> Iterator[Happening]:
    """Fold a journal again, and yield what came of every input."""
    aggregates: dict[str, Aggregate] = {}
    for name, envelope in entries:
        of = system.type_of(name)
        reaction = react(of, aggregates.get(name) or of.start(name), envelope)
        assert isinstance(reaction, Reaction)  # noqa: S101 - it is on record because it was taken
        aggregates[name] = reaction.aggregate
        yield Happening(name, _cause(envelope), envelope, reaction)


def _cause(envelope: Envelope) -> Cause:
    if envelope.sender:
        return Cause.MESSAGE
    match envelope.event:
        case TimerFired():
            return Cause.TIMER
        case ActivityEnded():
            return Cause.CONFIRMATION
        case RunnerRecovered():
            return Cause.RECOVERY
        case _:
            return Cause.REPORT if envelope.slot else Cause.COMMAND


def last_lines(system: System, entries: Sequence[Entry], width: int = WIDTH) -> Iterator[str]:
    """Yield the last inputs, each with what it moved, and how many there were before."""
    before = max(0, len(entries) - AROUND)
    if before:
        yield f"     {before:,} inputs before, and then:"
    yield from Trace(tuple(islice(happenings(system, entries), before, None))).lines(width)


def told(system: System, run: Run) -> str:
    """Return what is broken in a run, and what happened last before; nothing, if nothing is."""
    if run.found is None:
        return ""
    broken = f"{run.found.owner}: {run.found.prop}: broken: not so of {run.found.of}"
    return "\n".join([broken, *last_lines(system, run.entries)])


def deviation_lines(deviations: Mapping[Name, int], width: int = WIDTH) -> Iterator[str]:
    """Yield what was not orderly, a line each."""
    if not deviations:
        yield "     all orderly"
        return
    count = len(deviations)
    yield f"     all orderly, but for {'one choice' if count == 1 else f'{count} choices'}:"
    for number, (name, way) in enumerate(deviations.items(), 1):
        yield from wrapped(f"     {number:>2}. ", in_words(name, way), width)


def in_words(name: Name, way: int) -> str:
    """Return a deviation in words: what kind it is, about what, and which of the ways it went."""
    kind, *about = name
    of = ", ".join(str(each) for each in about)
    match kind:
        case "takes":
            return f"{of}: takes {way:,} ms more than the least"
        case "by":
            return f"{of}: by {way:,} ms more than the least"
        case "which end":
            return f"{of}: ends in way {way + 1} of those that it may, not in way 1"
        case str() if kind in _SAID:
            return f"time {of} that people may speak: {_SAID[kind].format(way + 1)}"
        case _:
            return f"{kind}: {of}"


_SAID: Final = {
    "people": "somebody does",
    "to whom": "to aggregate {} of those that there are, not to the first",
    "needless": "be it of any use or not",
    "spares": "nothing that would be the end of something",
    "what": "kind {} of what may be said, not the first",
    "which": "number {} of that kind, not the first",
}
"""What a choice of people means that is not the orderly one. ``{}`` is the way it went, counted from one."""
