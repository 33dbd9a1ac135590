"""One life of a machine: its record, its version, its running activities and timers, and its postponed events.

The kernel's own inputs (``Created``, ``Opened``, ``TimerFired``, ``ActivityEnded``, ``RunnerRecovered``) are entries of
the log beside the lifecycle's events. ``RulesChanged`` is an entry that no aggregate accepts.
"""

from enum import StrEnum
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from lifefold.core.kernel.record import Event, Record, State
from lifefold.core.kernel.shown import listed, shown
from lifefold.effects import Activity, Effect

R = TypeVar("R", bound=Record)


class Created(Event, frozen=True):
    """The entity begins its life with this record."""

    record: Any


class Opened(Event, frozen=True):
    """The aggregate begins with all of these records at once, by reference: no rule sees a part of them."""

    records: dict[str, Any]


class TimerFired(Event, frozen=True):
    """The timer of this slot and generation has reached its deadline."""

    slot: str
    generation: int


class ActivityEnded(Event, frozen=True):
    """Nothing is left of the activity of this slot and generation: the answer to ``End``."""

    slot: str
    generation: int


class RunnerRecovered(Event, frozen=True):
    """The runner is back after ``down_ms`` without one; all activities that should run are requested again."""

    down_ms: int


class RulesChanged(Event, frozen=True):
    """The rules of the version ``now`` decide from here on; those of the version ``before`` did. Empty: not known."""

    before: str
    now: str


ENGINE: Final = "@engine"
"""The stream of the entries about a log itself, such as ``RulesChanged``. No aggregate has this name."""


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """An event in transport, with its receiver, its time and its sender.

    ``at_ms`` is Unix time in milliseconds. ``key`` makes a repeated delivery recognisable. An activity's event has the
    ``slot`` and ``generation`` of the activity, a message of another aggregate its ``sender`` and ``ordinal``.

    >>> from lifefold import Envelope
    >>> from lifefold.core.fleet.board.intake import LastTaskIn
    >>> Envelope("intake", LastTaskIn(), at_ms=1_700_000_000_000).actor
    'operator'
    """

    entity: str
    event: Event
    at_ms: int
    actor: str = "operator"
    key: str = ""
    slot: str = ""
    generation: int = 0
    sender: str = ""
    ordinal: int = 0


class Phase(StrEnum):
    """The progress of an activity from its beginning to its confirmed end."""

    LIVE = "live"
    ENDING = "ending"
    WAITING = "waiting"


class Running(msgspec.Struct, frozen=True, gc=False):
    """A running activity of an entity, or a timer with its ``deadline_ms`` (0 for activities)."""

    slot: str
    generation: int
    activity: Activity | None = None
    deadline_ms: int = 0
    phase: Phase = Phase.LIVE


class Entity(msgspec.Struct, Generic[R], frozen=True, gc=False):
    """A lifecycle in progress. ``ref`` names it in its aggregate: the machine's name, or ``machine:key``."""

    ref: str
    record: R
    version: int = 0
    entered_ms: int = 0
    running: tuple[Running, ...] = ()
    postponed: tuple[Envelope, ...] = ()

    @property
    def state(self) -> State:
        """The record's state."""
        state: State = self.record.state
        return state

    def __repr__(self) -> str:
        """Return its name, its state and what is running."""
        running = listed(each.slot for each in self.running)
        return shown(f"Entity {self.ref}: {self.state}, version {self.version}{running and f', running {running}'}")

    def find(self, slot: str, phase: Phase = Phase.LIVE, *, generation: int | None = None) -> Running | None:
        """Return the activity or timer in this slot and phase, if there is one of this generation, or of any."""
        for part in self.running:
            if part.slot == slot and part.phase is phase:
                return part if generation is None or part.generation == generation else None
        return None


class Transition(msgspec.Struct, frozen=True, gc=False):
    """One step of one entity, for rules, journals and projections. ``before`` is None for its creation."""

    machine: str
    before: Entity[Any] | None
    after: Entity[Any]
    event: Event
    at_ms: int
    actor: str
    effects: tuple[Effect, ...]

    @property
    def entity(self) -> str:
        """The reference of the entity."""
        return self.after.ref

    @property
    def entered(self) -> State | None:
        """The state that this step entered; None if the state did not change."""
        if self.before is None or self.before.record.state is not self.after.record.state:
            state: State = self.after.record.state
            return state
        return None

    @property
    def left(self) -> State | None:
        """The state that this step left; None if the state is the same as before, and for a creation."""
        if self.before is not None and self.before.record.state is not self.after.record.state:
            return self.before.state
        return None

    @property
    def was(self) -> Any:
        """The record before this step. Only a creation has none; an event of the machine excludes creations."""
        return cast("Entity[Any]", self.before).record


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """An event that changed nothing, with the cause. ``kind`` is a word to count by, ``reason`` a sentence to read."""

    envelope: Envelope
    kind: str
    reason: str

    def __repr__(self) -> str:
        """Return its kind, its event and its reason."""
        return shown(f"Refusal ({self.kind}) of {type(self.envelope.event).__name__}: {self.reason}")


LATE_OR_REPEATED: Final = frozenset({"duplicate", "early", "illegal", "stale"})
"""The kinds of refusals that occur in every orderly run: a repetition, or an event that came when its time was over.

Two senders may ask for the same, and a sender does not see the state of the receiver. All other kinds are mistakes of a
sender or of the rules."""


class EntityStep(msgspec.Struct, frozen=True, gc=False):
    """The result of an accepted input: the entity, its transitions, its effects, and postponed events then refused."""

    entity: Entity[Any]
    transitions: tuple[Transition, ...] = ()
    effects: tuple[Effect, ...] = ()
    refusals: tuple[Refusal, ...] = ()
