"""Orphans: a session has died, and what becomes of its task; what it has left counts only if it is verified (E40)."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from aggregate_hand import Hand
from board_hand import ask, fail, happened, make, rest, say, states
from board_hand import brief as given
from board_hand import opened as board
from declared import instead, must_be_found, must_break, must_hold
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.system.fleet_properties import PROPERTIES
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, orphans, stall_detector, supervisor
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Dispatch,
    Machine,
    Opened,
    Row,
    Rule,
    System,
    Transition,
    create,
    row,
    rule,
)
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.lifecycles.task import OnDeath
from lifefold.core.policy.ends import TIMED_OUT, Diagnosis
from lifefold.effects import InspectWork, Tell, VerifyWork
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without

COMMANDS: Final = (("make", "check"),)
CRASH: Final = session.SessionExited(session.Error("exit status 1"))
DEATHS: Final = {
    "crashed": CRASH,
    "took too long": session.SessionExited(session.Timeout()),
}


def at_work(on_death: OnDeath = OnDeath.VERIFY, *, errors: int = 5, **fields: Any) -> Hand:
    """Return a worker whose session runs, at a task of which this becomes when it dies."""
    of = Hand(
        "worker/ann",
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session_profiles.SupervisedSession(
                name="ann", limits=session.Limits(max_consecutive_errors=errors), supervised=True
            ),
            "supervisor": supervisor.Supervisor(name="ann"),
            "stall_detector": stall_detector.StallDetector(limits=stall_detector.Limits(warn_ms=1, end_ms=2)),
        },
    ).report("session", "PrepareWorktree", session.WorktreeReady())
    brief = msgspec.structs.replace(task.Brief("T1", 1, verify=COMMANDS, orphaned=on_death), **fields)
    of.hear("board", "assignment", assignment.Assigned(brief))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    return of.report("session", "RunSession", session.SessionStarted(0))


def died(of: Hand, by: session.SessionExited = CRASH) -> Hand:
    """Let the session die."""
    return of.report("session", "RunSession", by)


def inspected(of: Hand, *, differs: bool = True) -> Hand:
    """Let it be found out whether anything was left."""
    return of.report("assignment", "InspectWork", assignment.Inspected(differs))


def told(of: Hand) -> list[Any]:
    """Return what the last reaction tells the board of the task."""
    return [each.event for each in of.effects(Tell) if isinstance(each, Tell) and each.entity.startswith("task:")]


# What a worker does


@pytest.mark.parametrize("by", DEATHS)
def test_work_of_a_dead_session_is_inspected_and_then_verified(by: str) -> None:
    """The board hears that its task is an orphan; the place is looked at before any command is run in it."""
    of = died(at_work(), DEATHS[by])
    (said,) = told(of)
    assert isinstance(said, task.Orphaned)
    assert said.epoch == 1
    assert said.reason in {"Error(exit status 1)", "Timeout"}
    assert of.part("assignment", "InspectWork").activity == InspectWork("T1", 1)
    inspected(of)
    assert of.part("assignment", "VerifyWork").activity == VerifyWork("T1", 1, COMMANDS, 600_000)
    assert told(of) == []


@pytest.mark.parametrize(("asks", "then"), [([], "Merging"), (["asks"], "Parking")])
def test_verified_work_of_a_dead_session_is_done_like_any_work(asks: list[str], then: str) -> None:
    """It is merged, or put before a person, as if the session had said that it is done."""
    of = inspected(died(at_work(needs_approval=bool(asks)))).report("assignment", "VerifyWork", assignment.Verified())
    assert of.state("assignment") == then
    assert told(of) == [task.Salvaged(1)]


def test_a_session_that_has_left_nothing_has_failed_whatever_its_commands_would_say() -> None:
    """An empty difference is never done, and nothing is run to be asked (E40)."""
    of = inspected(died(at_work()), differs=False)
    assert of.state("assignment") == "Idle"
    assert of.begun() == []
    assert told(of) == [task.Failed(1, "Error(exit status 1); it has left nothing that could be verified", Diagnosis())]


def test_rejected_work_of_a_dead_session_fails_with_both_reasons() -> None:
    """The next prompt has what the session has died of, and what its work lacks."""
    of = inspected(died(at_work())).report("assignment", "VerifyWork", assignment.Rejected("no hello.txt"))
    assert told(of) == [
        task.Failed(1, "Error(exit status 1); what it has left is not enough: no hello.txt", Diagnosis())
    ]


def test_nothing_is_looked_at_before_a_hung_session_is_gone() -> None:
    """It may write as long as it lives."""
    of = at_work()
    for silent_ms in (1, 2):
        of.report("stall_detector", "WatchOutput", stall_detector.Silent(silent_ms))
    assert of.state("assignment") == "Orphaned"
    assert told(of) == [task.Orphaned(1, "silent for 0 s", TIMED_OUT)]
    of.confirm("stall_detector", "WatchOutput")
    assert of.state("assignment") == "Orphaned"
    of.confirm("session", "RunSession")
    assert of.state("assignment") == "Inspecting"


def test_a_task_that_is_requeued_is_given_back_at_once_with_the_reason() -> None:
    """An orphan for a moment; nothing of it is looked at."""
    of = died(at_work(OnDeath.REQUEUE))
    assert of.state("assignment") == "Idle"
    reason = "Error(exit status 1)"
    assert told(of) == [task.Orphaned(1, reason, Diagnosis()), task.Released(1, reason)]


@pytest.mark.parametrize(
    "of", [lambda: at_work(OnDeath.FAIL), lambda: at_work(verify=())], ids=["unasked", "without commands"]
)
def test_a_task_that_does_not_want_it_or_that_nothing_can_prove_has_failed(of: Callable[[], Hand]) -> None:
    """As ever: no orphan is made of it."""
    assert told(died(of())) == [task.Failed(1, "Error(exit status 1)", Diagnosis())]


def test_a_session_that_never_ran_has_failed() -> None:
    """It was being launched; nothing of it can be left."""
    fresh = Hand(
        "worker/ann",
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session_profiles.SupervisedSession(name="ann"),
        },
    ).report("session", "PrepareWorktree", session.WorktreeReady())
    fresh.hear("board", "assignment", assignment.Assigned(task.Brief("T1", 1, "", COMMANDS, orphaned=OnDeath.VERIFY)))
    fresh.report("assignment", "CheckOutWork", assignment.CheckedOut())
    assert told(died(fresh)) == [task.Failed(1, "Error(exit status 1)", Diagnosis())]


def test_a_stopped_session_has_not_died() -> None:
    """What it has begun is given back, as ever."""
    of = at_work().give("desired_state", desired_state.StopWanted("enough"))
    assert [type(each) for each in told(of)] == [task.Released]


def test_a_session_of_a_recalled_task_has_not_died() -> None:
    """Its task has another owner, or none."""
    of = at_work().hear("board", "assignment", assignment.Recalled("T1", 1, "cancelled"))
    assert of.state("session") == "Interrupting"
    assert died(of).state("assignment") in {"Idle", "Wanting"}


@pytest.mark.parametrize("doing", ["Orphaned", "Inspecting", "Verifying"])
def test_an_orphan_that_is_recalled_is_dropped(doing: str) -> None:
    """What was done for it is never merged."""
    of = at_work()
    if doing == "Orphaned":
        for silent_ms in (1, 2):
            of.report("stall_detector", "WatchOutput", stall_detector.Silent(silent_ms))
    else:
        died(of)
    if doing == "Verifying":
        inspected(of)
    assert of.state("assignment") == doing
    of.hear("board", "assignment", assignment.Recalled("T1", 1, "cancelled"))
    assert of.state("assignment") == "Idle"
    assert told(of) == []


def test_an_agent_that_stops_meanwhile_merges_verified_orphaned_work() -> None:
    """As it does with any work that is done; then it is gone."""
    of = died(at_work()).give("desired_state", desired_state.StopWanted("enough"))
    assert (of.state("session"), of.state("assignment")) == ("Stopped", "Inspecting")
    inspected(of).report("assignment", "VerifyWork", assignment.Verified())
    of.report("assignment", "MergeWork", assignment.Merged("c0ffee"))
    assert [each.event for each in of.effects(Tell) if isinstance(each, Tell)] == [
        task.Verified(1, "c0ffee"),
        worker_slot.WorkerGone("enough"),
    ]


def test_an_agent_asks_for_its_restart_after_its_orphan_is_settled() -> None:
    """Its worktree must not be prepared again during the inspection."""
    of = died(at_work(errors=1))
    asked = [each.event for each in of.effects(Tell) if isinstance(each, Tell)]
    assert (of.state("session"), of.state("supervisor")) == ("Stopped", "Asking")
    assert worker_slot.RestartWanted() not in asked
    inspected(of, differs=False)
    assert [each.event for each in of.effects(Tell) if isinstance(each, Tell)][-1] == worker_slot.RestartWanted()


def test_an_agent_that_cools_down_wants_work_when_its_orphan_is_seen_to() -> None:
    """Its next session would write where it is being looked."""
    of = died(at_work()).confirm("stall_detector", "WatchOutput")
    of.elapse("session", "BackoffElapsed")
    assert (of.state("session"), of.state("assignment")) == ("BuildingPrompt", "Inspecting")
    inspected(of, differs=False)
    assert of.state("assignment") == "Wanting"


def test_a_runner_that_comes_back_looks_again() -> None:
    """What was being found out is asked again, under the same claim."""
    of = died(at_work()).crash()
    assert of.begun().count("InspectWork") == 1
    assert inspected(of).crash().begun().count("VerifyWork") == 1


# What the board does


def orphaned(policy: OnDeath = OnDeath.VERIFY) -> Hand:
    """Return a board whose only task is an orphan."""
    of = ask(board(make("T1", max_retries=1, verify=COMMANDS, orphaned=policy)))
    assert given(of).orphaned is policy
    return say(of, "T1", task.Started, task.Orphaned) if policy is OnDeath.VERIFY else say(of, "T1", task.Started)


def test_an_orphan_stays_its_owners_and_no_other_worker_gets_it() -> None:
    """It is not known yet to whom it could be given."""
    of = ask(orphaned(), "bob")
    record: fleet_task.FleetTask = of.record("task:T1")
    assert (states(of, "T1"), record.owner) == (["ORPHANED"], "ann")
    assert of.record("worker_slot:bob").task == ""


def test_an_orphan_that_is_proven_is_done_and_closed_by_its_merge() -> None:
    """No second session is begun for it."""
    of = say(say(orphaned(), "T1", task.Salvaged), "T1", task.Verified, commit="c0ffee")
    assert states(of, "T1") == ["CLOSED"]


def test_an_orphan_that_is_not_has_failed_and_is_tried_again_with_all_that_is_known() -> None:
    """A retry that counts, after its rest, whose prompt has why."""
    of = rest(fail(orphaned(), "T1", "Error(exit status 1); what it has left is not enough: no hello.txt"), "T1")
    assert (states(of, "T1"), of.record("task:T1").retries) == (["OPEN"], 1)
    assert "no hello.txt" in given(ask(of, "bob")).failure


def test_an_orphan_that_is_given_back_is_open_at_once_and_counts_no_retry() -> None:
    """Its next prompt has what the session has died of."""
    of = orphaned(OnDeath.REQUEUE)
    say(of, "T1", task.Orphaned, reason="Error(exit status 1)")
    say(of, "T1", task.Released, reason="Error(exit status 1)")
    assert (states(of, "T1"), of.record("task:T1").retries) == (["OPEN"], 0)
    assert given(ask(of, "bob")).failure == "Error(exit status 1)"


def test_an_orphan_cannot_be_cancelled_before_it_is_known_what_it_is() -> None:
    """It is soon done, open, or has failed (E16)."""
    assert orphaned().must_refuse("task:T1", task.Cancelled()).kind == "illegal"


def test_an_orphan_is_open_when_its_worker_is_gone() -> None:
    """No worker would inspect it (E11)."""
    of = orphaned().hear("worker/ann", "worker_slot:ann", worker_slot.WorkerGone("no disk"))
    assert (states(of, "T1"), happened(of, "T1")) == (["OPEN"], ["Released"])


def test_no_agent_works_at_the_files_of_an_orphan() -> None:
    """What its session has left may soon be merged (E21)."""
    of = ask(
        board(
            make("T1", orphaned=OnDeath.VERIFY, verify=COMMANDS, files=("src",)),
            make("T2", files=("src/app.py",)),
        )
    )
    ask(say(of, "T1", task.Started, task.Orphaned), "bob")
    assert states(of, "T1", "T2") == ["ORPHANED", "OPEN"]
    fail(of, "T1")
    assert states(of, "T1", "T2") == ["FAILED", "CLAIMED"]


def test_the_parts_of_a_task_are_orphans_as_their_whole() -> None:
    """Who splits a task says nothing of that."""
    of = ask(board(make("T1", orphaned=OnDeath.REQUEUE, most_subtasks=2)))
    of.give("task:T1", fleet_task.Split(1, (fleet_task.Subtask("a part"),)))
    assert of.record("task:T1+1").orphaned is OnDeath.REQUEUE


@pytest.mark.parametrize(
    ("own", "plans", "found"),
    [
        (None, OnDeath.FAIL, OnDeath.FAIL),
        (None, OnDeath.VERIFY, OnDeath.VERIFY),
        (OnDeath.FAIL, OnDeath.VERIFY, OnDeath.FAIL),
        (OnDeath.REQUEUE, OnDeath.FAIL, OnDeath.REQUEUE),
    ],
)
def test_a_task_says_it_itself_or_its_plan_does(own: OnDeath | None, plans: OnDeath, found: OnDeath) -> None:
    """By default nothing is as it was not."""
    plan = Plan("p", (AgentPlan("ann"),), (TaskPlan("T1", "do it", orphaned=own),), orphaned=plans)
    (_, opened), *_ = opening(plan, 0)
    assert isinstance(opened.event, Opened)
    begun = opened.event.records["task:T1"]
    assert isinstance(begun, fleet_task.FleetTask)
    assert begun.orphaned is found


def test_nothing_is_told_of_an_assignment_that_begins() -> None:
    """It cannot be an orphan yet."""
    (begun,) = create(assignment.machine, "assignment", assignment.machine.initial, 0, "worker").transitions
    reporting = (orphans.report_death, orphans.report_rescue, orphans.report_loss)
    assert not any(each.is_triggered(begun) for each in reporting)


# Properties


FEW: Final = Bounds(within=named("fleet-orphans").bounds.within, commands=1, compared=200)


def small(policy: OnDeath) -> Any:
    """Return what opens a fleet of one agent that may err once, and one task of which this becomes then."""
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    it = TaskPlan("T1", "do it", COMMANDS, max_retries=0, orphaned=policy)
    return list(opening(Plan("orphans", (AgentPlan("ann", limits),), (it,)), 0))


def test_of_a_fleet_that_may_have_orphans_it_is_asked_whether_they_stay_so() -> None:
    """Of others there is nothing to be said."""
    asked = {name: named(name).subject.properties for name in ("fleet", "fleet-orphans")}
    assert asked["fleet"] == system.properties
    assert asked["fleet-orphans"] == (*system.properties, *orphans.AT_LAST)


@pytest.mark.parametrize("policy", [OnDeath.VERIFY, OnDeath.REQUEUE])
def test_a_fleet_with_orphans_has_all_its_properties(policy: OnDeath) -> None:
    """Those of every fleet, and that no task stays an orphan; `lifefold check fleet-orphans` looks at a larger one."""
    must_hold(system, FEW, opening=small(policy), properties=orphans.AT_LAST)


def _replaced(name: str, *instead: Rule) -> System:
    """Return the fleet with another rule of a worker's in the place of all of this name."""
    of = worker.aggregate
    place = next(number for number, each in enumerate(of.rules) if each.name == name)
    left = [each for each in of.rules if each.name != name]
    changed = AggregateType(
        of.kind,
        machines=of.machines.values(),
        rules=[*left[:place], *instead, *left[place:]],
        views=of.views,
        commands=of.commands,
        properties=of.properties,
    )
    return System("fleet", system.type_of("board"), changed, properties=PROPERTIES)


def _buries_alive(of: Aggregate, _transition: Transition) -> Any:
    """Look at what was left while the session may still write."""
    if of.record("assignment").state is assignment.State.ORPHANED:
        yield Dispatch("assignment", assignment.SessionGone())


SMALL: Final = Bounds(states=2_000, compared=0)

LOST: Final[dict[str, tuple[str, Callable[[], System]]]] = {
    "it is looked at while the session lives": (
        "inspected after its process has ended",
        lambda: _replaced(
            "begin_inspection", *(rule(on=each)(_buries_alive) for each in (worker.agent, assignment.machine))
        ),
    ),
    "the board does not hear of its death": ("every orphan is with its worker", lambda: _replaced("report_death")),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", LOST)
def test_a_rule_that_is_lost_breaks_a_property(name: str) -> None:
    """The properties see to what the rules are for."""
    prop, broken = LOST[name]
    found = check(broken(), opening=named("fleet-orphans").opening, bounds=SMALL).broken()
    assert any(prop in each.name for each in found), [each.name for each in found]


@pytest.mark.no_cover
@pytest.mark.parametrize("lost", ["begin_inspection", "report_rescue", "report_loss"])
def test_an_orphan_that_is_not_inspected_or_not_reported_stays_one(lost: str) -> None:
    """And its fleet comes to no end."""
    opened, more = small(OnDeath.VERIFY), orphans.AT_LAST
    for prop in ("no task stays an orphan", "every task is settled at last"):
        must_break(prop, without(lost), FEW, opening=opened, properties=more)


STATE: Final = assignment.State

MISTAKES: Final[dict[str, tuple[str, Callable[[], Machine[Any]]]]] = {
    "an empty difference is verified": (
        "counts only if it differs",
        lambda: _instead(row(STATE.INSPECTING, assignment.Inspected, STATE.VERIFYING)),
    ),
    "what differs is merged unverified": (
        "counts only if it differs",
        lambda: instead(
            assignment.machine,
            row(STATE.INSPECTING, assignment.Inspected, STATE.MERGING, when=assignment.differs),
            assignment.differs,
        ),
    ),
    "what was rejected is merged": (
        "counts only if it differs",
        lambda: _instead(row(STATE.VERIFYING, assignment.Rejected, STATE.MERGING)),
    ),
    "it is an orphan unasked": (
        "is an orphan only if the task asks for it",
        lambda: _instead(row(STATE.WORKING, assignment.SessionDied, STATE.ORPHANED, assignment.orphan)),
    ),
    "the death is forgotten": (
        "is an orphan only if the task asks for it",
        lambda: _instead(row(STATE.WORKING, assignment.SessionDied, STATE.ORPHANED, when=assignment.is_to_be_verified)),
    ),
    "a requeued task is not heard of": (
        "where its task handles it",
        lambda: _instead(
            row(
                STATE.WORKING,
                assignment.SessionDied,
                STATE.ORPHANED,
                assignment.orphan,
                when=assignment.is_to_be_verified,
            )
        ),
    ),
    "an orphan is not recalled": ("Orphaned exits on Recalled", lambda: _deaf(assignment.Recalled, STATE.ORPHANED)),
    "nor while it is inspected": (
        "Inspecting exits on Recalled",
        lambda: _deaf(assignment.Recalled, STATE.INSPECTING),
    ),
}


def _instead(new: Row[Any]) -> Machine[Any]:
    return instead(assignment.machine, new)


def _deaf(event: type[Any], state: assignment.State) -> Machine[Any]:
    return assignment.machine.without_rows((state, event))


@pytest.mark.no_cover
@pytest.mark.parametrize("name", MISTAKES)
def test_a_row_that_is_wrong_breaks_a_property(name: str) -> None:
    """Of the assignment alone."""
    must_be_found(MISTAKES[name])
