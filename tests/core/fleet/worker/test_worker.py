"""A worker: a session, an assignment, a mailbox and a desired state together."""

from aggregate_hand import Hand
from fleet_worker import (
    BRIEF,
    cooling,
    exit_with,
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
from lifefold.core.kernel import Phase
from lifefold.core.lifecycles import session, task
from lifefold.core.policy.ends import TIMED_OUT, Diagnosis
from lifefold.effects import LogFatal

# The round


def test_a_worker_asks_for_work_when_its_worktree_is_ready() -> None:
    """Its worker slot on the board begins to wait."""
    of = opened().report("session", "PrepareWorktree", session.WorktreeReady())
    assert states(of) == ("BuildingPrompt", "Wanting")
    assert of.told() == [("board", "worker_slot:ann", worker_slot.WorkWanted())]


def test_a_task_is_checked_out_before_its_prompt_is_written() -> None:
    """The session waits in BuildingPrompt meanwhile."""
    of = preparing()
    assert (states(of), of.begun()) == (("BuildingPrompt", "Preparing"), ["CheckOutWork"])
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    assert (states(of), of.begun()) == (("Spawning", "Working"), ["RunSession"])
    assert prompt_of(of) == "do it"
    assert of.record("assignment").sessions == 1


def test_the_board_hears_once_for_each_claim_that_work_has_begun() -> None:
    """Not again after an interruption."""
    of = running()
    assert of.told() == [("board", "task:T1", task.Started(2))]
    of.give("mailbox", mailbox.OperatorMessageArrived("look"))
    exit_with(of, session.Success())
    start(of)
    assert (of.state("session"), of.told()) == ("Running", [])


def test_finished_work_is_verified_merged_and_then_the_next_round_begins() -> None:
    """The board hears Completed and Verified under the epoch of the claim, and then that more is wanted."""
    of = verifying()
    assert (states(of), of.begun()) == (("SessionComplete", "Verifying"), ["VerifyWork"])
    assert of.told() == [("board", "task:T1", task.Completed(2))]
    of.report("assignment", "VerifyWork", assignment.Verified())
    assert (states(of), of.begun(), of.told()) == (("SessionComplete", "Merging"), ["MergeWork"], [])
    of.report("assignment", "MergeWork", assignment.Merged("c0ffee"))
    assert states(of) == ("BuildingPrompt", "Wanting")
    assert of.told() == [
        ("board", "task:T1", task.Verified(2, "c0ffee")),
        ("board", "worker_slot:ann", worker_slot.WorkWanted()),
    ]
    assert of.record("session").session_seq == 1


def test_work_that_is_rejected_is_reported_and_the_worker_goes_on() -> None:
    """By verification or by the merge."""
    refused = verifying().report("assignment", "VerifyWork", assignment.Rejected("tests fail"))
    conflict = merging().report("assignment", "MergeWork", assignment.Conflicted("both changed it"))
    for of, reason in ((refused, "tests fail"), (conflict, "both changed it")):
        assert of.told() == [
            ("board", "task:T1", task.Rejected(2, reason)),
            ("board", "worker_slot:ann", worker_slot.WorkWanted()),
        ]
        assert states(of) == ("BuildingPrompt", "Wanting")


# Places that cannot be made


def unplaced(limits: session.Limits | None = None) -> Hand:
    """Return a worker that could not make the place of its task."""
    of = opened(limits).report("session", "PrepareWorktree", session.WorktreeReady())
    of.hear("board", "assignment", assignment.Assigned(BRIEF))
    return of.report("assignment", "CheckOutWork", assignment.CheckoutFailed("no branch"))


def test_a_place_that_cannot_be_made_costs_the_agent_and_not_the_task() -> None:
    """The task is given back as it was; the agent counts an error, as for a prompt that failed, and backs off (D6)."""
    of = unplaced()
    assert of.told() == [("board", "task:T1", task.Released(2, "ann could not make its place: no branch"))]
    assert states(of) == ("CoolingDown", "Idle")
    assert (of.record("session").consecutive_errors, of.record("session").total_errors) == (1, 1)
    assert of.part("session", "BackoffElapsed").deadline_ms == of.now_ms + 2_000


def test_an_agent_that_cannot_make_places_asks_again_after_ever_longer_pauses() -> None:
    """2 s, 4 s, 8 s; meanwhile it wants nothing, so that healthy agents take the task."""
    of, pauses_ms = wanting(), list[int]()
    for _ in range(3):
        of.hear("board", "assignment", assignment.Assigned(BRIEF))
        of.report("assignment", "CheckOutWork", assignment.CheckoutFailed("no branch"))
        assert ("board", "worker_slot:ann", worker_slot.WorkWanted()) not in of.told()
        failed_ms = of.now_ms
        of.elapse("session", "BackoffElapsed")
        pauses_ms.append(of.now_ms - failed_ms)
        assert of.told() == [("board", "worker_slot:ann", worker_slot.WorkWanted())]
    assert pauses_ms == [2_000, 4_000, 8_000]


def test_an_agent_that_never_can_make_a_place_stops_and_says_why() -> None:
    """At its threshold; the task is given back, and the board hears that the worker is gone."""
    of = unplaced(session.Limits(max_consecutive_errors=1))
    assert states(of) == ("Stopped", "Idle")
    assert [type(event) for _, _, event in of.told()] == [task.Released, worker_slot.WorkerGone]
    assert of.effects(LogFatal) == [
        LogFatal("1 error in a row (max_consecutive_errors = 1); the last was Error(no place for T1: no branch)")
    ]
    assert shutdown.settled(of.aggregate)


def test_a_session_that_starts_forgets_the_places_that_could_not_be_made() -> None:
    """As it does with all errors in a row."""
    of = unplaced().elapse("session", "BackoffElapsed").hear("board", "assignment", assignment.Assigned(BRIEF))
    start(of.report("assignment", "CheckOutWork", assignment.CheckedOut()))
    assert (of.record("session").consecutive_errors, of.record("session").total_errors) == (0, 1)


# Sessions that fail


def test_a_session_that_fails_gives_the_task_back_and_cools_down() -> None:
    """Only after the pause does the worker ask again."""
    of = cooling()
    assert states(of) == ("CoolingDown", "Idle")
    assert of.told() == [("board", "task:T1", task.Failed(2, "Error(exit status 1)", Diagnosis()))]
    of.elapse("session", "BackoffElapsed")
    assert of.told() == [("board", "worker_slot:ann", worker_slot.WorkWanted())]
    assert states(of) == ("BuildingPrompt", "Wanting")


def test_a_session_that_fails_before_it_starts_fails_the_task_that_was_never_begun() -> None:
    """The board has heard nothing of Started."""
    of = exit_with(spawning(), session.Timeout())
    assert of.told() == [("board", "task:T1", task.Failed(2, "Timeout", TIMED_OUT))]


def test_an_agent_that_reached_a_threshold_fails_its_task_and_is_gone() -> None:
    """In this order, so that the board need not recall the task."""
    of = opened(session.Limits(max_consecutive_errors=1)).report("session", "PrepareWorktree", session.WorktreeReady())
    of.hear("board", "assignment", assignment.Assigned(BRIEF))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    exit_with(of, session.Error("x"))
    assert of.told() == [
        ("board", "task:T1", task.Failed(2, "Error(x)", Diagnosis())),
        ("board", "worker_slot:ann", worker_slot.WorkerGone("its session has stopped")),
    ]
    assert of.state("mailbox") == "Closed"


def test_a_worktree_that_cannot_be_made_is_the_end_of_the_worker() -> None:
    """It goes with nothing in hand."""
    of = opened().report("session", "PrepareWorktree", session.FatalError("no repository"))
    assert of.told() == [("board", "worker_slot:ann", worker_slot.WorkerGone("its session has stopped"))]


# Sessions that suspend themselves


def test_a_suspended_session_keeps_its_task_and_the_next_one_goes_on_after_a_pause() -> None:
    """Under the same claim, in the same place; the board gets nothing, and no error is counted (D28)."""
    of = exit_with(running(), session.Suspended())
    assert (states(of), of.told()) == (("CoolingDown", "Working"), [])
    of.elapse("session", "BackoffElapsed")
    assert (states(of), of.begun(), of.told()) == (("Spawning", "Working"), ["RunSession"], [])
    assert "interrupted" in prompt_of(of)
    assert of.record("session").total_errors == 0
    assert of.record("assignment").brief == BRIEF


def test_an_agent_that_suspends_itself_for_ever_comes_to_an_end() -> None:
    """As many times in a row as there may be errors in all make one: it costs a retry, and counts for the agent."""
    limits = session.Limits(max_total_errors=3)
    of = opened(limits).report("session", "PrepareWorktree", session.WorktreeReady())
    of.hear("board", "assignment", assignment.Assigned(BRIEF)).report(
        "assignment", "CheckOutWork", assignment.CheckedOut()
    )
    for _ in range(2):
        exit_with(start(of), session.Suspended())
        of.elapse("session", "BackoffElapsed")
    exit_with(start(of), session.Suspended())
    assert of.told() == [("board", "task:T1", task.Failed(2, "Suspended, too often in a row", Diagnosis()))]
    assert (states(of), of.record("session").total_errors) == (("CoolingDown", "Idle"), 1)


def test_a_hold_meets_a_suspended_session_at_rest() -> None:
    """Nothing has to end any more; the next run goes on with the claim."""
    of = exit_with(running(), session.Suspended(asked=True)).give("desired_state", desired_state.HoldWanted())
    assert shutdown.quiet(of.aggregate)
    of.elapse("session", "BackoffElapsed")
    assert of.begun() == []
    assert of.give("desired_state", desired_state.RunWanted()).begun() == ["RunSession"]


# Crashes


def test_after_a_crash_a_worker_asks_again_for_what_goes_on() -> None:
    """The session is adopted or restarted; what the rules serve is not asked of an interpreter."""
    of = running().crash()
    assert of.begun() == ["RunSession"]
    assert wanting().crash().begun() == []
    assert verifying().crash().begun() == ["VerifyWork"]


def test_a_fatal_error_may_come_from_anywhere() -> None:
    """FatalError is valid from any state, also when no activity of that state yields it; the process ends (D10)."""
    stopped = running().give("session", session.FatalError("the disk is gone"))
    assert stopped.record("session").state is session.State.STOPPED
    assert stopped.entity("session").find("RunSession", Phase.ENDING) is not None
