"""One cooperative agent's life for the tests, through the kernel: an entity, and a clock that is moved by hand."""

from typing import Final, TypeVar

from lifefold.core.kernel import Entity, EntityStep, Envelope, Event, Machine, Refusal, TimerFired, advance, create
from lifefold.core.lifecycles import runtime
from lifefold.core.lifecycles.runtime import (
    Complete,
    DeadlinePassed,
    Fail,
    Limits,
    Recover,
    Resume,
    Run,
    Runtime,
    Schedule,
    SectionEntered,
    Shutdown,
    Start,
    State,
    Suspend,
    Wait,
    WaitResources,
)
from lifefold.effects import Effect

E = TypeVar("E", bound=Effect)


class AgentLife:
    """An agent's entity and what came of the last input."""

    def __init__(self, machine: Machine[Runtime] = runtime.machine, limits: Limits | None = None) -> None:
        """Begin at time 0."""
        self.machine: Final = machine
        self.now_ms = 0
        first = create(machine, "runtime", Runtime(agent_id="a", limits=limits or Limits()), 0, "test")
        self.entity: Entity[Runtime] = first.entity
        self.effects: tuple[Effect, ...] = first.effects

    @property
    def record(self) -> Runtime:
        return self.entity.record

    @property
    def state(self) -> State:
        return self.record.state

    def give(self, event: Event) -> EntityStep | Refusal:
        """Offer an event and keep what comes of it."""
        answer = advance(self.machine, self.entity, Envelope("runtime", event, self.now_ms))
        self.effects = answer.effects if isinstance(answer, EntityStep) else ()
        if isinstance(answer, EntityStep):
            self.entity = answer.entity
        return answer

    def take(self, *events: Event) -> "AgentLife":
        """Give events, all of which must be accepted."""
        for event in events:
            answer = self.give(event)
            assert isinstance(answer, EntityStep), answer.reason
        return self

    def refuses(self, event: Event) -> bool:
        """Give an event and tell whether it was refused with nothing changed."""
        before = self.entity
        return isinstance(self.give(event), Refusal) and self.entity is before

    def wait(self, ms: int) -> "AgentLife":
        """Let time go on."""
        self.now_ms += ms
        return self

    def elapse(self, slot: str, *, early_ms: int = 0) -> EntityStep | Refusal:
        """Let the time go on to a timer's deadline and report it."""
        timer = self.entity.find(slot)
        assert timer is not None, f"{slot} does not run"
        self.now_ms = timer.deadline_ms - early_ms
        return self.give(TimerFired(slot, timer.generation))

    def deadline(self) -> bool:
        """Say that a deadline of preemption may have passed; tell whether it has."""
        return isinstance(self.give(DeadlinePassed()), EntityStep)

    def asked(self, kind: type[E]) -> list[E]:
        """Return the effects of this type that the last input asked for."""
        return [effect for effect in self.effects if isinstance(effect, kind)]


PATHS: Final[dict[State, tuple[Event, ...]]] = {
    State.INITIALIZING: (),
    State.RUNNABLE: (Start(),),
    State.SCHEDULED: (Start(), Schedule("T1")),
    State.RUNNING: (Start(), Schedule("T1"), Run()),
    State.WAITING: (Start(), Schedule("T1"), Run(), Wait()),
    State.WAITING_RESOURCES: (Start(), Schedule("T1"), Run(), WaitResources()),
    State.SUSPENDED: (Start(), Schedule("T1"), Run(), Suspend()),
    State.RESUMED: (Start(), Schedule("T1"), Run(), Suspend(), Resume()),
    State.COMPLETED: (Start(), Schedule("T1"), Run(), Complete()),
    State.FAILED: (Start(), Schedule("T1"), Run(), Fail("it broke")),
    State.SHUTTING_DOWN: (Start(), Schedule("T1"), Run(), Shutdown()),
    State.RECOVERING: (Start(), Schedule("T1"), Run(), Fail("it broke"), Recover()),
}
"""How each state is come to by the table."""


def in_state(state: State, machine: Machine[Runtime] = runtime.machine, limits: Limits | None = None) -> AgentLife:
    """Return a life that came to this state by the table."""
    return AgentLife(machine, limits).take(*PATHS[state])


def running(limits: Limits | None = None, machine: Machine[Runtime] = runtime.machine) -> AgentLife:
    """Return a life with its first task, RUNNING."""
    return in_state(State.RUNNING, machine, limits)


def inside(life: AgentLife, *within_ms: int | None) -> AgentLife:
    """Let an agent enter critical sections, one in the other; their keys count from 1."""
    return life.take(*(SectionEntered(key, limit) for key, limit in enumerate(within_ms, 1)))
