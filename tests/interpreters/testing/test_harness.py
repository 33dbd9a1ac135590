"""The harness: a test fails if it leaves out anything that has happened, and says what."""

import re
from collections.abc import Callable
from typing import Any, Final

import pytest

import kiln
import oven
from kiln import Announce, Counted, Doused, Fire, Fired, Heat, Lit, Smashed, Stoked
from lifefold.effects import Tell
from lifefold.interpreters.testing import Aspect, Harness

ASPECTS: Final[tuple[Aspect, ...]] = ("state", "effects", "running")


def lit(*, exhaustive: bool | tuple[Aspect, ...] = True) -> Harness:
    """Return a harness in which a kiln was lit, with nothing asserted of it."""
    harness = Harness(kiln.kiln, exhaustive=exhaustive)
    harness.send(Lit())
    return harness


def said(harness: Harness) -> None:
    """Assert all of what lighting the kiln comes to."""
    harness.assert_changed(state=Heat.FIRING, firings=1)
    harness.assert_effects(Announce("lit 1"))
    harness.assert_running(Fire(1))


def failure(*steps: Callable[[], object]) -> str:
    """Return how the last of these steps fails; the others must not."""
    for step in steps[:-1]:
        step()
    with pytest.raises(AssertionError) as raised:
        steps[-1]()
    return str(raised.value)


def test_a_test_that_says_everything_passes() -> None:
    """Fields, effects, activities, timers, refusals: a whole life, in virtual time."""
    with Harness(kiln.kiln, now_ms=1_000) as harness:
        harness.send(Lit())
        said(harness)
        harness.report(Fired(3))
        harness.assert_changed(state=Heat.COOLING)
        harness.assert_running("Rested", "Cooled")
        harness.advance(199)
        harness.advance(1)
        harness.assert_running("Cooled")
        harness.send(Lit())
        harness.assert_refused("illegal", "not possible in Cooling")
        harness.advance(10_000)
        harness.assert_changed(state=Heat.COLD)
        harness.assert_running()
        assert harness.now_ms == 11_200
        assert harness.record() == kiln.Kiln(firings=1)


@pytest.mark.parametrize(
    ("left_out", "line"),
    [
        ("state", "state Cold → Firing"),
        ("firings", "firings 0 → 1"),
        ("effects", "effect Announce(word='lit 1')"),
        ("running", "+ Fire #2"),
    ],
)
@pytest.mark.parametrize("end", ["finish", "next input"])
def test_what_is_left_out_fails_the_test(left_out: str, line: str, end: str) -> None:
    """At the next input, and at the end; the message names it, the input, and shows the trace."""
    harness = lit()
    fields: dict[str, Any] = {"state": Heat.FIRING, "firings": 1}
    harness.assert_changed(**{name: value for name, value in fields.items() if name != left_out})
    if left_out != "effects":
        harness.assert_effects(Announce("lit 1"))
    if left_out != "running":
        harness.assert_running(Fire(1))
    message = failure(harness.finish if end == "finish" else lambda: harness.report(Stoked()))
    assert message.startswith(f"not everything was asserted of: operator says Lit()\n  {line}\n\n")
    step = r"^ 1 +0  operator says Lit\(\) +state Cold → Firing +Announce\(word='lit 1'\)$"
    assert re.search(step, message, re.MULTILINE)


@pytest.mark.parametrize(
    ("aspect", "line"),
    [("state", "firings 0 → 1"), ("effects", "effect Announce(word='lit 1')"), ("running", "+ Fire #2")],
)
def test_exhaustivity_is_configurable_per_aspect(aspect: Aspect, line: str) -> None:
    """All of one aspect has to be said, and nothing of the others; with False nothing at all."""
    others: tuple[Aspect, ...] = tuple(each for each in ASPECTS if each != aspect)
    assert line in failure(lit(exhaustive=(aspect,)).finish).partition("\n\n")[0]
    assert line not in failure(lit(exhaustive=others).finish).partition("\n\n")[0]
    lit(exhaustive=False).finish()


def test_an_aspect_that_there_is_not_is_an_error() -> None:
    """A misspelt dial would leave a test open without a word."""
    misspelt: Any = ("states",)
    with pytest.raises(ValueError, match="some of state, effects, running; not 'states'"):
        Harness(kiln.kiln, exhaustive=misspelt)


@pytest.mark.parametrize("exhaustive", [True, False])
def test_what_is_asserted_and_is_not_so_fails_at_once(*, exhaustive: bool) -> None:
    """A wrong value, a field that has not changed, another effect, an activity that does not go on."""
    harness = lit(exhaustive=exhaustive)
    assert failure(lambda: harness.assert_changed(firings=2)).startswith("firings is 1, not 2")
    assert failure(lambda: harness.assert_changed(state=Heat.COLD)).startswith("state is Firing, not Cold")
    assert failure(lambda: harness.assert_changed(stoked=0)).startswith("stoked has not changed: it was 0 before")
    assert "asserted were\n  Announce(word='lit 2')\nasked for were\n  Announce(word='lit 1')" in failure(
        lambda: harness.assert_effects(Announce("lit 2"))
    )
    assert "- Cooled (live)" in failure(lambda: harness.assert_running(Fire(1), "Cooled"))
    assert "refused was: nothing" in failure(lambda: harness.assert_refused("stale"))
    said(harness)
    harness.finish()


def test_less_may_be_asserted_if_that_is_dialled() -> None:
    """Some effects of several, in their order, and some of what goes on."""
    harness = Harness(kiln.kiln, exhaustive=False)
    harness.send(kiln.Called("echo"))
    harness.assert_effects(Announce("echo"))
    harness.send(Lit())
    harness.report(Fired())
    harness.assert_running("Cooled")
    assert "asserted was" not in failure(lambda: harness.assert_effects(Announce("echo")))


def test_a_refusal_has_to_be_asserted_whatever_is_dialled() -> None:
    """An input that is not taken in a test is a mistake of the test, or of the machine."""
    harness = Harness(kiln.kiln, exhaustive=False)
    harness.send(Stoked())
    assert "refused, unsolicited: Stoked comes from an activity" in failure(harness.finish)
    harness.assert_refused("unsolicited")
    harness.finish()


def test_an_end_is_asked_for_and_confirmed() -> None:
    """An activity that is broken off is ending until it is confirmed; what it says meanwhile is stale."""
    with lit() as harness:
        said(harness)
        harness.send(Doused())
        harness.assert_changed(state=Heat.COLD)
        harness.assert_running(ending=[Fire])
        harness.report(Stoked())
        harness.assert_refused("stale")
        harness.confirm()
        harness.assert_running()


def test_a_report_of_an_earlier_generation_is_refused() -> None:
    """What was begun again is another activity."""
    with lit(exhaustive=False) as harness:
        harness.report(Stoked(), generation=1)
        harness.assert_refused("stale")


def test_a_runner_that_comes_back_asks_for_everything_again() -> None:
    """Time has passed meanwhile, and nothing else has changed."""
    with lit() as harness:
        said(harness)
        harness.recover(down_ms=500)
        assert "resume Fire(firing=1)" in str(harness.trace)
        assert harness.now_ms == 500


def test_what_waits_has_to_be_asserted() -> None:
    """A postponed event is a change, although the record is as it was."""
    harness = Harness(oven.machine, exhaustive=("state",))
    harness.send(oven.Lit())
    harness.assert_changed(state=oven.Place.BAKING, degrees=200)
    harness.send(oven.Knocked())
    assert "waiting [] → [Knocked()]" in failure(harness.finish)
    assert "waiting is [Knocked()], not []" in failure(harness.assert_waiting)
    harness.assert_waiting(oven.Knocked())
    harness.finish()


def pottery() -> Harness:
    """Return a system with a kiln that burns, all of it asserted."""
    harness = Harness(kiln.system, opening=list(kiln.opened()))
    harness.send(Lit(), to="kiln/a")
    harness.assert_changed("kiln/a", state=Heat.FIRING, firings=1)
    harness.assert_effects(Announce("lit 1"), of="kiln/a")
    harness.assert_running(Fire(1), of="kiln/a")
    return harness


def test_messages_between_aggregates_are_asserted_and_delivered() -> None:
    """What is told is an effect; it arrives when the test says so."""
    with pottery() as harness:
        harness.report(Stoked(), to="kiln/a")
        harness.assert_changed("kiln/a", stoked=1)
        harness.assert_effects(Tell("tally", "tally", Counted(0)))
        harness.deliver("kiln/a", "tally")
        harness.assert_changed("tally", counted=(0,))


def test_a_message_that_is_not_delivered_fails_the_test() -> None:
    """At the end no message may be in flight that the test has not seen."""
    harness = pottery()
    harness.report(Stoked(), to="kiln/a")
    harness.assert_changed("kiln/a", stoked=1)
    assert "kiln/a: effect Tell(aggregate='tally'" in failure(harness.finish)
    harness.assert_effects(Tell("tally", "tally", Counted(0)))
    assert "not delivered:\n  kiln/a tells tally: Counted(pots=0)" in failure(harness.finish)


def test_what_changes_elsewhere_has_to_be_asserted_too() -> None:
    """The failure says whose it is."""
    harness = pottery()
    harness.send(Smashed(), to="kiln/a kiln")
    message = failure(lambda: harness.send(Counted(2), to="tally"))
    assert "\n  kiln/a: state Firing → Broken\n  kiln/a: - Fire #2\n  kiln/a: + Fire (ending) #2\n" in message


def test_a_name_that_there_is_not_is_an_error_that_names_those_that_there_are() -> None:
    """So is one that is left out where there are several, and an impossible input."""
    harness = pottery()
    with pytest.raises(KeyError, match="there are tally tally, kiln/a kiln"):
        harness.send(Lit(), to="kiln/b")
    with pytest.raises(KeyError, match="'' does not name one entity"):
        harness.record()
    with pytest.raises(ValueError, match="no activity runs that yields Counted"):
        harness.report(Counted(), to="kiln/a")
    with pytest.raises(ValueError, match="no activity was asked to end"):
        harness.confirm(to="kiln/a")
    with pytest.raises(ValueError, match="no message is in flight"):
        harness.deliver()


def test_time_does_not_go_back() -> None:
    """A sign that slipped would let nothing happen, without a word."""
    harness = Harness(kiln.kiln)
    with pytest.raises(ValueError, match="time does not go back: found -5 ms"):
        harness.advance(-5)
    with pytest.raises(ValueError, match="time does not go back: found -1 ms"):
        harness.recover(-1)
    assert harness.now_ms == 0


def test_a_class_where_an_event_is_wanted_is_an_error() -> None:
    """It says what was meant; so does anything else that is not an event."""
    harness = Harness(kiln.kiln)
    lit_class: Any = Lit
    with pytest.raises(TypeError, match=r"an event is wanted, and Lit is an Event class; did you mean Lit\(\)\?"):
        harness.send(lit_class)
    with pytest.raises(TypeError, match=r"did you mean Lit\(\)\?"):
        harness.report(lit_class)
    number: Any = 5
    with pytest.raises(TypeError, match="an event is wanted; 5 is an int"):
        harness.send(number)


def test_a_field_that_there_is_not_is_an_error_that_names_those_that_there_are() -> None:
    """And the one that is nearest."""
    harness = lit()
    there = "state, .*firings"
    with pytest.raises(AttributeError, match=f"Kiln has no field 'stat'; there are {there}.*; did you mean 'state'"):
        harness.assert_changed(stat=Heat.FIRING)
    with pytest.raises(AttributeError, match=f"Kiln has no field 'xyz'; there are {there}[^;]*$"):
        harness.assert_changed(xyz=1)


def test_a_record_class_is_no_machine() -> None:
    """What is given is called by its name, and it is said what is accepted."""
    given: Any = kiln.Kiln
    with pytest.raises(TypeError, match="Kiln is a Record class; accepted: a Machine, or a System with its opening="):
        Harness(given)


def test_how_it_begins_is_said_of_a_system_and_only_of_one() -> None:
    """A machine has its record; a system without aggregates would take nothing."""
    with pytest.raises(TypeError, match="opening= is for a System"):
        Harness(kiln.kiln, opening=list(kiln.opened()))
    with pytest.raises(TypeError, match="a System begins with an opening="):
        Harness(kiln.system)
    with pytest.raises(ValueError, match="tally does not begin: tally is open already"):
        Harness(kiln.system, opening=[*kiln.opened(), *kiln.opened()])


def test_an_error_in_the_block_is_not_hidden_by_what_it_has_left_out() -> None:
    """The first failure is the one to look at."""

    def fail() -> None:
        with Harness(kiln.kiln) as harness:
            harness.send(Lit())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_an_activity_is_asserted_with_what_it_was_begun_with() -> None:
    """A name alone leaves that unsaid; another value is named beside the one that is there."""
    harness = lit()
    assert "Fire has begun, and was asserted without its fields" in failure(lambda: harness.assert_running(Fire))
    assert "Fire(firing=1) runs, not Fire(firing=100)" in failure(lambda: harness.assert_running(Fire(100)))
    harness.assert_running(Fire(1))


def test_what_went_on_before_may_be_asserted_by_its_name() -> None:
    """It was asserted when it began; and unless all of what runs is asked for, a name is enough."""
    with Harness(kiln.kiln, exhaustive=("state",)) as harness:
        harness.send(Lit())
        harness.assert_running(Fire)
        harness.assert_changed(state=Heat.FIRING, firings=1)


def test_the_entity_of_a_change_is_named_as_everywhere_else() -> None:
    """By of=; without it in front, for a record that has a field of that name."""
    with Harness(kiln.kiln, exhaustive=False) as harness:
        harness.send(Lit())
        harness.assert_changed(of="kiln", state=Heat.FIRING)
        harness.assert_changed("kiln", state=Heat.FIRING)
        with pytest.raises(AttributeError, match="has no field 'of'"):
            harness.assert_changed("kiln", of="clay")
