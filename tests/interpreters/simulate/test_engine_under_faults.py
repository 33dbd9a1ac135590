"""The shipped engine in a simulation: it keeps its guarantees under every fault; engines with a mistake are found."""

from collections import Counter

import pytest

import broken_engines
from broken_engines import MISTAKES, ForgetsMessages
from lifefold.core.kernel import Event, Machine, Record, State, after, leads_to, row
from lifefold.interpreters.campaign import shrunk
from lifefold.interpreters.engine import Engine
from lifefold.interpreters.engine.engine import POLL_MS
from lifefold.interpreters.simulate import Limits, Run, hours, simulate
from lifefold.interpreters.simulate.engine_runner import EngineRunner
from lifefold.interpreters.simulate.faults import OF_ENGINE
from lifefold.interpreters.simulate.witness import Guarantee
from lifefold.interpreters.targets.simulation_targets import named
from pottery_engine import OFTEN, pottery

SEEDS = 50
"""The seeds with which the shipped engine runs."""

MOST_SEEDS = 200
"""The seeds within which every mutant is found. One seed of 30, and one of 60, shows the rarest two."""


def test_the_engine_keeps_its_guarantees_and_meets_every_fault() -> None:
    """Kilns, with all faults in every run; each fault happens, and engines crash between many different steps."""
    struck: Counter[str] = Counter()
    points: set[object] = set()
    again = 0
    for seed in range(SEEDS):
        run = pottery(seed=seed, faults=OFTEN)
        assert run.ok, (seed, run.found)
        struck.update(run.struck)
        points |= {name[1] for name in run.deviations if name[0] == "killed between awaits"}
        again += run.counts.again
    assert {each.name for each in OF_ENGINE} - set(struck) == {"fails"}  # a firing has one end only
    assert len(points) > SEEDS // 2
    assert again > SEEDS // 5


@pytest.mark.parametrize("engine", MISTAKES, ids=[each.__name__ for each in MISTAKES])
def test_an_engine_with_a_mistake_is_found(engine: type[Engine]) -> None:
    """Each class has one mistake, and a few seeds find it by a guarantee of the engine."""
    found = next((run.found for run in runs(engine) if run.found is not None), None)
    assert found is not None
    assert found.prop != Guarantee.RAISES


def runs(engine: type[Engine]) -> list[Run]:
    """Return the runs of an engine, up to the first that finds something."""
    made: list[Run] = []
    for seed in range(MOST_SEEDS):
        made.append(pottery(engine, seed=seed, faults=OFTEN))
        if not made[-1].ok:
            break
    return made


def test_every_engine_with_a_mistake_is_tried() -> None:
    """The list has every class of the module."""
    classes = [each for each in vars(broken_engines).values() if isinstance(each, type) and each.__mro__[1] is Engine]
    assert classes == list(MISTAKES)


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_and_its_deviations_make_the_same_run(seed: int) -> None:
    """The order of tasks, the crashes and the errors of handlers are deviations like all others."""
    run = pottery(seed=seed, faults=OFTEN)
    again, without = pottery(seed=seed, faults=OFTEN), pottery(but=run.deviations)
    assert run.entries
    assert again.journal() == without.journal() == run.journal()
    assert without.deviations == run.deviations


def test_a_finding_is_shrunk_to_few_deviations() -> None:
    """A message is forgotten if one command leads to it and the engine crashes before it is delivered."""
    found = runs(ForgetsMessages)[-1]
    assert found.found is not None

    def is_same(deviations: object) -> bool:
        run = pottery(ForgetsMessages, but=deviations)
        return run.found is not None and found.found is not None and run.found.prop == found.found.prop

    few = shrunk(found.deviations, is_same)
    assert len(few) < len(found.deviations) // 4
    assert is_same(few)
    assert pottery(but=few).ok


@pytest.mark.parametrize("seed", range(3))
def test_a_fleet_on_the_engine_has_its_properties_under_faults(seed: int) -> None:
    """Two agents and three tasks, for three virtual hours, and until everything is settled after that."""
    target = named("fleet-2x3")
    run = simulate(
        target.subject,
        opening=target.opening,
        seed=seed,
        environment=target.environment,
        limits=Limits(until_ms=hours(3)),
        runner=EngineRunner,
    )
    assert run.ok, (seed, run.found)
    assert len(run.entries) > len(target.opening)


class Bell(State):
    """The states of a bell."""

    QUIET = "Quiet"
    ARMED = "Armed"
    RUNG = "Rung"


class Hall(Record, frozen=True):
    """A hall with a bell."""

    state: Bell = Bell.QUIET


class ArmingFailed(Event, frozen=True):
    """The bell is to be armed."""


class RingingFailed(Event, frozen=True):
    """The bell is to ring."""


def test_a_timer_may_be_due_when_the_next_look_for_commands_is() -> None:
    """The clock lets idle looks wait. A timer that is as long as the time between two looks goes off all the same."""
    bell = Machine(
        "bell",
        Hall(),
        rows=(row(Bell.QUIET, ArmingFailed, Bell.ARMED), row(Bell.ARMED, RingingFailed, Bell.RUNG)),
        during={Bell.QUIET: after(5_000, ArmingFailed), Bell.ARMED: after(POLL_MS, RingingFailed)},
        final={Bell.RUNG},
        properties=(leads_to("it rings", lambda e: e.state is not Bell.RUNG, lambda e: e.state is Bell.RUNG),),
    )
    run = simulate(bell, limits=Limits(until_ms=hours(1)), runner=EngineRunner)
    assert run.found is None, run.found
    assert len(run.entries) == 3
