"""Rows: how a line of a table is written and printed, and the use of its annotations."""

import typing
from typing import Any, Never, Union

import pytest

from lamp import (
    BREAK,
    GO,
    HALT,
    LEFT,
    Click,
    Failed,
    Lamp,
    Light,
    Shine,
    Turned,
    click,
    lamp,
    never,
    shine,
)
from lifefold.core.kernel import (
    Event,
    Pattern,
    Step,
    after,
    does,
    row,
)
from lifefold.effects import Activity, Begin, LogFatal
from oven import Bake, Baked, Lit, Ring, machine


def test_a_row_prints_as_the_line_that_it_is() -> None:
    """Source, event with its fields or its pattern, target, condition."""
    left = Pattern(Turned, "left", lambda e: e.by == "left")
    spelled = "row(Green | Red, Turned(left), Dark when never)"
    assert str(row((Light.RED, Light.GREEN), left, Light.DARK, when=never)) == spelled
    assert str(BREAK) == "row(ANY, Failed, Dark)"


def test_a_pattern_and_a_condition_must_both_hold() -> None:
    """A row with a pattern is taken for its variants only, and a condition narrows them further."""
    left = Pattern(Turned, "left", lambda e: e.by == "left")

    def is_fresh(lamp: Lamp, _event: Turned) -> bool:
        return lamp.turns == 0

    both = row(Light.RED, left, Light.GREEN, when=is_fresh)
    turn = lamp(both, HALT, BREAK)
    for by, turns, legal in (("left", 0, True), ("left", 1, False), ("right", 0, False), ("right", 1, False)):
        assert isinstance(turn.step(Lamp(turns=turns), Turned(by)), Step) is legal


def test_a_row_is_unguarded_without_a_pattern_and_without_a_condition() -> None:
    """Either of them is a guard."""
    assert GO.unguarded
    assert not row(Light.RED, LEFT, Light.GREEN).unguarded
    assert not row(Light.RED, Turned, Light.GREEN, when=never).unguarded


def test_a_rows_effects_are_read_from_the_annotation_of_its_action() -> None:
    """One, several, or none."""
    assert row(Light.RED, Failed, Light.DARK, click).effects == (Click, Ring)
    assert GO.effects == ()
    assert [r.effects for r in machine.rows if r.event is Baked] == [(Ring,)]
    assert [r.effects for r in machine.rows if r.event is Lit] == [()]


def test_the_annotation_of_an_action_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each engine asks for the effects of all rows of its system."""

    def chimes(lit: Lamp, _event: Turned) -> Step[Lamp, Click]:
        return Step(lit, (Click(),))

    read: list[object] = []
    hints = typing.get_type_hints

    def noted(of: object) -> dict[str, Any]:
        read.append(of)
        return hints(of)

    monkeypatch.setattr(typing, "get_type_hints", noted)
    rows = [row(light, Turned, Light.GREEN, chimes) for light in (Light.RED, Light.DARK)]
    assert [each.effects for each in rows] == [(Click,), (Click,)]
    assert read == [chimes]


def test_a_union_in_an_annotation_may_be_spelled_either_way() -> None:
    """``Union[A, B]`` is ``A | B``; of two such types that are equal, ``typing`` keeps the one that it met first."""

    def either(lamp: Lamp, _event: Event) -> Step[Lamp, Union[Click, LogFatal]]:  # noqa: UP007 - the spelling is the point
        return Step(lamp)

    assert row(Light.RED, Failed, Light.DARK, either).effects == (Click, LogFatal)


def test_an_annotation_that_does_not_say_which_effects_is_an_error() -> None:
    """A bare ``Step``, anything, or something else than an effect; ``Never`` says that there are none."""

    def bare(lamp: Lamp, _event: Event) -> Any:
        return Step(lamp)

    for said in (Any, Step, Step[Lamp, Any], tuple[Lamp, Click | None]):
        bare.__annotations__["return"] = said
        with pytest.raises(TypeError, match=r"bare needs a return annotation with the Effect that it returns"):
            _ = row(Light.RED, Failed, Light.DARK, bare).effects
    bare.__annotations__["return"] = Step[Lamp, Never]
    assert row(Light.RED, Failed, Light.DARK, bare).effects == ()


def test_an_activity_is_one_activity() -> None:
    """Its slot is its name, so a factory of two of them, of any, or of none is an error."""

    def vague(_lamp: Lamp) -> Any:
        return Shine()

    for said in (Shine | Bake, Any, Never):
        vague.__annotations__["return"] = said
        with pytest.raises(TypeError, match=r"vague needs a return annotation with the Activity that it returns"):
            does(vague)


def test_an_action_or_activity_without_an_annotation_is_an_error_that_says_so() -> None:
    """What a function returns must be known before it is called."""

    def dim(_lamp: Lamp) -> Shine:
        return Shine()

    def silent(lamp: Lamp, _event: Failed) -> Step[Lamp, Click]:
        return Step(lamp)

    del dim.__annotations__["return"], silent.__annotations__["return"]
    with pytest.raises(TypeError, match=r"dim needs a return annotation with the Activity that it returns"):
        does(dim)
    with pytest.raises(TypeError, match=r"silent needs a return annotation with the Effect"):
        _ = row(Light.RED, Failed, Light.DARK, silent).effects


def test_an_activity_can_be_declared_by_its_type() -> None:
    """A type that can be made of the record is its own factory."""

    class Glow(Activity, frozen=True):
        lamp: Lamp

    assert does(Glow).slot == "Glow"
    assert does(Glow).activity is Glow
    assert does(shine).activity is Shine
    glowing = lamp(during={Light.GREEN: does(Glow)})
    step = glowing.step(Lamp(), Turned())
    assert isinstance(step, Step)
    assert step.effects == (Begin("Glow", Glow(Lamp(Light.GREEN))),)


def test_the_last_events_of_an_activity_are_among_those_it_yields() -> None:
    """They need not be named twice, and may be."""
    assert does(shine, yields=Turned, last=Failed).yields == (Turned, Failed)
    assert does(shine, yields=(Turned, Failed), last=Failed).yields == (Turned, Failed)
    assert does(shine).yields == ()
    assert after(5, Turned).yields == (Turned,)
    assert after(5, Turned).slot == "Turned"


def test_a_timer_of_a_negative_duration_is_refused() -> None:
    """None elapses before it begins; one of 0 ms does at once."""
    with pytest.raises(ValueError, match=r"^after\(-5, Lit\): accepted: 0 ms or more$"):
        after(-5, Lit)
    assert after(0, Lit).slot == "Lit"
