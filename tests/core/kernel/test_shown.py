"""A ``repr`` of the kernel's types tells what the value is, on one short line."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core import fleet
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Create,
    Created,
    Dispatch,
    Entity,
    Envelope,
    Machine,
    Opened,
    Reaction,
    Refusal,
    System,
    react,
    replace,
    rule,
)
from lifefold.core.kernel.shown import LINE, counted, listed, shown
from lifefold.interpreters.views import machines
from oven import Lit, Oven, machine
from tower import PULL, Bell, Sound, bell, refused, taken, tower


@rule(on=bell, enters=Sound.RINGING)
def pull(aggregate: Aggregate, _transition: Any) -> list[Dispatch | Create]:
    """Pull a bell that cannot be pulled again, and create an entity that is there."""
    return [Dispatch("bell:0", PULL.event), Create("bell:1", Bell())] if len(aggregate.entities) else []


OF, TOWER = tower(pull, bells=2)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (machine, "<Machine 'oven': 4 states, 10 rows, starts in Cold>"),
        (machine.rows[4], "<row(Baking, Knocked, Cold when is_hot)>"),
        (pull, "<Rule pull on bell: enters Ringing>"),
        (
            rule(bell, event=Created, leaves=Sound.RINGING)(lambda _a, _t: ()),
            "<Rule <lambda> on bell: event Created, leaves Ringing>",
        ),
        (rule(bell)(lambda _a, _t: ()), "<Rule <lambda> on bell: every transition>"),
        (OF, "<AggregateType 'tower': bell, oven; 1 rule>"),
        (System("town", OF), "<System 'town': tower>"),
        (TOWER, "<Aggregate 'tower/a': version 1, 2 bell, 1 oven>"),
        (OF.start("tower/b"), "<Aggregate 'tower/b': version 0, no entities>"),
        (TOWER.entities["bell:1"], "<Entity bell:1: Quiet, version 1>"),
        (
            taken(OF, TOWER, Envelope("oven", Lit(), 1)).aggregate.entities["oven"],
            "<Entity oven: Baking, version 2, running Bake>",
        ),
        (
            taken(OF, TOWER, PULL),
            "<Reaction of 'tower/a', version 2: bell:0 Pulled → Ringing; 2 refusals>",
        ),
        (Reaction(TOWER), "<Reaction of 'tower/a', version 1: no transition>"),
        (
            refused(OF, TOWER, replace(PULL, entity="bell:7")),
            "<Refusal (unknown) of Pulled: tower/a: 'bell:7' does not exist>",
        ),
    ],
)  # fmt: skip
def test_a_repr_says_what_a_value_is(value: object, expected: str) -> None:
    """Its name, its size and its state, and not all of its content."""
    assert repr(value) == expected


@given(st.text(max_size=2 * LINE))
def test_a_repr_is_one_short_line(text: str) -> None:
    """Whatever a name or a reason contains; a long one ends with an ellipsis."""
    line = shown(text)
    assert len(line.splitlines()) == 1
    assert len(line) <= LINE
    assert line.endswith("…>") or line[1:-1] == " ".join(text.split())


@given(reason=st.text(), name=st.text(), entities=st.lists(st.text(min_size=1), max_size=9))
def test_the_values_of_a_macrostep_have_short_reprs(reason: str, name: str, entities: list[str]) -> None:
    """Of names and reasons of any length and any characters."""
    of = AggregateType("tower", machines=(machine,))
    opening = Envelope("", Opened({f"oven:{each}": Oven() for each in entities}), 0)
    reaction = react(of, of.start(f"tower/{name}"), opening)
    assert isinstance(reaction, Reaction)
    for value in (reaction, reaction.aggregate, Refusal(opening, "illegal", reason), Entity(name, Oven()), of):
        assert "\n" not in repr(value)
        assert len(repr(value)) <= LINE


@pytest.mark.parametrize("of", [*machines().values(), fleet.system], ids=lambda of: of.name)
def test_every_shipped_machine_has_short_reprs(of: Machine[Any] | System) -> None:
    """And all of its rows and rules."""
    parts = of.rows if isinstance(of, Machine) else [each for a in of.aggregates.values() for each in (a, *a.rules)]
    for value in (of, *parts):
        assert len(repr(value).splitlines()) == 1
        assert len(repr(value)) <= LINE


def test_numbers_and_lists_are_words() -> None:
    """One thing has no plural, and a long list ends with the number of the others."""
    assert (counted(1, "row"), counted(1_200, "row")) == ("1 row", "1,200 rows")
    assert (listed("ab"), listed("abcdef"), listed("")) == ("a, b", "a, b, c, d, 2 more", "")
