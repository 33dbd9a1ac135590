"""A run as text: its deviations, and the last inputs before a property broke."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from lifefold.core.kernel import Input, Refusal, System, SystemStep, World
from lifefold.interpreters.report.trace import WIDTH, Trace, wrapped
from lifefold.interpreters.simulate.choices import Name
from lifefold.interpreters.simulate.simulation import Run

AROUND: Final = 15
"""The number of inputs that are shown."""


def steps(system: System, entries: Iterable[Input]) -> Iterator[SystemStep]:
    """Fold a log again, and yield its steps."""
    world = World(system)
    for each in entries:
        came = world.step(each)
        assert not isinstance(came, Refusal)  # noqa: S101 - the log holds accepted inputs only
        world, step = came
        yield step


def last_lines(system: System, entries: Sequence[Input], width: int = WIDTH) -> Iterator[str]:
    """Yield the last inputs with their transitions, after the number of inputs before them."""
    before = len(entries) - AROUND
    if before > 0:
        yield f"     {before:,} inputs before, and then:"
    yield from last_steps(system, entries).lines(width)


def last_steps(system: System, entries: Sequence[Input]) -> Trace:
    """Return the last steps of a run as a trace."""
    return Trace(tuple(islice(steps(system, entries), max(0, len(entries) - AROUND), None)))


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
