"""Small machines that a runner may die over: a payment graph, a letter, a fire, and talk that leads to a letter."""

from collections.abc import Iterator
from typing import Final

from kiln import Doused
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Created,
    Envelope,
    Event,
    Machine,
    Record,
    State,
    Step,
    System,
    Transition,
    does,
    row,
    rule,
)
from lifefold.effects import Activity, Effect, Tell


class Place(State):
    """How far a graph has come."""

    BEGINNING = "beginning"
    FIRST = "first node"
    SECOND = "second node"
    END = "end"


class Desk(State):
    """Whether something was asked."""

    EMPTY = "empty"
    DONE = "done"


class Hearth(State):
    """Whether it burns."""

    COLD = "cold"
    HOT = "hot"
    ASH = "ash"


class Asked(Event, frozen=True):
    """An operator starts the graph."""


class Came(Event, frozen=True):
    """The node has come to its end."""


class Charge(Effect, frozen=True):
    """Take the customer's money, as the payment of this name, which the bank knows again."""

    idempotent = True

    payment: str


class Mail(Effect, frozen=True):
    """Write a letter."""


class Graph(Record, frozen=True):
    """Where the graph is."""

    state: Place = Place.BEGINNING


class Letter(Record, frozen=True):
    """What was asked at a desk."""

    state: Desk = Desk.EMPTY


class Fire(Record, frozen=True):
    """What burns."""

    state: Hearth = Hearth.COLD


def charge(graph: Graph, _event: Event) -> Step[Graph, Charge]:
    """Enter a node, whose work is a payment."""
    return Step(graph, (Charge("first" if graph.state is Place.BEGINNING else "second"),))


def write(letter: Letter, _event: Event) -> Step[Letter, Mail]:
    """Write what was asked."""
    return Step(letter, (Mail(),))


graph: Final = Machine(
    "graph",
    Graph(),
    rows=(
        row(Place.BEGINNING, Asked, Place.FIRST, charge),
        row(Place.FIRST, Came, Place.SECOND, charge),
        row(Place.SECOND, Came, Place.END),
    ),
    final={Place.END},
)

messages: Final = Machine("letters", Letter(), rows=(row(Desk.EMPTY, Asked, Desk.DONE, write),), final={Desk.DONE})


class Burn(Activity, frozen=True):
    """Burn until nothing is left."""


def burn(_fire: Fire) -> Burn:
    """Return what goes on while it is hot."""
    return Burn()


fire: Final = Machine(
    "fire",
    Fire(),
    rows=(row(Hearth.COLD, Asked, Hearth.HOT), row(Hearth.HOT, Came, Hearth.ASH), row(Hearth.HOT, Doused, Hearth.ASH)),
    final={Hearth.ASH},
    during={Hearth.HOT: does(burn, yields=(), last=Came)},
)

talk: Final = Machine("talk", Letter(), rows=(row(Desk.EMPTY, Asked, Desk.DONE),), final={Desk.DONE})


@rule(on=talk)
def tell(_talks: Aggregate, transition: Transition) -> Iterator[Tell]:
    """The aggregate that writes is told of the question."""
    if isinstance(transition.event, Asked):
        yield Tell("letters", "letters", Asked())


told: Final = System(
    "told",
    AggregateType("talk", machines=(talk,), rules=(tell,)),
    AggregateType("letters", machines=(messages,), commands={"letters": ()}),
)

TOLD: Final = tuple((name, Envelope(name, Created(Letter()), 0)) for name in ("talk", "letters"))
