"""An input of one run in another run: generations, deadlines and numbers of messages are those of the other world.

So a trace stays valid while numbers change, and the inputs of a log are repeated after a fork.
"""

from typing import Any

from lifefold.core.kernel import ActivityEnded, Cause, Entity, Envelope, Input, Phase, TimerFired, World, replace


def renumbered(world: World, given: Input) -> Input | str:
    """Return an input with the numbers that it has in a world; for an impossible message the reason.

    An activity or a timer that does not run there has the generation -1, which the rules refuse.
    """
    name, envelope = given
    slot = getattr(envelope.event, "slot", "")
    match given.cause:
        case Cause.REPORT:
            generation = _generation(world, given, envelope.slot, Phase.LIVE)
            return Input(name, replace(envelope, generation=generation))
        case Cause.CONFIRMATION:
            generation = _generation(world, given, slot, Phase.ENDING)
            return Input(name, replace(envelope, event=ActivityEnded(slot, generation)))
        case Cause.TIMER:
            return Input(name, _fired(world, given, slot))
        case Cause.MESSAGE:
            return _message(world, given)
        case _:
            return given


def _fired(world: World, given: Input, slot: str) -> Envelope:
    """Return the elapsing of a timer, at its deadline or later."""
    entity = _entity(world, given)
    timer = None if entity is None else entity.find(slot)
    due_ms, generation = (given.envelope.at_ms, -1) if timer is None else (timer.deadline_ms, timer.generation)
    return replace(given.envelope, event=TimerFired(slot, generation), at_ms=max(given.envelope.at_ms, due_ms))


def _message(world: World, given: Input) -> Input | str:
    """Return the first message from the sender, if it is this one."""
    sender, event = given.envelope.sender, given.envelope.event
    first = world.next_messages().get((sender, given.aggregate))
    if first is None or first.envelope.event != event:
        return f"{sender} does not tell {given.aggregate} {event!r}"
    return first


def _entity(world: World, given: Input) -> Entity[Any] | None:
    found = world.aggregates.get(given.aggregate)
    return None if found is None else found.entities.get(given.envelope.entity)


def _generation(world: World, given: Input, slot: str, phase: Phase) -> int:
    entity = _entity(world, given)
    found = None if entity is None else entity.find(slot, phase)
    return -1 if found is None else found.generation
