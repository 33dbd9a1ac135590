"""The governance kernel: repeated transitions, claims with fencing tokens, approval of work and of plans."""

from typing import Any, Final

import msgspec
import pytest

from lifefold.core.kernel import Machine, after
from lifefold.core.lifecycles import agent as agents
from lifefold.core.lifecycles import approval, task_profiles
from lifefold.core.lifecycles import task as tasks
from lifefold.core.policy.access import AccessLevel
from lifefold.effects import AbortSession, Effect, KeepDeadLetter
from lifefold.interpreters.facades.governance import (
    AgentSession,
    Claims,
    DuplicateTransitionError,
    Governance,
    IllegalTransitionError,
    LifecycleEvent,
    PlanConflictError,
    Task,
    TaskStatus,
)
from virtual_clock import VirtualClock


def claimed(governance: Governance, actor: str = "w", **given: Any) -> Task:
    """Return a task that was claimed."""
    task = Task("T1", **given)
    governance.transition_task(task, "claimed", actor=actor)
    return task


# Replays


def test_the_same_transition_id_again_returns_the_original_event() -> None:
    """Also after the task has moved on; no listener is called twice (E14)."""
    governance, told = Governance(), list[LifecycleEvent]()
    governance.add_listener(told.append)
    task = Task("T1")
    first = governance.transition_task(task, "claimed", actor="w", transition_id="x")
    governance.transition_task(task, "in_progress")
    assert governance.transition_task(task, "claimed", actor="w", transition_id="x") is first
    assert (task.status, len(told)) == (TaskStatus.IN_PROGRESS, 2)


def test_a_transition_id_for_something_else_is_an_error() -> None:
    """Another target, another actor, another reason (E14)."""
    governance, task = Governance(), Task("T1")
    governance.transition_task(task, "claimed", actor="w", transition_id="x")
    for status, actor in (("open", "w"), ("claimed", "v")):
        with pytest.raises(DuplicateTransitionError, match="transition id 'x' of task:T1 was used for"):
            governance.transition_task(task, status, actor=actor, transition_id="x")
    assert task.status is TaskStatus.CLAIMED


def test_a_refused_transition_uses_up_no_id() -> None:
    """It may be tried again when it is possible (E14; liza-mas/liza#137)."""
    governance, task = Governance(), Task("T1")
    with pytest.raises(IllegalTransitionError):
        governance.transition_task(task, "in_progress", transition_id="x")
    governance.transition_task(task, "claimed")
    assert governance.transition_task(task, "in_progress", transition_id="x").to_status == "in_progress"


def test_a_transition_id_belongs_to_its_entity() -> None:
    """Tasks and agents of one name are two entities (E14)."""
    governance = Governance()
    governance.transition_task(Task("1"), "claimed", transition_id="x")
    governance.transition_task(Task("2"), "claimed", transition_id="x")
    assert governance.transition_agent(AgentSession("1"), "working", transition_id="x").to_status == "working"


# Claims


def test_a_token_proves_whose_claim_it_is() -> None:
    """No other actor completes it, in the document's own table (E12; camunda/camunda#57335, zenml-io/kitaru#743)."""
    governance = Governance()
    task = claimed(governance, "w")
    old = task.token
    governance.transition_task(task, "open", reason="slow", token=old)
    governance.transition_task(task, "claimed", actor="v")
    with pytest.raises(IllegalTransitionError) as raised:
        governance.transition_task(task, "done", actor="w", token=old)
    assert "Completed is not possible in CLAIMED" in raised.value.detail
    governance.transition_task(task, "done", actor="v", token=task.token)
    assert (task.status, task.record.owner) == (TaskStatus.DONE, "v")


ENDS: Final = ["in_progress", "done", "failed", "blocked", "waiting_for_subtasks", "open"]


@pytest.mark.parametrize("machine", [tasks.machine, task_profiles.governed], ids=lambda each: each.name)
@pytest.mark.parametrize("status", ENDS)
def test_without_a_token_an_actor_speaks_of_its_own_claim(status: str, machine: Machine[Any]) -> None:
    """A former owner neither begins nor ends the next one's work (E12; zenml-io/kitaru#743, camunda/camunda#57335)."""
    governance = Governance()
    task = claimed(governance, "a", machine=machine)
    governance.transition_task(task, "open", actor="janitor", reason="slow")
    governance.transition_task(task, "claimed", actor="b")
    with pytest.raises(IllegalTransitionError) as raised:
        governance.transition_task(task, status, actor="a")
    assert raised.value.detail
    assert (task.status, task.record.owner) == (TaskStatus.CLAIMED, "b")
    assert len(governance.dead_letters) == (machine is task_profiles.governed)
    governance.transition_task(task, status, actor="b")
    assert task.status == status


def test_after_a_second_claim_reports_belong_to_the_new_claim() -> None:
    """So does the first owner of a task; reports of other actors belong to the present claim."""
    governance = Governance()
    task = Task("T1", "claimed", owner="a", epoch=4)
    governance.transition_task(task, "open", actor="a")
    governance.transition_task(task, "claimed", actor="b")
    with pytest.raises(IllegalTransitionError):
        governance.transition_task(task, "in_progress", actor="a")
    governance.transition_task(task, "open", actor="janitor")
    governance.transition_task(task, "claimed", actor="a")
    governance.transition_task(task, "in_progress", actor="a")
    assert governance.transition_task(task, "done", actor="gate").to_status == "done"


def test_a_task_that_is_made_again_still_knows_whose_claims_are_over() -> None:
    """Its claims go with it: in another process a former owner is one, too (E12, E46)."""
    before = claimed(Governance(), "a")
    Governance().transition_task(before, "open", actor="janitor")
    Governance().transition_task(before, "claimed", actor="b")
    kept = before.record
    again = Task("T1", before.status, owner=kept.owner, epoch=kept.epoch, claims=before.claims)
    governance = Governance()
    with pytest.raises(IllegalTransitionError):
        governance.transition_task(again, "done", actor="a")
    governance.transition_task(again, "in_progress", actor="b")
    assert governance.transition_task(again, "done", actor="gate").to_status == "done"


def test_a_report_without_a_name_belongs_to_its_own_claim_too() -> None:
    """What was claimed without a name, and given back, cannot be completed for its next owner."""
    governance = Governance()
    task = claimed(governance, actor="")
    governance.transition_task(task, "open")
    governance.transition_task(task, "claimed", actor="bob")
    with pytest.raises(IllegalTransitionError):
        governance.transition_task(task, "done")
    assert governance.transition_task(task, "done", actor="bob") is not None


def test_whose_claims_are_over_can_be_written_down() -> None:
    """As JSON, beside the fields of the task."""
    task = claimed(Governance(), actor="alice")
    written = msgspec.json.encode(task.claims)
    assert msgspec.json.decode(written, type=Claims) == task.claims == Claims({"alice": 1})


def test_a_profiles_own_limits_are_those_of_its_sessions() -> None:
    """They are not the document's, unless the session was given others."""
    clock, governance = VirtualClock(), Governance()
    table = agents.supervised.starting(agents.Agent(limits=agents.Limits(spawn_timeout_ms=10)))
    hasty, patient = (
        AgentSession("a", machine=table, clock=clock, limits=limits) for limits in (None, agents.Limits())
    )
    clock.sleep(20)
    for session in (hasty, patient):
        governance.tick(session)
    assert (hasty.status, patient.status) == (agents.State.DEAD, agents.State.STARTING)


def test_a_late_approval_has_expired_for_every_actor() -> None:
    """Due timers fire before a level is checked."""
    clock = VirtualClock()
    governance = Governance(gates={("pending_approval", "done"): AccessLevel.TRUSTED})
    task = claimed(governance, clock=clock)
    governance.transition_task(task, "done", actor="w")
    governance.request_approval(task)
    clock.sleep(approval.APPROVAL_TIMEOUT_MS / 1_000)
    with pytest.raises(IllegalTransitionError):
        governance.approve(task, "ada")
    assert task.status is TaskStatus.FAILED


def test_a_former_owner_splits_nothing_that_it_has_given_back() -> None:
    """By its token or by its name; any actor may split a task without a claim (E12)."""
    governance = Governance()
    task = claimed(governance, "a")
    token = task.token
    governance.transition_task(task, "open", actor="a")
    for proof in (token, None):
        with pytest.raises(IllegalTransitionError):
            governance.transition_task(task, "waiting_for_subtasks", actor="a", token=proof)
    governance.transition_task(task, "waiting_for_subtasks", actor="planner")


def test_an_agent_that_was_given_up_cannot_end_a_task_that_others_recover() -> None:
    """In the governed profile; its word is kept (E12, E40)."""
    governance = Governance()
    task = claimed(governance, "a", machine=task_profiles.governed)
    governance.transition_task(task, "in_progress", actor="a")
    governance.transition_task(task, "orphaned", actor="janitor")
    for status in ("failed", "open"):
        with pytest.raises(IllegalTransitionError, match=f"'orphaned' -> '{status}'") as raised:
            governance.transition_task(task, status, actor="a")
        assert raised.value.detail == "claim 1 is over"
    with pytest.raises(IllegalTransitionError):
        governance.transition_task(task, "done", actor="a")
    assert [letter.report for letter in governance.dead_letters] == ["Failed", "Released"]
    governance.transition_task(task, "done", actor="janitor")


def test_in_the_governed_profile_a_late_report_is_kept() -> None:
    """It is refused, and lies among the dead letters (E12)."""
    governance = Governance()
    task = claimed(governance, "w", machine=task_profiles.governed)
    governance.transition_task(task, "open", token=1)
    governance.transition_task(task, "claimed", actor="v")
    with pytest.raises(IllegalTransitionError) as raised:
        governance.transition_task(task, "done", actor="w", token=1)
    assert raised.value.detail == "claim 1 is over"
    assert list(governance.dead_letters) == [KeepDeadLetter("T1", "Completed", 1, 2)]
    assert (task.status, task.record.owner) == (TaskStatus.CLAIMED, "v")


def test_cancelling_in_the_governed_profile_ends_the_session() -> None:
    """The performer is called after the listeners; without one it is a failure (E20)."""
    heard: list[Effect | str] = []
    governance = Governance(perform=heard.append)
    governance.add_listener(lambda event: heard.append(event.to_status))
    governance.transition_task(claimed(governance, "w", machine=task_profiles.governed), "cancelled")
    assert heard == ["claimed", "cancelled", AbortSession("w", "T1")]
    deaf = Governance()
    deaf.transition_task(claimed(deaf, "w", machine=task_profiles.governed), "cancelled")
    assert "no function performs AbortSession" in str(deaf.failures[0])


def test_what_a_restart_needs_is_told_with_every_transition() -> None:
    """Version, epoch, owner, priority (E46)."""
    governance = Governance()
    task = Task("T1", priority=1)
    metadata = governance.transition_task(task, "claimed", actor="w").metadata
    assert metadata == {"event": "Claimed", "version": 2, "epoch": 1, "owner": "w", "priority": 1, "retries": 0}


# Approval


def test_no_status_leads_into_pending_approval_or_out_of_it() -> None:
    """Only the operation does, and it is told like any other transition (E2)."""
    governance, told = Governance(), list[LifecycleEvent]()
    governance.add_listener(told.append)
    task = Task("T1", "done")
    with pytest.raises(IllegalTransitionError):
        governance.transition_task(task, "pending_approval")
    governance.request_approval(task, "gate", "touches the release")
    for status in TaskStatus:
        with pytest.raises(IllegalTransitionError):
            governance.transition_task(task, status)
    governance.approve(task, "ada")
    assert [(event.to_status, event.actor) for event in told] == [("pending_approval", "gate"), ("done", "ada")]
    assert task.status is TaskStatus.DONE


def test_a_plan_is_approved_as_a_whole_and_its_tasks_one_by_one() -> None:
    """What was decided about one task stays; what is left is decided at once, and only once (E43)."""
    governance = Governance()
    plan = [Task(f"T{n}", "planned") for n in range(4)]
    governance.transition_task(plan[2], "cancelled")
    events = governance.approve_plan([*plan, plan[0]], "ada")
    assert [event.entity_id for event in events] == ["T0", "T1", "T3"]
    assert [task.status.value for task in plan] == ["open", "open", "cancelled", "open"]
    with pytest.raises(PlanConflictError, match="the plan was decided before: T0, T1, T2, T3") as raised:
        governance.reject_plan(plan)
    assert raised.value.tasks == ("T0", "T1", "T2", "T3")
    assert governance.reject_plan([]) == []


def test_a_task_that_is_no_longer_planned_is_no_part_of_the_decision() -> None:
    """A timer that is due happens before the plan is decided, and is told, also if nothing is left to decide (E43)."""
    clock, governance, told = VirtualClock(), Governance(), list[str]()
    governance.add_listener(lambda event: told.append(f"{event.entity_id} {event.to_status} {event.actor}"))
    first, second = (Task(f"T{n}", "planned", machine=EAGER, clock=clock) for n in (1, 2))
    governance.transition_task(first, "open", actor="ada")
    clock.sleep(1)
    with pytest.raises(PlanConflictError, match="the plan was decided before: T1, T2"):
        governance.approve_plan([first, second], "ada")
    assert told == ["T1 open ada", "T2 cancelled timer"]


def planned_for(_t: tasks.Task) -> int:
    """Return for how long the plan is waited for, in milliseconds."""
    return 1_000


EAGER: Final = tasks.machine.with_rows(
    during={tasks.State.PLANNED: after(planned_for, tasks.Declined)}, name="task-eager"
)
"""A profile in which a plan without an approval is given up."""


def test_a_plan_follows_one_table() -> None:
    """Else it could not be decided as a whole."""
    plan = [Task("T1", "planned"), Task("T2", "planned", machine=task_profiles.governed)]
    with pytest.raises(ValueError, match="must follow one table"):
        Governance().approve_plan(plan)
    assert plan[0].status is TaskStatus.PLANNED
