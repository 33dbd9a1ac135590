"""Machines: the steps of a table, and its profiles."""

from typing import Any, Never

import pytest
from hypothesis import given
from hypothesis import strategies as st
from returns.result import Failure, Success

from lamp import (
    BREAK,
    GO,
    HALT,
    RULES,
    Click,
    Dimmed,
    Failed,
    Lamp,
    Light,
    Other,
    Shaken,
    Turned,
    dim,
    lamp,
    never,
    shine,
    what_is_wrong,
)
from lifefold.core.kernel import (
    ANY,
    STAY,
    Event,
    IllegalTransition,
    InvalidMachine,
    Machine,
    Property,
    Row,
    State,
    Step,
    after,
    always,
    does,
    replace,
    row,
)
from lifefold.effects import Begin, CancelTimer, End, Postpone, StartTimer
from oven import Bake, Baked, Cooled, Doused, Knocked, Lit, Oven, Place, Ring, Scrapped, Stirred, Swept, Warned, machine

# Timers that need not be


def patience_ms(lamp: Lamp) -> int | None:
    """Return how long it stays red: for ever, if it has never turned."""
    return lamp.turns or None


def test_a_timer_without_a_duration_is_not_started() -> None:
    """Neither when its state is entered nor when a life begins in it; the reducers agree on it."""
    patient = lamp(*RULES, row(Light.RED, Dimmed, Light.GREEN), during={Light.RED: after(patience_ms, Dimmed)})
    for reducer in (patient.step, patient.plain_step):
        assert reducer(Lamp(Light.GREEN, 0), Turned()) == Step(Lamp(Light.RED, 0))
        assert reducer(Lamp(Light.GREEN, 7), Turned()) == Step(Lamp(Light.RED, 7), (StartTimer("Dimmed", 7),))
    assert patient.entering(Lamp()) == ()
    assert patient.entering(Lamp(turns=3)) == (StartTimer("Dimmed", 3),)


# Rows that stay


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
    everywhere: Row[Any] = row(ANY, Dimmed, STAY)
    assert str(everywhere) == "row(ANY, Dimmed, (same))"
    assert everywhere.goes(Light.RED) is Light.RED


# Rows that restart timers


@pytest.mark.parametrize("reducer", ["step", "plain_step"])
def test_a_row_with_restart_restarts_the_timers_of_both_states(reducer: str) -> None:
    """Back to its own state, from ``ANY``, and between two states of one timer; no activity ends or begins."""
    both = frozenset({Light.RED, Light.GREEN})
    again = lamp(
        row(Light.RED, Turned, Light.RED, restart=True),
        row(Light.RED, Failed, Light.GREEN, restart=True),
        row(ANY, Dimmed, STAY, restart=True),
        row(Light.GREEN, Turned, Light.DARK),
        during={both: (after(5, Dimmed), does(shine, yields=Turned))},
    )
    anew = (CancelTimer("Dimmed"), StartTimer("Dimmed", 5))
    step = getattr(again, reducer)
    for event, light in ((Turned(), Light.RED), (Failed(), Light.GREEN), (Dimmed(), Light.RED)):
        assert step(Lamp(), event) == Step(Lamp(light), anew)
    assert step(Lamp(Light.DARK), Dimmed()) == Step(Lamp(Light.DARK))


def test_a_row_that_restarts_says_so() -> None:
    """In messages."""
    again: Row[Any] = row(Light.RED, Turned, Light.RED, restart=True)
    assert str(again) == "row(Red, Turned(by), Red, restart)"


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


def astray(lamp: Lamp, _event: Turned) -> Step[Lamp, Never]:
    return Step(replace(lamp, state=Light.DARK))


def silent(_lamp: Lamp, _event: Turned) -> Any:
    return None


ASTRAY = r"^row\(Red, Turned\(by\), Red\): its action sets state to Dark; accepted: Red, only rows change it$"
SILENT = r"^row\(Red, Turned\(by\), Red\): its action returned None; accepted: Step\(record, effects\)$"


@pytest.mark.parametrize(("action", "message"), [(astray, ASTRAY), (silent, SILENT)], ids=["sets state", "None"])
def test_an_action_that_moves_or_answers_nothing_is_refused_by_its_rows_name(action: Any, message: str) -> None:
    """A row alone says where it leads, so no action does; all reducers agree."""
    turned = lamp(row(Light.RED, Turned, Light.RED, action), row(Light.RED, Failed, Light.GREEN), HALT, BREAK)
    for reducer in (turned.step, turned.plain_step, turned.reduce):
        with pytest.raises(TypeError, match=message):
            reducer(Lamp(), Turned())


def test_a_machine_says_what_it_is_in_a_line() -> None:
    """Its name, how much there is of it, and where it starts."""
    assert repr(lamp(*RULES)) == "<Machine 'lamp': 3 states, 3 rows, starts in Red>"


@pytest.mark.parametrize(
    ("name", "words"), [("reduce", "``Failure(IllegalTransition)``"), ("step", "without a container")]
)
def test_a_reducer_says_what_it_returns(name: str, words: str) -> None:
    """So ``help(machine.reduce)`` does, and a traceback has the name that was called."""
    reducer = getattr(lamp(*RULES), name)
    assert (reducer.__name__, reducer.__qualname__) == (name, f"Machine.{name}")
    assert words in reducer.__doc__


def test_a_timer_is_replaced_together_with_its_row() -> None:
    """All of it is checked once: neither the old timer without a row nor the new one is ever there alone."""
    timed = lamp(*RULES, row(Light.RED, Dimmed, Light.GREEN), during={Light.RED: after(5, Dimmed)})
    later: Row[Lamp] = row(Light.RED, Failed, Light.GREEN)
    slower = timed.replacing(later, without=[(Light.RED, Dimmed)], during={Light.RED: after(7, Failed)}, name="slow")
    assert (slower.name, slower.entering(Lamp())) == ("slow", (StartTimer("Failed", 7),))
    assert slower.step(Lamp(), Failed()) == Step(Lamp(Light.GREEN))
    assert isinstance(slower.step(Lamp(), Dimmed()), IllegalTransition)


def test_a_row_that_replaces_stands_for_all_that_there_was_for_its_states_and_event() -> None:
    """Also for those with a guard; in other states the old rows are as they were."""
    guarded = lamp(row(Light.RED, Turned, Light.RED, when=never), *RULES)
    plain = guarded.replacing(row(Light.RED, Turned, Light.GREEN))
    assert plain.step(Lamp(), Turned()) == Step(Lamp(Light.GREEN))
    assert [str(r) for r in plain.rows if r.event is Turned and Light.RED in plain.sources(r)] == [
        "row(Red, Turned(by), Green)"
    ]
    assert plain.step(Lamp(Light.GREEN), Turned()) == guarded.step(Lamp(Light.GREEN), Turned())


class More(State):
    AMBER = "Amber"


AMBER: Machine[Any] = lamp().replacing(
    row(Light.RED, Turned, More.AMBER), row(More.AMBER, Turned, Light.GREEN), added=More, name="amber"
)


def test_a_lifecycle_can_get_states_that_its_own_do_not_have() -> None:
    """They are states as all others: a row of any state holds in them, too."""
    assert AMBER.states == (*Light, More.AMBER)
    for light, now in ((Light.RED, More.AMBER), (More.AMBER, Light.GREEN)):
        assert AMBER.step(replace(Lamp(), state=light), Turned()) == Step(replace(Lamp(), state=now))
    assert AMBER.step(replace(Lamp(), state=More.AMBER), Failed()) == Step(Lamp(Light.DARK))
    assert AMBER.commands == lamp().commands


def test_an_added_state_has_a_name_of_its_own_and_is_reached() -> None:
    """What is logged is the name."""
    twice = what_is_wrong(*RULES, added=Other)
    assert twice == ("added: 'Red' is the name of 2 states; accepted: names that no other state has",)
    assert any("state Amber cannot be reached" in line for line in what_is_wrong(*RULES, added=More))


def test_a_row_of_any_state_stays_one_where_nothing_of_it_is_replaced() -> None:
    """One that loses a state goes on in the others, those added among them."""
    assert [r.sources for r in AMBER.rows if r.event is Failed] == [None]
    fixed = lamp().replacing(
        row(Light.GREEN, Failed, Light.RED),
        row(Light.RED, Shaken, More.AMBER),
        row(More.AMBER, Turned, Light.GREEN),
        added=More,
    )
    assert fixed.step(Lamp(Light.GREEN), Failed()) == Step(Lamp())
    assert fixed.step(replace(Lamp(), state=More.AMBER), Failed()) == Step(Lamp(Light.DARK))


AMBER_ROWS: tuple[Row[Any], ...] = (row(Light.RED, Turned, More.AMBER), row(More.AMBER, Turned, Light.GREEN))


def test_a_row_of_any_state_is_replaced_in_the_added_states_too() -> None:
    """The new row of any state stands alone; it leads nowhere else in some of them."""
    shaky = lamp(*RULES, row(ANY, Shaken, STAY))
    both = shaky.replacing(*AMBER_ROWS, row(ANY, Shaken, STAY, when=never), added=More)
    assert [str(r) for r in both.rows if r.event is Shaken] == ["row(ANY, Shaken, (same) when never)"]
    amber = both.replacing(row(More.AMBER, Shaken, Light.RED, when=never))
    for light in (More.AMBER, *Light):
        assert isinstance(both.step(replace(Lamp(), state=light), Shaken()), IllegalTransition)
        assert isinstance(amber.step(replace(Lamp(), state=light), Shaken()), IllegalTransition)


@pytest.mark.parametrize("source", [ANY, (*Light, More.AMBER)])
def test_what_is_taken_away_from_any_state_is_taken_away_from_the_added_ones(source: Any) -> None:
    shaky = lamp(*RULES, row(ANY, Shaken, STAY)).replacing(*AMBER_ROWS, without=((source, Shaken),), added=More)
    assert not [r for r in shaky.rows if r.event is Shaken]
    assert Shaken not in shaky.events


def test_what_is_taken_away_from_an_added_state_stays_in_the_others() -> None:
    shaky = lamp(*RULES, row(ANY, Shaken, STAY))
    still = shaky.replacing(*AMBER_ROWS, without=((More.AMBER, Shaken),), added=More)
    assert isinstance(still.step(replace(Lamp(), state=More.AMBER), Shaken()), IllegalTransition)
    for light in Light:
        assert still.step(Lamp(light), Shaken()) == Step(Lamp(light))


def test_a_row_for_an_added_state_stands_for_the_row_of_any_state_there() -> None:
    """Where its guard does not agree nothing is taken, as in every other state that has rows replaced."""
    careful = lamp().replacing(*AMBER_ROWS, row(More.AMBER, Failed, Light.RED, when=never), added=More)
    assert isinstance(careful.step(replace(Lamp(), state=More.AMBER), Failed()), IllegalTransition)
    assert careful.step(Lamp(), Failed()) == Step(Lamp(Light.DARK))


def test_what_goes_on_in_any_state_goes_on_in_the_added_ones() -> None:
    """A timer, and an event that waits; what is declared for states by name stays with these."""
    both = (Light.RED, Light.GREEN)
    old = lamp(
        GO,
        HALT,
        row(ANY, Dimmed, STAY),
        row(ANY, Doused, STAY, when=never),
        detached={Light.DARK},
        during={ANY: after(5, Dimmed), both: does(shine, yields=Turned)},
        postpone={ANY: Doused},
        final=(),
    )
    new = old.replacing(*AMBER_ROWS, added=More)
    assert new.spans["Dimmed"].states == {*both, More.AMBER}
    assert new.spans["Shine"].states == {*both}
    assert new.postponed(More.AMBER) == {Doused}
    again = new.replacing(during={ANY: after(7, Dimmed)})
    assert again.entering(replace(Lamp(), state=More.AMBER)) == (StartTimer("Dimmed", 7),)


def test_what_goes_on_in_any_state_can_be_replaced_where_states_are_added() -> None:
    """By what goes on in any state, and by what goes on in all that there were."""
    old = lamp(*RULES, row(ANY, Dimmed, STAY), during={ANY: after(5, Dimmed)})
    everywhere = old.replacing(*AMBER_ROWS, added=More, during={ANY: after(7, Dimmed)})
    assert everywhere.spans["Dimmed"].states == {*Light, More.AMBER}
    before = old.replacing(*AMBER_ROWS, added=More, during={tuple(Light): after(7, Dimmed)})
    assert before.spans["Dimmed"].states == {*Light}
    assert before.entering(Lamp()) == (StartTimer("Dimmed", 7),)


def test_states_are_added_to_a_row_of_any_state_that_has_lost_some_before() -> None:
    """It makes no difference whether both are said at once."""
    first = lamp().replacing(row(Light.GREEN, Failed, Light.RED))
    assert [str(r) for r in first.rows] == [
        "row(Green, Failed, Red)", "row(Red, Turned(by), Green)", "row(Green, Turned(by), Red)",
        "row(Dark | Red, Failed, Dark)",
    ]  # fmt: skip
    then = first.replacing(*AMBER_ROWS, added=More)
    once = lamp().replacing(*AMBER_ROWS, row(Light.GREEN, Failed, Light.RED), added=More)
    for light in (More.AMBER, *Light):
        lit = replace(Lamp(), state=light)
        assert then.step(lit, Failed()) == once.step(lit, Failed())
    assert then.step(replace(Lamp(), state=More.AMBER), Failed()) == Step(Lamp(Light.DARK))


def test_a_machine_with_added_states_can_start_in_one_of_them() -> None:
    """Its states are the same, wherever it starts."""
    amber = AMBER.starting(replace(Lamp(), state=More.AMBER))
    assert {*amber.states} == {*AMBER.states}
    assert amber.step(amber.initial, Turned()) == Step(Lamp(Light.GREEN))


def test_a_profile_gives_up_properties_by_name() -> None:
    """The others are kept; a name that there is not is refused."""
    kept: Property[Any] = always("it is a lamp", lambda _entity: True)
    lost: Property[Any] = always("it is never dark", lambda entity: entity.state is not Light.DARK)
    bright = lamp(properties=(lost, kept))
    assert [each.name for each in bright.without_properties("it is never dark").properties] == ["it is a lamp"]
    with pytest.raises(InvalidMachine, match="without_properties: there is no 'it is green'"):
        bright.without_properties("it is green")


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
    idle = Machine("rock", Lamp(), rows=(), final={Light.RED}, detached={Light.GREEN, Light.DARK})
    assert str(idle.step(Lamp(), Turned())) == "rock: Turned is not possible in Red (possible: nothing)"


def test_an_illegal_transition_says_when_it_is_the_condition_that_does_not_hold() -> None:
    """The event is possible there, but not now."""
    shy = lamp(row(Light.RED, Turned, Light.DARK, when=never), row(Light.RED, Failed, Light.GREEN), HALT, BREAK)
    assert str(shy.step(Lamp(), Turned())) == "lamp: Turned is not possible in Red: its condition does not hold"


def test_several_states_may_postpone_several_events() -> None:
    """``postpone`` may name one state or several, and one event or several."""
    slow = lamp(
        row(Light.RED, Turned, Light.GREEN),
        row(Light.GREEN, Doused, Light.DARK),
        row(Light.DARK, Dimmed, Light.DARK),
        BREAK,
        row(Light.GREEN, Shaken, Light.RED),
        postpone={(Light.RED, Light.GREEN): Dimmed, Light.RED: (Doused, Shaken)},
    )
    assert [slow.postponed(state) for state in Light] == [{Dimmed, Doused, Shaken}, {Dimmed}, set()]
    assert slow.events == (Turned, Doused, Dimmed, Failed, Shaken)


def test_what_is_declared_twice_for_the_same_states_adds_up() -> None:
    """However the states are named."""
    both = lamp(during={Light.RED: does(shine), (Light.RED,): after(5, Turned)})
    assert sorted(both.spans) == ["Shine", "Turned"]


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
    sturdy = lamp().without_rows((Light.GREEN, Failed), name="sturdy")
    assert [(r.source_label, r.event_label) for r in sturdy.rows] == [
        ("Red", "Turned(by)"), ("Green", "Turned(by)"), ("Dark | Red", "Failed"),
    ]  # fmt: skip
    assert isinstance(sturdy.step(Lamp(Light.GREEN), Failed()), IllegalTransition)
    assert isinstance(sturdy.step(Lamp(Light.RED), Failed()), Step)
    with pytest.raises(InvalidMachine, match="Dark cannot be reached"):
        lamp().without_rows((ANY, Failed))


def test_a_profile_cannot_do_without_rows_that_are_not_there() -> None:
    """The error names what matches nothing: a slip would otherwise leave the row in."""
    with pytest.raises(InvalidMachine) as caught:
        lamp().without_rows((Light.RED, Failed), (Light.RED, Doused), (Other.RED, Dimmed), name="sturdy")
    assert caught.value.problems == (
        "without_rows: Red has no row for Doused",
        "without_rows: Red has no row for Dimmed",
    )


def test_a_profile_can_start_elsewhere() -> None:
    """``starting``: another record, the same table."""
    green = lamp().starting(Lamp(Light.GREEN), "green")
    assert (green.name, green.initial, green.rows) == ("green", Lamp(Light.GREEN), lamp().rows)
    assert lamp().starting(Lamp(turns=3)).name == "lamp"


def test_a_machine_says_which_activities_rules_serve() -> None:
    """``serving`` changes nothing else."""
    served = machine.serving("Bake")
    assert [sorted(each.served) for each in (served, machine, served.serving())] == [["Bake"], [], ["Bake"]]
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
    """A slip in a name would otherwise leave the activity to an interpreter. Rules serve activities only, no timers."""
    with pytest.raises(InvalidMachine, match="there is no activity Bke; there are Bake"):
        machine.serving("Bke")
    with pytest.raises(InvalidMachine, match="there is no activity Cooled; there are Bake"):
        machine.serving("Cooled")


def test_any_state_is_none_of_the_detached_ones() -> None:
    """Detached states are outside of the table, also for what holds everywhere else."""
    aside = lamp(GO, HALT, row(ANY, Failed, Light.RED), final=(), detached={Light.DARK}, during={ANY: after(5, Failed)})
    assert isinstance(aside.step(Lamp(Light.DARK), Failed()), IllegalTransition)
    assert isinstance(aside.step(Lamp(Light.GREEN), Failed()), Step)
    assert aside.spans["Failed"].states == {Light.RED, Light.GREEN}


def test_a_machine_cannot_be_changed() -> None:
    """What is declared is read-only; profiles are other machines."""
    for parts in (machine.during, machine.postpone, machine.spans, machine.last):
        with pytest.raises(TypeError):
            parts["Bake"] = None  # type: ignore[index]


def test_a_row_into_or_out_of_a_detached_state_is_an_error_that_names_it() -> None:
    """Detached states are outside of the table."""
    with pytest.raises(InvalidMachine, match=r"row\(.*Baking.*\) enters or leaves Baking, which is declared detached"):
        Machine("oven", machine.initial, rows=machine.rows, final=machine.final, detached={Place.BAKING})
