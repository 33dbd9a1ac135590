"""The waiting decisions of an operator, each with its command: without them, such a fleet would look stuck."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.board import budget, fleet_task, intake, worker_slot
from lifefold.core.fleet.dispatch import accounts, budgets, plan_approval
from lifefold.core.fleet.dispatch.task_index import tasks_of, work_of
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import desired_state, shutdown
from lifefold.core.kernel import Aggregate, Entity
from lifefold.core.lifecycles import task
from lifefold.interpreters.explain import questions
from lifefold.interpreters.explain.task_status import TaskStatus, tasks
from lifefold.interpreters.explain.timers import next_timer


class Awaited(StrEnum):
    """What waits for an operator."""

    QUESTION = "question"
    PLAN = "plan"
    TASK = "task"
    AGENT = "agent"
    BUDGET = "budget"
    ACCOUNT = "account"
    TRUST = "trust"
    TASKS = "tasks"


class Waiting(msgspec.Struct, frozen=True):
    """Something that waits for an operator; ``command`` lets it go on.

    ``names`` has a question, the tasks of an undecided plan, a task that needs approval, or a paused agent. For a spent
    budget, it has the blocked tasks or the agent; for trust, a task above every agent's level. For a limit, it has the
    account that rests until ``until_ms`` at the latest, also without an operator. It is empty for a finished fleet with
    an open intake. ``commit`` is the commit that an approval merges; empty without a change or a repository.

    ``reason`` says why it waits. Else silence becomes a refusal at ``until_ms``; 0 is never. Times are
    Unix time in milliseconds.
    """

    about: Awaited
    names: tuple[str, ...]
    command: str
    since_ms: int
    until_ms: int = 0
    reason: str = ""
    commit: str = ""


def waiting(aggregates: Mapping[str, Aggregate]) -> tuple[Waiting, ...]:
    """Return what waits for an operator: questions, the plan, tasks in its order, agents by name, and the intake.

    A finished fleet waits for nothing: no command changes it any more.
    """
    if board.NAME not in aggregates or board.finished(aggregates[board.NAME]):
        return ()
    aggregate = aggregates[board.NAME]
    return (
        *_questions(aggregates),
        *_to_be_approved(aggregate, tasks(aggregates)),
        *_out_of_money(aggregate),
        *_limited(aggregate),
        *_paused(aggregates),
        *_more_tasks(aggregate),
    )


def _questions(aggregates: Mapping[str, Aggregate]) -> Iterator[Waiting]:
    for each in questions.waiting(aggregates):
        command = "approve" if each.is_permission else "answer"
        said = each.sentence()
        yield Waiting(Awaited.QUESTION, (each.name,), command, each.question.asked_ms, each.until_ms, said)


def _to_be_approved(aggregate: Aggregate, every: tuple[TaskStatus, ...]) -> Iterator[Waiting]:
    planned = [each for each in every if each.state == task.State.PLANNED]
    plan = aggregate.entities.get(plan_approval.REF)
    if planned and plan is not None and plan.state is plan_approval.State.PROPOSED:
        yield Waiting(Awaited.PLAN, tuple(each.id for each in planned), "approve", plan.entered_ms)
    distrusted = work_of(aggregate).distrusted
    for each in every:
        if each.state == task.State.PENDING_APPROVAL:
            until_ms = each.timer.deadline_ms if each.timer else 0
            commit = aggregate.record(f"task:{each.id}").collected
            yield Waiting(Awaited.TASK, (each.id,), "approve", each.since_ms, until_ms, commit=commit)
        if each.id in distrusted:
            yield Waiting(Awaited.TRUST, (each.id,), "trust", each.since_ms, reason=each.reason)


def _out_of_money(aggregate: Aggregate) -> Iterator[Waiting]:
    every = sorted(tasks_of(aggregate), key=lambda each: (each.ordinal, each.id))
    blocked = [each for each in every if each.state is task.State.BLOCKED]
    for ref in sorted(
        dict.fromkeys(each.blocked_by for each in blocked if each.blocked_by.startswith(fleet_task.BUDGET))
    ):
        names = tuple(each.id for each in blocked if each.blocked_by == ref)
        entity: Entity[budget.Budget] = aggregate.entities[ref]
        yield Waiting(
            Awaited.BUDGET, names, budgets.raising(entity), entity.entered_ms, reason=budgets.reason_of(entity)
        )
    for ref in sorted(each for each in aggregate.entities if each.startswith(f"{fleet_task.BUDGET}agent/")):
        entity, name = aggregate.entities[ref], ref.partition("/")[2]
        slot = aggregate.entities[f"worker_slot:{name}"]
        if budget.is_spent_for_good(entity.record) and slot.state is not worker_slot.State.GONE:
            yield Waiting(
                Awaited.BUDGET, (name,), budgets.raising(entity), entity.entered_ms, reason=budgets.reason_of(entity)
            )


def _limited(aggregate: Aggregate) -> Iterator[Waiting]:
    for entity in accounts.accounts_of(aggregate):
        timer = next_timer(entity)
        if timer is not None:
            name = entity.ref.partition(":")[2]
            command = f"resume --account {name}"
            reason = accounts.reason_of(entity.record)
            yield Waiting(Awaited.ACCOUNT, (name,), command, entity.entered_ms, timer.deadline_ms, reason)


def _paused(aggregates: Mapping[str, Aggregate]) -> Iterator[Waiting]:
    for name in sorted(aggregates):
        of = aggregates[name]
        entity = of.entities.get("desired_state")
        if entity is not None and entity.state is desired_state.State.PAUSE and not _is_gone(of):
            yield Waiting(Awaited.AGENT, (of.key,), "resume", entity.entered_ms, reason=entity.record.reason)


def _is_gone(of: Aggregate) -> bool:
    """Tell whether an agent has stopped, or a service is down, for good."""
    return service.is_down(of) if of.kind == service.KIND else shutdown.is_gone(of)


def _more_tasks(aggregate: Aggregate) -> Iterator[Waiting]:
    if intake.are_open(aggregate) and not work_of(aggregate).unsettled:
        since_ms = max(each.entered_ms for ref, each in aggregate.entities.items() if not ref.startswith(_OF_WORKERS))
        yield Waiting(Awaited.TASKS, (), "task add", since_ms)


_OF_WORKERS = ("worker_slot:", "restart_permit:")
"""The prefixes of a board's entities that are about workers, and not about tasks."""
