"""The board: one aggregate with all tasks and a seat for every worker. It decides who works on what.

A task is *ready* when it is OPEN and everything it depends on is CLOSED: verified is not enough, because a worktree
starts from the fleet's branch, and only what is merged is in it. Its rules stand in modules of their own: ``claiming``
says who gets what, ``preemption`` who makes room for what comes first, ``dependencies`` what one task means for
another, ``aborts`` who is taken along when something is aborted, ``trusting`` what trust means for tasks, ``budgets``
what may be spent, ``restarts`` who is begun anew, ``proposal`` what becomes of a plan that a person has to approve,
``doors`` whether more tasks may come, ``duty`` which services there are, ``changing`` how a changed plan comes in
force. When nothing is left to do and no more will come, everybody is sent home; so it is over, too, when nobody is
left. A spent budget does not end a fleet: what lacks money waits for it (``over``).
"""

from collections.abc import Iterator
from typing import Any

from lifefold.core import approval, task
from lifefold.core.fleet import (
    aborts,
    budgets,
    change,
    changing,
    claiming,
    dependencies,
    doors,
    duty,
    intent,
    job,
    pace,
    permit,
    preemption,
    proposal,
    purse,
    restarts,
    room,
    seat,
    trusting,
)
from lifefold.core.fleet.board_promises import PROMISES
from lifefold.core.fleet.over import finished, lacks_money, nothing_is_left
from lifefold.core.fleet.work import Work, fold, work_of
from lifefold.core.kernel import Aggregate, AggregateType, Transition, View, rule
from lifefold.effects import Tell

__all__ = ["NAME", "aggregate", "close_down", "finished", "send_home"]

NAME = "board"


def send_home(board: Aggregate, transition: Transition) -> Iterator[Tell]:
    """When every task is settled and no more will come, everybody may go; services end what they run first."""
    if not nothing_is_left(board) or transition.before is None:
        return
    if dependencies.gathered(board, transition) is not None or (
        transition.machine == job.machine.name and trusting.frees(board, transition)
    ):  # something is blocked, but goes on at once
        return
    was: Any = transition.before.record
    if transition.machine == doors.machine.name or not task.settled(was) or lacks_money(was):
        for ref in sorted(board.entities):
            if ref.startswith("seat:") and board.entities[ref].state is not seat.State.GONE:
                yield Tell(f"worker/{ref.removeprefix('seat:')}", "intent", intent.StopWanted("no work is left", None))
        yield from duty.send_home(board, "no work is left")


@rule(on=seat.machine)
def close_down(board: Aggregate, transition: Transition) -> Iterator[Tell]:
    """When nobody is left for what is left, services go, too; when nothing is left, they have been told already."""
    if transition.entered is seat.State.GONE and work_of(board).present == 0 and not nothing_is_left(board):
        yield from duty.send_home(board, "nobody is left to do what is left")


aggregate = AggregateType(
    NAME,
    machines=(
        job.machine,
        seat.machine,
        purse.machine,
        proposal.machine,
        doors.machine,
        permit.machine,
        room.machine,
        duty.machine,
        change.machine,
    ),
    rules=(
        *(rule(on=each)(claiming.match) for each in (job.machine, seat.machine, purse.machine)),
        preemption.take_away,
        *(rule(on=each)(preemption.make_room) for each in (job.machine, seat.machine, purse.machine, room.machine)),
        budgets.reopen,
        budgets.reserve,
        budgets.settle,
        preemption.use_room,
        preemption.leave_room,
        claiming.hand_over,
        claiming.recall,
        claiming.release,
        dependencies.retry_granted,
        dependencies.divide,
        dependencies.gather,
        dependencies.look_again,
        dependencies.lose_role,
        dependencies.block_waiting,
        dependencies.free_waiting,
        dependencies.cancel_parts,
        aborts.catch_up,
        aborts.spread,
        trusting.earn,
        trusting.trust_again,
        trusting.withdraw,
        proposal.decide,
        proposal.decide_late,
        budgets.go_without,
        budgets.go_on_with_more,
        changing.enforce,
        changing.look_anew,
        restarts.grant,
        restarts.spend,
        restarts.give_back,
        *(rule(on=each)(send_home) for each in (job.machine, doors.machine)),
        close_down,
    ),
    views={"work": View(Work(), fold), pace.VIEW: View(pace.Pace(), pace.fold)},
    commands={
        job.machine.name: (
            task.Approved,
            task.Declined,
            task.Cancelled,
            task.Unblocked,
            task.Retried,
            job.RetryGranted,
            job.Split,
            job.ToolAborted,
            job.AbortWanted,
            approval.ApprovalGranted,
            approval.ApprovalRefused,
        ),
        proposal.machine.name: (proposal.PlanApproved, proposal.PlanDeclined),
        doors.machine.name: (doors.LastTaskIn,),
        seat.machine.name: (seat.Promoted, seat.Demoted, seat.Violated),
        purse.machine.name: (purse.Raise,),
        permit.machine.name: (),
        room.machine.name: (),
        duty.machine.name: (),
        change.machine.name: (change.ChangeAccepted,),
    },
    properties=(*PROMISES, *changing.PROMISES),
)
