"""One agent's life for the tests: an entity, a clock that stands still until told, and the events of what goes on."""

from collections.abc import Callable
from typing import Any

from lifefold.core.kernel import (
    ActivityEnded,
    Entity,
    EntityStep,
    Envelope,
    Event,
    Machine,
    Phase,
    Refusal,
    Running,
    TimerFired,
    advance,
    create,
)
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session import (
    Error,
    FatalError,
    OperatorStop,
    PromptReady,
    Session,
    SessionExited,
    SessionStarted,
    State,
    Success,
    UrgentMessage,
    WorktreeReady,
)
from lifefold.effects import Effect


class Life:
    """A session's entity and what came of the last input: ``effects`` and ``refusals``."""

    def __init__(self, record: Session | None = None, machine: Machine[Any] = session.machine) -> None:
        """Begin a life at time 0."""
        self.machine = machine
        self.now_ms = 0
        first = create(machine, "session", record or machine.initial, 0, "test")
        self.entity: Entity[Any] = first.entity
        self.effects: tuple[Effect, ...] = first.effects
        self.refusals: tuple[Refusal, ...] = ()

    @property
    def record(self) -> Session:
        """The record as it is now."""
        record: Session = self.entity.record
        return record

    @property
    def state(self) -> State:
        """The state as it is now."""
        return self.record.state

    def give(self, event: Event, *, slot: str = "", generation: int = 0) -> EntityStep | Refusal:
        """Offer an event to the entity and keep what it becomes."""
        return self.offer(Envelope("session", event, self.now_ms, "test", slot=slot, generation=generation))

    def offer(self, envelope: Envelope) -> EntityStep | Refusal:
        """Offer an envelope to the entity and keep what it becomes."""
        answer = advance(self.machine, self.entity, envelope)
        if isinstance(answer, EntityStep):
            self.entity, self.effects, self.refusals = answer.entity, answer.effects, answer.refusals
        else:
            self.effects, self.refusals = (), (answer,)
        return answer

    def take(self, *events: Event) -> "Life":
        """Give events, each in the name of the activity that yields it if one does; all must be accepted."""
        for event in events:
            part = self._source(event)
            answer = self.give(event, slot=part.slot, generation=part.generation) if part else self.give(event)
            assert isinstance(answer, EntityStep), answer.reason
        return self

    def _source(self, event: Event) -> Running | None:
        for part in self.entity.running:
            if part.phase is Phase.LIVE and type(event) in self.machine.spans[part.slot].during.yields:
                return part
        return None

    def part(self, slot: str, phase: Phase = Phase.LIVE) -> Running:
        """Return what goes on in a slot; there must be something."""
        part = self.entity.find(slot, phase)
        assert part is not None, f"{slot} is not {phase}: {self.entity.running}"
        return part

    def elapse(self, slot: str, *, early_ms: int = 0) -> EntityStep | Refusal:
        """Let the time go on to a timer's deadline and report it."""
        timer = self.part(slot)
        self.now_ms = timer.deadline_ms - early_ms
        return self.give(TimerFired(slot, timer.generation))

    def confirm(self, slot: str) -> EntityStep | Refusal:
        """Confirm the end of what is ending in a slot."""
        return self.give(ActivityEnded(slot, self.part(slot, Phase.ENDING).generation))

    def settle(self) -> "Life":
        """Confirm the end of everything that is ending."""
        for part in self.entity.running:
            if part.phase is Phase.ENDING:
                self.confirm(part.slot)
        return self


def spawning(record: Session | None = None, machine: Machine[Any] = session.machine) -> Life:
    """Return a life whose first session is being spawned."""
    return Life(record, machine).take(WorktreeReady(), PromptReady("do it")).settle()


def running(record: Session | None = None, machine: Machine[Any] = session.machine) -> Life:
    """Return a life whose first session runs."""
    life = spawning(record, machine)
    return life.take(SessionStarted(life.record.session_seq))


COMES_TO: dict[State, Callable[[], Life]] = {
    State.INITIALIZING: Life,
    State.BUILDING_PROMPT: lambda: Life().take(WorktreeReady()),
    State.SPAWNING: spawning,
    State.RUNNING: running,
    State.INTERRUPTING: lambda: running().take(UrgentMessage()),
    State.SESSION_COMPLETE: lambda: running().take(SessionExited(Success())),
    State.COOLING_DOWN: lambda: running().take(SessionExited(Error("x"))),
    State.STOPPED: lambda: Life().take(OperatorStop(), FatalError("again")),
}


def in_state(state: State) -> Life:
    """Return a life that came to this state by the table."""
    return COMES_TO[state]()
