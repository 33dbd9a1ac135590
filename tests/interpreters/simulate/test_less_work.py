"""The shortcuts of a simulated run say the same as the plain ways: an index, a filter, and the sparing monitor."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from lifefold.core.kernel import Input
from lifefold.interpreters.recorder.safety_monitor import SparingMonitor
from lifefold.interpreters.simulate import Limits, Run, hours, simulate
from lifefold.interpreters.simulate.engine_handlers import Handlers
from lifefold.interpreters.simulate.engine_runner import EngineRunner
from lifefold.interpreters.simulate.operators import Operators
from lifefold.interpreters.simulate.property_monitor import PropertyMonitor
from lifefold.interpreters.simulate.simulated_runner import RunnerType
from lifefold.interpreters.simulate.simulation import MonitorType
from lifefold.interpreters.store.memory import Shelf
from lifefold.interpreters.targets.simulation_targets import fleet_of
from lifefold.interpreters.targets.target import Target
from lost_rules import without
from pottery_engine import LIMITS
from pottery_engine import TARGET as POTTERY

FLEETS: Final = (fleet_of(2, 3), fleet_of(2, 3, kind="mixed-"))


def run_of(target: Target, seed: int, lost: str = "", **named: Any) -> Run:
    """Return a run of a target, or of a fleet without the rules of this name."""
    return simulate(
        without(lost) if lost else target.subject,
        opening=target.opening,
        environment=target.environment,
        limits=LIMITS if target is POTTERY else Limits(until_ms=hours(3)),
        seed=seed,
        **named,
    )


class Compared(EngineRunner):
    """Compares the running activities after each entry with those of the world."""

    compared = 0

    def _follow(self, handlers: Handlers, given: Input) -> None:
        super()._follow(handlers, given)
        of_both = (self._log.running(), self.world.running())
        found, plain = ({(name, each.ref, part.slot): (each, part) for name, each, part in of} for of in of_both)
        assert found == plain
        Compared.compared += len(found)


@pytest.mark.parametrize("target", [POTTERY, FLEETS[0]], ids=lambda each: each.name)
def test_the_index_of_running_activities_is_that_of_the_world(target: Target) -> None:
    """After each entry of an engine under faults: begun, ended, restarted and recovered ones."""
    Compared.compared = 0
    for seed in (0, 1):
        assert run_of(target, seed, runner=Compared).ok
    assert Compared.compared > 20


def test_the_log_of_the_engines_is_on_the_given_shelf() -> None:
    shelf = Shelf()
    run = run_of(FLEETS[0], 1, runner=partial(EngineRunner, shelf=shelf))
    assert [each.stream for each in shelf.entries] == [each.aggregate for each in run.entries]


@pytest.mark.parametrize("target", [POTTERY, *FLEETS], ids=lambda each: each.name)
def test_the_commands_of_some_types_are_those_among_all(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order and each once, at every opportunity of the operators of a run."""
    tick: Callable[[Operators], None] = Operators.tick
    compared = 0

    def and_compare(self: Operators) -> None:
        nonlocal compared
        for name in self._runner.aggregates:
            every = self.sayable(name)
            kinds = list(dict.fromkeys(type(each.event) for each in every))
            for some in (kinds[::2], kinds[1::3], kinds, []):
                assert self.sayable_of(name, some) == [each for each in every if type(each.event) in some]
            compared += len(kinds)
        tick(self)

    monkeypatch.setattr(Operators, "tick", and_compare)
    assert run_of(target, 2).ok
    assert compared > 10


def told(run: Run) -> tuple[object, ...]:
    """Return what is compared of a run."""
    return run.digest(), run.found, run.seen, run.struck, run.deviations, run.until_ms


@pytest.mark.parametrize("runner", [None, EngineRunner], ids=["simulated", "engine"])
def test_the_sparing_monitor_finds_what_the_plain_one_does(runner: RunnerType | None) -> None:
    """Of the whole rules and of lost ones: the same run, the same broken property, the same reached ones."""
    monitors: tuple[MonitorType, ...] = (PropertyMonitor, SparingMonitor)
    broken = 0
    for lost in ("", "hand_over", "obey", "release"):
        plain, sparing = (run_of(FLEETS[0], 1, lost, runner=runner, monitor=each) for each in monitors)
        assert told(sparing) == told(plain)
        broken += not plain.ok
    assert broken
