"""The turn of a worker: each claim goes through document 004's phases, driven by rules, in every order of events."""

from collections.abc import Callable
from typing import Final

import pytest

from aggregate_hand import Hand
from declared import Mutants, must_be_found, must_hold, rebuilt
from fleet_worker import BRIEF, exit_with, following, start
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, output, quota, stall_detector, turns
from lifefold.core.fleet.worker.output import Doing, Work, WorkSeen
from lifefold.core.kernel import Entity, Transition, replace, row
from lifefold.core.lifecycles import session, task, turn
from lifefold.core.lifecycles.turn import State, TaskClaimed
from lifefold.core.policy.ends import TIMED_OUT
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.effects import FollowOutput
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without

TOOL: Final = Doing(Work.TOOL, "Bash")
COMPACTION: Final = Doing(Work.COMPACTION)
VERIFIED: Final = replace(BRIEF, orphaned=task.OnDeath.VERIFY)


def claimed(brief: task.Brief = BRIEF, *, guarded: bool = False) -> Hand:
    """Return a worker that was given a task."""
    return following(guarded=guarded, stall=True).hear("board", "assignment", assignment.Assigned(brief))


def spawning(brief: task.Brief = BRIEF, *, guarded: bool = False) -> Hand:
    """Return a worker whose first session is being launched."""
    return claimed(brief, guarded=guarded).report("assignment", "CheckOutWork", assignment.CheckedOut())


def running(brief: task.Brief = BRIEF, *, guarded: bool = False) -> Hand:
    """Return a worker whose first session runs."""
    return start(spawning(brief, guarded=guarded))


def tell(of: Hand, *works: Doing, tools: int = 0, compactions: int = 0) -> Hand:
    """Let the output tell the works under way."""
    fact = WorkSeen(of.record(output.REF).position + 1, works, tools, compactions)
    return of.report(output.REF, FollowOutput.__name__, fact)


def phase(of: Hand) -> State:
    """Return the state of the turn."""
    state: State = of.record(turns.REF).state
    return state


def passed(of: Hand) -> list[str]:
    """Return the states that the turn entered in the last reaction."""
    return [str(each.entered) for each in of.reaction.transitions if each.machine == turns.REF and each.entered]


def test_the_profile_has_all_its_properties_and_uses_every_row() -> None:
    """In all of its states, with every guard used both ways."""
    assert must_hold(turns.in_fleet).missing == ()


def test_a_task_goes_through_the_phases_of_the_document() -> None:
    """From its claim to the merge, with a tool and a compaction."""
    of = claimed()
    steps: tuple[Callable[[], Hand], ...] = (
        lambda: of,
        lambda: of.report("assignment", "CheckOutWork", assignment.CheckedOut()),
        lambda: start(of),
        lambda: tell(of, TOOL, tools=1),
        lambda: tell(of, COMPACTION, compactions=1),
        lambda: tell(of),
        lambda: exit_with(of, session.Success()),
        lambda: of.report("assignment", "VerifyWork", assignment.Verified()),
        lambda: of.report("assignment", "MergeWork", assignment.Merged("c0ffee")),
    )
    seen = [phase(step()) for step in steps]
    assert seen == [
        State.CLAIMING, State.SPAWNING, State.RUNNING, State.TOOL_USE, State.COMPACTING, State.RUNNING,
        State.VERIFYING, State.VERIFYING, State.COMPLETING,
    ]  # fmt: skip
    of.confirm(stall_detector.REF, "WatchOutput")
    assert phase(of) is State.COMPLETING
    of.confirm(output.REF, FollowOutput.__name__)
    assert phase(of) is State.REAPED


def test_a_parked_work_completes_its_turn() -> None:
    """The approval and the merge are of a later claim, which has no turn."""
    of = exit_with(running(replace(BRIEF, needs_approval=True)), session.Success())
    of.report("assignment", "VerifyWork", assignment.Verified())
    assert passed(of.report("assignment", "ParkWork", assignment.Parked("c0ffee"))) == ["COMPLETING"]


def test_a_tool_that_has_begun_and_ended_between_two_looks_is_seen() -> None:
    """Several count as one use of tools; the output has their number."""
    of = tell(running(), tools=3)
    assert passed(of) == ["TOOL_USE", "RUNNING"]
    assert (of.record(turns.REF).tool_calls, of.record(output.REF).tools) == (1, 3)


def test_a_tool_after_another_is_one_use_of_tools() -> None:
    """Nothing is known of the moment between them."""
    of = tell(tell(running(), TOOL, tools=1), TOOL, TOOL, tools=2)
    assert (passed(of), phase(of)) == ([], State.TOOL_USE)


def test_the_end_of_a_session_ends_its_tool() -> None:
    """Work that is reported as finished is verified, whatever the output has told last."""
    of = exit_with(tell(running(), TOOL, tools=1), session.Success())
    assert passed(of) == ["RUNNING", "VERIFYING"]
    of = exit_with(tell(running(), COMPACTION, compactions=1), session.Error("exit status 1"))
    assert passed(of) == ["RUNNING", "FAILED"]


def test_the_next_claim_is_the_following_turn() -> None:
    """It has the next number and nothing of the turn before (E27)."""
    of = exit_with(tell(running(), TOOL, tools=1), session.Error("exit status 1"))
    of.confirm(stall_detector.REF, "WatchOutput").confirm(output.REF, FollowOutput.__name__)
    of.elapse("session", "BackoffElapsed").hear("board", "assignment", assignment.Assigned(BRIEF))
    assert of.record(turns.REF) == turns.FleetTurn(State.CLAIMING, agent="ann", number=2, task="T1")


def test_further_sessions_of_a_claim_are_part_of_the_same_run() -> None:
    """An urgent message interrupts the session; the turn goes on RUNNING."""
    of = tell(running(), TOOL, tools=1).give("mailbox", mailbox.OperatorMessageArrived("look"))
    assert phase(of) is State.RUNNING
    exit_with(of, session.Error("ended"))
    of.confirm(stall_detector.REF, "WatchOutput").confirm(output.REF, FollowOutput.__name__)
    assert of.state("session") == "Spawning"
    assert phase(start(of)) is State.RUNNING


@pytest.mark.parametrize("stage", [task.Stage.VERIFY, task.Stage.REVERIFY, task.Stage.MERGE])
def test_a_handover_of_done_work_has_no_turn(stage: task.Stage) -> None:
    """No agent process belongs to it."""
    of = claimed(replace(BRIEF, stage=stage))
    if stage is not task.Stage.MERGE:
        of.report("assignment", "CheckOutWork", assignment.CheckedOut())
        of.report("assignment", "VerifyWork", assignment.Verified())
    assert turns.is_in_phase(of.aggregate)
    of.report("assignment", "MergeWork", assignment.Merged("c0ffee"))
    assert of.record(turns.REF) == turns.FleetTurn(agent="ann")


def test_a_turn_whose_session_does_not_run_is_not_to_be_verified() -> None:
    """The rule asks for nothing that the document's table refuses."""
    of = claimed()
    transition = of.reaction.transitions[0]
    assert list(turns.verify_turn.follow(of.aggregate, transition)) == []


def test_a_turn_is_reaped_when_its_output_is_not_read_any_more() -> None:
    """A limited session is over with its claim, in one step; the reading of its output ends after that."""
    of = following(account="one", more={quota.REF: quota.Quota()})
    of.hear("board", "assignment", assignment.Assigned(BRIEF))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    start(of)
    of.report("session", "RunSession", session.SessionExited(session.Limited(60_000)))
    assert phase(of) is State.FAILED
    assert turns.has_no_process(of.aggregate)
    of.confirm(output.REF, FollowOutput.__name__)
    assert phase(of) is State.REAPED
    assert turns.has_no_process(of.aggregate)


def failed(of: Hand) -> tuple[str, TransitionReason | None, AbortReason | None]:
    """Return the reasons of a failed turn."""
    t: turn.Turn = of.record(turns.REF)
    assert "FAILED" in passed(of)
    return t.reason, t.transition_reason, t.abort_reason


def test_a_failed_session_fails_its_turn_with_its_classification() -> None:
    """Exit status 137 is a kill for want of memory."""
    of = exit_with(running(), session.Error("killed", TIMED_OUT))
    assert failed(of) == ("Error(killed)", TransitionReason.RETRY, AbortReason.TIMEOUT)


def test_a_claim_without_a_worktree_fails_while_claiming() -> None:
    """Nothing is left of it, so it is reaped at once."""
    of = claimed().report("assignment", "CheckOutWork", assignment.CheckoutFailed("disk full"))
    assert passed(of) == ["FAILED", "REAPED"]
    assert failed(of) == ("disk full", TransitionReason.RETRY, None)


def test_a_recalled_claim_is_aborted_and_reaped_when_its_process_is_gone() -> None:
    """The session is still being interrupted."""
    recalled = assignment.Recalled("T1", BRIEF.epoch, "a sibling", abort_reason=AbortReason.SIBLING_ABORTED)
    of = running().hear("board", "assignment", recalled)
    assert failed(of) == ("a sibling", TransitionReason.SIBLING_ABORTED, AbortReason.SIBLING_ABORTED)
    of.confirm(stall_detector.REF, "WatchOutput").confirm(output.REF, FollowOutput.__name__)
    assert phase(of) is State.FAILED
    assert passed(exit_with(of, session.Error("ended"))) == ["REAPED"]


def test_a_recall_by_the_board_is_an_abort() -> None:
    """With the reason that comes with it."""
    of = running().hear("board", "assignment", assignment.Recalled("T1", BRIEF.epoch, "preempted"))
    assert failed(of) == ("preempted", TransitionReason.ABORTED, AbortReason.SHUTDOWN_SIGNAL)


def test_a_task_that_is_given_back_is_aborted() -> None:
    """Its agent is stopped."""
    of = running().give("desired_state", desired_state.StopWanted("enough"))
    assert failed(of) == ("its agent has stopped: enough", TransitionReason.ABORTED, None)


def test_rejected_work_fails_while_verifying() -> None:
    """The commands of the task have spoken."""
    of = exit_with(running(), session.Success()).report("assignment", "VerifyWork", assignment.Rejected("no test"))
    assert failed(of) == ("no test", TransitionReason.RETRY, None)


def test_work_that_conflicts_fails_its_turn() -> None:
    """The merge belongs to VERIFYING: the document has no failure in COMPLETING (E24)."""
    of = exit_with(running(), session.Success()).report("assignment", "VerifyWork", assignment.Verified())
    assert failed(of.report("assignment", "MergeWork", assignment.Conflicted("both changed a.py")))[0] == (
        "both changed a.py"
    )


def test_the_work_of_a_dead_session_is_verified_and_keeps_its_reasons() -> None:
    """What has died is known also when its work is not enough."""
    of = exit_with(running(VERIFIED), session.Error("killed", TIMED_OUT))
    assert passed(of) == ["VERIFYING"]
    of.report("assignment", "InspectWork", assignment.Inspected(differs=False))
    assert failed(of) == ("Error(killed)", TransitionReason.RETRY, AbortReason.TIMEOUT)


def test_a_session_that_has_changed_nothing_fails_its_turn() -> None:
    """A task without commands is inspected."""
    of = exit_with(running(replace(BRIEF, verify=()), guarded=True), session.Success())
    assert phase(of) is State.VERIFYING
    of.report("assignment", "InspectWork", assignment.Inspected(said="out of credit"))
    assert failed(of)[0].startswith("nothing was changed")


def test_a_requeued_orphan_fails_its_turn() -> None:
    """The task is given back at once."""
    of = exit_with(running(replace(BRIEF, orphaned=task.OnDeath.REQUEUE)), session.Timeout())
    assert failed(of)[2] is AbortReason.TIMEOUT


@pytest.mark.cover
def test_the_nearest_states_of_a_fleet_with_turns_have_all_properties() -> None:
    """A refused event of a rule would leave the turn behind its claim."""
    fleet = named("fleet-turns")
    report = check(fleet.subject, opening=fleet.opening, bounds=replace(fleet.bounds, states=2_000, compared=0))
    assert report.broken() == ()


def test_only_the_next_claim_leaves_a_reaped_turn() -> None:
    """Whatever else did would break the property."""
    reaped = Entity(turns.REF, turns.FleetTurn(State.REAPED, number=3))
    for event, number, is_right in (
        (TaskClaimed(4, task="T2"), 4, True),
        (TaskClaimed(5, task="T2"), 5, False),
        (turn.AgentSpawned(4), 4, False),
    ):
        claiming = Entity(turns.REF, turns.FleetTurn(State.CLAIMING, number=number, task="T2"))
        step = Transition(turns.REF, reaped, claiming, event, 0, "rule", ())
        assert turns.next_turn_is_new(step) is is_right


def test_an_agent_that_follows_has_turns_and_another_has_none() -> None:
    """A fleet that does not ask for it is as it was."""
    plan = Plan("f", (AgentPlan("ann"), AgentPlan("ben", follows=True)), (TaskPlan("T1", "do it"),))
    records = {name: set(envelope.event.records) for name, envelope in opening(plan, 0)}  # type: ignore[attr-defined]
    assert not {"turn", "output"} & records["worker/ann"]
    assert {"turn", "output"} <= records["worker/ben"]


def _any(t: turn.Turn, e: TaskClaimed) -> bool:
    """Take every claim."""
    return e.turn != t.number


def _never(t: turn.Turn, e: TaskClaimed) -> bool:
    """Take no claim."""
    del t, e
    return False


_ROWS: Final = turn.machine.rows
MUTANTS: Final[Mutants] = {
    "an old claim begins a turn": (
        "nothing of the turn before",
        lambda: rebuilt(
            turns.in_fleet,
            rows=(*_ROWS, row(State.REAPED, TaskClaimed, State.CLAIMING, turns.begin_following, when=_any)),
        ),
    ),
    "a reaped turn is the last": (
        "can be followed",
        lambda: rebuilt(turns.in_fleet, rows=(*_ROWS, replace(turns.FOLLOWING, when=_never))),
    ),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_in_the_following_turn_breaks_a_property(name: str) -> None:
    """A row that is lost, or is another one, is found."""
    must_be_found(MUTANTS[name])


RULES: Final = (
    "begin_turn",
    "launch_turn",
    "run_turn",
    "follow_work",
    "verify_turn",
    "end_turn",
    "reap_turn",
    "reap_after_end",
)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_is_lost_breaks_a_property(name: str) -> None:
    """The turn is left behind, and its next event is refused."""
    lost = without(name)
    report = check(lost, opening=named("fleet-turns").opening, bounds=Bounds(states=3_000, compared=0))
    assert "the turn is in the phase of its claim" in str([each.name for each in report.broken()])
