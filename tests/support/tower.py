"""A tower of bells with an oven in it: an aggregate for the tests of rules and of messages."""

from typing import Any

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Envelope,
    Event,
    Machine,
    Opened,
    Reaction,
    Record,
    Refusal,
    State,
    View,
    react,
    row,
)
from oven import Oven, machine


class Sound(State):
    QUIET = "Quiet"
    RINGING = "Ringing"


class Pulled(Event, frozen=True):
    """The rope is pulled."""


class Faded(Event, frozen=True):
    """The sound is gone."""


class Bell(Record, frozen=True):
    """A bell."""

    state: Sound = Sound.QUIET


bell: Machine[Any] = Machine(
    "bell",
    Bell(),
    rows=(row(Sound.QUIET, Pulled, Sound.RINGING), row(Sound.RINGING, Faded, Sound.QUIET)),
)


def tower(*rules: Any, bells: int = 4, views: dict[str, View] | None = None) -> tuple[AggregateType, Aggregate]:
    """Return a tower with some bells, an oven and these rules."""
    of = AggregateType("tower", machines=(bell, machine), rules=rules, views=views)
    records = {f"bell:{n}": Bell() for n in range(bells)} | {"oven": Oven()}
    return of, taken(of, of.start("tower/a"), Envelope("", Opened(records), 0)).aggregate


def taken(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Reaction:
    """Return the reaction to an input that must be accepted."""
    reaction = react(of, aggregate, envelope)
    assert isinstance(reaction, Reaction), reaction.reason
    return reaction


def refused(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Refusal:
    """Return the refusal of an input that must be refused."""
    refusal = react(of, aggregate, envelope)
    assert isinstance(refusal, Refusal)
    return refusal


def steps(reaction: Reaction) -> list[tuple[str, str]]:
    """Return the transitions of a reaction in short: who, by which event."""
    return [(step.entity, type(step.event).__name__) for step in reaction.transitions]


PULL = Envelope("bell:0", Pulled(), 7, "test")
