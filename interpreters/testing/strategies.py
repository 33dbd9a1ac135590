"""What may happen, as hypothesis strategies: events, traces of a machine, runs of a system.

All of it is read off the machines, as the checker does it (``core/kernel/environment.py``): what people may say, what
activities may report, timers, confirmations, a runner that comes back. What is drawn is legal by construction, so that
no example is thrown away; examples become smaller by fewer inputs and less time.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple
from zlib import crc32

from hypothesis import strategies as st

from lifefold.core.kernel import Entity, Envelope, Machine, Reaction, Refusal, System, advance, create, possible_of
from lifefold.interpreters.called import must_be
from lifefold.interpreters.testing.trace import Taken, Trace, what
from lifefold.interpreters.testing.world import Opening, World, world_of

LATER_MS: Final = 10_000
"""How long there is nothing before an input, at most; a timer may make it longer."""

PATIENCE: Final = 25
"""One life in about so many ends with each input; so an example becomes shorter by leaving out any of its inputs."""

WEIGHT: Final = 4
"""How much more likely an input is that does not end a life: otherwise lives would be short."""

NUMBERS: Final = 2**16
"""How many numbers there are that say what happens next."""

ENTITY: Final = "an Entity, such as trace.entity; within a strategy draw it first, or traces(...).flatmap(...)"


def events(
    machine: Machine[Any], entity: Entity[Any] | None = None, *, now_ms: int = 0, refused: bool = False
) -> st.SearchStrategy[Envelope]:
    """Draw an input that the entity takes, at ``now_ms`` or later; with ``refused``, also one that it may refuse.

    Without an entity it is one that has just begun. Where nothing can happen there is nothing to draw.
    Raises ``TypeError`` for anything else, such as a strategy of entities.
    """
    must_be(machine, Machine, "a Machine")
    must_be(entity, (Entity, type(None)), ENTITY)
    found = create(machine, machine.name, machine.initial, now_ms, "test").entity if entity is None else entity
    may_come = [each.envelope for each in possible_of(machine, found, now_ms)]
    return st.sampled_from(
        [each for each in may_come if refused or not isinstance(advance(machine, found, each), Refusal)]
    )


def traces(machine: Machine[Any], *, max_size: int = 20) -> st.SearchStrategy[Trace]:
    """Draw a life of a machine: it begins, and then takes up to ``max_size`` inputs, each as late as may be."""
    return _runs(partial(world_of, machine, None), max_size)


def systems(system: System, opening: Opening, *, max_size: int = 30) -> st.SearchStrategy[Trace]:
    """Draw a run of a system that is opened: inputs, and messages that arrive late, or twice.

    Messages from one aggregate to another stay in order. What arrives again is refused, and stands in the trace.
    """
    begins = tuple(opening)
    return _runs(partial(world_of, system, begins), max_size)


@st.composite
def _runs(draw: st.DrawFn, begin: Callable[[], World], max_size: int) -> Trace:
    world = begin()
    for _ in range(max_size):
        if draw(st.integers(0, PATIENCE)) == 0:
            break
        moves = list(_moves(world, draw(st.integers(0, LATER_MS))))
        if not moves:
            break
        number = draw(st.integers(0, NUMBERS - 1))
        min(moves, key=lambda each: each.rank(number)).make()
    return world.trace


class Move(NamedTuple):
    """What may happen next, by a name that does not depend on what else may happen.

    Which of several moves a number means follows from their names alone: so a run stays the same, as far as it can,
    when an input before is left out, and examples become small.
    """

    name: str
    weight: int
    make: Callable[[], Taken]

    def rank(self, number: int) -> int:
        """Return the rank of it by this number: the lowest is made, and each is so equally often for its weight."""
        return min(crc32(f"{number} {each} {self.name}".encode()) for each in range(self.weight))


def _moves(world: World, later_ms: int) -> Iterator[Move]:
    """Yield what may happen next: inputs that are taken, messages that arrive, and some that arrive again."""
    for name, envelope in world.possible(later_ms):
        taken = world.attempt(name, envelope)
        if isinstance(taken.outcome, Reaction):
            weight = 1 if _ends(world, taken) else WEIGHT
            yield Move(f"{name} {envelope.entity} {what(envelope)}", weight, partial(world.keep, taken))
    for channel in world.channels:
        yield Move(f"{channel}", WEIGHT, partial(world.deliver, channel))
    for channel, tell in world.delivered.items():
        yield Move(f"{channel} again", WEIGHT, partial(world.take, channel[1], world.message(channel, tell)))


def _ends(world: World, taken: Taken) -> bool:
    """Tell whether an entity comes to a final state."""
    machines = world.system.type_of(taken.aggregate).machines
    transitions = taken.outcome.transitions if isinstance(taken.outcome, Reaction) else ()
    return any(each.entered in machines[each.machine].final for each in transitions)
