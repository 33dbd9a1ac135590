"""A worker that is told to hold, to go on, or to stop."""

from collections.abc import Callable
from typing import Final

import pytest

from aggregate_hand import Hand
from fleet_worker import (
    BRIEF,
    cooling,
    exit_with,
    interrupting,
    merging,
    opened,
    preparing,
    prompt_of,
    running,
    spawning,
    start,
    states,
    verifying,
    wanting,
)
from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, shutdown
from lifefold.core.kernel import Event, Phase, journal
from lifefold.core.lifecycles import session, task
from lifefold.core.policy.reasons import AbortReason
from lifefold.effects import End

# Hold and resume


def test_a_hold_interrupts_what_runs_and_starts_nothing_new() -> None:
    """It is no error; the worker goes on where it was when it is resumed."""
    of = running().give("desired_state", desired_state.HoldWanted())
    assert states(of) == ("Interrupting", "Working")
    exit_with(of, session.Error("cancelled"))
    assert states(of) == ("BuildingPrompt", "Working")
    assert shutdown.quiet(of.aggregate)
    assert of.record("session").total_errors == 0
    of.give("desired_state", desired_state.RunWanted())
    assert states(of) == ("Spawning", "Working")
    assert "Your last session was interrupted." in prompt_of(of)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (desired_state.PauseWanted("lunch"), "user_interrupt"),
        (desired_state.HoldWanted(AbortReason.USER_INTERRUPT), "user_interrupt"),
        (desired_state.HoldWanted(), "shutdown_signal"),
    ],
    ids=["paused", "interrupted", "terminated"],
)
def test_the_journal_has_the_reason_for_which_a_session_is_to_rest(event: Event, reason: str) -> None:
    """An operator interrupts it; or its runner was told to end (document 004, SIGINT and SIGTERM)."""
    of = running().give("desired_state", event)
    (interrupted,) = [each for each in of.reaction.transitions if each.entered is session.State.INTERRUPTING]
    assert journal(of.aggregate.name, interrupted).abort_reason == reason


def test_a_hold_while_spawning_interrupts_as_soon_as_the_session_runs() -> None:
    """The process is there already, but no work is done in it."""
    of = spawning().give("desired_state", desired_state.HoldWanted())
    assert of.state("session") == "Spawning"
    start(of)
    assert of.state("session") == "Interrupting"


def test_a_hold_and_a_message_while_spawning_interrupt_once() -> None:
    """One interruption is enough for all requests."""
    of = (
        spawning()
        .give("mailbox", mailbox.OperatorMessageArrived("look"))
        .give("desired_state", desired_state.HoldWanted())
    )
    start(of)
    assert of.state("session") == "Interrupting"


@pytest.mark.parametrize(
    ("make", "resumed"),
    [(wanting, ("BuildingPrompt", "Wanting")), (preparing, ("BuildingPrompt", "Preparing"))],
    ids=["wanting", "preparing"],
)
def test_a_hold_where_nothing_runs_changes_nothing_but_the_intent(
    make: Callable[[], Hand], resumed: tuple[str, str]
) -> None:
    """What was under way stays under way; nothing is asked for twice."""
    of = make().give("desired_state", desired_state.HoldWanted())
    assert shutdown.quiet(of.aggregate)
    of.give("desired_state", desired_state.RunWanted())
    assert (states(of), of.told(), of.begun()) == (resumed, [], [])


def test_a_held_worker_that_gets_a_task_keeps_it_for_later() -> None:
    """Its place is made; the session waits for the resumption."""
    of = wanting().give("desired_state", desired_state.HoldWanted())
    of.hear("board", "assignment", assignment.Assigned(BRIEF))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    assert states(of) == ("BuildingPrompt", "Working")
    of.give("desired_state", desired_state.RunWanted())
    assert states(of) == ("Spawning", "Working")


def test_a_paused_worker_that_gets_a_task_leaves_it_to_others() -> None:
    """Another worker may be free, and the length of the pause is unknown."""
    of = wanting().give("desired_state", desired_state.PauseWanted("lunch"))
    of.hear("board", "assignment", assignment.Assigned(BRIEF))
    assert of.told() == [("board", f"task:{BRIEF.task}", task.Released(BRIEF.epoch, "ann is paused"))]
    assert states(of) == ("BuildingPrompt", "Idle")


def test_a_worker_that_is_paused_before_it_has_begun_gives_its_task_back_and_wants_one_when_it_goes_on() -> None:
    """What it has begun it keeps: the session is interrupted, and gone on with."""
    of = preparing().give("desired_state", desired_state.PauseWanted())
    assert of.told() == [("board", f"task:{BRIEF.task}", task.Released(BRIEF.epoch, "ann is paused"))]
    of.confirm("assignment", "CheckOutWork")
    assert of.give("desired_state", desired_state.ResumeWanted()).told() == [
        ("board", "worker_slot:ann", worker_slot.WorkWanted())
    ]
    kept = running().give("desired_state", desired_state.PauseWanted())
    assert (states(kept), kept.told()) == (("Interrupting", "Working"), [])


def test_a_held_worker_that_is_done_asks_for_nothing_until_it_is_resumed() -> None:
    """The merge goes on, and then it is quiet."""
    of = merging().give("desired_state", desired_state.HoldWanted())
    assert not shutdown.quiet(of.aggregate)
    of.report("assignment", "MergeWork", assignment.Merged())
    assert states(of) == ("BuildingPrompt", "Idle")
    assert shutdown.quiet(of.aggregate)
    of.give("desired_state", desired_state.RunWanted())
    assert of.told() == [("board", "worker_slot:ann", worker_slot.WorkWanted())]


def test_a_held_worker_keeps_cooling_down() -> None:
    """And then asks for nothing."""
    of = cooling().give("desired_state", desired_state.HoldWanted()).elapse("session", "BackoffElapsed")
    assert states(of) == ("BuildingPrompt", "Idle")


# Stop


STOPS: dict[str, tuple[Callable[[], Hand], list[str], list[type[object]]]] = {
    "Initializing": (opened, ["PrepareWorktree"], [worker_slot.WorkerGone]),
    "Wanting": (wanting, [], [worker_slot.WorkerGone]),
    "Preparing": (preparing, ["CheckOutWork"], [task.Released, worker_slot.WorkerGone]),
    "Spawning": (spawning, ["RunSession"], [task.Released, worker_slot.WorkerGone]),
    "Running": (running, ["RunSession"], [task.Released, worker_slot.WorkerGone]),
    "Interrupting": (interrupting, ["RunSession"], [task.Released, worker_slot.WorkerGone]),
    "CoolingDown": (cooling, [], [worker_slot.WorkerGone]),
}


@pytest.mark.parametrize("name", STOPS)
def test_a_stop_at_any_moment_leaves_nothing_running(name: str) -> None:
    """What goes on is ended, the task is given back, the board hears that the worker is gone; then nothing is left."""
    make, ended, told = STOPS[name]
    of = make().give("desired_state", desired_state.StopWanted("enough"))
    assert states(of) == ("Stopped", "Idle")
    assert [e.slot for e in of.effects(End) if isinstance(e, End)] == ended
    assert [type(event) for _, _, event in of.told()] == told
    assert of.told()[-1] == ("board", "worker_slot:ann", worker_slot.WorkerGone("enough"))
    for ref, entity in of.aggregate.entities.items():
        for part in entity.running:
            assert not shutdown.settled(of.aggregate)
            assert not shutdown.quiet(of.aggregate)
            assert part.phase is Phase.ENDING
            of.confirm(ref, part.slot)
            assert of.told() == []
    assert shutdown.settled(of.aggregate)
    assert shutdown.quiet(of.aggregate)


@pytest.mark.parametrize("end", [desired_state.StopWanted("enough"), session.FatalError("the disk is gone")])
def test_a_stop_during_a_verification_waits_for_its_outcome_and_for_the_merge(end: Event) -> None:
    """Work that is done is brought home, and its result counts; only then is the worker gone."""
    of = verifying().give("desired_state" if isinstance(end, desired_state.StopWanted) else "session", end)
    assert (states(of), of.told(), of.effects(End)) == (("Stopped", "Verifying"), [], [])
    assert not shutdown.settled(of.aggregate)
    assert not shutdown.quiet(of.aggregate)
    of.report("assignment", "VerifyWork", assignment.Verified())
    assert (states(of), of.begun()) == (("Stopped", "Merging"), ["MergeWork"])
    of.report("assignment", "MergeWork", assignment.Merged("c0ffee"))
    assert [event for _, _, event in of.told()][:1] == [task.Verified(2, "c0ffee")]
    assert [type(event) for _, _, event in of.told()] == [task.Verified, worker_slot.WorkerGone]
    assert shutdown.settled(of.aggregate)


def test_work_that_a_stopped_worker_s_verification_refuses_has_failed() -> None:
    """For what it is, and not for the stop."""
    of = verifying().give("desired_state", desired_state.StopWanted("enough"))
    of.report("assignment", "VerifyWork", assignment.Rejected("tests fail"))
    assert of.told() == [
        ("board", "task:T1", task.Rejected(2, "tests fail")),
        ("board", "worker_slot:ann", worker_slot.WorkerGone("enough")),
    ]


@pytest.mark.parametrize("outcome", ["merged", "conflicted"])
def test_a_stop_during_a_merge_waits_for_its_outcome(outcome: str) -> None:
    """A merge that has begun is never given up; only then is the worker gone."""
    of = merging().give("desired_state", desired_state.StopWanted("enough"))
    assert (states(of), of.told()) == (("Stopped", "Merging"), [])
    assert of.effects(End) == []
    assert not shutdown.settled(of.aggregate)
    assert not shutdown.quiet(of.aggregate)
    merged = outcome == "merged"
    of.report("assignment", "MergeWork", assignment.Merged("c0ffee") if merged else assignment.Conflicted("x"))
    told = task.Verified(2, "c0ffee") if merged else task.Rejected(2, "x")
    assert of.told() == [("board", "task:T1", told), ("board", "worker_slot:ann", worker_slot.WorkerGone("enough"))]
    assert shutdown.settled(of.aggregate)


def test_a_stop_is_for_good() -> None:
    """Neither a resumption nor another stop does anything, and a crash brings nothing back."""
    of = running().give("desired_state", desired_state.StopWanted("enough")).confirm("session", "RunSession")
    assert of.must_refuse("desired_state", desired_state.RunWanted()).kind == "illegal"
    assert of.must_refuse("desired_state", desired_state.StopWanted()).kind == "illegal"
    assert of.crash().effects() == []
    assert of.state("session") == "Stopped"


def test_a_stop_from_hold_is_a_stop() -> None:
    """A worker that holds can be sent home."""
    of = (
        wanting()
        .give("desired_state", desired_state.HoldWanted())
        .give("desired_state", desired_state.StopWanted("no work is left"))
    )
    assert (of.state("session"), of.state("desired_state")) == ("Stopped", "Stop")


def test_a_task_that_arrives_after_the_stop_is_not_taken() -> None:
    """The board gets WorkerGone and gives the task to another worker."""
    of = wanting().give("desired_state", desired_state.StopWanted("enough"))
    assert of.dismiss("board", "assignment", assignment.Assigned(BRIEF)).kind == "illegal"


def test_a_worker_that_stopped_by_itself_accepts_a_stop() -> None:
    """The desired state is kept; the session has nothing more to do."""
    of = opened().report("session", "PrepareWorktree", session.FatalError("no repository"))
    of.hear("board", "desired_state", desired_state.StopWanted("no work is left"))
    assert (of.state("desired_state"), of.told()) == ("Stop", [])


STOPPED_BY: Final[dict[str, tuple[Event, str, str | None]]] = {
    "by an operator": (desired_state.StopWanted("stopped by the operator"), "aborted", "user_interrupt"),
    "at once": (desired_state.KillWanted("killed by the operator"), "aborted", "user_interrupt"),
    "without work": (desired_state.StopWanted("no work is left", None), "completed", None),
    "drained": (desired_state.DrainWanted("drained by the operator"), "completed", None),
}


@pytest.mark.parametrize("how", STOPPED_BY)
def test_only_an_agent_that_an_operator_stops_was_interrupted_by_its_user(how: str) -> None:
    """An agent that is through has ended well; the journal has no abort reason for it (document 004)."""
    event, transition_reason, abort_reason = STOPPED_BY[how]
    of = wanting().give("desired_state", event)
    (stopped,) = [each for each in of.reaction.transitions if each.entered is session.State.STOPPED]
    written = journal(of.aggregate.name, stopped)
    assert (written.transition_reason, written.abort_reason) == (transition_reason, abort_reason)


def test_a_task_names_the_fatal_error_that_stopped_its_agent() -> None:
    """It is given back with the error's own words."""
    of = preparing().give("session", session.FatalError("no disk"))
    assert of.told()[0] == ("board", "task:T1", task.Released(2, "its agent has stopped: no disk"))


def test_an_operators_own_stop_of_a_session_gives_the_task_back() -> None:
    """By any stop; its reason is kept."""
    of = running().give("session", session.OperatorStop())
    assert of.told() == [
        ("board", "task:T1", task.Released(2, "its agent has stopped")),
        ("board", "worker_slot:ann", worker_slot.WorkerGone("its session has stopped")),
    ]
