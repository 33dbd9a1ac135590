"""A simulated cluster keeps its guarantees while hosts die, freeze and are cut off; hosts with a mistake are found."""

from collections import Counter
from functools import partial

import pytest

import broken_hosts
from broken_hosts import MISTAKES, ForgetsLostWork
from lifefold.interpreters.simulate import Limits, Run, hours, simulate
from lifefold.interpreters.simulate.cluster_activities import HostedActivities
from lifefold.interpreters.simulate.cluster_processes import ClusterGuarantee
from lifefold.interpreters.simulate.cluster_runner import ClusterRunner
from lifefold.interpreters.simulate.faults import OF_CLUSTER, ONLY_OF_CLUSTER, Faults
from lifefold.interpreters.simulate.scheduler import Part
from lifefold.interpreters.targets.simulation_targets import named

SEEDS = 40
"""The seeds within which every mistake is found."""

OFTEN = Faults({"host frozen": 0.2, "host partitioned": 0.2, "host dies": 0.05, "operators": 0.0, "hangs": 0.0})


def fleet(seed: int, hosts: type[HostedActivities] = HostedActivities, faults: Faults | None = None) -> Run:
    """Simulate two agents with three tasks on a cluster, for six hours."""
    of = named("fleet-2x3")
    return simulate(
        of.subject,
        opening=of.opening,
        environment=of.environment,
        seed=seed,
        faults=faults,
        limits=Limits(until_ms=hours(6)),
        runner=partial(ClusterRunner, hosts=hosts),
    )


def test_a_cluster_keeps_its_guarantees_and_meets_every_fault() -> None:
    """In all seeds nothing is found, each fault of a cluster happens, and hosts are taken for lost."""
    struck: Counter[str] = Counter()
    for seed in range(SEEDS):
        run = fleet(seed)
        assert run.ok, (seed, run.found)
        struck.update(run.struck)
    assert set(ONLY_OF_CLUSTER) <= set(struck)
    assert set(struck) <= {each.name for each in OF_CLUSTER}


@pytest.mark.parametrize("hosts", MISTAKES, ids=[each.__name__ for each in MISTAKES])
def test_hosts_with_a_mistake_are_found(hosts: type[HostedActivities]) -> None:
    """Each class has one mistake, and some seed breaks a guarantee of the cluster by it.

    Lost work that is forgotten may also break a property of the fleet first.
    """
    found = next((run.found for seed in range(SEEDS) if not (run := fleet(seed, hosts, OFTEN)).ok), None)
    assert found is not None
    assert found.prop in set(ClusterGuarantee) or hosts is ForgetsLostWork


def test_without_mistakes_the_same_seeds_find_nothing() -> None:
    """The hosts of the mutants are found by their mistakes, and not by the rates of their faults."""
    assert [fleet(seed, faults=OFTEN).found for seed in range(SEEDS // 8)] == [None] * (SEEDS // 8)


def test_all_hosts_with_a_mistake_are_tried() -> None:
    """The list has every class of the module."""
    classes = [each for each in vars(broken_hosts).values() if isinstance(each, type)]
    assert [each for each in classes if each.__mro__[1] is HostedActivities] == list(MISTAKES)


class LosesEarlyTimers(ClusterRunner):
    """A timer that is early by the brain's clock does not go back."""

    def _give_back(self, timer: Part, deadline_ms: int) -> None:
        pass


def test_a_brain_that_loses_early_timers_is_found() -> None:
    """Its clock is set back while a timer waits at the server."""
    of = named("fleet-2x3")
    faults = Faults({"clock back": 0.5, "fails": 0.5, "exits early": 0.5}, swarm=False)
    runs = (
        simulate(
            of.subject,
            opening=of.opening,
            environment=of.environment,
            seed=seed,
            faults=faults,
            limits=Limits(until_ms=hours(6)),
            runner=LosesEarlyTimers,
        )
        for seed in range(SEEDS)
    )
    found = next(run.found for run in runs if run.found is not None)
    assert found.prop == ClusterGuarantee.TIMED or found.owner in {"fleet", "worker", "task"}


def test_a_seed_makes_the_same_run_and_so_do_its_deviations() -> None:
    """A finding of a cluster can be repeated and shrunk as any other."""
    run = fleet(3, faults=OFTEN)
    of = named("fleet-2x3")
    again = simulate(
        of.subject,
        opening=of.opening,
        environment=of.environment,
        but=run.deviations,
        limits=Limits(until_ms=hours(6)),
        runner=ClusterRunner,
    )
    assert run.digest() == fleet(3, faults=OFTEN).digest()
    assert run.digest() == again.digest()
    assert len(run.deviations) > 0
