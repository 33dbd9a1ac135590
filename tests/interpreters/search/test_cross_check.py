"""What a record declares of its numbers is not trusted: the report shows where the search and the rules disagree."""

from typing import Any, ClassVar, Never

from lifefold.core.kernel import (
    STAY,
    Entity,
    Event,
    Machine,
    Property,
    Record,
    Row,
    State,
    Step,
    Transition,
    always,
    always_step,
    replace,
    row,
)
from lifefold.interpreters.check import Bounds, Outcome, Report, Verdict, check
from lifefold.interpreters.check.checking import SAME_STEPS


class Light(State):
    OFF = "Off"
    ON = "On"


class Switched(Event, frozen=True):
    """It is switched."""


class Lamp(Record, frozen=True):
    """A lamp that counts how often it was switched, and says that the number does not matter."""

    identifiers: ClassVar[tuple[str, ...]] = ("turns",)
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


def lamp(*, wearing: bool, properties: tuple[Property[Any], ...] = ()) -> Machine[Any]:
    rows: list[Row[Lamp]] = [
        row(Light.OFF, Switched, Light.ON, count, when=fresh if wearing else None),
        row(Light.ON, Switched, Light.OFF, count),
        row(Light.OFF, Switched, STAY),
    ]
    return Machine("lamp", Lamp(), rows=rows[: 3 if wearing else 2], properties=properties)


def few_turns(entity: Entity[Lamp]) -> bool:
    return entity.record.turns <= 3


def counts(entity: Entity[Lamp]) -> bool:
    return entity.record.turns >= 0


def test_a_number_that_does_not_matter_may_be_forgotten() -> None:
    """Without it the lamp would have states without end."""
    report = check(lamp(wearing=False, properties=(always("it counts", counts),)))
    assert report.ok
    assert report.renumbered == ("turns",)
    assert report.walked[0] > report.states


def of(report: Report, name: str) -> Verdict:
    return next(each for each in report.verdicts if each.name == name)


def has_no_proof(report: Report) -> bool:
    """Whether the report says that the steps differ, shows a trace to it, and calls nothing proven."""
    verdict = of(report, SAME_STEPS)
    return (
        verdict.outcome is Outcome.UNSOUND
        and verdict.trace is not None
        and not report.ok
        and all(each.outcome is not Outcome.HOLDS for each in report.verdicts)
    )


def test_a_number_that_decides_may_not_be_forgotten() -> None:
    """The same states are met, but one that stands for several does not do what all of them do: nothing is proven."""
    report = check(lamp(wearing=True))
    assert has_no_proof(report)
    text = "\n".join(report.lines(400))
    assert "lamp.turns is 4 by the rules and 1 in the search" in text
    assert "renumbered: they differ" in text


def test_a_property_that_reads_a_forgotten_number_is_unsound_and_the_others_are_decided() -> None:
    """The property holds of the form, and not of what the form stands for: the report shows where, with the field."""
    properties = (always("few turns", few_turns), always("it counts", counts))
    report = check(lamp(wearing=False, properties=properties))
    verdict = of(report, "few turns")
    assert verdict.outcome is Outcome.UNSOUND
    assert verdict.trace is not None
    assert len(verdict.trace.steps) == 4
    assert "lamp.turns is 4 by the rules" in "\n".join(verdict.way(400))
    assert of(report, "it counts").outcome is Outcome.HOLDS
    assert of(report, "what is not settled can go on").outcome is Outcome.HOLDS
    assert not report.ok


def is_odd_when_on(change: Transition) -> bool:
    record = change.after.record
    return not isinstance(record, Lamp) or record.state is Light.OFF or record.turns % 2 == 1


def test_a_property_kept_in_the_unreduced_step_and_broken_in_the_reduced_one_is_shown_with_that_step() -> None:
    """The lamp is on after an odd count; the search forgets the count. The others are decided."""
    properties = (always_step("on is odd", is_odd_when_on), always("it counts", counts))
    report = check(lamp(wearing=False, properties=properties), bounds=Bounds(compared=0))
    verdict = of(report, "on is odd")
    assert verdict.outcome is Outcome.UNSOUND
    assert verdict.trace is not None
    assert [type(each.envelope.event) for each in verdict.trace.steps] == [Switched] * 3
    shown = "\n".join(report.lines(400))
    assert "keep the property in this last step" in shown
    assert "lamp.turns is 3 by the rules and 1 in the search" in shown
    assert of(report, "it counts").outcome is Outcome.HOLDS


def is_used(entity: Entity[Lamp]) -> bool:
    return entity.record.turns > 0


def test_a_failing_report_ends_with_what_failed() -> None:
    """What holds stands first, undecided properties follow, and the broken ones stand last, before the conclusion."""
    properties = (always("a broken one", is_used), always("it counts", counts))
    report = check(lamp(wearing=False, properties=properties), bounds=Bounds(states=1))
    outcomes = [each.outcome for each in report.sorted()]
    assert outcomes == sorted(outcomes, key=list(Outcome).index)
    lines = list(report.lines())
    undecided = [n for n, line in enumerate(lines) if line.startswith("  ?")]
    broken = next(n for n, line in enumerate(lines) if line.startswith("  ✗"))
    assert undecided
    assert max(undecided) < broken
    assert "a broken one" in lines[broken]


def test_a_time_that_is_not_declared_is_found_out() -> None:
    """It would stay behind while everything else is moved to now."""
    rows: list[Row[Clock]] = [
        row(Light.OFF, Switched, Light.ON, remember),
        row(Light.ON, Switched, Light.OFF, remember),
    ]
    assert has_no_proof(check(Machine("clock", Clock(), rows=rows)))


class Written(Event, frozen=True):
    """A text is written on it."""

    text: str = ""

    @classmethod
    def examples(cls) -> tuple["Written", ...]:
        return cls(""), cls("out of order"), cls("mind the step")


class Label(Record, frozen=True):
    """A lamp with a label that is declared as opaque: no rule reads it."""

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
    assert has_no_proof(check(labelled(works)))
