"""One machine's life: its record, its version, what is going on for it, and what waits.

``advance`` is the machine's reducer with the kernel's promises around it:

- Every accepted transition raises ``version`` by one. The *generation* of an activity is the version that began it.
- An activity or timer is *live*, *ending* (its end was asked for and is not confirmed) or *waiting* (it may begin when
  the one before it in its slot is confirmed gone, D13). An event of one that is not live is refused as stale
  (D12), one that it does not yield as unsolicited. What is begun later than its state, or again after a crash, is what
  the record says by then.
- An activity is over by itself only when it says so itself. If its last event comes from somewhere else (a timer,
  another activity, a rule, a person), its end is asked for like that of any other.
- A timer's event is refused before its deadline (D20), which is the time of the transition that began it plus its
  delay.
- Postponed events are tried again, in order, after the next change of state (D14).

Inputs of the kernel's own (``Created``, ``Opened``, ``TimerFired``, ``ActivityEnded``, ``RunnerRecovered``) stand
beside the lifecycle's events in the log.
"""

from enum import StrEnum
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.record import Event, Record, State, replace
from lifefold.core.kernel.row import After, Does
from lifefold.core.kernel.step import IllegalTransition
from lifefold.effects import Activity, Begin, CancelTimer, Effect, End, Postpone, StartTimer

R = TypeVar("R", bound=Record)

POSTPONED_LIMIT: Final = 1_000
"""How many events an entity keeps waiting; one more is refused."""


class Created(Event, frozen=True):
    """The entity begins its life with this record."""

    record: Any


class Opened(Event, frozen=True):
    """The aggregate begins with these records, by reference, all at once: no rule sees a part of them."""

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
    """The runner is back after ``down_ms`` without one; everything that should be going on is asked for again."""

    down_ms: int


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """An event on its way: to whom, when, from whom.

    ``at_ms`` is Unix time in milliseconds. ``key`` makes a repeated delivery recognisable. An activity's event has the
    ``slot`` and ``generation`` of the activity, a message of another aggregate its ``sender`` and ``ordinal``.
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
    """How far an activity is between its beginning and its confirmed end."""

    LIVE = "live"
    ENDING = "ending"
    WAITING = "waiting"


class Running(msgspec.Struct, frozen=True, gc=False):
    """Something that goes on for an entity: an activity, or a timer with its ``deadline_ms`` (0 for activities)."""

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

    def find(self, slot: str, phase: Phase = Phase.LIVE) -> Running | None:
        """Return what goes on in this slot in this phase, if anything does."""
        for part in self.running:
            if part.slot == slot and part.phase is phase:
                return part
        return None


class Transition(msgspec.Struct, frozen=True, gc=False):
    """One step of one entity, as rules, journals and projections see it. ``before`` is None for its creation."""

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
        """The state that this step entered; None if the state is the same as before."""
        if self.before is None or self.before.record.state is not self.after.record.state:
            return self.after.state
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
    """An event that changed nothing, and why. ``kind`` is a word for counting, ``reason`` a sentence for people."""

    envelope: Envelope
    kind: str
    reason: str


class EntityStep(msgspec.Struct, frozen=True, gc=False):
    """What an accepted input came to: the entity now, its steps and effects, and postponed events it then refused."""

    entity: Entity[Any]
    transitions: tuple[Transition, ...] = ()
    effects: tuple[Effect, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def create(machine: Machine[Any], ref: str, record: Record, at_ms: int, actor: str) -> EntityStep:
    """Begin an entity's life."""
    born = Entity(ref, replace(record, at_ms=at_ms) if machine.clocked else record, 1, at_ms)
    running, effects = _derive(machine, born, machine.entering(record), 1, at_ms)
    entity = replace(born, running=running)
    event = Created(born.record)
    return EntityStep(entity, (Transition(machine.name, None, entity, event, at_ms, actor, effects),), effects)


def advance(machine: Machine[Any], entity: Entity[Any], envelope: Envelope) -> EntityStep | Refusal:
    """Let an entity take an event, and then whatever waited for the state it comes to."""
    event = envelope.event
    if isinstance(event, ActivityEnded):
        return _confirm(machine, entity, envelope, event)
    if isinstance(event, RunnerRecovered):
        return _recover(machine, entity, envelope, event)
    admitted = _elapse(machine, entity, envelope, event) if isinstance(event, TimerFired) else envelope
    if isinstance(admitted, Refusal):
        return admitted
    if admitted.slot and not _is_live(entity, admitted):
        return _stale(entity, envelope, admitted.slot, admitted.generation)
    if admitted is envelope and envelope.slot and not _may_say(machine, envelope):
        return Refusal(envelope, "unsolicited", f"{type(event).__name__} is not what {envelope.slot} yields")
    return _settle(machine, entity, admitted)


def _may_say(machine: Machine[Any], envelope: Envelope) -> bool:
    """Tell whether an activity yields this event. A timer says only that its time has come: ``TimerFired``."""
    during = machine.spans[envelope.slot].during
    return isinstance(during, Does) and type(envelope.event) in during.yields


def _elapse(machine: Machine[Any], entity: Entity[Any], envelope: Envelope, event: TimerFired) -> Envelope | Refusal:
    """Return the event that a timer stands for, if its time has come."""
    timer, span = entity.find(event.slot), machine.spans.get(event.slot)
    if timer is None or span is None or not isinstance(span.during, After):
        return _stale(entity, envelope, event.slot, event.generation)
    if timer.generation == event.generation and envelope.at_ms < timer.deadline_ms:
        return Refusal(envelope, "early", f"{event.slot} is due in {timer.deadline_ms - envelope.at_ms} ms")
    return replace(envelope, event=span.during.event(), slot=event.slot, generation=event.generation)


def _is_live(entity: Entity[Any], envelope: Envelope) -> bool:
    """Tell whether the activity that an event comes from still goes on."""
    source = entity.find(envelope.slot)
    return source is not None and source.generation == envelope.generation


def _stale(entity: Entity[Any], envelope: Envelope, slot: str, generation: int) -> Refusal:
    return Refusal(envelope, "stale", f"{slot} of generation {generation} is not live in {entity.state}")


def _settle(machine: Machine[Any], entity: Entity[Any], envelope: Envelope) -> EntityStep | Refusal:
    first = _take(machine, entity, envelope)
    if isinstance(first, Refusal) or first.entity.record.state is entity.record.state or not entity.postponed:
        return first
    now = first
    waiting = list(now.entity.postponed)
    now = replace(now, entity=replace(now.entity, postponed=()))
    while waiting:
        taken = replace(waiting.pop(0), at_ms=envelope.at_ms)
        if taken.slot and not _is_live(now.entity, taken):
            then: EntityStep | Refusal = _stale(now.entity, taken, taken.slot, taken.generation)
        else:
            then = _take(machine, now.entity, taken)
        if isinstance(then, Refusal):
            now = replace(now, refusals=(*now.refusals, then))
            continue
        if then.entity.record.state is not now.entity.record.state:
            waiting = [*then.entity.postponed, *waiting]
            then = replace(then, entity=replace(then.entity, postponed=()))
        now = EntityStep(
            then.entity, now.transitions + then.transitions, now.effects + then.effects, now.refusals + then.refusals
        )
    return now


def _take(machine: Machine[Any], entity: Entity[Any], envelope: Envelope) -> EntityStep | Refusal:
    at_ms, event = envelope.at_ms, envelope.event
    record = replace(entity.record, at_ms=at_ms) if machine.clocked else entity.record
    step = machine.step(record, event)
    if isinstance(step, IllegalTransition):
        return Refusal(envelope, "illegal", str(step))
    became, asked = step.record, step.effects
    if asked and type(asked[0]) is Postpone:
        if len(entity.postponed) >= POSTPONED_LIMIT:
            return Refusal(envelope, "overflow", f"{POSTPONED_LIMIT} events are waiting in {entity.state} already")
        return EntityStep(replace(entity, postponed=(*entity.postponed, envelope)))
    version = entity.version + 1
    running, effects = entity.running, asked
    if running and type(event) in machine.yielded:
        running, ends = _over(machine, running, envelope, became.state)
        asked += ends
    moved = became.state is not record.state
    if moved or (asked and type(asked[-1]) in _OF_TIMERS):
        running, effects = _derive(machine, replace(entity, record=became, running=running), asked, version, at_ms)
    entered_ms = at_ms if moved else entity.entered_ms
    now = Entity(entity.ref, became, version, entered_ms, running, entity.postponed)
    return EntityStep(now, (Transition(machine.name, entity, now, event, at_ms, envelope.actor, effects),), effects)


_OF_TIMERS: Final = frozenset({CancelTimer, StartTimer})
"""What a row that restarts timers ends its effects with, in whatever state."""


def _over(
    machine: Machine[Any], running: tuple[Running, ...], envelope: Envelope, state: State
) -> tuple[tuple[Running, ...], tuple[End, ...]]:
    """Take off what an event says is over; return the rest, and the ends of what it is not the word of."""
    left: list[Running] = []
    ends: list[End] = []
    for part in running:
        if part.phase is not Phase.ENDING and type(envelope.event) in machine.last[part.slot]:
            if part.slot == envelope.slot or part.slot in machine.served:
                continue
            if state not in machine.spans[part.slot].states:
                ends.append(End(part.slot))
        left.append(part)
    return tuple(left), tuple(ends)


def _derive(
    machine: Machine[Any], entity: Entity[Any], asked: tuple[Effect, ...], generation: int, at_ms: int
) -> tuple[tuple[Running, ...], tuple[Effect, ...]]:
    """Give the derived effects their generations and deadlines, and keep account of what goes on."""
    running = list(entity.running)
    effects: list[Effect] = []
    for effect in asked:
        match effect:
            case End(slot=slot) | CancelTimer(slot=slot):
                effects += _end(machine, running, slot)
            case Begin(slot=slot, activity=activity):
                free = all(part.slot != slot for part in running)
                running.append(Running(slot, generation, activity, 0, Phase.LIVE if free else Phase.WAITING))
                if free and slot not in machine.served:
                    effects.append(Begin(slot, activity, generation))
            case StartTimer(slot=slot, delay_ms=delay_ms):
                running.append(Running(slot, generation, None, at_ms + delay_ms))
                effects.append(StartTimer(slot, delay_ms, generation, at_ms + delay_ms))
            case _:
                effects.append(effect)
    return tuple(running), tuple(effects)


def _end(machine: Machine[Any], running: list[Running], slot: str) -> list[Effect]:
    """End what goes on in a slot. What only waited is forgotten; timers, and what rules serve, need no confirmation."""
    for index, part in enumerate(running):
        if part.slot != slot or part.phase is Phase.ENDING:
            continue
        if part.phase is Phase.WAITING or slot in machine.served:
            del running[index]
            return []
        if part.activity is None:
            del running[index]
            return [CancelTimer(slot, part.generation)]
        running[index] = replace(part, phase=Phase.ENDING)
        return [End(slot, part.generation)]
    return []


def _confirm(
    machine: Machine[Any], entity: Entity[Any], envelope: Envelope, event: ActivityEnded
) -> EntityStep | Refusal:
    ended = entity.find(event.slot, Phase.ENDING)
    if ended is None or ended.generation != event.generation:
        return _stale(entity, envelope, event.slot, event.generation)
    running = [part for part in entity.running if part is not ended]
    effects: tuple[Effect, ...] = ()
    during = machine.spans[event.slot].during
    for index, part in enumerate(running):
        if part.slot == event.slot and part.phase is Phase.WAITING and isinstance(during, Does):
            activity = during.make(entity.record)
            running[index] = replace(part, activity=activity, phase=Phase.LIVE)
            effects = (Begin(part.slot, activity, part.generation),)
    now = replace(entity, version=entity.version + 1, running=tuple(running))
    step = Transition(machine.name, entity, now, event, envelope.at_ms, envelope.actor, effects)
    return EntityStep(now, (step,), effects)


def _recover(machine: Machine[Any], entity: Entity[Any], envelope: Envelope, event: RunnerRecovered) -> EntityStep:
    """Ask again for everything that should be going on: the runner that was asked first is gone."""
    running: list[Running] = []
    effects: list[Effect] = []
    for part in entity.running:
        restored = part
        match part, machine.spans[part.slot].during:
            case Running(phase=Phase.ENDING), _:
                effects.append(End(part.slot, part.generation))
            case Running(phase=Phase.LIVE), Does(make=make):
                activity = make(entity.record)
                restored = replace(part, activity=activity)
                if part.slot not in machine.served:
                    effects.append(Begin(part.slot, activity, part.generation, resumed=True))
            case _, After(restore=policy, duration_ms=duration_ms):
                if policy == "remaining":
                    restored = replace(part, deadline_ms=part.deadline_ms + event.down_ms)
                elif policy == "restart" and (again_ms := duration_ms(entity.record)) is not None:
                    restored = replace(part, deadline_ms=envelope.at_ms + again_ms)
                delay_ms = max(0, restored.deadline_ms - envelope.at_ms)
                effects.append(StartTimer(part.slot, delay_ms, part.generation, restored.deadline_ms))
            case _:
                pass
        running.append(restored)
    now = replace(entity, running=tuple(running))
    return EntityStep(now, (), tuple(effects))


def quarantine(machine: Machine[Any], entity: Entity[Any]) -> EntityStep:
    """Have all ended that goes on for an entity."""
    running = list(entity.running)
    slots = dict.fromkeys(part.slot for part in entity.running)
    effects = [effect for slot in slots for effect in _end(machine, running, slot)]
    return EntityStep(replace(entity, running=tuple(running)), (), tuple(effects))


def release(machine: Machine[Any], entity: Entity[Any], at_ms: int) -> EntityStep:
    """Let all go on that belongs to the state of an entity for which nothing goes on."""
    version = entity.version + 1
    running, effects = _derive(machine, entity, machine.entering(entity.record), version, at_ms)
    return EntityStep(replace(entity, version=version, running=running), (), effects)
