"""Approval: an operation of its own on finished work, and the decision about a plan."""

from typing import Any, Final

import pytest
from returns.result import Failure, Success

from lifefold.core.kernel import (
    EntityStep,
    Envelope,
    Event,
    IllegalTransition,
    Machine,
    Row,
    Step,
    TimerFired,
    advance,
    create,
    does,
    row,
)
from lifefold.core.lifecycles import approval, task
from lifefold.core.lifecycles.approval import (
    ApprovalExpired,
    ApprovalGranted,
    ApprovalRefused,
    ApprovalRequested,
    PlanConflict,
    decide_plan,
    machine,
    with_approval,
)
from lifefold.core.lifecycles.task import Approved, Declined, State, Task
from lifefold.effects import Activity

TABLE: Final[dict[tuple[str, type[Event]], str]] = {
    ("DONE", ApprovalRequested): "PENDING_APPROVAL",
    ("PENDING_APPROVAL", ApprovalGranted): "DONE",
    ("PENDING_APPROVAL", ApprovalRefused): "FAILED",
    ("PENDING_APPROVAL", ApprovalExpired): "FAILED",
}


@pytest.mark.parametrize("state", State, ids=str)
def test_a_pair_is_taken_if_and_only_if_the_table_has_it(state: State) -> None:
    """Nothing but what was asked for can be granted: sipyourdrink-ltd/bernstein#3081 (E2)."""
    for kind in (ApprovalRequested, ApprovalGranted, ApprovalRefused, ApprovalExpired):
        answer = machine.step(Task(state=state), kind())
        target = TABLE.get((state.value, kind))
        assert isinstance(answer, IllegalTransition) is (target is None)
        if isinstance(answer, Step):
            assert answer.record.state.value == target


def test_a_refusal_and_a_silence_say_why() -> None:
    """For the next attempt, and for people."""
    pending = Task(state=State.PENDING_APPROVAL, owner="w", epoch=2, kept=1)
    refused = machine.step(pending, ApprovalRefused("too wide"))
    silent = machine.step(pending, ApprovalExpired())
    assert isinstance(refused, Step)
    assert isinstance(silent, Step)
    assert (refused.record.reason, refused.record.failure, refused.record.owner) == ("too wide", "too wide", "")
    assert silent.record.reason == silent.record.failure == "not approved within 3600 s"
    assert (refused.record.kept, silent.record.kept) == (0, 0)  # the next attempt begins anew (D28)


def test_silence_is_a_refusal() -> None:
    """After 3600 s, by itself; never an approval (E41)."""
    entity = create(machine, "task", Task(state=State.PENDING_APPROVAL), 5, "").entity
    timer = entity.running[0]
    assert timer.deadline_ms == 3_600_005
    answer = advance(machine, entity, Envelope("task", TimerFired(timer.slot, timer.generation), 3_600_005))
    assert isinstance(answer, EntityStep)
    assert answer.entity.state is State.FAILED


@pytest.mark.parametrize("state", [State.PLANNED, State.PENDING_APPROVAL])
def test_what_waits_for_a_person_is_neither_settled_nor_finished(state: State) -> None:
    """A run with such tasks is not complete (E3; anthropics/claude-code#36885, apocohq/clawdboard#16)."""
    assert not task.settled(Task(state=state))
    assert not machine.settled(Task(state=state))


def test_a_profile_with_approval_has_both_tables() -> None:
    """The task's rows first, unchanged; and the timer (E2)."""
    both = with_approval(task.machine, "task-with-approval")
    assert both.rows == (*task.machine.rows, *approval.ROWS)
    assert both.detached == frozenset()
    assert both.final == task.machine.final
    assert list(both.spans) == ["ApprovalExpired"]


def test_a_profile_with_approval_is_built_once() -> None:
    """The result is cached for every machine and name."""
    assert with_approval(task.machine, "one") is with_approval(task.machine, "one")
    assert with_approval(task.machine, "one") is not with_approval(task.machine, "two")


def test_a_profile_with_approval_keeps_whatever_else_its_machine_declares() -> None:
    """Activities that a rule serves, and events that wait for the next state."""
    told: Row[Task] = row(State.OPEN, Overtaken, State.CLAIMED)
    given = Machine(
        "task",
        Task(),
        rows=(*task.machine.rows, told),
        final=task.machine.final,
        detached=task.machine.detached,
        during={State.CLAIMED: does(ask, yields=(task.Started,))},
        postpone={State.PLANNED: Overtaken},
        served=("Asking",),
    )
    both = with_approval(given, "task-with-approval")
    assert (both.postpone, both.served) == (given.postpone, given.served)
    assert set(both.spans) == {"Asking", "ApprovalExpired"}


class Overtaken(Event, frozen=True):
    """An event that may come too early."""


class Asking(Activity, frozen=True):
    """An activity that rules serve."""


def ask(_t: Task) -> Asking:
    """Return the activity."""
    return Asking()


PLAN: Final = (Task(id="T1"), Task(id="T2"), Task(id="T3", state=State.CANCELLED))


@pytest.mark.parametrize(("decision", "state"), [(Approved(), State.OPEN), (Declined(), State.CANCELLED)], ids=str)
def test_a_decision_about_a_plan_applies_to_every_undecided_task(decision: Any, state: State) -> None:
    """In one step; what was decided task by task stays (E43)."""
    assert decide_plan(PLAN, decision) == Success((Task(id="T1", state=state), Task(id="T2", state=state), None))


def test_a_plan_is_decided_once() -> None:
    """Afterwards there is nothing left to decide; an empty plan has nothing to begin with (E43)."""
    opened = [Task(id="T1", state=State.OPEN), Task(id="T2", state=State.CLOSED)]
    assert decide_plan(opened, Approved()) == Failure(PlanConflict(("T1", "T2"), "the plan was decided before"))
    assert decide_plan([], Approved()) == Success(())


def test_a_plan_is_decided_as_a_whole_or_not_at_all() -> None:
    """If one of its tasks cannot be opened, none is (E43)."""
    gated = task.machine.without_rows((State.PLANNED, Declined)).with_rows(
        row(State.PLANNED, Declined, State.CANCELLED, when=may_be_declined)
    )
    plan = [Task(id="T1"), Task(id="T2", priority=1)]
    assert decide_plan(plan, Declined(), gated) == Failure(PlanConflict(("T2",), "Declined is refused"))


def may_be_declined(t: Task, _e: Declined) -> bool:
    """A guard that spares what is most urgent."""
    return t.priority > 1
