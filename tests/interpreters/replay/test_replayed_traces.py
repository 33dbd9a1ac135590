"""Going a way again: every kind of step, what was kept on the way, and ways that are no longer there."""

from collections.abc import Callable
from typing import Any
from unittest import SkipTest

import msgspec
import pytest

import kiln
import oven
from lifefold.core.kernel import (
    AggregateType,
    Entity,
    Envelope,
    Event,
    Machine,
    Opened,
    Property,
    State,
    System,
    always,
    always_step,
    eventually,
    leads_to,
    sometimes,
    strongly,
    weakly,
)
from lifefold.interpreters.certificates.emitted import emitted
from lifefold.interpreters.check import Bounds, Outcome, check
from lifefold.interpreters.replay import Replay
from lifefold.interpreters.targets.check_targets import named
from lifefold.interpreters.targets.target import Target


def _baked(*properties: Property[Any], commands: int | None = None) -> Replay:
    """Return an oven of these properties in which bread was baked."""
    run = Replay(oven.machine.with_properties(*properties), commands=commands)
    run.command(oven.Lit())
    run.report("Bake", oven.Stirred(), after_ms=7)
    run.report("Bake", oven.Baked())
    return run


def test_every_kind_of_step_is_taken_by_the_rules() -> None:
    """A command, reports, timers when they are due, a crash, an end and its confirmation."""
    run = _baked()
    assert run.world.now_ms == 1_000_000_000_007
    run.timer("Warned")
    assert run.world.now_ms == 1_000_000_000_207
    run.recovery()
    run.timer("Swept", after_ms=900)
    run.timer("Cooled")
    run.command(oven.Lit(degrees=300), after_ms=1)
    run.command(oven.Doused())
    run.confirmation("Bake")
    entity = run.world.aggregates["oven"].entities["oven"]
    assert (entity.record.loaves, entity.running, entity.state) == (1, (), oven.Place.COLD)
    assert run.moved() == ""
    assert [step.cause for step in run.taken] == [
        "command", "report", "report", "timer", "recovery", "timer", "timer", "command", "command", "confirmation",
    ]  # fmt: skip


def test_a_story_tells_each_step_and_what_it_moved() -> None:
    """Numbered, and in the end what was not possible."""
    run = _baked()
    run.timer("Warned")
    run.report("Bake", oven.Baked())
    assert run.story().splitlines() == [
        "what has happened:",
        "  1. oven: command Lit(degrees=200)  Cold → Baking",
        "  2. oven: report Stirred()",
        "  3. oven: report Baked()  Baking → Cooling",
        "  4. oven: timer TimerFired(slot='Warned', generation=4)",
        "     and then this is not possible: report Baked(): Bake of generation -1 is not live in Cooling",
    ]


def test_what_was_broken_on_the_way_is_not_kept_whatever_came_later() -> None:
    """Promises about all moments and all steps; those that something is possible need one moment."""
    run = _baked(
        always("it never bakes", lambda found: found.state is not oven.Place.BAKING),
        always("it is an oven", lambda found: found.ref == "oven"),
        always_step("it never gets hot", lambda step: step.after.state is not oven.Place.BAKING),
        sometimes("it cools", lambda found: found.state is oven.Place.COOLING),
        sometimes("it is scrapped", lambda found: found.state is oven.Place.SCRAPPED),
    )
    kept = ("it is an oven", "it cools")
    for name in ("it never bakes", "it is an oven", "it never gets hot", "it cools", "it is scrapped"):
        assert run.keeps(name, of="oven") is (name in kept)


def test_a_last_step_that_is_refused_breaks_nothing() -> None:
    """The moments before it count all the same."""
    run = _baked(always("there is never bread", lambda found: found.record.loaves == 0))
    run.command(oven.Lit())
    assert not run.keeps("there is never bread", of="oven")
    run = Replay(oven.machine.with_properties(always("it is not scrapped", lambda found: found.state != "Scrapped")))
    run.command(oven.Doused())
    assert run.keeps("it is not scrapped", of="oven")
    assert run.can_go_on()


@pytest.mark.parametrize("goes_round", [False, True])
def test_a_step_after_one_that_is_refused_is_skipped(*, goes_round: bool) -> None:
    """The reason says how far it went; a round that was to follow has no beginning."""
    run = _baked()
    run.command(oven.Lit())
    with pytest.raises(SkipTest, match="the trace is lost after 3 steps, check again: command Lit"):
        run.goes_round() if goes_round else run.command(oven.Scrapped())


def test_a_property_of_no_aggregate_is_skipped() -> None:
    """By its name, and whose it was."""
    with pytest.raises(SkipTest, match="oven does not have this property any more: bread"):
        _baked().keeps("bread", of="oven")


def _bread(**given: Any) -> Property[Any]:
    return leads_to(
        "a fire leads to bread",
        lambda found: found.state is oven.Place.BAKING,
        lambda found: found.record.loaves > 0,
        **given,
    )


def _stirred_for_ever(declared: Property[Any]) -> Replay:
    run = Replay(oven.machine.with_properties(declared))
    run.command(oven.Lit())
    for _round in (1, 2):
        run.goes_round()
        run.report("Bake", oven.Stirred(), after_ms=1)
        run.report("Bake", oven.Stirred())
    return run


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [((), False), (weakly(oven.Stirred), False), (weakly(oven.Bake), True), (strongly(oven.Baked), True)],
    ids=["nobody has to", "what is done", "who could all the time", "who could again and again"],
)
def test_a_round_counts_only_if_no_task_is_kept_waiting_unfairly(given: Any, *, is_kept: bool) -> None:
    """An activity that could be over at any moment, and is said to be in the end, is not stirred for ever."""
    assert _stirred_for_ever(_bread(given=given)).keeps("a fire leads to bread", of="oven") is is_kept


def test_timers_and_confirmations_are_never_put_off_for_ever() -> None:
    """A run that stands still while one of them is to come is no run."""
    cold: Property[Any] = leads_to(
        "it gets cold", lambda found: bool(found.record.loaves), lambda found: found.state is oven.Place.COLD
    )
    run = _baked(cold)
    run.goes_round()
    assert run.keeps("it gets cold", of="oven")
    gone: Property[Any] = leads_to("no fire", lambda found: bool(found.running), lambda found: not found.running)
    run = Replay(oven.machine.with_properties(gone))
    run.command(oven.Lit())
    run.command(oven.Doused())
    run.goes_round()
    assert run.keeps("no fire", of="oven")


def test_what_was_to_come_to_be_from_the_beginning_is_due_at_once() -> None:
    """And is no more when it has been so."""
    baked: Property[Any] = eventually("it is lit", lambda found: found.state is oven.Place.BAKING)
    run = Replay(oven.machine.with_properties(baked))
    run.goes_round()
    assert not run.keeps("it is lit", of="oven")
    run.command(oven.Lit())
    assert run.keeps("it is lit", of="oven")


def test_operators_without_commands_left_keep_no_property_waiting() -> None:
    """A command that is taken for granted must be possible."""
    lit: Property[Any] = eventually("it is lit", lambda found: found.state is oven.Place.BAKING, given=weakly(oven.Lit))
    for commands, is_kept in ((None, True), (0, False)):
        run = Replay(oven.machine.with_properties(lit), commands=commands)
        run.goes_round()
        assert run.keeps("it is lit", of="oven") is is_kept


def test_a_way_can_go_on_while_something_is_possible_or_all_is_settled() -> None:
    """Forbidden moves are not possible; a settled system need not go on."""
    assert Replay(oven.machine).can_go_on()
    assert not Replay(oven.machine, commands=0).can_go_on()
    run = Replay(oven.machine, commands=1)
    run.command(oven.Scrapped())
    assert run.can_go_on()


def _is_no(kind: type[Event]) -> Callable[[Any], bool]:
    return lambda step: not isinstance(step.event, kind)


POTTERY = System(
    "pottery",
    AggregateType(
        "kiln",
        machines=(kiln.kiln,),
        rules=(kiln.tell_pots,),
        properties=(
            always("no kiln is lit", lambda kilns: not kilns.record("kiln").firings),
            always_step("no kiln fires", _is_no(kiln.Fired)),
        ),
    ),
    AggregateType("tally", machines=(kiln.tally,)),
    properties=(
        always("no message is in flight", lambda scene: not scene.in_flight),
        leads_to("what is said arrives", lambda scene: bool(scene.in_flight), lambda scene: not scene.in_flight),
        always_step("nothing is counted", _is_no(kiln.Counted)),
    ),
)


def _pots() -> Replay:
    run = Replay(POTTERY, kiln.opened(0))
    run.command(kiln.Lit(), "kiln/a", "kiln")
    run.report("Fire", kiln.Fired(), "kiln/a", "kiln")
    return run


def test_a_message_arrives_only_if_it_is_the_first_one_under_way() -> None:
    """Numbers and senders are those of the rules."""
    run = _pots()
    assert run.can_go_on()
    run.message(kiln.Counted(1), "kiln/a", "tally")
    assert run.world.aggregates["tally"].record("tally").counted == (1,)
    run.message(kiln.Counted(1), "kiln/a", "tally")
    assert "kiln/a does not tell tally Counted(pots=1)" in run.story()


def test_properties_of_a_type_and_of_the_system_look_at_all_of_theirs() -> None:
    """An aggregate by itself, and all of them together with what is under way."""
    run = _pots()
    broken = {"no kiln is lit": "kiln", "no kiln fires": "kiln", "no message is in flight": "pottery"}
    assert not any(run.keeps(name, of) for name, of in broken.items())
    assert run.keeps("nothing is counted", of="pottery")
    run.goes_round()
    assert run.keeps("what is said arrives", of="pottery")
    run = _pots()
    run.message(kiln.Counted(1), "kiln/a", "tally")
    assert not run.keeps("nothing is counted", of="pottery")


def test_where_nothing_is_nothing_happens() -> None:
    """A step of an aggregate or an entity that is not there is refused, with its name."""
    run = Replay(POTTERY, kiln.opened(0))
    run.command(kiln.Lit(), "kiln/b", "kiln")
    assert "there is no kiln/b" in run.story()
    for step in ("report", "timer", "confirmation"):
        run = Replay(POTTERY, kiln.opened(0))
        extra = (kiln.Fired(),) if step == "report" else ()
        getattr(run, step)("Fire", *extra, "kiln/b", "kiln")
        assert "there is no kiln/b" in run.story()
    with pytest.raises(SkipTest, match="tally cannot begin any more"):
        Replay(POTTERY, [("tally", Envelope("", Opened({"oven": kiln.Tally()}), 0))])


def _false(state: State) -> tuple[Property[Any], ...]:
    def is_there(found: Entity[Any]) -> bool:
        return found.state is state

    never: Property[Any] = always(f"{state} is never met", lambda found: not is_there(found))
    return never, leads_to(f"{state} is the last", is_there, lambda _found: False)


SHIPPED = ("session", "process-by-hand", "status", "task", "task-approval", "turn", "worker_slot")


@pytest.mark.parametrize("name", SHIPPED)
def test_whatever_a_check_finds_can_be_gone_again(name: str) -> None:
    """For every state of a lifecycle: that it is never met, and that nothing ever follows, is refuted by a way."""
    machine: Machine[Any] = named(name).subject  # type: ignore[assignment] # these are machines
    properties = [declared for state in machine.states for declared in _false(state)]
    false = machine.with_properties(*properties)
    report = check(false, bounds=msgspec.structs.replace(named(name).bounds, compared=100))
    broken = [each.name for each in report.verdicts if each.outcome is Outcome.BROKEN]
    assert broken
    text, without = emitted([(Target(name, false, (), Bounds(), ("somewhere", "machine"), "machine"), report)])
    assert without == ()
    assert text.count("def test_") == len(broken)
