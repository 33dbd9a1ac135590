"""How a worker is stopped: when it is through with what it has in hand, with grace, or without."""

from collections.abc import Callable

import pytest

from aggregate_hand import Hand
from fleet_worker import cooling, merging, preparing, running, spawning, states, verifying, wanting
from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, shutdown
from lifefold.core.kernel import IllegalTransition, Step
from lifefold.core.lifecycles import session
from lifefold.effects import ForceStopSession, Tell

DRAIN = desired_state.DrainWanted("enough")


def leaves(of: Hand) -> list[object]:
    """Return with what the last reaction tells the board that the worker is gone."""
    return [e.event for e in of.effects(Tell) if isinstance(e, Tell) and isinstance(e.event, worker_slot.WorkerGone)]


@pytest.mark.parametrize("begins", [spawning, running])
def test_a_draining_worker_finishes_verifies_and_merges_and_then_stops(begins: Callable[[], Hand]) -> None:
    """And begins nothing new."""
    of = begins().give("desired_state", DRAIN)
    assert of.effects() == []
    if of.state("session") == "Spawning":
        of.report("session", "RunSession", session.SessionStarted(0))
    of.report("session", "RunSession", session.SessionExited(session.Success()))
    of.report("assignment", "VerifyWork", assignment.Verified())
    assert of.state("desired_state") == "Drain"
    of.report("assignment", "MergeWork", assignment.Merged("c0ffee"))
    assert (states(of), of.state("desired_state")) == (("Stopped", "Idle"), "Stop")
    assert leaves(of) == [worker_slot.WorkerGone("enough")]


@pytest.mark.parametrize("begins", [verifying, merging])
def test_work_in_verification_or_merge_is_finished_before_the_worker_stops(begins: Callable[[], Hand]) -> None:
    """Also if it is rejected there."""
    of = begins().give("desired_state", DRAIN)
    assert of.state("session") == "SessionComplete"
    if of.state("assignment") == "Verifying":
        of.report("assignment", "VerifyWork", assignment.Rejected("no"))
    else:
        of.report("assignment", "MergeWork", assignment.Conflicted("no"))
    assert (of.state("session"), of.state("desired_state")) == ("Stopped", "Stop")


@pytest.mark.parametrize("begins", [wanting, preparing, cooling])
def test_a_worker_that_has_begun_nothing_stops_at_once_and_gives_its_task_back(begins: Callable[[], Hand]) -> None:
    """A task that waits for a person, for its parts, or for a worktree delays no other worker."""
    of = begins().give("desired_state", DRAIN)
    assert (states(of), of.state("desired_state")) == (("Stopped", "Idle"), "Stop")
    assert leaves(of) == [worker_slot.WorkerGone("enough")]


def test_a_session_that_fails_while_its_agent_drains_is_the_last() -> None:
    """What was in hand is not in hand any more."""
    of = running().give("desired_state", DRAIN)
    of.report("session", "RunSession", session.SessionExited(session.Error("no")))
    assert (states(of), of.state("desired_state")) == (("Stopped", "Idle"), "Stop")


def test_a_draining_worker_stops_after_a_recall() -> None:
    """As one that was split: its parts are not in this worker's hands."""
    of = running().give("desired_state", DRAIN)
    of.hear("board", "assignment", assignment.Recalled("T1", 2, "split"))
    assert of.state("desired_state") == "Stop"
    assert of.state("session") == "Stopped"


def test_a_paused_worker_continues_its_work_to_drain() -> None:
    """It has said nothing else than that it is to be finished."""
    of = running().give("desired_state", desired_state.PauseWanted("lunch"))
    of.report("session", "RunSession", session.SessionExited(session.Error("interrupted")))
    assert of.state("session") == "BuildingPrompt"
    of.give("desired_state", DRAIN)
    assert of.state("session") == "Spawning"


def test_a_leaving_runner_holds_a_draining_worker_and_the_next_one_drains_it() -> None:
    """A drain survives any number of runners."""
    of = running().give("desired_state", DRAIN).give("desired_state", desired_state.HoldWanted())
    of.report("session", "RunSession", session.SessionExited(session.Error("interrupted")))
    assert (of.state("session"), of.state("desired_state")) == ("BuildingPrompt", "Hold")
    assert shutdown.quiet(of.aggregate)
    of.give("desired_state", desired_state.RunWanted())
    assert (of.state("session"), of.state("desired_state"), of.record("desired_state").reason) == (
        "Spawning",
        "Drain",
        "enough",
    )


def test_a_worker_drained_without_a_runner_drains_with_the_next_one() -> None:
    """The command takes the log when no runner has it, and workers are held then."""
    of = wanting().give("desired_state", desired_state.HoldWanted()).give("desired_state", DRAIN)
    assert (of.state("desired_state"), of.record("desired_state").drains) == ("Hold", True)
    assert isinstance(
        desired_state.machine.step(of.record("desired_state"), desired_state.PauseWanted("lunch")), IllegalTransition
    )
    of.give("desired_state", desired_state.RunWanted())
    assert of.state("desired_state") == "Stop"


@pytest.mark.parametrize("event", [desired_state.StopWanted("now"), desired_state.KillWanted("now")])
def test_a_stop_or_a_kill_overrides_a_drain(event: desired_state.StopWanted | desired_state.KillWanted) -> None:
    """And nothing but a stop does: it is neither paused nor resumed."""
    of = running().give("desired_state", DRAIN)
    for other in (desired_state.PauseWanted("lunch"), desired_state.ResumeWanted(), DRAIN):
        of.must_refuse("desired_state", other)
    of.give("desired_state", event)
    assert (states(of), of.record("desired_state").reason) == (("Stopped", "Idle"), "now")
    assert not of.record("desired_state").drains


def test_a_kill_gives_no_grace() -> None:
    """The session is killed in the same step as its agent stops."""
    of = running().give("desired_state", desired_state.KillWanted("now"))
    assert of.effects(ForceStopSession) == [ForceStopSession()]
    assert of.state("session") == "Stopped"


def test_a_worker_stopping_with_grace_can_be_killed_once() -> None:
    """A long grace is cut short; nothing else is taken by who is to stop."""
    of = (
        running()
        .give("desired_state", desired_state.StopWanted("soon"))
        .give("desired_state", desired_state.KillWanted("now"))
    )
    assert of.effects() == [ForceStopSession()]
    of.must_refuse("desired_state", desired_state.KillWanted("again"))
    record = of.record("desired_state")
    assert not any(
        isinstance(desired_state.machine.step(record, each.examples()[0]), Step)
        for each in desired_state.machine.events
    )
