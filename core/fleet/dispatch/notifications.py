"""Notifications: the rules of the board that announce waiting decisions and occurrences to its notifiers.

Each rule follows from one transition, and a transition is in the log once. So each occurrence is announced once, also
after a restart. A task that fails again after an operator's retry has failed twice, and people are told twice.

A board without a notifier has none of these rules.
"""

from collections.abc import Iterator
from itertools import count, takewhile
from typing import Final

from lifefold.core.fleet.board import account, budget, fleet_task, notifier, service_slot, worker_slot
from lifefold.core.fleet.dispatch import accounts, budgets, plan_approval
from lifefold.core.fleet.dispatch.task_index import tasks_of, work_of
from lifefold.core.kernel import Aggregate, Created, Dispatch, Entity, Property, Transition, always, rule
from lifefold.core.lifecycles import task
from lifefold.effects import Notification, NotificationKind


def notifiers(board: Aggregate) -> Iterator[Entity[notifier.Notifier]]:
    """Yield the notifiers of a board, in the order of the fleet file."""
    refs = (f"{notifier.REF}:{number}" for number in count(1))
    yield from (board.entities[ref] for ref in takewhile(lambda ref: ref in board.entities, refs))


def are_quiet(board: Aggregate) -> bool:
    """Tell whether no notification of a board waits for its delivery."""
    return all(notifier.rests(each.record) for each in notifiers(board))


def _announce(board: Aggregate, notification: Notification) -> Iterator[Dispatch]:
    """Announce a notification to every notifier that listens to its kind."""
    for each in notifiers(board):
        if notification.kind in each.record.kinds:
            yield Dispatch(each.ref, notifier.Announced(notification))


_TASKS: Final = {
    task.State.CLOSED: NotificationKind.CLOSED,
    task.State.PENDING_APPROVAL: NotificationKind.APPROVAL,
    task.State.BLOCKED: NotificationKind.BLOCKED,
    task.State.FAILED: NotificationKind.FAILED,
}


@rule(on=fleet_task.machine, enters=tuple(_TASKS), beside=notifier.FIRST)
def announce_task(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Announce a task that is closed, needs an approval, is blocked, or has failed for good.

    A failure that is retried passes by itself. The block of a spent budget is announced with the budget, and a block
    by a plan change is an operator's own.
    """
    of: fleet_task.FleetTask = transition.after.record
    if not _is_news(of):
        return
    said = {
        task.State.CLOSED: f"{of.id} is closed",
        task.State.PENDING_APPROVAL: f"{of.id} waits for an approval: lifefold approve {of.id}",
        task.State.BLOCKED: f"{of.id} is blocked: {of.reason}",
        task.State.FAILED: f"{of.id} has failed: {of.reason}",
    }
    before = "" if transition.before is None else transition.was.owner
    agent = of.owner or before or of.author
    yield from _announce(board, Notification(_TASKS[of.state], said[of.state], of.id, agent))


def _is_news(of: fleet_task.FleetTask) -> bool:
    """Tell whether people are told of a task in its state. They are not told of a failure that is retried."""
    passes = of.state is task.State.FAILED and not of.exhausted
    return not passes and not of.blocked_by.startswith((fleet_task.BUDGET, fleet_task.PLAN))


@rule(on=plan_approval.machine, event=Created, beside=notifier.FIRST)
def announce_plan(board: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Announce a plan that waits for its approval."""
    said = "the plan waits for an approval: lifefold approve"
    yield from _announce(board, Notification(NotificationKind.PLAN, said))


@rule(on=account.machine, leaves=account.State.OPEN, enters=account.State.RESTING, beside=notifier.FIRST)
def announce_limit(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Announce that an account begins to rest. A rest that is prolonged is no news."""
    name = transition.entity.removeprefix(f"{account.REF}:")
    said = f"account {name} rests at a limit: {accounts.reason_of(transition.after.record)}"
    yield from _announce(board, Notification(NotificationKind.LIMIT, said))


@rule(on=budget.machine, enters=budget.State.SPENT, beside=notifier.FIRST)
def announce_budget(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Announce that a budget is spent, with the command that raises it."""
    whose, _, name = transition.entity.removeprefix("budget:").partition("/")
    of = f"{whose} {name}".strip()
    said = f"{of}: {budgets.reason_of(transition.after)}: lifefold {budgets.raising(transition.after)}"
    names = {"task": name if whose == "task" else "", "agent": name if whose == "agent" else ""}
    yield from _announce(board, Notification(NotificationKind.BUDGET, said, **names))


@rule(on=worker_slot.machine, enters=worker_slot.State.GONE, beside=notifier.FIRST)
def announce_stop(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Announce an agent that has stopped while tasks are left, and the end of the fleet with the last agent."""
    name = transition.entity.removeprefix("worker_slot:")
    if work_of(board).unsettled:
        said = f"{name} has stopped: {transition.after.record.reason}"
        yield from _announce(board, Notification(NotificationKind.STOPPED, said, agent=name))
    yield from _announce_end(board)


@rule(on=service_slot.machine, enters=service_slot.State.GONE, beside=notifier.FIRST)
def announce_service(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Announce a service that its own failures have stopped, and the end of the fleet with the last service."""
    name, slot = transition.entity.removeprefix(f"{service_slot.REF}:"), transition.after.record
    if slot.failed:
        said = f"service {name} is down: {slot.reason}"
        yield from _announce(board, Notification(NotificationKind.SERVICE, said, agent=name))
    yield from _announce_end(board)


def _announce_end(board: Aggregate) -> Iterator[Dispatch]:
    """Announce the end of the fleet if no agent and no service is left."""
    if not _is_over(board):
        return
    every = [each for each in tasks_of(board) if not each.removed]
    closed = sum(each.state is task.State.CLOSED for each in every)
    said = f"the fleet is over: {closed} of {len(every)} tasks are closed"
    yield from _announce(board, Notification(NotificationKind.OVER, said))


def _is_over(board: Aggregate) -> bool:
    """Tell whether no agent and no service is left."""
    serves = any(each.state is service_slot.State.ON for _, each in service_slot.service_slots(board))
    return not serves and not work_of(board).present


# The properties


def closed_tasks_are_announced(board: Aggregate) -> bool:
    """A notifier has had one notification for each closed task, if it listens to them."""
    kind = NotificationKind.CLOSED
    listening = [each.record for each in notifiers(board) if kind in each.record.kinds]
    closed = sum(each.state is task.State.CLOSED for each in tasks_of(board)) if listening else 0
    return all(each.count(kind) == closed for each in listening)


def what_waits_is_announced(board: Aggregate) -> bool:
    """A notifier has had a notification of each of its kinds of which something waits now, or holds now."""
    listening = [each.record for each in notifiers(board)]
    present: frozenset[NotificationKind] = frozenset(_present(board)) if listening else frozenset()
    return all(each.count(kind) for each in listening for kind in present.intersection(each.kinds))


def _present(board: Aggregate) -> Iterator[NotificationKind]:
    """Yield the kinds of which something waits now, or holds now."""
    yield from (_TASKS[each.state] for each in tasks_of(board) if each.state in _TASKS and _is_news(each))
    for ref, each in board.entities.items():
        match ref.partition(":")[0], each.state:
            case plan_approval.REF, plan_approval.State.PROPOSED:
                yield NotificationKind.PLAN
            case account.REF, account.State.RESTING:
                yield NotificationKind.LIMIT
            case "budget", budget.State.SPENT:
                yield NotificationKind.BUDGET
            case service_slot.REF, service_slot.State.GONE if each.record.failed:
                yield NotificationKind.SERVICE
            case _:
                pass
    if _is_over(board):
        yield NotificationKind.OVER


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("each closed task is announced once to each notifier that listens", closed_tasks_are_announced),
    always("what waits for people was announced to each notifier that listens", what_waits_is_announced),
)
