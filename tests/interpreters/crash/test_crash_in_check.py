"""Crashes as part of a check: runners die in every state that shows something new."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

import kiln
from desk import TOLD, Asked, Came, Desk, Letter, Mail, fire, told
from lifefold import effects
from lifefold.core.kernel import Entity, Envelope, Machine, Step, alone, row
from lifefold.core.lifecycles import session, task
from lifefold.effects import Effect
from lifefold.interpreters.check import Bounds, CrashBounds, CrashReport, Fault, Outcome, Report, check, check_crashes
from lifefold.interpreters.crash.configurations import nearest, shown
from lifefold.interpreters.crash.runner_model import Runner
from lifefold.interpreters.search.bitset_search import search
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.crash_model import SHIPPED
from lifefold.interpreters.search.product_system import ProductSystem
from lifefold.interpreters.targets.check_targets import known, named

FEW = CrashBounds(inputs=1, crashes=1, batch=1)


def of_crashes(report: Report) -> dict[str, Outcome]:
    """Return what came of the properties of runners."""
    return {each.name: each.outcome for each in report.verdicts if each.owner == "crashes"}


def looked_at(report: Report) -> CrashReport:
    """Return what was looked at of crashes."""
    assert report.crashes is not None
    return report.crashes


def test_crashes_are_searched_on_request() -> None:
    """With verdicts beside the others, and counts of their own."""
    uncompared = Bounds(compared=0)
    assert check(task.machine, bounds=uncompared).crashes is None
    report = check(task.machine, bounds=uncompared, crashes=FEW)
    assert of_crashes(report) == dict.fromkeys(Fault, Outcome.HOLDS)
    assert looked_at(report).begun == 11
    assert "everything from each of 11 states with 1 input, 1 crash, 1 decision" in " ".join(str(report).split())


def test_runners_die_in_every_state_and_in_the_midst_of_everything_that_goes_on() -> None:
    """The states from which it begins show all that is shown anywhere: states, activities, how far they are."""
    system, openings = alone(session.machine)
    product_system = ProductSystem(system, tuple(openings.items()), Judge(system), Bounds())
    found = search(product_system)
    (part,) = product_system.components
    everything = {each for aggregate in part.states for each in shown(aggregate)}
    begun = {each for state in nearest(found) for each in shown(part.states[found.world(state)[0]])}
    assert begun == everything
    assert {each[1] for each in everything} == set(session.State)
    assert ("session", "Stopped", "RunSession", "ending") in everything


def test_what_a_crash_breaks_is_shown_with_the_way_to_it() -> None:
    """A message that is written twice: the trace, then the steps of the runner, then the remedy."""
    report = check(told, opening=TOLD, crashes=FEW)
    (broken,) = report.broken()
    assert broken.words() == (
        "crashes: nothing is performed twice that is not idempotent: broken"
        " (1 performed again; say of Mail that it is idempotent, or recognised)"
    )
    assert list(broken.way(120)) == [
        "  1. operator says Asked()   empty → done",
        "     and with all of that recorded and performed",
        "  2. decide  letters 2: talk tells Asked()   empty → done  [Mail]",
        "  3. persist letters 2",
        "  4. perform letters 2.0: Mail()",
        "  5. crash   the runner dies; another one reads the log",
        "  6. perform letters 2.0: Mail(), again",
    ]


def test_an_effect_says_itself_that_it_is_known_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is relied on, and the report says so."""
    monkeypatch.setattr(Mail, "recognised", True)
    report = check(told, opening=TOLD, crashes=FEW)
    assert report.ok
    assert "1 performed again; Mail recognised by identity" in str(report).replace("\n" + " " * 16, " ")


def test_what_is_not_idempotent_is_known_again_by_its_identity() -> None:
    """Of all effects that are shipped: no machine needs an exception."""
    words = [getattr(effects, name) for name in effects.__all__]
    asked = {each for each in words if isinstance(each, type) and issubclass(each, Effect) and each is not Effect}
    once = {each.__name__ for each in asked if not each.idempotent}
    assert once - {each.__name__ for each in asked if each.recognised} == {"Begin", "Postpone"}
    recognised = {each.__name__ for each in asked if each.recognised}
    assert recognised == {"CallHook", "EscalateSilence", "InterruptSession", "ReturnBudget"}


@pytest.mark.parametrize(
    "name", ["session-in-fleet", pytest.param("runtime-graceful", marks=pytest.mark.campaign), "status", "agent"]
)
def test_shipped_machines_survive_crashes_wherever_they_are(name: str) -> None:
    """Those whose effects are not idempotent among them; `make certificates` has all of them, and more inputs."""
    target = named(name)
    bounds = Bounds(within=target.bounds.within, compared=0)
    report = check(target.subject, opening=target.opening, bounds=bounds, crashes=FEW)
    assert set(of_crashes(report).values()) == {Outcome.HOLDS}


def test_every_shipped_target_has_its_bounds() -> None:
    """So that what is said of each is complete, and the same each time. The world of leases takes no input."""
    limits = {name: named(name).crashes for name in known()}
    found = {name: (each.inputs, each.crashes, each.batch, each.seconds) for name, each in limits.items()}
    assert found.pop("host-leases") == (0, 1, 1, None)
    assert set(found.values()) == {(1, 1, 1, None), (2, 1, 1, None)}


def test_there_are_fewer_inputs_where_more_would_be_too_much() -> None:
    """What was looked at completely is said; only what is more than the states even then is cut."""
    report = check(session.machine, bounds=Bounds(compared=0), crashes=CrashBounds(2, 1, 1, states=8_000))
    assert (looked_at(report).limits.inputs, looked_at(report).truncated, report.ok) == (1, "", True)
    report = check(session.machine, bounds=Bounds(compared=0), crashes=CrashBounds(2, 1, 1, states=1_000))
    assert looked_at(report).truncated == "more than 1,000 states"
    assert set(of_crashes(report).values()) == {Outcome.UNDECIDED}
    assert report.conclusion().endswith("; the search ended after more than 1,000 states")


def test_a_search_that_was_cut_short_proves_nothing_of_crashes() -> None:
    """There may be states that no search has left."""
    report = check(session.machine, bounds=Bounds(depth=3), crashes=FEW)
    assert looked_at(report).begun > 3
    assert set(of_crashes(report).values()) == {Outcome.UNDECIDED}


def test_a_runner_that_stands_somewhere_is_one_that_has_come_there() -> None:
    """It has exactly the handlers of a runner that has performed all effects of the trace."""
    system, opening = alone(kiln.kiln)
    runner = Runner(
        system, tuple(opening.items()), SHIPPED, CrashBounds(inputs=3, crashes=0, batch=1), (kiln.Announce,)
    )
    met = [runner.initial()]
    idle = 0
    for model in met:
        after = [to for _, to, _ in runner.successors(model)]
        met += [each for each in after if len(met) < 3_000]
        is_idle = not model.volatile.flights and not model.volatile.pending
        if is_idle and all(each.kind in {"live", "timer", "ended"} for each in model.volatile.handlers):
            aggregates = [runner.states[0][model.durable.log[0]]]
            assert runner.standing(aggregates, []).volatile == model.volatile
            idle += 1
    assert idle > 50


def test_an_error_of_the_rules_is_a_verdict_on_the_runner_too() -> None:
    """What it did until then is shown, and what was raised; nothing else is decided."""

    def write(_letter: Letter, _event: Asked) -> Step[Letter, Mail]:
        raise OSError("no ink")

    rows = (row(Desk.EMPTY, Asked, Desk.DONE, write),)
    report = check_crashes(Machine("letters", Letter(), rows=rows, final={Desk.DONE}))
    (broken,) = report.broken()
    assert broken.name == "rules and properties raise no error"
    first, said = [" ".join(line.split()) for line in broken.way(120)]
    assert first == "1. decide letters 1: begins"
    assert re.fullmatch(r"raises OSError: no ink \(in write, test_crash_in_check\.py:\d+\)", said)
    assert {each.outcome for each in report.verdicts} == {Outcome.BROKEN, Outcome.UNDECIDED}


def test_messages_that_the_bounds_keep_under_way_are_a_verdict() -> None:
    """It would stay there for ever: what is told, and what comes of it, is shown."""

    def counts_nothing(tally: Any) -> bool:
        return not tally.counted

    bounds = Bounds(within={"tally": counts_nothing}, compared=0)
    report = check(kiln.system, opening=tuple(kiln.opened()), bounds=bounds)
    (broken,) = report.broken()
    assert broken.name == "every message is taken"
    *_, last, said = list(broken.way(120))
    assert "tally: kiln/a tells Counted" in last
    assert said.strip() == "and this is out of the bounds, so that it would stay under way: widen them"


def test_what_is_late_and_taken_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checker that refuses timely events stands for a kernel that accepts late ones: both are shown alike."""

    def late(_machine: object, entity: Entity[Any], now_ms: int) -> Iterator[Envelope]:
        for part in entity.running:
            yield Envelope(entity.ref, Came(), now_ms, part.slot, slot=part.slot, generation=part.generation)

    monkeypatch.setattr("lifefold.interpreters.search.reactions.late", late)
    report = check(fire)
    assert [" ".join(line.split()) for line in report.broken()[0].way()] == [
        "1. operator says Asked() cold → hot [Begin]",
        "2. Burn says Came()",
        "is accepted, although it is late",
    ]
    (inert,) = [each for each in report.verdicts if each.name == "what is late or comes twice changes nothing"]
    assert inert.outcome is Outcome.BROKEN
