"""What commands that add tasks know of a fleet: the settings of its start, its slots and budget, what a task meets.

``task add`` yields the same commands for the options of one task (``adding``) and for a list (``adding_many``).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from lifefold.core.fleet import Budget, Caps, Plan, TaskPlan
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.board.worker_slot import WorkerSlot
from lifefold.core.fleet.dispatch import budgets, plan_approval
from lifefold.core.fleet.dispatch.dependencies import is_unmet, unmet_requirement
from lifefold.core.fleet.dispatch.task_index import is_lost, tasks_of
from lifefold.core.fleet.system import board
from lifefold.core.fleet.system.plan import RETRIED_AS_OFTEN_AS_THE_TASK_SAYS, budget_of, fleet_task_of
from lifefold.core.fleet.system.rerun import FinishedFleet
from lifefold.core.kernel import Aggregate, Created, replace
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.task import State
from lifefold.core.policy.abort import AbortPolicy
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.commands.deciding import ADD_AND_AGAIN, PLAN, no_agent_left
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.engine import REFUSED
from lifefold.interpreters.explain.task_words import is_in
from lifefold.interpreters.fleet_file.budget import FleetBudgetKeys
from lifefold.interpreters.fleet_file.config import ABORTS, BRANCH, AbortKeys, FleetKeys, RetryKeys
from lifefold.interpreters.fleet_file.keys import Key
from lifefold.interpreters.fleet_runner.log_owner import CLAIM_KEY, before_of

T = TypeVar("T")


def given(of: Aggregate, plans: Sequence[TaskPlan], begun: Plan) -> Iterator[Said | Refused]:
    """Yield the commands that put tasks on a board, in their order, or the refusal of each."""
    why = no_agent_left(of, ADD_AND_AGAIN)
    for number, plan in enumerate(plans):
        if why:
            yield Refused(plan.id, f"{REFUSED}{why}")
            continue
        record = _on_board(of, plan, begun, number)
        for ref, money in budget_of(budgets.of_task(plan.id), plan.caps, budget_on(of, begun) or Budget()):
            yield Said(f"budget of {plan.id}", board.NAME, ref, Created(money), "limited")
        yield Said(plan.id, board.NAME, f"task:{plan.id}", Created(record), _added(of, record))


def budget_on(of: Aggregate, begun: Plan) -> Budget | None:
    """Return the budget settings of this board, without limits; None if the fleet has no budget."""
    all_budgets = [entity.record for ref, entity in of.entities.items() if ref.startswith(fleet_task.BUDGET)]
    if not all_budgets:
        return None
    share = begun.budget.share
    for line in (line for each in all_budgets for line in each.lines):
        share = share.but(line.resource, line.share)
    return Budget(Caps(), share, all_budgets[0].period_ms, all_budgets[0].charges_the_silent)


def slots_of(of: Aggregate) -> list[WorkerSlot]:
    """Return the worker slots of a board. Raises ``BadInput`` if it has none."""
    worker_slots = [entity.record for ref, entity in of.entities.items() if ref.startswith("worker_slot:")]
    if not worker_slots:
        raise BadInput("this fleet has no agents, and services take no tasks")
    return worker_slots


def begun_with(db: str | None) -> tuple[Plan, FinishedFleet, bool]:
    """Return the settings from the start of a log, the end of the runs before it, and whether there is a repository."""
    with logs.peek(db) as store:
        fleet = (store.meta_as("meaning", dict[str, Any]) or {}).get("fleet", {})
        merges, before = bool(store.meta("branch")), before_of(store).ended
        key = store.meta(CLAIM_KEY) or ""
    retry = fleet.get("retry", {})
    policy = replace(
        RETRIED_AS_OFTEN_AS_THE_TASK_SAYS,
        backoff_base_ms=_meant(retry, RetryKeys.backoff_base),
        backoff_cap_ms=_meant(retry, RetryKeys.backoff_cap),
        fatal_retries=_meant(retry, RetryKeys.fatal_retries),
    )
    begun = Plan(
        "",
        (),
        (),
        approval_ms=_meant(fleet, FleetKeys.approval_timeout),
        retry=policy,
        gates=_meant(fleet, FleetKeys.gates),
        orphaned=_meant(fleet, FleetKeys.orphaned),
        anew=_meant(fleet, FleetKeys.on_retry) == "anew",
        aborts=_aborts(fleet[ABORTS]) if ABORTS in fleet else None,
        to_branch=_meant(fleet, FleetKeys.merge) == BRANCH,
        budget=Budget(share=_share(fleet.get("budget", {}))),
        key=key,
    )
    return begun, before, merges


def _share(said: Mapping[str, object]) -> Amounts:
    money, tokens = (_meant(said, key) for key in (FleetBudgetKeys.session_usd, FleetBudgetKeys.session_tokens))
    return Amounts(money or 0, tokens or 0, 0, 1)


def _aborts(said: Mapping[str, object]) -> AbortPolicy:
    return AbortPolicy(_meant(said, AbortKeys.tool_to_sibling), _meant(said, AbortKeys.sibling_to_session))


def _meant(said: Mapping[str, object], key: Key[T]) -> T:
    return key.form.parse(said[key.name]) if key.name in said else key.default


def _on_board(of: Aggregate, plan: TaskPlan, begun: Plan, number: int) -> fleet_task.FleetTask:
    """Return the task as it begins on this board, after ``number`` more; it waits for approval while the plan does."""
    tasks = tasks_of(of)
    proposed = PLAN in of.entities and of.entities[PLAN].state is plan_approval.State.PROPOSED
    like = min(tasks, key=lambda each: (each.state in {State.CLOSED, State.CANCELLED}, each.ordinal), default=None)
    fleet = begun if like is None else replace(begun, approval_ms=like.approval_ms, retry=like.retry)
    return fleet_task_of(plan, len(tasks) + number, replace(fleet, approve_plan=proposed))


def _added(of: Aggregate, record: fleet_task.FleetTask) -> str:
    """Return the text that is printed for an added task."""
    if record.state is State.PLANNED:
        return f"added; it waits for your approval: lifefold approve {record.id}{logs.LOG}"
    needed: list[fleet_task.FleetTask] = [
        of.record(f"task:{name}") for name in record.depends_on if f"task:{name}" in of.entities
    ]
    lost = [f"it depends on {each.id}, which {is_in(each.state)}" for each in needed if is_lost(each)]
    asked = (record.role, record.level)
    if is_unmet(of, asked):
        lost.append(f"it {unmet_requirement(of, asked)[1]}")
    spent = budgets.out_of_money(of, record.id)
    if spent is not None and isinstance(spent.event, fleet_task.DependencyLost):
        lost.append(spent.event.reason)
    return f"added; it is blocked, because {lost[0]}" if lost else "added"
