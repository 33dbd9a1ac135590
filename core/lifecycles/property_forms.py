"""Forms of properties that many lifecycles share, for their own activities and states."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, Final

from lifefold.core.kernel import (
    ANY,
    Entity,
    Event,
    Fairness,
    Machine,
    Pattern,
    Phase,
    Property,
    Row,
    State,
    Transition,
    accepts,
    always,
    always_step,
    leads_to,
    weakly,
)
from lifefold.core.kernel.row import Source
from lifefold.effects import Activity, Begin, StartTimer


def ends_confirmed(activity: type[Activity]) -> tuple[Property[Any], ...]:
    """Declare that each such activity ends, that its end is confirmed, and that two never run together.

    Only the activity itself can report its end, so its fairness is assumed.
    """
    slot = activity.__name__
    return (
        *is_alone(activity),
        leads_to(
            f"every {slot} that began is over",
            lambda e: e.find(slot) is not None,
            lambda e: e.find(slot) is None,
            given=weakly(activity),
        ),
    )


def is_alone(activity: type[Activity]) -> tuple[Property[Any], ...]:
    """Declare that two such activities never run together, and that a requested end is confirmed."""
    slot = activity.__name__

    def is_ending(entity: Entity[Any]) -> bool:
        return entity.find(slot, Phase.ENDING) is not None

    def has_one(entity: Entity[Any]) -> bool:
        return sum(part.slot == slot and part.phase is not Phase.WAITING for part in entity.running) <= 1

    def begins_alone(step: Transition) -> bool:
        begun = any(isinstance(effect, Begin) and effect.slot == slot for effect in step.effects)
        return not begun or (step.after.find(slot) is not None and not is_ending(step.after))

    return (
        always(f"no second {slot} runs beside one without a confirmed end", has_one),
        always_step(f"no {slot} begins before the end of the one before it is confirmed", begins_alone),
        leads_to(f"the end of every {slot} is confirmed once requested", is_ending, lambda e: not is_ending(e)),
    )


def is_transient(state: State, *given: Fairness) -> Property[Any]:
    """Declare that no entity stays in a state for ever."""
    return leads_to(
        f"{state} does not last for ever", lambda e: e.state is state, lambda e: e.state is not state, given=given
    )


def rests_in(*states: State) -> Property[Any]:
    """Declare that an entity in one of these states comes to have no running activity, or leaves them."""
    names = " or ".join(states)
    return leads_to(
        f"nothing runs on in {names}", lambda e: e.state in states, lambda e: e.state not in states or not e.running
    )


LEADS: Final = "every event of the table leads where the table says"
ACCEPTS: Final = "every event of the table is accepted in its states"
OF_TABLES: Final = (LEADS, ACCEPTS)
"""The properties that are derived from a table. The table itself cannot break them: ``tests/documents`` tests it."""


def follows_table(
    rows: Iterable[Row[Any]],
    *,
    but: Collection[type[Event] | Callable[[Any, Any], bool]] = (),
    unless: Callable[[Transition], bool] = lambda _step: False,
) -> tuple[Property[Any], ...]:
    """Declare that these rows are kept, by the profiles of their table and by the rows beside it.

    Each event leads to a target of its rows, and is accepted in their states. An event without a row is free. ``but``
    are the guards that may refuse all examples, and the events that a profile may refuse. Steps for which ``unless``
    holds may lead elsewhere.
    """
    by_event: dict[type[Event], tuple[Row[Any], ...]] = {}
    accepted: dict[Source, tuple[type[Event] | Pattern[Any], ...]] = {}
    for each in rows:
        by_event[each.event] = (*by_event.get(each.event, ()), each)
        if each.event in but or each.when in but:
            continue
        for state in (ANY,) if each.sources is None else sorted(each.sources):
            accepted[state] = (*accepted.get(state, ()), each.pattern or each.event)

    @cache
    def targets(state: State, event: type[Event]) -> frozenset[State]:
        named = by_event.get(event, ())
        here = [each for each in named if each.sources is None or state in each.sources]
        return frozenset(each.goes(state) for each in here or named)

    def leads(step: Transition) -> bool:
        if step.before is None or type(step.event) not in by_event or unless(step):
            return True
        return step.after.state in targets(step.before.state, type(step.event))

    return always_step(LEADS, leads), accepts(ACCEPTS, accepted)


def with_own_table(
    profile: Machine[Any], but: Collection[type[Event] | Callable[[Any, Any], bool]] = ()
) -> Machine[Any]:
    """Return a profile that follows its own rows, and not those of the table that it leads elsewhere."""
    return profile.without_properties(*OF_TABLES).with_properties(*follows_table(profile.rows, but=but))


def goes_along(name: str, rows: Iterable[Row[Any]]) -> Property[Any]:
    """Declare that every change of state is an edge of these rows, by whatever event."""
    edges = {(source, each.target) for each in rows for source in each.sources or ()}

    def is_an_edge(step: Transition) -> bool:
        return step.entered is None or (step.was.state, step.entered) in edges

    return always_step(name, is_an_edge, on=Event)


def leads_where(name: str, targets: Mapping[type[Event], Collection[State]]) -> Property[Any]:
    """Declare that each of these events leads to one of its states."""

    def is_there(step: Transition) -> bool:
        expected = targets.get(type(step.event))
        return expected is None or step.after.state in expected

    return always_step(name, is_there)


def exits_on(state: State, *events: type[Event] | Pattern[Any]) -> tuple[Property[Any], ...]:
    """Declare that each of these events, if it stays possible, ends the stay in a state."""
    return tuple(
        leads_to(
            f"{state} exits on {_label(event)}",
            lambda e: e.state is state,
            lambda e: e.state is not state,
            given=weakly(event),
        )
        for event in events
    )


def _label(event: type[Event] | Pattern[Any]) -> str:
    """Return an event's name, with its variant."""
    if isinstance(event, Pattern):
        return f"{event.event.__name__}({event.label})"
    return event.label().partition("(")[0]


def lasts_only(slot: str, *states: State) -> Property[Any]:
    """Declare that an activity or a timer runs in these states only."""
    return always(f"{slot} runs in {' or '.join(states)} only", lambda e: e.find(slot) is None or e.state in states)


def keeps_time(
    timers: Mapping[type[Event], tuple[Collection[State], Callable[[Any], int | None]]],
) -> tuple[Property[Any], ...]:
    """Declare that each timer, by its event, runs in its states only, and for its duration."""
    slots = {event.__name__: of for event, of in timers.items()}

    def runs_in_its_states(entity: Entity[Any]) -> bool:
        return all(entity.state in slots[part.slot][0] for part in entity.running if part.slot in slots)

    def lasts_as_its_limit(step: Transition) -> bool:
        started = [each for each in step.effects if isinstance(each, StartTimer) and each.slot in slots]
        return all(each.delay_ms == slots[each.slot][1](step.after.record) for each in started)

    return (
        always("every timer runs in its own states only", runs_in_its_states),
        always_step("every timer lasts as long as its limit", lasts_as_its_limit),
    )


def goes_on(slot: str, *states: State) -> Property[Any]:
    """Declare that an activity runs in these states, or waits for its turn there, and runs in no other."""

    def runs_in_these_states_only(entity: Entity[Any]) -> bool:
        begun = any(part.slot == slot and part.phase is not Phase.ENDING for part in entity.running)
        return begun == (entity.state in states)

    return always(f"{slot} runs in {' and '.join(states)}, and in no other state", runs_in_these_states_only)


def asks_once() -> Property[Any]:
    """Declare that no step requests the same effect twice."""

    def is_asked_once(step: Transition) -> bool:
        return all(each not in step.effects[:place] for place, each in enumerate(step.effects))

    return always_step("no effect is requested twice in one step", is_asked_once)


def enters(step: Transition, *states: State) -> bool:
    """Tell whether a step enters one of these states from another one."""
    return step.entered in states
