"""The board: one aggregate with all tasks and a worker slot for every worker. It decides who works on what.

A task is *ready* when it is OPEN and all of its dependencies are CLOSED. VERIFIED work is not enough: a worktree starts
from the fleet's branch, which has only merged work. The rules are modules of ``dispatch``:

- ``claims`` gives tasks to workers, ``preemption`` takes tasks back for more urgent ones;
- ``dependencies`` and ``aborts`` carry what happens to one task to others;
- ``trust``, ``budgets``, ``accounts`` and ``restarts`` limit what agents may do;
- ``notifications`` announces what waits for people and what has happened;
- ``plan_approval`` applies an operator's decision about the plan, ``plan_enforcement`` a plan change.

When every task is settled and no more can come, all workers are stopped. A fleet is also over when no worker is left. A
spent budget does not end a fleet: blocked tasks wait for an operator (``completion``).
"""

from collections.abc import Iterator
from typing import Any

from lifefold.core.fleet.board import (
    account,
    adaptive_timeout,
    budget,
    fleet_task,
    intake,
    notifier,
    preemption_request,
    restart_permit,
    service_slot,
    worker_slot,
)
from lifefold.core.fleet.dispatch import (
    aborts,
    accounts,
    budgets,
    claims,
    dependencies,
    notifications,
    plan_approval,
    preemption,
    restarts,
    task_messages,
    trust,
)
from lifefold.core.fleet.dispatch.task_index import TaskIndex, fold, work_of
from lifefold.core.fleet.system import plan_change, plan_enforcement
from lifefold.core.fleet.system.board_properties import PROPERTIES
from lifefold.core.fleet.system.completion import finished, is_out_of_budget, nothing_is_left
from lifefold.core.fleet.worker import desired_state, mailbox
from lifefold.core.kernel import Aggregate, AggregateType, Transition, View, rule
from lifefold.core.lifecycles import approval, task
from lifefold.effects import Tell

__all__ = ["NAME", "aggregate", "close_down", "finished", "stop_workers"]

NAME = "board"


def stop_workers(board: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Stop all workers when every task is settled and no more can come. Services end their runs first."""
    if not nothing_is_left(board) or transition.before is None or work_of(board).changing:
        return
    if dependencies.gathered(board, transition) is not None or (
        transition.machine == fleet_task.machine.name and trust.frees(board, transition)
    ):  # something is blocked, but goes on at once
        return
    was: Any = transition.before.record
    if transition.machine in _ENDS_BY_ITSELF or not task.settled(was) or is_out_of_budget(was):
        for ref in sorted(board.entities):
            if ref.startswith("worker_slot:") and board.entities[ref].state is not worker_slot.State.GONE:
                yield Tell(
                    f"worker/{ref.removeprefix('worker_slot:')}",
                    "desired_state",
                    desired_state.StopWanted("no work is left", None),
                )
        yield from _drain_services(board, "no work is left")


_ENDS_BY_ITSELF = frozenset({intake.machine.name, plan_change.machine.name})
"""Machines whose transitions may leave nothing to do without any task being settled by them."""


@rule(on=worker_slot.machine, enters=worker_slot.State.GONE)
def close_down(board: Aggregate, _transition: Transition) -> Iterator[Tell]:
    """Drain the services when no worker is left for the remaining tasks."""
    if work_of(board).present == 0 and not nothing_is_left(board):
        yield from _drain_services(board, "no worker is left for the remaining tasks")


def _drain_services(board: Aggregate, why: str) -> Iterator[Tell]:
    """Drain every service that is on duty."""
    for name, each in service_slot.service_slots(board):
        if each.state is service_slot.State.ON:
            yield Tell(f"service/{name}", "desired_state", desired_state.DrainWanted(why))


aggregate = AggregateType(
    NAME,
    machines=(
        fleet_task.machine,
        worker_slot.machine,
        budget.machine,
        plan_approval.machine,
        intake.machine,
        restart_permit.machine,
        preemption_request.machine,
        service_slot.machine,
        plan_change.machine,
        account.machine,
        mailbox.machine,
        notifier.machine,
    ),
    rules=(
        # The rules of a transition see one aggregate, and their actions are done in this order. The comments name the
        # orders that are known to matter; each has a test.
        #
        # Before the consequences of a task: people hear of a failure first, and then of the blocked tasks.
        notifications.announce_task,
        # Before `match`: a worker without a task does not use its account. This makes no task ready.
        accounts.leave_account,
        # Before the others, so that the pair is still right when it is done: `settle` may make other tasks ready.
        *(
            rule(on=each)(claims.match)
            for each in (fleet_task.machine, worker_slot.machine, budget.machine, plan_change.machine)
        ),
        rule(on=account.machine, event=account.ADMITS_MORE)(claims.match),
        preemption.take_away,
        *(
            rule(on=each)(preemption.preempt)
            for each in (
                fleet_task.machine,
                worker_slot.machine,
                budget.machine,
                preemption_request.machine,
                plan_change.machine,
            )
        ),
        rule(on=account.machine, event=account.ADMITS_MORE)(preemption.preempt),
        budgets.reopen,
        # Before `hand_over`: when the worker is at its task, the next pair is sought with what is left of the budgets.
        budgets.reserve,
        accounts.admit,
        budgets.settle,
        accounts.open_after_probe,
        accounts.tell_workers,
        preemption.use_request,
        preemption.drop_request,
        claims.hand_over,
        task_messages.take_messages,
        task_messages.pass_on_message,
        task_messages.deliver_messages,
        task_messages.close_task_mailbox,
        task_messages.close_late_mailbox,
        claims.recall,
        claims.release,
        dependencies.retry_granted,
        dependencies.divide,
        dependencies.gather,
        dependencies.look_again,
        dependencies.lose_role,
        dependencies.gain_role,
        dependencies.block_waiting,
        dependencies.free_waiting,
        dependencies.cancel_parts,
        aborts.abort_when_opened,
        aborts.spread,
        trust.earn,
        trust.trust_again,
        trust.withdraw,
        plan_approval.decide,
        plan_approval.decide_late,
        budgets.go_without,
        budgets.unblock_after_raise,
        plan_enforcement.enforce,
        plan_enforcement.continue_with_new_terms,
        restarts.grant,
        restarts.spend,
        restarts.give_back,
        *(rule(on=each)(stop_workers) for each in (fleet_task.machine, intake.machine)),
        rule(on=plan_change.machine, enters=plan_change.State.IN_FORCE)(stop_workers),
        close_down,
        notifications.announce_plan,
        notifications.announce_limit,
        notifications.announce_budget,
        notifications.announce_stop,
        notifications.announce_service,
    ),
    views={
        "work": View(TaskIndex(), fold, TaskIndex),
        adaptive_timeout.VIEW: View(
            adaptive_timeout.PastSessions(), adaptive_timeout.fold, adaptive_timeout.PastSessions
        ),
    },
    commands={
        fleet_task.machine.name: (
            task.Approved,
            task.Declined,
            task.Cancelled,
            task.Unblocked,
            task.Retried,
            fleet_task.RetryGranted,
            fleet_task.Split,
            fleet_task.ToolAborted,
            fleet_task.AbortWanted,
            approval.ApprovalGranted,
            approval.ApprovalRefused,
        ),
        plan_approval.machine.name: (plan_approval.PlanApproved, plan_approval.PlanDeclined),
        intake.machine.name: (intake.LastTaskIn,),
        worker_slot.machine.name: (worker_slot.Promoted, worker_slot.Demoted, worker_slot.Violated),
        budget.machine.name: (budget.Raise,),
        restart_permit.machine.name: (),
        preemption_request.machine.name: (),
        service_slot.machine.name: (),
        plan_change.machine.name: (plan_change.ChangeAccepted,),
        account.machine.name: (account.RestLifted,),
        mailbox.machine.name: (mailbox.OperatorMessageArrived,),
        notifier.machine.name: (notifier.Observed,),
    },
    properties=(*PROPERTIES, *plan_enforcement.PROPERTIES),
)
