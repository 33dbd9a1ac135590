"""A run is its seed, or its deviations: the same again, byte for byte; and what is promised is asked all along."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from lifefold.core import fleet
from lifefold.core.fleet.dispatch.task_index import tasks_of
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Property, Refusal, always, always_step, eventually
from lifefold.core.lifecycles import session, task
from lifefold.effects import RunSession
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.simulate import NONE, Choices, Environment, Faults, Limits, Name, Run, Said, hours, simulate
from lifefold.interpreters.simulate.choices import Choices as TheChoices
from lifefold.interpreters.simulate.faults import NAMES
from lifefold.interpreters.store import Entry
from lifefold.interpreters.targets.simulation_targets import FLEET, named
from lifefold.interpreters.targets.target import Target

TARGETS = ("fleet-2x4", "session", "process", "runtime", "agent", "lease", "task-governed")


def run_of(target: Target, seed: int | None = None, but: Mapping[Name, int] | None = None) -> Run:
    return simulate(target.subject, opening=target.opening, seed=seed, but=but, environment=target.environment)


PROGRAM = """
from lifefold.interpreters.simulate import simulate
from lifefold.interpreters.targets.simulation_targets import named
for name in ("fleet-2x4", "session"):
    target = named(name)
    for seed in range(3):
        print(simulate(target.subject, opening=target.opening, seed=seed, environment=target.environment).digest())
"""


def test_a_seed_makes_the_same_run_in_every_process() -> None:
    """Whatever order its sets have: the journals are the same, byte for byte."""
    command = (sys.executable, "-c", PROGRAM)
    salted = [{**os.environ, "PYTHONHASHSEED": salt} for salt in ("0", "1", "2")]
    runs = [subprocess.run(command, env=each, capture_output=True, text=True, check=True) for each in salted]
    digests = [each.stdout for each in runs]
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests[0].split())) == 6


@pytest.mark.parametrize("name", TARGETS)
def test_a_run_is_its_deviations(name: str) -> None:
    """With these alone, and everything else orderly, it is the same run."""
    target = named(name)
    for seed in range(5):
        drawn = run_of(target, seed)
        said = run_of(target, but=drawn.deviations)
        assert (said.digest(), said.counts, said.deviations) == (drawn.digest(), drawn.counts, drawn.deviations)


@pytest.mark.parametrize("name", TARGETS)
def test_every_choice_of_a_run_has_a_name_of_its_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a deviation says which one is meant."""
    names: Counter[Name] = Counter()
    way = TheChoices.way

    def noted(self: Choices, name: Name, ways: int, rate: float) -> int:
        names[name] += self.is_drawn
        return way(self, name, ways, rate)

    monkeypatch.setattr(TheChoices, "way", noted)
    for seed in range(6):
        names.clear()
        run_of(named(name), seed)
        assert {each: count for each, count in names.items() if count > 1} == {}


def test_if_all_is_orderly_all_work_is_done() -> None:
    """Nothing fails, and no operator is needed."""
    run = run_of(named("fleet-3x9"))
    assert run.found is None
    assert dict(run.deviations) == {}
    assert dict(run.struck) == {}
    assert (run.counts.crashes, run.counts.refused) == (0, 0)
    folded = Ledger(fleet.system)
    for name, envelope in run.entries:
        folded.decide(name, envelope)
    assert {each.state for each in tasks_of(folded.aggregates[board.NAME])} == {task.State.CLOSED}


def test_what_is_on_record_folds_again_as_the_engine_folds_it() -> None:
    """Every input of every seed is taken by the ledger, at the time that it was taken."""
    for seed in range(20):
        run, ledger = run_of(named("fleet-2x4"), seed), Ledger(fleet.system)
        entries: list[Entry] = []
        for name, envelope in run.entries:
            decision = ledger.decide(name, envelope)
            assert getattr(decision, "envelope", None) == envelope
            entries.append(getattr(decision, "entry"))  # noqa: B009 - it is a decision
        assert len(list(Ledger(fleet.system).fold(entries))) == len(run.entries)


def test_a_system_says_how_it_begins() -> None:
    """Nothing would happen in one that does not, and all would be well of it."""
    with pytest.raises(TypeError, match="fleet: a system needs opening="):
        simulate(fleet.system, seed=1)


def test_what_gathers_while_a_store_is_slow_is_on_record_at_the_time_of_its_decision() -> None:
    """All of a batch is persisted at once, and its entries have times of their own: the log folds again."""
    target, slow = named("fleet"), Faults(dict.fromkeys(NAMES, 0.0) | {"slow store": 0.3, "fails": 0.2}, swarm=False)
    for seed in range(12):
        run = simulate(target.subject, opening=target.opening, seed=seed, environment=target.environment, faults=slow)
        ledger = Ledger(fleet.system)
        refused = [each for each in run.entries if isinstance(ledger.decide(*each), Refusal)]
        assert refused == []


def test_no_message_is_lost_or_doubled_by_any_fault() -> None:
    """What an aggregate has told another one it has heard once, in order, when all is healed."""
    for seed in range(30):
        run, ledger = run_of(named("fleet-2x4"), seed), Ledger(fleet.system)
        for name, envelope in run.entries:
            ledger.decide(name, envelope)
        assert run.found is None
        for sender in ledger.aggregates.values():
            for receiver, count in sender.sent.items():
                assert ledger.aggregates[receiver].received.get(sender.name, 0) <= count


def test_every_fault_happens_and_none_does_that_is_switched_off() -> None:
    """Some in some runs, all of them over many; with a rate of 0, never."""
    target = named("fleet-2x4")
    struck: set[str] = set()
    for seed in range(150):
        struck |= set(run_of(target, seed).struck)
        if struck >= set(NAMES):
            break
    assert struck == set(NAMES)
    for name in ("operators", "killed when decided", "late report"):
        for seed in range(10):
            without = Faults({name: 0.0})
            run = simulate(target.subject, opening=target.opening, seed=seed, faults=without, environment=FLEET)
            assert name not in run.struck
    run = simulate(target.subject, opening=target.opening, seed=1, faults=NONE, environment=FLEET)
    assert run.struck == {}
    assert run.found is None


def test_a_property_that_a_step_breaks_is_found_where_it_is_broken() -> None:
    """Of a state, of a step, and of what has to follow, after everything was healed."""
    state: Property[Any] = always("nobody runs", lambda entity: entity.state is not session.State.RUNNING)
    step = always_step("nobody begins to run", lambda step: step.entered is not session.State.RUNNING)
    follows: Property[Any] = eventually("it runs for ever", lambda _entity: False)
    for prop in (state, step, follows):
        run = simulate(session.machine, seed=3, properties=(prop,))
        assert run.found is not None
        assert (run.found.owner, run.found.prop) == ("session", prop.name)
    limits = Limits(until_ms=hours(2), healing_ms=hours(1))
    run = simulate(session.machine, seed=3, properties=(follows,), limits=limits)
    assert run.found is not None
    assert run.found.at_ms >= hours(2)
    assert "when everything was healed" in run.found.of


def test_a_run_that_never_rests_is_broken_off() -> None:
    """And says so."""
    run = simulate(session.machine, seed=3, limits=Limits(inputs=10))
    assert run.found is not None
    assert (run.found.prop, run.found.of) == ("comes to rest", "more than 10 inputs")


def test_a_script_says_what_an_activity_says() -> None:
    """In place of what is read off the machine: here every session fails at once, and the agent gives up."""

    def fails(*_about: object) -> tuple[Said, ...]:
        return (Said(5, session.SessionExited(session.Error("no key"))),)

    target = named("fleet-1x1")
    environment = Environment(scripts={RunSession: fails})
    run = simulate(target.subject, opening=target.opening, environment=environment)
    exits = [each.envelope.event for each in run.entries if isinstance(each.envelope.event, session.SessionExited)]
    assert set(exits) == {session.SessionExited(session.Error("no key"))}
    assert run.found is None


def test_rates_and_names_of_faults_are_looked_at() -> None:
    """What is accepted is said."""
    with pytest.raises(ValueError, match="there is no fault 'crash'; there are: fails, exits early"):
        Faults({"crash": 0.1})
    with pytest.raises(ValueError, match="fails: a rate is between 0 and 1, not 2"):
        Faults({"fails": 2.0})
