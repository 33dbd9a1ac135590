"""One process's life by itself: its machine over the kernel's ``create`` and ``advance``, a virtual clock, its news."""

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
    RunnerRecovered,
    Running,
    TimerFired,
    advance,
    create,
)
from lifefold.core.lifecycles import process
from lifefold.core.lifecycles.process import Limits, Process, State
from lifefold.effects import Effect, NotifyProcess

ON_FAILURE = Limits(restart_policy="on_failure")
ALWAYS = Limits(restart_policy="always")


class Life:
    """A process in its machine. ``effects`` are all that were asked for; ends are confirmed at once."""

    def __init__(self, limits: Limits | None = None, machine: Machine[Any] = process.machine) -> None:
        """Begin a life at time 0."""
        self.machine = machine
        self.now_ms = 0
        first = create(machine, "process", Process(limits=limits or Limits()), 0, "test")
        self.entity: Entity[Any] = first.entity
        self.effects: list[Effect] = []
        self.visited: list[State] = [State.CREATED]

    @property
    def record(self) -> Process:
        """The record as it is now."""
        record: Process = self.entity.record
        return record

    @property
    def state(self) -> State:
        """The state as it is now."""
        return self.record.state

    @property
    def news(self) -> list[str]:
        """The kinds of everything that was told, in order."""
        return [effect.kind for effect in self.effects if isinstance(effect, NotifyProcess)]

    @property
    def going_on(self) -> set[str]:
        """The activities that go on."""
        return {part.slot for part in self.entity.running if part.activity is not None}

    def offer(self, event: Event, source: Running | None = None) -> EntityStep | Refusal:
        """Offer an event and keep what it becomes; what is asked to end is confirmed to have ended."""
        slot, generation = (source.slot, source.generation) if source else ("", 0)
        envelope = Envelope("process", event, self.now_ms, "test", slot=slot, generation=generation)
        answer = advance(self.machine, self.entity, envelope)
        if isinstance(answer, EntityStep):
            self.entity = answer.entity
            self.effects += answer.effects
            if self.state is not self.visited[-1]:
                self.visited.append(self.state)
            self._confirm_ends()
        return answer

    def _confirm_ends(self) -> None:
        for part in self.entity.running:
            if part.phase is Phase.ENDING:
                self.offer(ActivityEnded(part.slot, part.generation))

    def give(self, *events: Event) -> "Life":
        """Give events, each in the name of the activity that yields it if one does; all must be accepted."""
        for event in events:
            answer = self.offer(event, self.source(event))
            assert isinstance(answer, EntityStep), answer.reason
        return self

    def must_refuse(self, event: Event) -> str:
        """Offer an event that must be refused, and return why it was."""
        before = self.entity
        answer = self.offer(event, self.source(event))
        assert isinstance(answer, Refusal)
        assert self.entity is before
        return answer.reason

    def source(self, event: Event) -> Running | None:
        """Return what goes on that yields this event."""
        for part in self.entity.running:
            if part.activity is not None and type(event) in self.machine.spans[part.slot].during.yields:
                return part
        return None

    def wait(self, ms: int) -> "Life":
        """Let the time go by, and every timer happen at its deadline."""
        until_ms = self.now_ms + ms
        while due := [part for part in self.entity.running if not part.activity and part.deadline_ms <= until_ms]:
            timer = min(due, key=lambda part: part.deadline_ms)
            self.now_ms = max(self.now_ms, timer.deadline_ms)
            answer = self.offer(TimerFired(timer.slot, timer.generation))
            assert isinstance(answer, EntityStep), answer.reason
        self.now_ms = until_ms
        return self

    def crash(self, down_ms: int = 0) -> "Life":
        """Let the runner die and another one come: it finds what was live orphaned."""
        self.now_ms += down_ms
        self.offer(RunnerRecovered(down_ms))
        self.offer(process.Orphaned())
        return self

    def delay_ms(self, slot: str) -> int:
        """Return how long it is to a timer's deadline."""
        part = self.entity.find(slot)
        assert part is not None, f"no timer {slot}: {self.entity.running}"
        return part.deadline_ms - self.now_ms


def up(limits: Limits | None = None, machine: Machine[Any] = process.machine) -> Life:
    """Return a process that was started and is RUNNING."""
    return Life(limits, machine).give(process.StartRequested(), process.StartSucceeded())


def waiting(limits: Limits | None = None, machine: Machine[Any] = process.machine) -> Life:
    """Return a process that is AWAITING a trigger."""
    return up(limits, machine).give(process.QueueEmptied())


def failed(limits: Limits = ON_FAILURE) -> Life:
    """Return a process that has just crashed after a start that worked."""
    return up(limits).give(process.Crashed("segmentation fault"))
