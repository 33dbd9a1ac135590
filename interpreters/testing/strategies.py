"""Hypothesis strategies: events, traces of a machine, runs of a system.

All of them are derived from the machines, as in the checker (``core/kernel/environment.py``): operator commands,
reports of activities, timers, confirmations, recoveries. Every drawn value is legal by construction, so no example is
rejected; examples shrink to fewer inputs and less time.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple
from zlib import crc32

from hypothesis import strategies as st

from lifefold.core.kernel import Entity, Envelope, Machine, Reaction, Refusal, System, advance, create, possible_of
from lifefold.interpreters.called import must_be
from lifefold.interpreters.testing.run import Opening, Run, run_of
from lifefold.interpreters.testing.trace import Taken, Trace, what

LATER_MS: Final = 10_000
"""The longest pause before an input; a timer may make it longer."""

PATIENCE: Final = 25
"""About one trace in so many ends with each input, so that an example shrinks by removing any of its inputs."""

WEIGHT: Final = 4
"""The weight of inputs that do not end a lifecycle, so that traces are not too short."""

NUMBERS: Final = 2**16
"""The number of values that select the next input."""

ENTITY: Final = "an Entity, such as trace.entity; within a strategy draw it first, or traces(...).flatmap(...)"


def events(
    machine: Machine[Any], entity: Entity[Any] | None = None, *, now_ms: int = 0, refused: bool = False
) -> st.SearchStrategy[Envelope]:
    """Draw an input that the entity accepts, at ``now_ms`` or later; with ``refused``, also one that it may refuse.

    Without an entity it is a new one. If no input is possible there is nothing to draw. Raises ``TypeError`` for any
    other value, such as a strategy of entities.
    """
    must_be(machine, Machine, "a Machine")
    must_be(entity, (Entity, type(None)), ENTITY)
    found = create(machine, machine.name, machine.initial, now_ms, "test").entity if entity is None else entity
    may_come = [each.envelope for each in possible_of(machine, found, now_ms)]
    return st.sampled_from(
        [each for each in may_come if refused or not isinstance(advance(machine, found, each), Refusal)]
    )


def traces(machine: Machine[Any], *, max_size: int = 20) -> st.SearchStrategy[Trace]:
    """Draw a trace of a machine: its beginning, and then up to ``max_size`` inputs, each as late as possible."""
    return _runs(partial(run_of, machine, None), max_size)


def systems(system: System, opening: Opening, *, max_size: int = 30) -> st.SearchStrategy[Trace]:
    """Draw a run of a system after its opening: inputs, and messages that arrive late, or twice.

    Messages between two aggregates stay in order. A repeated message is refused, and is in the trace.
    """
    begins = tuple(opening)
    return _runs(partial(run_of, system, begins), max_size)


@st.composite
def _runs(draw: st.DrawFn, begin: Callable[[], Run], max_size: int) -> Trace:
    run = begin()
    for _ in range(max_size):
        if draw(st.integers(0, PATIENCE)) == 0:
            break
        moves = list(_moves(run, draw(st.integers(0, LATER_MS))))
        if not moves:
            break
        number = draw(st.integers(0, NUMBERS - 1))
        min(moves, key=lambda each: each.rank(number)).make()
    return run.trace


class Move(NamedTuple):
    """A possible input, with a name that does not depend on the other possible inputs.

    The choice among several moves by a number depends on their names alone. So a run stays similar when an earlier
    input is removed, and examples shrink well.
    """

    name: str
    weight: int
    make: Callable[[], Taken]

    def rank(self, number: int) -> int:
        """Return its rank for this number: the move with the lowest is made, with a probability by its weight."""
        return min(crc32(f"{number} {each} {self.name}".encode()) for each in range(self.weight))


def _moves(run: Run, later_ms: int) -> Iterator[Move]:
    """Yield the possible moves: inputs that are accepted, messages that arrive, and some that arrive again."""
    world = run.world
    for given in (each for name in world.aggregates for each in world.choices_of(name, later_ms)):
        taken = run.attempt(given)
        if isinstance(taken.outcome, Reaction):
            weight = 1 if _ends(world.system, taken) else WEIGHT
            name = f"{given.aggregate} {given.envelope.entity} {what(given.envelope)}"
            yield Move(name, weight, partial(run.keep, taken))
    for channel in world.next_messages():
        yield Move(f"{channel}", WEIGHT, partial(run.deliver, channel))
    for channel in run.delivered:
        yield Move(f"{channel} again", WEIGHT, partial(run.deliver_again, channel))


def _ends(system: System, taken: Taken) -> bool:
    """Tell whether an entity enters a final state."""
    machines = system.type_of(taken.aggregate).machines
    transitions = taken.outcome.transitions if isinstance(taken.outcome, Reaction) else ()
    return any(each.entered in machines[each.machine].final for each in transitions)
