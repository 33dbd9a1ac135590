"""A run as text: its deviations, and the last inputs before a property broke."""

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
"""The number of inputs that are shown."""


def happenings(system: System, entries: Iterable[Entry]) -> Iterator[Happening]:
    """Fold a log again, and yield each input with its reaction."""
    aggregates: dict[str, Aggregate] = {}
    for name, envelope in entries:
        of = system.type_of(name)
        reaction = react(of, aggregates.get(name) or of.start(name), envelope)
        assert isinstance(reaction, Reaction)  # noqa: S101 - the log holds accepted inputs only
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
    """Yield the last inputs with their transitions, after the number of inputs before them."""
    before = max(0, len(entries) - AROUND)
    if before:
        yield f"     {before:,} inputs before, and then:"
    yield from Trace(tuple(islice(happenings(system, entries), before, None))).lines(width)


def told(system: System, run: Run) -> str:
    """Return the broken property of a run with its last inputs; an empty text if no property broke."""
    if run.found is None:
        return ""
    broken = f"{run.found.owner}: {run.found.prop}: broken: not so of {run.found.of}"
    return "\n".join([broken, *last_lines(system, run.entries)])


def deviation_lines(deviations: Mapping[Name, int], width: int = WIDTH) -> Iterator[str]:
    """Yield a line for each deviation."""
    if not deviations:
        yield "     no deviations"
        return
    count = len(deviations)
    yield f"     {'one deviation' if count == 1 else f'{count} deviations'}:"
    for number, (name, way) in enumerate(deviations.items(), 1):
        yield from wrapped(f"     {number:>2}. ", in_words(name, way), width)


def in_words(name: Name, way: int) -> str:
    """Return a deviation in words: its kind, its subject, and the option that was taken."""
    kind, *about = name
    of = ", ".join(str(each) for each in about)
    match kind:
        case "takes":
            return f"{of}: takes {way:,} ms more than the least"
        case "by":
            return f"{of}: by {way:,} ms more than the least"
        case "which end":
            return f"{of}: ends in way {way + 1} of its possible ways, not in way 1"
        case str() if kind in _OPERATORS:
            return f"opportunity {of} of operators: {_OPERATORS[kind].format(way + 1)}"
        case _:
            return f"{kind}: {of}"


_OPERATORS: Final = {
    "operators": "an operator gives a command",
    "to whom": "to aggregate {}, not to the first",
    "needless": "a command that may change nothing",
    "spares": "no command that ends a lifecycle",
    "what": "type {} of the possible commands, not the first",
    "which": "command {} of that type, not the first",
}
"""The meaning of a deviation of operators. ``{}`` is the option that was taken, counted from one."""
