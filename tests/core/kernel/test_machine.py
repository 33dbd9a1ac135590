"""Machines: how a table is written, read, checked when it is built, and varied in profiles."""

from typing import Any, Never

import pytest
from hypothesis import given
from hypothesis import strategies as st
from returns.result import Failure, Success

from lifefold.core.kernel import (
    ANY,
    STAY,
    Event,
    IllegalTransition,
    InvalidMachine,
    Machine,
    Pattern,
    Record,
    Row,
    State,
    Step,
    after,
    does,
    replace,
    row,
)
from lifefold.effects import Activity, Begin, CancelTimer, Effect, End, Postpone, StartTimer
from oven import Bake, Baked, Cooled, Doused, Knocked, Lit, Oven, Place, Ring, Scrapped, Stirred, Swept, Warned, machine


class Light(State):
    RED = "Red"
    GREEN = "Green"
    DARK = "Dark"


class Other(State):
    RED = "Red"


class Turned(Event, frozen=True):
    """It turns."""

    by: str = ""


class Failed(Event, frozen=True):
    """It fails."""


class Shine(Activity, frozen=True):
    """Give light."""


class Click(Effect, frozen=True):
    """Make a noise."""


class Lamp(Record, frozen=True):
    """A lamp at a crossing."""

    state: Light = Light.RED
    turns: int = 0


def shine(_lamp: Lamp) -> Shine:
    return Shine()


def never(_lamp: Lamp, _event: Event) -> bool:
    return False


def click(lamp: Lamp, _event: Event) -> Step[Lamp, Click | Ring]:
    return Step(replace(lamp, turns=lamp.turns + 1), (Click(),))


GO: Row[Any] = row(Light.RED, Turned, Light.GREEN)
HALT: Row[Any] = row(Light.GREEN, Turned, Light.RED)
BREAK: Row[Any] = row(ANY, Failed, Light.DARK)
RULES: tuple[Row[Any], ...] = (GO, HALT, BREAK)


def lamp(*rows: Row[Any], **parts: Any) -> Machine[Any]:
    """Build a lamp of these rows, or of the usual ones, with other parts."""
    usual: dict[str, Any] = {"final": {Light.DARK}}
    return Machine("lamp", Lamp(), rows=rows or RULES, **(usual | parts))


def is_sound(*rows: Row[Any], **parts: Any) -> bool:
    """Tell whether a lamp of these rows can be built."""
    return lamp(*rows, **parts).name == "lamp"


def what_is_wrong(*rows: Row[Any], **parts: Any) -> tuple[str, ...]:
    """Return the problems of a lamp that must not be built."""
    with pytest.raises(InvalidMachine) as caught:
        lamp(*rows, **parts)
    assert str(caught.value).startswith("machine 'lamp' is not well formed:\n- ")
    assert all(f"- {line}" in str(caught.value) for line in caught.value.problems)
    return caught.value.problems


# Validation


def test_a_well_formed_machine_has_no_problems() -> None:
    """The lamp that the other tests break is sound."""
    assert lamp().states == (Light.RED, Light.GREEN, Light.DARK)
    assert lamp().events == (Turned, Failed)


MISTAKES: list[tuple[tuple[Row[Any], ...], dict[str, Any], str]] = [
    ((row(Light.RED, Turned, Other.RED), BREAK), {}, "row(Red, Turned(by), Red)"),
    ((row(Other.RED, Turned, Light.RED), BREAK), {}, "row(Red, Turned(by), Red)"),
    (RULES, {"during": {Other.RED: does(shine)}}, "during Red"),
    (RULES, {"postpone": {Other.RED: Failed}}, "postpone Red"),
    (RULES, {"final": {Light.DARK, Other.RED}}, "final"),
]


@pytest.mark.parametrize(
    ("rows", "parts", "place"),
    MISTAKES,
    ids=["target", "source", "during", "postpone", "final"],
)
def test_a_state_of_another_machine_is_unknown(rows: tuple[Row[Any], ...], parts: dict[str, Any], place: str) -> None:
    """Even if it is spelled the same. The problem names the row or the part, and lists the states there are."""
    assert what_is_wrong(*rows, **parts) == (
        f"{place}: unknown state <Other.RED: 'Red'>; the states are Red, Green, Dark",
    )


def test_unknown_states_are_all_there_is_to_say() -> None:
    """Other problems would only follow from them."""
    wrong = what_is_wrong(row(Other.RED, Turned, Light.RED), GO, final=())
    assert [line for line in wrong if "unknown state" not in line] == []


def test_a_slot_can_be_declared_only_once() -> None:
    """An activity of several states is declared for all of them together."""
    wrong = what_is_wrong(during={Light.RED: does(shine), Light.GREEN: (after(5, Turned), does(shine))})
    assert wrong == ("during: Shine is declared twice; give its states in one key",)


def test_a_row_behind_an_unguarded_one_can_never_be_taken() -> None:
    """The problem names both rows."""
    wrong = what_is_wrong(*RULES, row(Light.GREEN, Turned, Light.DARK, when=never))
    assert wrong == (
        (
            "row(Green, Turned(by), Dark when never) can never be taken: "
            "row(Green, Turned(by), Red) comes first and has no guard"
        ),
    )


def test_a_row_of_several_states_is_shadowed_only_if_it_is_in_all_of_them() -> None:
    """Where one of its states is still open, it has a use."""
    assert is_sound(GO, row((Light.RED, Light.GREEN), Turned, Light.RED), BREAK)
    wrong = what_is_wrong(GO, HALT, row((Light.RED, Light.GREEN), Turned, Light.RED), BREAK)
    assert len(wrong) == 1
    assert wrong[0].startswith("row(Green | Red, Turned(by), Red) can never be taken")


def test_a_guarded_row_shadows_nothing() -> None:
    """What its guard refuses falls through to the next row."""
    assert is_sound(row(Light.RED, Turned, Light.DARK, when=never), *RULES)
    assert is_sound(row(Light.RED, Pattern(Turned, "left", lambda e: e.by == "left"), Light.DARK), *RULES)


def test_a_state_that_no_row_enters_is_reported_with_the_rows_that_leave_it() -> None:
    """It cannot be reached; its own rows are dead."""
    assert what_is_wrong(BREAK, HALT) == (
        "state Green cannot be reached from Red (it is the source of row(Green, Turned(by), Red))",
    )
    assert what_is_wrong(GO, HALT) == ("state Dark cannot be reached from Red (it is the source of no row)",)


def test_a_state_that_cannot_be_left_must_be_final() -> None:
    """A row that stays does not leave. The problem names the rows that lead there."""
    assert what_is_wrong(final=()) == (
        "state Dark can never be left and is not declared final (it is the target of row(ANY, Failed, Dark))",
    )
    alone = Machine(
        "lamp", Lamp(), rows=(row(Light.RED, Failed, Light.RED),), final={Light.RED}, detached={Light.GREEN, Light.DARK}
    )
    assert alone.final == {Light.RED}
    with pytest.raises(InvalidMachine, match=r"state Red can never be left .* the target of no row"):
        Machine("lamp", Lamp(), rows=(), detached={Light.GREEN, Light.DARK})


def test_a_detached_state_needs_no_row() -> None:
    """It is outside the table; it is neither unreachable nor a dead end."""
    assert lamp(GO, HALT, detached={Light.DARK}, final=()).detached == {Light.DARK}


def test_a_final_state_is_not_left() -> None:
    """The problem names the row; a row that stays in it leaves nothing."""
    wrong = what_is_wrong(*RULES, row(Light.DARK, Turned, Light.RED))
    assert wrong == ("row(Dark, Turned(by), Red) leaves Dark, which is declared final",)
    assert is_sound(*RULES, row(Light.DARK, Turned, Light.DARK))


def test_an_event_is_not_postponed_for_ever() -> None:
    """Some other state must have a row for it."""
    wrong = what_is_wrong(GO, HALT, row(Light.RED, Failed, Light.DARK), postpone={Light.GREEN: (Failed, Doused)})
    assert wrong == ("postpone Green: no later state has a row for Doused",)
    assert what_is_wrong(GO, HALT, detached={Light.DARK}, final=(), postpone={ANY: Failed}) == (
        "postpone Dark, Green, Red: no later state has a row for Failed",
    )


def test_an_event_that_a_row_takes_does_not_wait() -> None:
    """A guarded row is different: what it refuses waits."""
    assert what_is_wrong(postpone={Light.RED: Turned}) == (
        "postpone Red: Turned never waits, because a row takes it there",
    )
    assert is_sound(
        row(Light.RED, Turned, Light.GREEN, when=never),
        HALT,
        row(Light.RED, Doused, Light.GREEN),
        BREAK,
        postpone={Light.RED: Turned},
    )


def test_what_an_activity_yields_has_a_row_in_one_of_its_states() -> None:
    """Otherwise the activity would speak to nobody."""
    wrong = what_is_wrong(during={(Light.RED, Light.GREEN): does(shine, yields=(Turned, Doused))})
    assert wrong == ("during Green, Red: Shine yields Doused, for which there is no row in Green, Red",)
    assert what_is_wrong(during={Light.RED: after(5, Doused)}) == (
        "during Red: Doused yields Doused, for which there is no row in Red",
    )


def test_the_last_event_of_an_activity_has_a_row_in_each_of_its_states() -> None:
    """It may come at any time, and there is no other to come after it."""
    wrong = what_is_wrong(
        *RULES, row(Light.RED, Doused, Light.DARK), during={(Light.RED, Light.GREEN): does(shine, last=Doused)}
    )
    assert wrong == ("during Green: Shine ends with Doused, for which Green has no row",)


def test_the_last_event_of_an_activity_leaves_its_states() -> None:
    """Nothing would go on in them."""
    assert what_is_wrong(during={(Light.RED, Light.GREEN): does(shine, last=Turned)}) == (
        "row(Red, Turned(by), Green) stays where Shine is declared to go on, but Turned is its last event",
        "row(Green, Turned(by), Red) stays where Shine is declared to go on, but Turned is its last event",
    )


def test_every_problem_is_reported_at_once() -> None:
    """One build, one list."""
    assert len(what_is_wrong(HALT, GO, GO, during={Light.RED: does(shine, yields=Doused)})) == 3


# Rows


def test_a_row_prints_as_the_line_that_it_is() -> None:
    """Source, event with its fields or its pattern, target, condition."""
    left = Pattern(Turned, "left", lambda e: e.by == "left")
    assert (
        str(row((Light.RED, Light.GREEN), left, Light.DARK, when=never))
        == "row(Green | Red, Turned(left), Dark when never)"
    )
    assert str(BREAK) == "row(ANY, Failed, Dark)"
    assert row(Light.RED, left, Light.DARK, when=never).when_label == "left and never"
    assert row(Light.RED, left, Light.DARK).when_label == "left"
    assert row(Light.RED, Turned, Light.DARK, when=never).when_label == "never"
    assert GO.when_label == ""


def test_a_pattern_and_a_condition_must_both_hold() -> None:
    """A row with a pattern is taken for its variants only, and a condition narrows them further."""
    left = Pattern(Turned, "left", lambda e: e.by == "left")

    def is_fresh(lamp: Lamp, _event: Turned) -> bool:
        return lamp.turns == 0

    both = row(Light.RED, left, Light.GREEN, when=is_fresh)
    turn = lamp(both, HALT, BREAK)
    for by, turns, legal in (("left", 0, True), ("left", 1, False), ("right", 0, False), ("right", 1, False)):
        assert isinstance(turn.step(Lamp(turns=turns), Turned(by)), Step) is legal
        assert both.guard is not None
        assert both.guard(Lamp(turns=turns), Turned(by)) is legal
    only: Row[Any] = row(Light.RED, left, Light.GREEN)
    assert only.guard is not None
    assert [only.guard(Lamp(), Turned(by)) for by in ("left", "right")] == [True, False]
    assert GO.guard is None
    assert row(Light.RED, Turned, Light.GREEN, when=never).guard is never


def test_a_rows_effects_are_read_from_the_annotation_of_its_action() -> None:
    """One, several, or none."""
    assert row(Light.RED, Failed, Light.DARK, click).effects == (Click, Ring)
    assert GO.effects == ()
    assert [r.effects for r in machine.rows if r.event is Baked] == [(Ring,)]
    assert [r.effects for r in machine.rows if r.event is Lit] == [()]


def test_an_action_or_activity_without_an_annotation_is_an_error_that_says_so() -> None:
    """What a function returns must be known before it is called."""

    def dim(_lamp: Lamp) -> Shine:
        return Shine()

    def silent(lamp: Lamp, _event: Failed) -> Step[Lamp, Click]:
        return Step(lamp)

    del dim.__annotations__["return"], silent.__annotations__["return"]
    with pytest.raises(TypeError, match=r"dim needs a return annotation that says which Activity it returns"):
        does(dim)
    with pytest.raises(TypeError, match=r"silent needs a return annotation that says which Effect"):
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


# Rows that stay


class Dimmed(Event, frozen=True):
    """Less light."""


def dim(lamp: Lamp, _event: Dimmed) -> Step[Lamp, Click]:
    return Step(replace(lamp, turns=lamp.turns - 1), (Click(),))


def test_a_row_that_stays_changes_what_stands_beside_the_state_and_nothing_that_goes_on() -> None:
    """From any state, also a final one; activities neither end nor begin."""
    dimmer = lamp(*RULES, row(ANY, Dimmed, STAY, dim), during={(Light.RED, Light.GREEN): does(shine, yields=Dimmed)})
    for light in Light:
        assert dimmer.step(Lamp(light, 2), Dimmed()) == Step(Lamp(light, 1), (Click(),))
        assert dimmer.plain_step(Lamp(light, 2), Dimmed()) == Step(Lamp(light, 1), (Click(),))


def test_a_row_that_stays_is_no_way_out_of_a_state() -> None:
    """A state that has no other row can never be left."""
    stuck = what_is_wrong(GO, row(Light.GREEN, Dimmed, STAY), row(Light.RED, Failed, Light.DARK))
    assert any("Green can never be left" in line for line in stuck)


def test_a_row_that_stays_says_so() -> None:
    """In messages and tables."""
    assert str(row(ANY, Dimmed, STAY)) == "row(ANY, Dimmed, (same))"
    assert row(Light.RED, Dimmed, STAY).goes(Light.RED) is Light.RED


# Steps


@given(
    st.builds(Oven, st.sampled_from(Place), degrees=st.integers(0, 1_000)),
    st.sampled_from(
        [Lit(), Stirred(), Baked(), Doused(), Knocked(), Warned(), Swept(), Cooled(), Scrapped(), Turned()]
    ),
)
def test_both_reducers_are_the_plain_step(oven: Oven, event: Event) -> None:
    """``step`` bare; ``reduce`` as ``Success`` of the step, or ``Failure`` with what was illegal."""
    assert machine.step(oven, event) == machine.plain_step(oven, event)
    match machine.reduce(oven, event):
        case Success(step):
            assert step == machine.step(oven, event)
            assert isinstance(step, Step)
        case Failure(illegal):
            assert illegal == machine.step(oven, event)
            assert isinstance(illegal, IllegalTransition)
        case _:
            raise AssertionError


def test_a_step_unpacks_into_the_record_and_the_effects() -> None:
    """The own effects first, then what ends and what begins."""
    step = machine.step(Oven(Place.BAKING, degrees=200), Baked())
    assert isinstance(step, Step)
    record, effects = step
    assert record == Oven(Place.COOLING, degrees=200, loaves=1)
    assert effects == (Ring(1), StartTimer("Cooled", 500), StartTimer("Warned", 200), StartTimer("Swept", 300))


def test_a_row_goes_to_its_target_whatever_its_action_says() -> None:
    """Also where it stays in its state."""

    def astray(lamp: Lamp, _event: Turned) -> Step[Lamp, Never]:
        return Step(replace(lamp, state=Light.DARK))

    turned = lamp(row(Light.RED, Turned, Light.RED, astray), row(Light.RED, Failed, Light.GREEN), HALT, BREAK)
    for step in (turned.step, turned.plain_step):
        assert step(Lamp(), Turned()) == Step(Lamp())


def test_the_first_row_that_fits_is_taken() -> None:
    """What its guard refuses goes to the next row, and then to the postponed events."""
    hot, warm = Oven(Place.BAKING, degrees=501), Oven(Place.BAKING, degrees=500)
    assert machine.step(hot, Knocked()) == Step(replace(hot, state=Place.COLD, visitors=1), (End("Bake"),))
    assert machine.step(warm, Knocked()) == Step(warm, (Postpone(Knocked()),))


def test_any_means_every_state_even_a_final_one() -> None:
    """A row from ANY holds everywhere, and derives from each state what ends there."""
    for place, ends in ((Place.COLD, ()), (Place.BAKING, (End("Bake"),)), (Place.SCRAPPED, ())):
        assert machine.step(Oven(place), Scrapped()) == Step(Oven(Place.SCRAPPED), ends)
    assert machine.step(Oven(Place.COOLING), Scrapped()) == Step(
        Oven(Place.SCRAPPED), (CancelTimer("Cooled"), CancelTimer("Warned"), CancelTimer("Swept"))
    )


def test_an_illegal_transition_says_what_was_refused_where_and_what_is_possible() -> None:
    """In the order of the table, postponed events included."""
    illegal = machine.step(Oven(Place.BAKING), Lit())
    assert isinstance(illegal, IllegalTransition)
    assert str(illegal) == "oven: Lit is not possible in Baking (possible: Stirred, Baked, Doused, Knocked, Scrapped)"
    assert illegal.allowed == machine.allowed(Place.BAKING)
    alone = Machine("rock", Lamp(), rows=(), final={Light.RED}, detached={Light.GREEN, Light.DARK})
    assert str(alone.step(Lamp(), Turned())) == "rock: Turned is not possible in Red (possible: nothing)"


def test_several_states_may_postpone_several_events() -> None:
    """``postpone`` may name one state or several, and one event or several."""
    slow = lamp(
        row(Light.RED, Turned, Light.GREEN),
        row(Light.GREEN, Doused, Light.DARK),
        BREAK,
        postpone={(Light.RED, Light.DARK): Doused, Light.GREEN: (Turned,)},
    )
    assert [slow.postponed(state) for state in Light] == [{Doused}, {Turned}, {Doused}]
    assert slow.events == (Turned, Doused, Failed)


def test_what_begins_with_a_life_is_what_its_first_state_declares() -> None:
    """``entering`` is for records that come from nowhere."""
    assert machine.entering(Oven(Place.BAKING, degrees=9)) == (Begin("Bake", Bake(9)),)
    assert machine.entering(Oven()) == ()


# Profiles


def test_a_profile_has_its_own_rows_ahead_and_leaves_the_machine_as_it_was() -> None:
    """``with_rows``: the first row that fits is the profile's."""
    dark = lamp().with_rows(
        row(Light.RED, Turned, Light.DARK, when=never), row(Light.GREEN, Doused, Light.RED), name="dark"
    )
    assert (dark.name, lamp().name) == ("dark", "lamp")
    assert len(dark.rows) == len(lamp().rows) + 2
    assert isinstance(dark.step(Lamp(Light.GREEN), Doused()), Step)
    assert isinstance(lamp().step(Lamp(Light.GREEN), Doused()), IllegalTransition)
    assert lamp().with_rows().name == "lamp"


def test_a_profile_can_do_without_rows() -> None:
    """``without_rows``: the pairs are gone, what else a row holds for stays."""
    sturdy = lamp().without_rows((Light.GREEN, Failed), (ANY, Doused), name="sturdy")
    assert [(r.source_label, r.event_label) for r in sturdy.rows] == [
        ("Red", "Turned(by)"), ("Green", "Turned(by)"), ("Dark | Red", "Failed"),
    ]  # fmt: skip
    assert isinstance(sturdy.step(Lamp(Light.GREEN), Failed()), IllegalTransition)
    assert isinstance(sturdy.step(Lamp(Light.RED), Failed()), Step)
    with pytest.raises(InvalidMachine, match="Dark cannot be reached"):
        lamp().without_rows((ANY, Failed))


def test_a_profile_can_start_elsewhere() -> None:
    """``starting``: another record, the same table."""
    green = lamp().starting(Lamp(Light.GREEN), "green")
    assert (green.name, green.initial, green.rows) == ("green", Lamp(Light.GREEN), lamp().rows)
    assert lamp().starting(Lamp(turns=3)).name == "lamp"


def test_a_machine_says_which_activities_rules_serve() -> None:
    """``serving`` changes nothing else."""
    served = machine.serving("Bake")
    assert [sorted(each.served) for each in (served, machine)] == [["Bake"], []]
    assert (served.name, served.about, served.rows, served.spans) == (
        machine.name,
        machine.about,
        machine.rows,
        machine.spans,
    )


def test_a_profile_keeps_everything_that_it_does_not_change() -> None:
    """Activities, postponed events, invariants, final and detached states."""

    def holds(_lamp: Lamp) -> bool:
        return True

    whole = lamp(
        row(Light.RED, Turned, Light.GREEN), row(Light.GREEN, Doused, Light.RED), final=(), detached={Light.DARK},
        during={Light.RED: does(shine)}, postpone={Light.RED: Doused}, invariants=[holds], served=["Shine"],
        about="a lamp",
    )  # fmt: skip
    copy = whole.with_rows()
    for part in (
        "name",
        "about",
        "initial",
        "final",
        "detached",
        "during",
        "postpone",
        "invariants",
        "served",
        "events",
    ):
        assert getattr(copy, part) == getattr(whole, part)


def test_an_action_that_goes_nowhere_needs_no_function() -> None:
    """Without an action the record changes its state alone."""

    def nothing(lamp: Lamp, _event: Event) -> Step[Lamp, Never]:
        return Step(lamp)

    assert lamp().step(Lamp(turns=2), Turned()) == Step(Lamp(Light.GREEN, 2))
    assert lamp(row(Light.RED, Turned, Light.GREEN, nothing), HALT, BREAK).step(Lamp(), Turned()) == Step(
        Lamp(Light.GREEN)
    )


def test_serving_an_activity_that_is_not_there_is_an_error_that_names_it() -> None:
    """A slip in a name would otherwise leave the activity to an interpreter."""
    with pytest.raises(InvalidMachine, match="there is no activity Bke; there are Bake"):
        machine.serving("Bke")


def test_a_row_into_or_out_of_a_detached_state_is_an_error_that_names_it() -> None:
    """Detached states are outside of the table."""
    with pytest.raises(InvalidMachine, match=r"row\(.*Baking.*\) enters or leaves Baking, which is declared detached"):
        Machine("oven", machine.initial, rows=machine.rows, final=machine.final, detached={Place.BAKING})
