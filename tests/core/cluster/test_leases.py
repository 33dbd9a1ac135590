"""The model of leases: hosts that break its rules are found, and several sessions are several times one session."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from returns.result import Success

from lifefold.core.cluster import lease_model, leases
from lifefold.core.cluster.lease_model import Cluster, ClusterState, Condition, Host, Lease, Seat, Started, Way
from lifefold.core.cluster.leases import leases_of, machine, runs_once
from lifefold.core.kernel import Event, Machine, does, replace, row
from lifefold.interpreters.check import check
from lifefold.interpreters.search.configuration import Bounds
from lifefold.interpreters.targets.bounded import two_requests

SEVERAL = leases_of(2)
TWO = SEVERAL.initial
EVENTS = tuple(dict.fromkeys(each.event for each in machine.rows))
STEPS, LEAST_MOVES = 400, 30


def possible(c: Cluster) -> list[Event]:
    """Return the events that the machine accepts."""
    every = [event for kind in EVENTS for event in kind.examples_for(c)]
    return [each for each in every if isinstance(SEVERAL.reduce(c, each), Success)]


def after(c: Cluster, event: Event) -> Cluster:
    """Return the next record."""
    return SEVERAL.reduce(c, event).unwrap().record


def alone(c: Cluster, session: int) -> Cluster:
    """Return what a cluster has of one session."""
    seats = tuple((ours[session],) for ours in c.seats)
    is_done = c.leases[session].is_done
    return Cluster(ClusterState.SETTLED if is_done else ClusterState.WORKING, c.hosts, (c.leases[session],), seats)


@pytest.mark.parametrize("seed", range(5))
def test_each_of_several_sessions_goes_a_way_of_one_session(seed: int) -> None:
    """So what is proven of one session holds for any number of them: they share nothing but hosts and time."""
    draw, c, moves = random.Random(seed), TWO, 0  # noqa: S311 - to be repeatable is its point
    for _ in range(STEPS):
        if not (events := possible(c)):
            break
        event = draw.choice(events)
        now = after(c, event)
        assert runs_once(now)
        for session in range(2):
            before, its = alone(c, session), alone(now, session)
            of = getattr(event, "session", session)
            if of == session and before.state is ClusterState.WORKING:
                shown: Any = replace(event, session=0) if hasattr(event, "session") else event
                assert after(before, shown) == its
                moves += 1
            elif of != session:
                assert before == its
        c = now
    assert moves > LEAST_MOVES


def _held(seat: Seat, condition: Condition = Condition.UP) -> Cluster:
    return Cluster(hosts=(Host(condition, may_fail=False), Host()), leases=(Lease(1, 0),), seats=((seat,), (Seat(),)))


def test_a_frozen_session_past_its_fence_ends_when_its_machine_goes_on() -> None:
    """The shim looks at the clock before the agent takes a step."""
    c = _held(Seat(1, runs=True, fence=1), Condition.FROZEN)
    c = after(c, lease_model.Ticked())
    assert c.seats[0][0].runs
    assert not after(c, lease_model.WentOn(0)).seats[0][0].runs


def test_an_answer_counts_from_the_sending_and_a_refusal_leaves_the_session_to_its_fence() -> None:
    """The age of the heartbeat is taken from the lease."""
    acknowledged = after(_held(Seat(1, way=Way.ACKNOWLEDGED, age=2)), lease_model.Answered(0, 0))
    assert acknowledged.seats[0][0].fence == lease_model.RULE.lease_ms - 2
    refused = after(_held(Seat(1, runs=True, fence=2, way=Way.REFUSED)), lease_model.Answered(0, 0))
    assert refused.seats[0][0] == Seat(runs=True, fence=2)
    assert after(_held(Seat(1, way=Way.REFUSED)), lease_model.Answered(0, 0)).seats[0][0] == Seat()


def test_a_dead_daemon_leaves_running_sessions_to_their_shims_and_a_dead_machine_none() -> None:
    """What was not started yet is gone with the daemon."""
    runs, waits = (replace(_held(Seat(1, runs=each, fence=3)), hosts=(Host(), Host())) for each in (True, False))
    assert after(runs, lease_model.DaemonDied(0)).seats[0][0] == Seat(runs=True, fence=3)
    assert after(waits, lease_model.DaemonDied(0)).seats[0][0] == Seat()
    assert after(runs, lease_model.MachineDied(0)).seats[0][0] == Seat()


def without_asking(c: Cluster, e: Started) -> bool:
    """Start what the host attends to, although no heartbeat was acknowledged, or its fence has passed."""
    seat = c.seats[e.host][e.session]
    return c.hosts[e.host].condition is Condition.UP and seat.request > 0 and not seat.runs


def broken(changed: type[Event], new: Any) -> Machine[Cluster]:
    """Return the machine with another row for an event."""
    rows = tuple(new if each.event is changed else each for each in machine.rows)
    during: Any = {leases.WORKING: does(leases.passing, yields=EVENTS)}
    return Machine("host-leases", Cluster(), rows=rows, final=machine.final, during=during)


def twice(of: Machine[Cluster], deep: int) -> int | None:
    """Return the number of steps after which a session runs twice; None if it does not within so many.

    The first host has asked for the session already, and the answer is on its way.
    """
    first = of.initial
    for event in (lease_model.Placed(), lease_model.Beaten(), lease_model.Heard()):
        first = after(first, event)
    seen, front = {first}, [first]
    for depth in range(1, deep + 1):
        steps = [of.reduce(c, event) for c in front for kind in EVENTS for event in kind.examples_for(c)]
        every = dict.fromkeys(step.unwrap().record for step in steps if isinstance(step, Success))
        front = [each for each in every if each not in seen and two_requests(each)]
        if not all(runs_once(each) for each in front):
            return depth
        seen.update(front)
    return None


def never_ends(c: Cluster, e: lease_model.Ticked) -> Any:
    """Let time pass without fences."""
    step = leases.tick(c, e)
    kept = tuple(
        tuple(replace(new, runs=new.runs or old.runs) for new, old in zip(news, olds, strict=True))
        for news, olds in zip(step.record.seats, c.seats, strict=True)
    )
    return replace(step, record=replace(step.record, seats=kept))


def late_answer(c: Cluster, e: lease_model.Answered) -> Any:
    """Count the fence from the arrival of the answer, with a lease as long as the detection time."""
    step, seat = leases.answer(c, e), c.seats[e.host][e.session]
    if seat.way is Way.REFUSED:
        return step
    late = replace(step.record.seats[e.host][e.session], fence=lease_model.RULE.detection_ms)
    return replace(step, record=leases._at(step.record, e, late))


W = leases.WORKING
MUTANTS = {
    "a host starts without asking": broken(Started, row(W, Started, W, leases.start, when=without_asking)),
    "a session has no fence": broken(lease_model.Ticked, row(W, lease_model.Ticked, W, never_ends)),
    "a fence is later than the loss": broken(
        lease_model.Answered, row(W, lease_model.Answered, W, late_answer, when=leases.may_be_answered)
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_cluster_without_one_guard_runs_a_session_twice(name: str) -> None:
    """A search finds it in few steps; with all guards it does not, see the certificate for all depths."""
    found = twice(MUTANTS[name], 14)
    assert found is not None
    assert twice(machine, found) is None


def test_the_first_states_keep_the_properties() -> None:
    """The whole search is that of the certificate."""
    bounds = Bounds(within={"host-leases": two_requests}, commands=0, compared=20, depth=7)
    report = check(machine, bounds=bounds)
    assert report.broken() == ()
    assert report.states > 100


def test_the_properties_tell_good_from_bad() -> None:
    """Each property is false of a cluster that breaks it."""
    once, present, goes_on, moved, done = (each.holds for each in leases.PROPERTIES)
    alone_there = Cluster(leases=(Lease(2, 1),), seats=((Seat(1),), (Seat(2, runs=True, fence=3),)))
    twice_there = replace(alone_there, seats=((Seat(1, runs=True, fence=1),), (Seat(2, runs=True, fence=3),)))
    assert [once(SimpleNamespace(record=each)) for each in (alone_there, twice_there)] == [True, False]
    assert [
        goes_on(SimpleNamespace(event=lease_model.WentOn(), before=each, was=each, after=SimpleNamespace(record=each)))
        for each in (alone_there, twice_there)
    ] == [
        True,
        False,
    ]
    assert [
        present(SimpleNamespace(event=Started(host), before=alone_there, was=alone_there)) for host in range(2)
    ] == [False, True]
    assert [moved(SimpleNamespace(record=each)) for each in (alone_there, Cluster())] == [True, False]
    assert [done(SimpleNamespace(record=each)) for each in (alone_there, Cluster(ClusterState.SETTLED))] == [
        False,
        True,
    ]
    assert leases.passing(Cluster()) == lease_model.Passing()
    assert len(Started.examples()) == len(Cluster().hosts)
