"""One input of one entity: the machine's reducer with the kernel's guarantees around it.

``advance`` is the machine's reducer with the kernel's guarantees around it:

- Every accepted transition raises ``version`` by one. The *generation* of an activity is the version that began it.
- An activity or timer is *live*, *ending* or *waiting*. An ending one has no confirmed end yet. A waiting one begins
  when the one before it in its slot is confirmed ended (D13). An event of one that is not live is refused as stale
  (D12), and an event that it does not yield as unsolicited. An activity that begins late, or again after a crash, is
  made from the record of that time. One that outlives its runner (``Does.outlives``) stays as it was begun.
- An activity is over by itself only by its own report. If its last event has another source (a timer, another activity,
  a rule, an operator), its end is requested like that of any other.
- A timer's event is refused before its deadline (D20), the time of the transition that began it plus its delay.
- Postponed events are tried again, in order, after the next change of state (D14).
"""

from collections.abc import Callable
from typing import Any, Final

from lifefold.core.kernel.entity import (
    ActivityEnded,
    Created,
    Entity,
    EntityStep,
    Envelope,
    Phase,
    Refusal,
    RunnerRecovered,
    Running,
    TimerFired,
    Transition,
)
from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.record import Event, Record, State, replace
from lifefold.core.kernel.row import After, Does
from lifefold.core.kernel.step import IllegalTransition
from lifefold.effects import Activity, Begin, CancelTimer, Effect, End, Postpone, StartTimer

POSTPONED_LIMIT: Final = 1_000
"""The number of events that an entity can postpone; one more is refused."""


def create(machine: Machine[Any], ref: str, record: Record, at_ms: int, actor: str) -> EntityStep:
    """Begin an entity's life."""
    created = Entity(ref, replace(record, at_ms=at_ms) if machine.clocked else record, 1, at_ms)
    running, effects = _derive(machine, created, machine.entering(record), 1, at_ms)
    entity = replace(created, running=running)
    event = Created(created.record)
    return EntityStep(entity, (Transition(machine.name, None, entity, event, at_ms, actor, effects),), effects)


def advance(machine: Machine[Any], entity: Entity[Any], envelope: Envelope) -> EntityStep | Refusal:
    """Let an entity take an event, and then the postponed events that its new state accepts."""
    special = _SPECIAL.get(type(envelope.event))
    if special is not None:
        return special(machine, entity, envelope, envelope.event)
    if envelope.slot:
        # A report of an ended or replaced activity must not move the entity that has left its states (D12).
        if entity.find(envelope.slot, generation=envelope.generation) is None:
            return _stale(entity, envelope, envelope.slot, envelope.generation)
        # A timer reports only its deadline, with ``TimerFired``.
        during = machine.spans[envelope.slot].during
        if not (isinstance(during, Does) and type(envelope.event) in during.yields):
            return Refusal(envelope, "unsolicited", f"{envelope.slot} does not yield {type(envelope.event).__name__}")
    return _settle(machine, entity, envelope)


def _elapse(machine: Machine[Any], entity: Entity[Any], envelope: Envelope, event: TimerFired) -> EntityStep | Refusal:
    """Let an entity take the event of its timer, not before the deadline (D20)."""
    timer, span = entity.find(event.slot, generation=event.generation), machine.spans.get(event.slot)
    if timer is None or span is None or not isinstance(span.during, After):
        return _stale(entity, envelope, event.slot, event.generation)
    if envelope.at_ms < timer.deadline_ms:
        return Refusal(envelope, "early", f"{event.slot} is due in {timer.deadline_ms - envelope.at_ms} ms")
    due = replace(envelope, event=span.during.event(), slot=event.slot, generation=event.generation)
    return _settle(machine, entity, due)


def _stale(entity: Entity[Any], envelope: Envelope, slot: str, generation: int) -> Refusal:
    return Refusal(envelope, "stale", f"{slot} of generation {generation} is not live in {entity.state}")


def _settle(machine: Machine[Any], entity: Entity[Any], envelope: Envelope) -> EntityStep | Refusal:
    """Let an entity take an event, and then its postponed events if the state has changed."""
    first = _take(machine, entity, envelope)
    if not entity.postponed or isinstance(first, Refusal) or first.entity.record.state is entity.record.state:
        return first
    return _retry(machine, first, envelope.at_ms)


def _retry(machine: Machine[Any], first: EntityStep, at_ms: int) -> EntityStep:
    """Let an entity whose state has changed take its postponed events again, in their order (D14)."""
    waiting = list(first.entity.postponed)
    # The queue is taken over as a whole: events that the new state postpones again line up in their old order.
    now = replace(first, entity=replace(first.entity, postponed=()))
    while waiting:
        taken = replace(waiting.pop(0), at_ms=at_ms)
        if taken.slot and now.entity.find(taken.slot, generation=taken.generation) is None:
            then: EntityStep | Refusal = _stale(now.entity, taken, taken.slot, taken.generation)
        else:
            then = _take(machine, now.entity, taken)
        if isinstance(then, Refusal):
            now = replace(now, refusals=(*now.refusals, then))
            continue
        # A further change of state gives the events that wait again a chance, ahead of those not tried yet (D14).
        if then.entity.record.state is not now.entity.record.state:
            waiting = [*then.entity.postponed, *waiting]
            then = replace(then, entity=replace(then.entity, postponed=()))
        now = EntityStep(
            then.entity, now.transitions + then.transitions, now.effects + then.effects, now.refusals + then.refusals
        )
    return now


def _take(machine: Machine[Any], entity: Entity[Any], envelope: Envelope) -> EntityStep | Refusal:
    """Let an entity take one event by the machine's reducer; ``machine.step`` is generated code (``compiled``)."""
    at_ms, event = envelope.at_ms, envelope.event
    record = replace(entity.record, at_ms=at_ms) if machine.clocked else entity.record
    step = machine.step(record, event)
    if isinstance(step, IllegalTransition):
        return Refusal(envelope, "illegal", str(step))
    became, requested = step.record, step.effects
    if requested and type(requested[0]) is Postpone:
        if len(entity.postponed) >= POSTPONED_LIMIT:
            return Refusal(envelope, "overflow", f"{POSTPONED_LIMIT} events are waiting in {entity.state} already")
        return EntityStep(replace(entity, postponed=(*entity.postponed, envelope)))
    version = entity.version + 1
    running, effects = entity.running, requested
    if running and type(event) in machine.yielded:
        running, ends = _over(machine, running, envelope, became.state)
        requested += ends
    moved = became.state is not record.state
    # A step without a change of state derives nothing, unless its row restarts timers: the common case stays cheap.
    if requested and (moved or type(requested[-1]) in _OF_TIMERS):
        running, effects = _derive(machine, replace(entity, record=became, running=running), requested, version, at_ms)
    entered_ms = at_ms if moved else entity.entered_ms
    now = Entity(entity.ref, became, version, entered_ms, running, entity.postponed)
    return EntityStep(now, (Transition(machine.name, entity, now, event, at_ms, envelope.actor, effects),), effects)


_OF_TIMERS: Final = frozenset({CancelTimer, StartTimer})
"""The derived effects that end the effects of a row with ``restart``, in any state."""


def _over(
    machine: Machine[Any], running: tuple[Running, ...], envelope: Envelope, state: State
) -> tuple[tuple[Running, ...], tuple[End, ...]]:
    """Remove the activities that reported their own end; return the others, and the ends to request of the rest."""
    left: list[Running] = []
    ends: list[End] = []
    for part in running:
        if part.phase is not Phase.ENDING and type(envelope.event) in machine.last[part.slot]:
            # Rules end a served activity themselves, so there is no interpreter to confirm its end.
            if part.slot == envelope.slot or part.slot in machine.served:
                continue
            # The event came from elsewhere: the activity still runs, and its end is not in the row's effects.
            if state not in machine.spans[part.slot].states:
                ends.append(End(part.slot))
        left.append(part)
    return tuple(left), tuple(ends)


def _derive(
    machine: Machine[Any], entity: Entity[Any], requested: tuple[Effect, ...], generation: int, at_ms: int
) -> tuple[tuple[Running, ...], tuple[Effect, ...]]:
    """Give the derived effects their generations and deadlines, and keep the list of running activities."""
    running = list(entity.running)
    effects: list[Effect] = []
    for effect in requested:
        match effect:
            case End(slot=slot) | CancelTimer(slot=slot):
                effects += _end(machine, running, slot)
            case Begin(slot=slot, activity=activity):
                # A slot with an unconfirmed end is not free: two sessions must never share one worktree (D13).
                free = not running or all(part.slot != slot for part in running)
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
    """End the activity of a slot. A waiting one is forgotten; timers and served activities need no confirmation."""
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
    ended = entity.find(event.slot, Phase.ENDING, generation=event.generation)
    if ended is None:
        return _stale(entity, envelope, event.slot, event.generation)
    running = [part for part in entity.running if part is not ended]
    effects: tuple[Effect, ...] = ()
    during = machine.spans[event.slot].during
    for index, part in enumerate(running):
        if part.slot == event.slot and part.phase is Phase.WAITING and isinstance(during, Does):
            # The record may have changed while the activity waited, so it is made anew.
            activity = during.make(entity.record)
            running[index] = replace(part, activity=activity, phase=Phase.LIVE)
            effects = (Begin(part.slot, activity, part.generation),)
    now = replace(entity, version=entity.version + 1, running=tuple(running))
    step = Transition(machine.name, entity, now, event, envelope.at_ms, envelope.actor, effects)
    return EntityStep(now, (step,), effects)


def _recover(machine: Machine[Any], entity: Entity[Any], envelope: Envelope, event: RunnerRecovered) -> EntityStep:
    """Request again all activities that should run: the runner with the first request is gone."""
    running: list[Running] = []
    effects: list[Effect] = []
    for part in entity.running:
        restored = part
        match part, machine.spans[part.slot].during:
            case Running(phase=Phase.ENDING), _:
                effects.append(End(part.slot, part.generation))
            case Running(phase=Phase.LIVE, activity=Activity() as begun), Does(make=make, outlives=outlives):
                # What outlives the runner still runs as it was begun; the record may have changed since.
                activity = begun if outlives else make(entity.record)
                restored = replace(part, activity=activity)
                # The same generation lets an interpreter adopt the process that survived the runner.
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


_SPECIAL: Final[dict[type[Event], Callable[[Machine[Any], Entity[Any], Envelope, Any], EntityStep | Refusal]]] = {
    ActivityEnded: _confirm,
    RunnerRecovered: _recover,
    TimerFired: _elapse,
}
"""The kernel's inputs that no row takes as they are."""


def quarantine(machine: Machine[Any], entity: Entity[Any]) -> EntityStep:
    """End all activities and timers of an entity."""
    running = list(entity.running)
    slots = dict.fromkeys(part.slot for part in entity.running)
    effects = [effect for slot in slots for effect in _end(machine, running, slot)]
    return EntityStep(replace(entity, running=tuple(running)), (), tuple(effects))


def release(machine: Machine[Any], entity: Entity[Any], at_ms: int) -> EntityStep:
    """Begin the activities and timers of the state of an entity that has none running."""
    version = entity.version + 1
    running, effects = _derive(machine, entity, machine.entering(entity.record), version, at_ms)
    return EntityStep(replace(entity, version=version, running=running), (), effects)
