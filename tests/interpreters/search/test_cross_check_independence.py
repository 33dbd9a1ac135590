"""The cross-check compares two pieces of code: a mistake in the world, or in the search, is a disagreement.

The unreduced semantics are the kernel's ``World``. The reduced search has its own steps, its own queues of messages and
its own bounds on commands. If both used the same code, a mistake in it would be invisible.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Envelope,
    Event,
    Input,
    Machine,
    Opened,
    Reaction,
    Record,
    State,
    System,
    Transition,
    World,
    row,
    rule,
)
from lifefold.effects import Tell
from lifefold.interpreters import search
from lifefold.interpreters.check import Bounds, Outcome, Report, check
from lifefold.interpreters.check.checking import SAME_STEPS


class Lever(State):
    UP = "Up"
    DOWN = "Down"


class Shown(State):
    NOTHING = "Nothing"
    RED = "Red"
    GREEN = "Green"


class Pressed(Event, frozen=True):
    """An operator presses the lever."""


class Redden(Event, frozen=True):
    """The signal shows red."""


class Greenen(Event, frozen=True):
    """The signal shows green."""


class LeverRecord(Record, frozen=True):
    state: Lever = Lever.UP


class SignalRecord(Record, frozen=True):
    state: Shown = Shown.NOTHING


lever = Machine("lever", LeverRecord(), rows=(row(Lever.UP, Pressed, Lever.DOWN),), final={Lever.DOWN})
signal = Machine(
    "signal",
    SignalRecord(),
    rows=(
        row((Shown.NOTHING, Shown.GREEN), Redden, Shown.RED),
        row((Shown.NOTHING, Shown.RED), Greenen, Shown.GREEN),
    ),
    rests=lambda _record: True,
)


@rule(on=lever, enters=Lever.DOWN)
def show(_lever: Aggregate, _transition: Transition) -> Iterator[Tell]:
    """A pressed lever shows red, and then green."""
    yield Tell("signal", "signal", Redden())
    yield Tell("signal", "signal", Greenen())


SYSTEM = System(
    "railway",
    AggregateType("lever", machines=(lever,), rules=(show,)),
    AggregateType("signal", machines=(signal,), commands={"signal": ()}),
)
OPENING = [
    ("lever", Envelope("", Opened({"lever": LeverRecord()}), 0)),
    ("signal", Envelope("", Opened({"signal": SignalRecord()}), 0)),
]


def checked() -> Report:
    return check(SYSTEM, opening=OPENING, bounds=Bounds(commands=1))


def test_the_search_and_the_world_agree_about_a_system_with_messages() -> None:
    report = checked()
    assert report.ok
    assert report.walked[0] == report.states


true_after, true_messages, true_choices = World.after, World.next_messages, World.choices_of


def losing(world: World, given: Input, reaction: Reaction) -> World:
    """Lose the messages of a step."""
    after = true_after(world, given, reaction)
    return World(after.system, after.aggregates, world.in_flight, after.now_ms, after.commands)


def keeping(world: World, given: Input, reaction: Reaction) -> World:
    """Deliver a message and leave it in flight."""
    after = true_after(world, given, reaction)
    return World(after.system, after.aggregates, {**world.in_flight, **after.in_flight}, after.now_ms, after.commands)


def silent(_world: World) -> dict[Any, Input]:
    """Deliver no message."""
    return {}


def unheard(world: World, name: str, later_ms: int = 0) -> Iterator[Input]:
    """Forget the commands of operators."""
    return (each for each in true_choices(world, name, later_ms) if not isinstance(each.envelope.event, Pressed))


@pytest.mark.parametrize(
    ("name", "mistake"),
    [("after", losing), ("after", keeping), ("next_messages", silent), ("choices_of", unheard)],
)
def test_a_mistake_in_the_world_is_a_disagreement(
    name: str, mistake: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(World, name, mistake)
    verdicts = {each.name: each.outcome for each in checked().verdicts}
    assert verdicts.get(SAME_STEPS) is Outcome.UNSOUND


REDUCED = ("bitset_search", "component", "graph", "independence", "liveness", "reactions", "state_set", "symmetry")
"""The modules of the reduced search. ``product_system`` knows the type ``World`` for ``form``, and calls none of it."""


@pytest.mark.parametrize("module", REDUCED)
def test_the_reduced_search_does_not_use_the_world(module: str) -> None:
    tree = ast.parse((Path(search.__file__).parent / f"{module}.py").read_text())
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert not {"World", "Unreduced", "SystemStep", "sent_in"} & {*imported}
