"""An invalid property is refused at its declaration, with the accepted forms."""

from typing import Any, Final

import pytest

from lifefold.core.kernel import (
    AggregateType,
    Event,
    Fairness,
    Machine,
    Pattern,
    Projection,
    Property,
    PropertyKind,
    Record,
    Row,
    State,
    System,
    SystemState,
    always,
    always_step,
    eventually,
    leads_to,
    projected,
    row,
    sometimes,
    strongly,
    subject_of,
    weakly,
)
from lifefold.effects import Activity


class Light(State):
    ON = "On"
    OFF = "Off"


class Turned(Event, frozen=True):
    """It is turned."""


class Burn(Activity, frozen=True):
    """It burns."""


class Lamp(Record, frozen=True):
    state: Light = Light.OFF


BRIGHT: Final = Pattern(Turned, "Bright", lambda _event: True)
ROWS: Final[tuple[Row[Lamp], ...]] = (row(Light.OFF, Turned, Light.ON), row(Light.ON, Turned, Light.OFF))


def is_so(_subject: Any) -> bool:
    """Hold of everything."""
    return True


PROPERTY: Final = always("it is so", is_so)


def machine(declared: Any) -> Machine[Lamp]:
    """Return a lamp with these properties."""
    return Machine("lamp", Lamp(), rows=ROWS, properties=declared)


def kind(declared: Any) -> AggregateType:
    """Return lamps with these properties."""
    return AggregateType("lamps", machines=(machine(()),), properties=declared)


def system(declared: Any) -> System:
    """Return a system with these properties."""
    return System("house", kind(()), properties=declared)


OWNERS: Final[list[Any]] = [machine, kind, system]
NAMES: Final = {machine: "lamp", kind: "lamps", system: "house"}


@pytest.mark.parametrize("owner", OWNERS)
def test_projected_without_its_star_is_refused(owner: Any) -> None:
    """It returns several properties, and is no property itself."""
    with pytest.raises(TypeError) as caught:
        owner((PROPERTY, projected(is_so, PROPERTY)))
    said = "several properties where one is accepted; a star is missing: *projected(...) or *localized(...)"
    assert str(caught.value) == f"{NAMES[owner]}: {said}"


@pytest.mark.parametrize("owner", OWNERS)
def test_one_property_alone_is_refused_where_several_are_accepted(owner: Any) -> None:
    """A comma is missing."""
    with pytest.raises(TypeError, match=rf"^{NAMES[owner]}: properties= takes several properties, \(property,\)"):
        owner(PROPERTY)


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("wrong", [is_so, "it is so", None, Lamp()])
def test_what_is_no_property_is_refused(owner: Any, wrong: object) -> None:
    """The error lists the functions that make one."""
    with pytest.raises(TypeError, match=rf"^{NAMES[owner]}: .* is no property; accepted: always\(\), "):
        owner((PROPERTY, wrong))


@pytest.mark.parametrize("owner", [machine, kind])
def test_only_properties_of_a_system_are_projected(owner: Any) -> None:
    """A property of a machine, or of an aggregate, has one subject anyway."""
    with pytest.raises(TypeError, match=rf"^{NAMES[owner]}: 'it is so': projected\(\) is for properties of a System"):
        owner(projected(is_so, PROPERTY))
    assert [each.projection for each in system(projected(is_so, PROPERTY)).properties] == [is_so]


def test_with_properties_refuses_a_value_that_is_no_property() -> None:
    """The check of the constructor applies to profiles, too."""
    wrong: Any = projected(is_so, PROPERTY)
    with pytest.raises(TypeError, match="a star is missing"):
        machine(()).with_properties(wrong)


def test_an_invariant_is_a_function() -> None:
    """A property belongs to ``properties=``."""
    wrong: Any = (is_so, PROPERTY)
    with pytest.raises(
        TypeError, match=r"^lamp: an invariant is a function of the record, a property goes to properties="
    ):
        Machine("lamp", Lamp(), rows=ROWS, invariants=wrong)


@pytest.mark.parametrize("wrong", [is_so, (PROPERTY,), [PROPERTY]])
def test_projected_takes_properties_one_by_one(wrong: Any) -> None:
    """A list or a function is refused."""
    with pytest.raises(TypeError, match=r"^projected\(\): "):
        projected(is_so, PROPERTY, wrong)


def test_projected_takes_a_function_first() -> None:
    """A missing projection is an error."""
    wrong: Any = PROPERTY
    with pytest.raises(TypeError, match=r"^'it is so': projected\(\) takes a function first, not Property"):
        projected(wrong, PROPERTY)


@pytest.mark.parametrize("prop", [always, always_step, sometimes, eventually])
def test_a_property_has_a_name_and_a_function(prop: Any) -> None:
    """In this order."""
    assert isinstance(prop("it is so", is_so), Property)
    with pytest.raises(TypeError, match="a property begins with its name, a text; not <function is_so"):
        prop(is_so, "it is so")
    with pytest.raises(TypeError, match="a property begins with its name, a text; not ''"):
        prop("", is_so)
    with pytest.raises(TypeError, match="'it is so': the condition has to be a function, not True"):
        prop("it is so", True)  # noqa: FBT003 - that is the mistake


def test_what_leads_to_something_is_a_function() -> None:
    """Both of them."""
    wrong: Any = Light.ON
    with pytest.raises(TypeError, match=r"^'it is so': when= has to be a function, not <Light"):
        leads_to("it is so", wrong, is_so)


@pytest.mark.parametrize(
    "wrong", [Turned, Fairness(Turned), [weakly(Turned)], (weakly(Turned),), (Turned,), "Turned"], ids=str
)
def test_what_is_given_is_said_to_be_weakly_or_strongly_so(wrong: Any) -> None:
    """An event alone does not say which."""
    with pytest.raises(TypeError) as caught:
        eventually("it is so", is_so, given=wrong)
    said = str(caught.value)
    assert said.startswith("'it is so': given= takes weakly(...) or strongly(...), or both as (*weakly(...), ")


@pytest.mark.parametrize(
    "wrong", [Turned(), Lamp, "Turned", is_so, (Turned,)], ids=["event", "record", "text", "function", "pair"]
)
@pytest.mark.parametrize("fairly", [weakly, strongly])
def test_what_happens_fairly_is_an_event_or_an_activity(fairly: Any, wrong: object) -> None:
    """As its class, or a pattern."""
    with pytest.raises(TypeError, match=r"weakly\(\) and strongly\(\) take .* not "):
        fairly(Turned, wrong)


def test_what_is_written_rightly_is_accepted() -> None:
    """All kinds of fairness, joined; all kinds of owners."""
    given = (*weakly(Turned, BRIGHT), *strongly(Burn))
    found = leads_to("it is so", is_so, is_so, given=given)
    assert (found.property_kind, [each.strong for each in found.given]) == (PropertyKind.LEADS_TO, [False, False, True])
    for owner in OWNERS:
        assert [each.name for each in owner([found, PROPERTY]).properties] == ["it is so"] * 2


def test_a_projected_property_is_evaluated_on_the_projection() -> None:
    """Other properties are evaluated on the whole system state."""
    system_state = SystemState({"a": 1, "b": 2}, (("a", "b", "lamp", Turned()),))
    assert subject_of(PROPERTY, system_state) is system_state
    assert subject_of(projected(str, PROPERTY)[0], system_state) == Projection({"a": "1", "b": "2"}, 1)
