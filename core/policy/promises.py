"""Promises that lifecycles of all kinds make, as each of them says for its own activities and states."""

from typing import Any

from lifefold.core.kernel import (
    Entity,
    Fairness,
    Phase,
    Property,
    State,
    Transition,
    always,
    always_step,
    leads_to,
    weakly,
)
from lifefold.effects import Activity, Begin


def ends_confirmed(activity: type[Activity]) -> tuple[Property[Any], ...]:
    """Promise that whatever of this activity begins ends and is confirmed gone, and that no two are alive together.

    That it ends needs the activity itself: nobody else knows when its work is done.
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
    """Promise that no two of this activity are alive together, and that what is to end is confirmed gone."""
    slot = activity.__name__

    def is_ending(entity: Entity[Any]) -> bool:
        return entity.find(slot, Phase.ENDING) is not None

    def has_one(entity: Entity[Any]) -> bool:
        return sum(part.slot == slot and part.phase is not Phase.WAITING for part in entity.running) <= 1

    def begins_alone(step: Transition) -> bool:
        begun = any(isinstance(effect, Begin) and effect.slot == slot for effect in step.effects)
        return not begun or (step.after.find(slot) is not None and not is_ending(step.after))

    return (
        always(f"there is never a second {slot} beside one that is not confirmed gone", has_one),
        always_step(f"no {slot} begins before the one before it is confirmed gone", begins_alone),
        leads_to(f"every {slot} that is to end is confirmed gone", is_ending, lambda e: not is_ending(e)),
    )


def passes(state: State, *given: Fairness) -> Property[Any]:
    """Promise that nobody stays in a state for ever."""
    return leads_to(
        f"{state} does not last for ever", lambda e: e.state is state, lambda e: e.state is not state, given=given
    )


def rests_in(*states: State) -> Property[Any]:
    """Promise that whoever is in one of these states comes to have nothing going on, or leaves them."""
    names = " or ".join(states)
    return leads_to(
        f"nothing is left of who is {names}",
        lambda e: e.state in states,
        lambda e: e.state not in states or not e.running,
    )


def enters(step: Transition, *states: State) -> bool:
    """Tell whether a step comes to one of these states, from another one."""
    return step.entered in states
