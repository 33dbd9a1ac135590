"""What a record says of its numbers is not trusted: a search that left something out by it ends with an error."""

from typing import Any, ClassVar, Never

import pytest

from lifefold.core.kernel import STAY, Entity, Event, Machine, Property, Record, Row, State, Step, always, replace, row
from lifefold.interpreters.check import Unsound, check


class Light(State):
    OFF = "Off"
    ON = "On"


class Switched(Event, frozen=True):
    """Somebody switches it."""


class Lamp(Record, frozen=True):
    """A lamp that counts how often it was switched, and says that the number does not matter."""

    serials: ClassVar[tuple[str, ...]] = ("turns",)
    state: Light = Light.OFF
    turns: int = 0


class Clock(Record, frozen=True):
    """A lamp that remembers since when it is on, and does not say that this is a time."""

    state: Light = Light.OFF
    at_ms: int = 0
    since_ms: int = 0

    def pauses_ms(self) -> tuple[int, ...]:
        return (0, 5)


def count(lamp: Lamp, _e: Switched) -> Step[Lamp, Never]:
    """Count."""
    return Step(replace(lamp, turns=lamp.turns + 1))


def fresh(lamp: Lamp, _e: Switched) -> bool:
    """It was switched three times at most."""
    return lamp.turns < 3


def remember(clock: Clock, _e: Switched) -> Step[Clock, Never]:
    """Remember the time."""
    return Step(replace(clock, since_ms=clock.at_ms))


def lamp(*, wearing: bool, promises: tuple[Property[Any], ...] = ()) -> Machine[Any]:
    rows: list[Row[Lamp]] = [
        row(Light.OFF, Switched, Light.ON, count, when=fresh if wearing else None),
        row(Light.ON, Switched, Light.OFF, count),
        row(Light.OFF, Switched, STAY),
    ]
    return Machine("lamp", Lamp(), rows=rows[: 3 if wearing else 2], properties=promises)


def few_turns(entity: Entity[Lamp]) -> bool:
    return entity.record.turns <= 3


def counts(entity: Entity[Lamp]) -> bool:
    return entity.record.turns >= 0


def test_a_number_that_does_not_matter_may_be_forgotten() -> None:
    """Without it the lamp would have states without end."""
    report = check(lamp(wearing=False, promises=(always("it counts", counts),)))
    assert report.ok
    assert report.renumbered == ("turns",)
    assert report.walked[0] > report.states


def test_a_number_that_decides_may_not_be_forgotten() -> None:
    """The same states are met, but one that stands for several does not do what all of them do."""
    with pytest.raises(Unsound, match="other steps than there are"):
        check(lamp(wearing=True))


def test_a_number_that_a_promise_speaks_of_may_not_be_forgotten() -> None:
    """The promise would hold of the form, and not of what it stands for."""
    with pytest.raises(Unsound, match="tell apart what the search does not: lamp, 'few turns'"):
        check(lamp(wearing=False, promises=(always("few turns", few_turns),)))


def test_a_time_that_is_not_declared_is_found_out() -> None:
    """It would stay behind while everything else is moved to now."""
    rows: list[Row[Clock]] = [
        row(Light.OFF, Switched, Light.ON, remember),
        row(Light.ON, Switched, Light.OFF, remember),
    ]
    with pytest.raises(Unsound, match="other steps than there are"):
        check(Machine("clock", Clock(), rows=rows))


class Written(Event, frozen=True):
    """Somebody writes something on it."""

    text: str = ""

    @classmethod
    def examples(cls) -> tuple["Written", ...]:
        return cls(""), cls("out of order"), cls("mind the step")


class Label(Record, frozen=True):
    """A lamp with a label, of which it says that no rule looks at what is written there."""

    opaque: ClassVar[tuple[str, ...]] = ("text",)
    state: Light = Light.OFF
    text: str = ""


def write(label: Label, e: Written) -> Step[Label, Never]:
    """Keep the text."""
    return Step(replace(label, text=e.text))


def is_labelled(label: Label, _e: Switched) -> bool:
    """Something is written on it."""
    return bool(label.text)


def works(label: Label, _e: Switched) -> bool:
    """Nothing says that it is out of order."""
    return label.text != "out of order"


def labelled(when: Any) -> Machine[Any]:
    rows = [row(Light.OFF, Written, STAY, write), row(Light.OFF, Switched, Light.ON, when=when)]
    return Machine("label", Label(), rows=rows, final={Light.ON}, rests=lambda _: True)


def test_of_what_is_opaque_a_rule_may_see_whether_there_is_anything() -> None:
    """Two texts are one state, and no text is another."""
    report = check(labelled(is_labelled))
    assert report.ok
    assert report.states == 3


def test_a_text_that_decides_is_not_opaque() -> None:
    """The gate finds the rule that reads it."""
    with pytest.raises(Unsound):
        check(labelled(works))
