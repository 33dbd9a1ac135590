"""Preemption for an urgent task: a worker with a less urgent task is asked, and no more workers than necessary."""

from typing import Any

import pytest

from aggregate_hand import Hand
from board_hand import ask, assigned, brief, close, fail, finish, go, make, opened, recalled, rest, say, states
from fleet_worker import exit_with, running, spawning, start, wanting
from fleet_worker import states as agent_states
from lifefold.core.fleet import AgentPlan, Budget, Caps, Plan, Preemption, TaskPlan, opening
from lifefold.core.fleet.board import fleet_task, preemption_request, worker_slot
from lifefold.core.fleet.dispatch import budgets, preemption
from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.fleet.system.plan import budget_of
from lifefold.core.fleet.worker import assignment, mailbox, shutdown
from lifefold.core.kernel import Created, Machine, Opened, Record, replace
from lifefold.core.lifecycles import session, session_yielding, task
from lifefold.core.lifecycles.approval import ApprovalGranted
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.policy.access import AccessLevel, Trust
from lifefold.effects import CancelSession, ForceStopSession
from lifefold.interpreters.check import Report, check
from lifefold.interpreters.explain import status as projection
from lifefold.interpreters.explain import why
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without

DEADLINE_MS = 700


def board(
    *tasks: fleet_task.FleetTask, worker_slots: Any = ("ann", "bob"), within_ms: int = DEADLINE_MS, **more: Record
) -> Hand:
    """Return a board that preempts, with these tasks and worker slots, all away."""
    return opened(
        *tasks, worker_slots=worker_slots, **more, **preemption.preemption_requests(tuple(worker_slots), within_ms)
    )


def add(of: Hand, name: str, priority: int, *needs: str, **fields: Any) -> Hand:
    """Put a task on the board."""
    return of.give(f"task:{name}", Created(make(name, *needs, priority=priority, **fields)))


def asked(of: Hand) -> dict[str, str]:
    """Return who makes room, and for what."""
    return dict(work_of(of.aggregate).preempted)


def busy(*priorities: int, **options: Any) -> Hand:
    """Return a board on which ann, and bob if there are two tasks, are at tasks of these priorities."""
    of = board(*(make(f"L{place}", priority=each) for place, each in enumerate(priorities, 1)), **options)
    names = ("ann", "bob", "cat")[: len(priorities)]
    ask(of, *names)
    for place in range(1, len(priorities) + 1):
        say(of, f"L{place}", task.Started)
    return of


def test_an_urgent_task_preempts_a_running_one() -> None:
    """The other one is open again under its used number, has not failed, and says for what it has made room."""
    of = add(busy(2, worker_slots=("ann",)), "X", 1)
    before, reason = make("L1", priority=2), "preempted for X"
    assert recalled(of) == [("worker/ann", assignment.Recalled("L1", 1, reason, DEADLINE_MS))]
    now: fleet_task.FleetTask = of.record("task:L1")
    assert states(of, "L1", "X") == ["OPEN", "OPEN"]
    assert (now.owner, now.epoch, now.reason, now.failure, now.retries) == ("", 1, reason, "", 0)
    assert now.limit == before.limit
    assert asked(of) == {"ann": "X"}


def test_a_preempted_worker_gets_the_urgent_task_and_then_its_own() -> None:
    """What it says about the task that was taken from it is refused."""
    of = add(busy(2, worker_slots=("ann",)), "X", 1)
    of.dismiss("worker/ann", "task:L1", task.Completed(1))
    assert assigned(ask(of)) == [("worker/ann", "X")]
    assert asked(of) == {}
    close(of, "X")
    assert assigned(ask(of)) == [("worker/ann", "L1")]
    assert brief(of).epoch == 2
    assert brief(of).failure == ""
    assert recalled(close(of, "L1")) == []


@pytest.mark.parametrize("priority", [2, 3])
def test_no_task_is_preempted_for_one_that_is_not_more_urgent(priority: int) -> None:
    """Strictly before: two of one priority never take turns."""
    of = add(busy(2, worker_slots=("ann",)), "X", priority)
    assert (recalled(of), asked(of), states(of, "L1")) == ([], {}, ["IN_PROGRESS"])


def test_no_task_is_preempted_in_a_fleet_without_preemption() -> None:
    """The first task waits for a free worker, and no worker is searched."""
    of = ask(opened(make("L1", priority=9)))
    of.give("task:X", Created(make("X", priority=1)))
    assert recalled(of) == []
    work = work_of(of.aggregate)
    assert (work.is_preempting, dict(work.at), dict(work.preempted)) == (False, {}, {})


def test_no_worker_is_preempted_while_a_suitable_worker_is_free() -> None:
    """That one is given the task."""
    of = ask(board(make("L1", priority=2)), "ann", "bob")
    assert assigned(add(of, "X", 1)) == [("worker/bob", "X")]
    assert (asked(of), states(of, "L1")) == ({}, ["CLAIMED"])


@pytest.mark.parametrize(
    ("priorities", "lets_go"), [((2, 4, 3), "bob"), ((4, 2, 3), "ann"), ((3, 3, 3), "cat"), ((2, 3, 3), "cat")]
)
def test_the_last_claimed_task_of_the_lowest_priority_is_preempted(priorities: tuple[int, ...], lets_go: str) -> None:
    """That loses the least work: tasks are claimed in the order of their priorities."""
    of = board(worker_slots=("ann", "bob", "cat"))
    for name, priority in zip(("ann", "bob", "cat"), priorities, strict=True):
        add(ask(of, name), f"of-{name}", priority)
    add(of, "X", 1)
    assert asked(of) == {lets_go: "X"}
    assert states(of, f"of-{lets_go}") == ["OPEN"]


def test_a_preempted_worker_that_may_not_take_the_task_is_replaced() -> None:
    """Its slot is of no use: no task waits for it."""
    trusted = AccessLevel.TRUSTED
    sat = {f"worker_slot:{name}": worker_slot.WorkerSlot(trust=Trust(trusted)) for name in ("ann", "bob")}
    lower = (make("L1", priority=3, level=trusted), make("L2", priority=4, level=trusted))
    of = ask(
        opened(*lower, worker_slots={}, **sat, **preemption.preemption_requests(("ann", "bob"), DEADLINE_MS)),
        "ann",
        "bob",
    )
    add(of, "X", 1, level=trusted)
    assert asked(of) == {"bob": "X"}
    of.give("worker_slot:bob", worker_slot.Demoted())
    assert asked(of) == {"bob": "X"}
    assert asked(ask(of, "bob")) == {"ann": "X"}
    assert assigned(ask(of, "ann")) == [("worker/ann", "X")]


def test_one_worker_is_preempted_for_a_waiting_task() -> None:
    """Whatever else happens meanwhile."""
    of = add(busy(2, 2), "X", 1)
    assert asked(of) == {"bob": "X"}
    add(of, "Y", 5)
    finish(of, "L1")
    assert (asked(of), states(of, "L1")) == ({"bob": "X"}, ["DONE"])


def test_two_urgent_tasks_preempt_two_workers_and_no_third_when_they_swap() -> None:
    """Who is free first is given the first of them; the room that the other one makes is for the second then."""
    of = busy(2, 2, 2, worker_slots=("ann", "bob", "cat"))
    add(add(of, "X", 1), "Y", 1)
    assert asked(of) == {"cat": "X", "bob": "Y"}
    assert assigned(ask(of, "bob")) == [("worker/bob", "X")]
    assert (asked(of), states(of, "L1")) == ({"cat": "Y"}, ["IN_PROGRESS"])
    assert assigned(ask(of, "cat")) == [("worker/cat", "Y")]
    assert asked(of) == {}


def test_an_unneeded_preemption_serves_the_next_urgent_task() -> None:
    """The task that it was for is cancelled; nothing that comes later is given the room."""
    of = add(busy(3, 3), "X", 1)
    of.give("task:X", task.Cancelled("not any more"))
    assert asked(of) == {"bob": "X"}
    add(of, "Z", 3)
    assert asked(of) == {"bob": "X"}
    add(of, "Y", 2)
    assert (asked(of), states(of, "L1")) == ({"bob": "Y"}, ["IN_PROGRESS"])


def test_a_preemption_request_that_no_task_needs_is_harmless() -> None:
    """Who has let its task go is given it again."""
    of = add(busy(2, worker_slots=("ann",)), "X", 1)
    of.give("task:X", task.Cancelled("not any more"))
    assert assigned(ask(of)) == [("worker/ann", "L1")]
    assert asked(of) == {}


def test_done_work_is_handed_over_and_not_preempted() -> None:
    """Its owner is free soon (E16)."""
    of = add(finish(busy(2, worker_slots=("ann",)), "L1"), "X", 1)
    assert (asked(of), states(of, "L1")) == ({}, ["DONE"])
    close(of, "L1")
    assert assigned(ask(of)) == [("worker/ann", "X")]


def test_a_task_that_only_needs_its_merge_preempts_no_worker() -> None:
    """An approved merge waits for a free worker; a preempted worker does it first."""
    of = board(make("M", needs_approval=True, priority=9), worker_slots=("ann",))
    say(ask(of), "M", task.Started, task.Completed, fleet_task.Parked)
    add(ask(of), "L", 5)
    of.give("task:M", ApprovalGranted())
    assert (asked(of), states(of, "L", "M")) == ({}, ["CLAIMED", "DONE"])
    add(of, "X", 1)
    assert asked(of) == {"ann": "X"}
    assert assigned(ask(of)) == [("worker/ann", "M")]
    assert asked(of) == {"ann": "X"}
    close(of, "M")
    assert assigned(ask(of)) == [("worker/ann", "X")]


def test_a_preempted_worker_that_goes_is_replaced_by_another_one() -> None:
    """Also if it goes before it has heard of that, and also when the task of one who is gone is the lowest."""
    of = add(busy(2, 3), "X", 1)
    assert asked(of) == {"bob": "X"}
    go(of, "bob")
    assert asked(of) == {"ann": "X"}
    go(of, "ann")
    assert asked(of) == {}


def test_a_worker_that_is_just_gone_is_not_preempted() -> None:
    """Its task is given back, and a worker that is there is preempted."""
    of = busy(2, 3)
    of.give("task:L1", task.Blocked("a person has to look"))
    add(of, "X", 1, role="r")
    add(of, "Y", 1)
    assert asked(of) == {"bob": "Y"}
    go(of, "bob")
    assert (asked(of), states(of, "L2", "Y")) == ({}, ["OPEN", "OPEN"])


def test_a_leaving_worker_with_a_settled_reservation_is_not_preempted() -> None:
    """What it had makes no room any more, though it is still on its way to be given back."""
    caps = Caps(sessions=1)
    ((ref, limited),) = budget_of(budgets.FLEET, caps, Budget(caps, Amounts(sessions=1)))
    preemption_requests = preemption.preemption_requests(("ann", "bob"), 0)
    of = ask(
        opened(make("L1", priority=2), worker_slots=("ann", "bob"), **{ref: limited}, **preemption_requests), "bob"
    )
    add(of, "X", 1)
    go(of, "bob")
    assert (asked(of), states(of, "L1", "X")) == ({}, ["OPEN", "OPEN"])
    assert assigned(ask(of, "ann")) == [("worker/ann", "X")]


def test_only_a_worker_with_the_role_is_preempted() -> None:
    """Although another worker has a task of lower priority."""
    of = add(busy(8, 9, worker_slots={"ann": ("r",), "bob": ()}), "X", 8, role="r")
    assert asked(of) == {}
    add(of, "Y", 1, role="r")
    assert (asked(of)["ann"], states(of, "L1")) == ("Y", ["OPEN"])


def test_only_a_worker_with_enough_trust_is_preempted() -> None:
    """The same of trust (E34)."""
    levels = {"ann": AccessLevel.TRUSTED, "bob": AccessLevel.UNTRUSTED}
    worker_slots = {f"worker_slot:{name}": worker_slot.WorkerSlot(trust=Trust(level)) for name, level in levels.items()}
    preemption_requests = preemption.preemption_requests(tuple(levels), 0)
    of = opened(make("L1", priority=8), make("L2", priority=8), worker_slots=(), **worker_slots, **preemption_requests)
    ask(of, *levels)
    add(of, "X", 1, level=AccessLevel.TRUSTED)
    assert (asked(of), states(of, "L1", "L2")) == ({"ann": "X"}, ["OPEN", "CLAIMED"])


@pytest.mark.parametrize(("sessions", "preempted"), [(1, {}), (2, {"ann": "X"})])
def test_no_worker_is_preempted_for_a_task_without_budget(sessions: int, preempted: dict[str, str]) -> None:
    """What is at work would be lost for nothing; the share that its owner holds is not counted."""
    caps = Caps(sessions=sessions)
    ((ref, limited),) = budget_of(budgets.FLEET, caps, Budget(caps, Amounts(sessions=1)))
    of = ask(
        opened(
            make("L1", priority=2),
            worker_slots=("ann",),
            **{ref: limited},
            **preemption.preemption_requests(("ann",), 0),
        )
    )
    assert asked(add(of, "X", 1)) == preempted


def test_an_urgent_retry_preempts_a_worker_after_its_rest() -> None:
    """As anything that becomes ready."""
    of = ask(board(make("X", priority=1, max_retries=1), make("L", priority=2), worker_slots=("ann",)))
    assert assigned(ask(fail(of, "X"))) == [("worker/ann", "L")]
    assert asked(rest(of, "X")) == {"ann": "X"}


def test_a_preempted_task_can_preempt_a_later_one() -> None:
    """Where the first could not be had: each comes strictly before the next, so that it ends."""
    of = busy(8, 9, worker_slots={"ann": ("r",), "bob": ()})
    add(of, "X", 1, role="r")
    assert asked(of) == {"ann": "X", "bob": "L1"}
    assert states(of, "X", "L1", "L2") == ["OPEN", "OPEN", "OPEN"]
    assert assigned(ask(of, "ann")) == [("worker/ann", "X")]
    assert assigned(ask(of, "bob")) == [("worker/bob", "L1")]
    assert (asked(of), states(of, "L2")) == ({}, ["OPEN"])


def test_a_part_of_a_cancelled_task_preempts_no_worker() -> None:
    """It is about to be cancelled, too."""
    whole = make("W", state=task.State.CANCELLED, parts=1, priority=1)
    part = make("W+1", parent="W", priority=1, state=task.State.FAILED, max_retries=1)
    of = ask(board(make("L", priority=2), whole, part, worker_slots=("ann",)))
    of.give("task:W+1", task.Retried())
    assert (asked(of), states(of, "L", "W+1")) == ({}, ["CLAIMED", "CANCELLED"])


# The worker


def recalled_worker(of: Hand, within_ms: int = DEADLINE_MS) -> Hand:
    """Let the board take the task from its owner, whose session has so long to end."""
    return of.hear("board", "assignment", assignment.Recalled("T1", 2, "preempted for X", within_ms))


@pytest.mark.parametrize(("within_ms", "has_ms"), [(DEADLINE_MS, DEADLINE_MS), (0, session.Limits().grace_ms)])
def test_a_preempted_session_is_interrupted_with_the_configured_deadline(within_ms: int, has_ms: int) -> None:
    """Without one it is the grace. A session that outlasts it is killed, which is no error."""
    of = recalled_worker(running(), within_ms)
    assert agent_states(of) == ("Interrupting", "Idle")
    assert of.effects(CancelSession) == [CancelSession()]
    assert of.part("session", "GraceExceeded").deadline_ms == of.now_ms + has_ms
    assert of.record("session").present_grace_ms == has_ms
    of.elapse("session", "GraceExceeded")
    assert of.effects(ForceStopSession) == [ForceStopSession()]
    of.confirm("session", "RunSession")
    assert agent_states(of) == ("BuildingPrompt", "Wanting")
    assert of.record("session").total_errors == 0


def test_a_spawning_session_is_preempted_with_its_deadline_as_soon_as_it_runs() -> None:
    of = start(recalled_worker(spawning()))
    assert agent_states(of) == ("Interrupting", "Idle")
    assert of.part("session", "GraceExceeded").deadline_ms == of.now_ms + DEADLINE_MS


def test_the_next_session_has_its_grace_again() -> None:
    """The deadline was for the one that made room."""
    of = exit_with(recalled_worker(running()), session.Success())
    of.hear("board", "assignment", assignment.Assigned(task.Brief("X", 1, "at once")))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    start(of).give("mailbox", mailbox.OperatorMessageArrived("look"))
    assert of.part("session", "GraceExceeded").deadline_ms == of.now_ms + session.Limits().grace_ms


def test_a_recall_of_what_is_not_in_hand_is_harmless() -> None:
    """Late, or for another claim."""
    of = wanting()
    of.dismiss("board", "assignment", assignment.Recalled("T1", 2, "preempted for X", DEADLINE_MS))
    assert shutdown.quiet(of.aggregate)


def test_a_deadline_is_said_by_the_example_events() -> None:
    """So that the check sees sessions with one and without."""
    assert {each.within_ms for each in session_yielding.YieldWanted.examples()} == {0, 1}


# The plan, and what is said


def test_preemption_requests_exist_only_in_a_plan_with_preemption() -> None:
    agents, tasks = (AgentPlan("ann"), AgentPlan("bob")), (TaskPlan("T1", "do it"),)
    (desk, *_) = (envelope.event for _, envelope in opening(Plan("p", agents, tasks, preemption=Preemption(7)), 0))
    assert isinstance(desk, Opened)
    assert {
        ref: each for ref, each in desk.records.items() if ref.startswith("preemption_request:")
    } == preemption.preemption_requests(("ann", "bob"), 7)
    (desk, *_) = (envelope.event for _, envelope in opening(Plan("p", agents, tasks), 0))
    assert isinstance(desk, Opened)
    assert not [ref for ref in desk.records if ref.startswith("preemption_request:")]


def test_status_names_the_task_that_an_agent_is_preempted_for() -> None:
    of, agent = add(busy(2, worker_slots=("ann",)), "X", 1), running().aggregate
    seen = projection.agents({"board": of.aggregate, agent.name: agent})
    assert [each.preempted_for for each in seen] == ["X"]
    of.give("task:X", task.Cancelled())
    of.give("task:L1", task.Cancelled())
    ask(of)
    seen = projection.agents({"board": of.aggregate, agent.name: agent})
    assert [each.preempted_for for each in seen] == [""]


@pytest.mark.no_cover
def test_a_preemption_request_that_cannot_be_passed_on_breaks_a_property() -> None:
    """Without one of its other rows it would be no machine at all."""
    rows = [each for each in preemption_request.machine.rows if each.event is not preemption_request.RequestPassedOn]
    lost = Machine(
        "preemption_request",
        preemption_request.PreemptionRequest(),
        rows=rows,
        properties=preemption_request.PROPERTIES,
        rests=preemption_request.machine.rests,
    )
    assert [each.name for each in check(lost).broken()]
    assert not check(preemption_request.machine).broken()


def test_why_names_the_preempted_agent_and_explains_the_preempted_task() -> None:
    """In the sentence of each of the two."""
    of, agent = add(busy(2, worker_slots=("ann",)), "X", 1), running().aggregate
    both = {"board": of.aggregate, agent.name: agent}
    assert "no agent is free: ann is preempted for X" in why.explain(why.look(both, "X", 0), why.Story("X")).sentence
    assert "preempted for X" in why.explain(why.look(both, "L1", 0), why.Story("L1")).sentence


@pytest.mark.parametrize(("stage", "is_so"), [(task.Stage.WORK, False), (task.Stage.VERIFY, True)])
def test_a_preempted_worker_gets_no_other_work_but_may_finish_a_stage(stage: task.Stage, *, is_so: bool) -> None:
    """What is only to be verified, or merged, is nothing that has to make room."""
    of = add(add(busy(2, worker_slots=("ann",)), "X", 1), "L2", 3, stage=stage)
    assert preemption.has_no_work(of.aggregate)
    sits = of.entity("worker_slot:ann")
    elsewhere = replace(sits, record=replace(sits.record, task="L2"))
    of.aggregate = replace(of.aggregate, entities=of.aggregate.entities.set("worker_slot:ann", elsewhere))
    assert preemption.has_no_work(of.aggregate) is is_so


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("rule", "prop"),
    [
        ("preempt", "no worker keeps a later task while a task waits that it may take"),
        ("take_away", "a preempted worker has lost its task and works at nothing"),
        ("use_request", "a preempted worker has lost its task and works at nothing"),
        ("drop_request", "a preempted worker is not gone"),
    ],
)
def test_a_rule_that_is_lost_breaks_a_property(rule: str, prop: str) -> None:
    """Soon: not all states that there are need be looked at."""
    assert prop in [each.name for each in lost(rule, states=3_000).broken()]


@pytest.mark.no_cover
def test_a_worker_without_a_recall_would_work_at_a_lost_task_for_ever() -> None:
    """What never comes is known when all is looked at; people need say nothing for that."""
    report = lost("abandon", commands=0)
    assert not report.truncated
    assert "a worker that lost its task is free at last, or gone" in [each.name for each in report.broken()]


def lost(rule: str, **bounds: int) -> Report:
    """Check the shipped question without a rule, within narrower bounds."""
    target = named("fleet-preempting")
    return check(without(rule), opening=target.opening, bounds=replace(target.bounds, compared=0, **bounds))
