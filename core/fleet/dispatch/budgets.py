"""Budgets of the board: no claim begins without a reservation in each budget that it needs.

There may be a budget for the fleet, for each agent and for each task. Without budgets nothing is limited.

- A claim reserves a share of each of its budgets before its worker learns of the task. The shares are settled when the
  claim ends. A claim that only verifies or merges needs no share.
- A spent budget without a period holds what needs it. The agent of a spent budget waits, and the task of a spent budget
  is blocked. If the fleet's budget is spent, all tasks are. An operator may raise each budget, and then they go on.
- A spent budget with a period is filled when the period ends, and claims wait for that.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast

from lifefold.core.fleet.board import budget, fleet_task, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch.task_index import CLAIMED, tasks_of, whole_of, work_of
from lifefold.core.kernel import Aggregate, Dispatch, Entity, Property, Transition, always, replace, rule
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Amounts, Caps, Resource

FLEET: Final = "budget:fleet"
"""The budget of the whole fleet."""


def of_agent(name: str) -> str:
    """Return the reference of an agent's budget."""
    return f"budget:agent/{name}"


def of_task(name: str) -> str:
    """Return the reference of a task's budget. The parts of a task, and theirs, have the budget of the whole."""
    return f"budget:task/{whole_of(name)}"


def caps_of(board: Aggregate, ref: str) -> Caps:
    """Return the caps in force of a budget, with what operators have added; nothing of them where there is none."""
    entity = board.entities.get(ref)
    lines = () if entity is None else entity.record.lines
    return Caps(**{line.resource: line.account.cap for line in lines})


def admits(board: Aggregate, agent: str, name: str) -> bool:
    """Tell whether an agent may reserve a share for a task in each of its budgets.

    An agent that holds a share may not reserve another one.
    """
    all_budgets = (board.entities.get(ref) for ref in _concerned(agent, name))
    return all(
        each is None or (each.state in budget.ADMITS and agent not in each.record.holders) for each in all_budgets
    )


def leaves_a_share(board: Aggregate, agent: str, name: str) -> bool:
    """Tell whether each budget of a task has a share left besides the share that the agent holds now."""
    all_budgets = (board.entities.get(ref) for ref in _concerned(agent, name))
    return all(each is None or each.state in budget.ADMITS for each in all_budgets)


def out_of_money(board: Aggregate, name: str) -> Dispatch | None:
    """Return the event that blocks a task whose budget is spent for good; None if no budget of it is."""
    for ref in (FLEET, of_task(name)):
        entity = board.entities.get(ref)
        if entity is not None and budget.is_spent_for_good(entity.record):
            return _blocked(entity, name)
    return None


def share_of(board: Aggregate, record: FleetTask) -> Amounts:
    """Return the reservation of a claim; 0 is no limit."""
    given = Amounts()
    for ref in _concerned(record.owner, record.id):
        entity = board.entities.get(ref)
        for each in () if entity is None else entity.record.lines:
            given = given.but(each.resource, each.share)
    return given


def _concerned(agent: str, name: str) -> tuple[str, str, str]:
    """Return the budgets of a claim. The fleet's is the last: when it is settled all are."""
    return of_task(name), of_agent(agent), FLEET


@rule(on=fleet_task.machine, enters=task.State.CLAIMED)
def reserve(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Reserve a share of each budget of a claim, before its worker learns of the task."""
    record: FleetTask = transition.after.record
    for ref in _concerned(record.owner, record.id):
        if ref in board.entities:
            yield Dispatch(ref, budget.Reserve(record.owner))


@rule(on=worker_slot.machine, event=(worker_slot.WorkWanted, worker_slot.WorkLeft, worker_slot.WorkerGone))
def settle(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Settle the shares of a worker that has finished its claim, or is gone, with the costs of the claim."""
    event = cast("worker_slot.WorkWanted | worker_slot.WorkLeft | worker_slot.WorkerGone", transition.event)
    agent, name = transition.entity.removeprefix("worker_slot:"), transition.was.task
    for ref in _concerned(agent, name) if name else ():
        entity = board.entities.get(ref)
        if entity is not None and agent in entity.record.holders:
            yield Dispatch(ref, budget.Settle(agent, _cost(entity.record, event)))


def _cost(p: budget.Budget, event: worker_slot.WorkWanted | worker_slot.WorkLeft | worker_slot.WorkerGone) -> Amounts:
    """Return the costs of a claim. A silent session counts as its share, if the budget is strict about it."""
    least = p.share if p.charges_the_silent and event.silent else Amounts()
    spent = event.spent
    return replace(spent, microusd=max(spent.microusd, least.microusd), tokens=max(spent.tokens, least.tokens))


@rule(on=budget.machine, enters=budget.State.RENEWED)
def reopen(_board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """When a period is over the next one begins."""
    yield Dispatch(transition.entity, budget.Reopened())


@rule(on=budget.machine, enters=budget.State.SPENT)
def go_without(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Block the tasks that need a budget which is spent for good. An agent with such a budget waits for more."""
    if not budget.is_spent_for_good(transition.after.record):
        return
    ref = transition.entity
    offered = work_of(board).offered
    for name in sorted(name for name, each in offered.items() if each.can_be_hindered):
        if ref in {FLEET, of_task(name)}:
            yield _blocked(transition.after, name)


@rule(on=budget.machine, leaves=budget.State.SPENT)
def unblock_after_raise(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Let tasks go on that were blocked by a spent budget, when the budget is raised."""
    if budget.is_spent_for_good(transition.was):
        for ref in sorted(board.entities):
            entity = board.entities[ref]
            if entity.state is task.State.BLOCKED and entity.record.blocked_by == transition.entity:
                yield Dispatch(ref, fleet_task.DependencyBack(transition.entity))


def _blocked(spent: Entity[budget.Budget], name: str) -> Dispatch:
    """Return the event that blocks a task because of a spent budget."""
    return Dispatch(f"task:{name}", fleet_task.DependencyLost(spent.ref, reason_of(spent)))


def reason_of(spent: Entity[budget.Budget]) -> str:
    """Return the reason why a budget has no share left, for messages."""
    line = _short_line(spent)
    whose = "the fleet's" if spent.ref == FLEET else "its"
    rest = f" spent, and a claim is given {in_words(line.resource, line.share)}" if _is_left(line) else ""
    cost = in_words(line.resource, line.account.cost, line.account.cap)
    return f"{whose} budget {shortage_of(spent)}: {cost}{rest}"


def shortage_of(spent: Entity[budget.Budget]) -> str:
    """Return the fault of a budget without a share: it is spent, or its rest is less than a share."""
    short = [each for each in spent.record.lines if not each.suffices]
    return "is too small for another claim" if any(map(_is_left, short[:1])) else "is spent"


def _short_line(spent: Entity[budget.Budget]) -> budget.Line:
    return next(each for each in spent.record.lines if not each.suffices)


def _is_left(line: budget.Line) -> bool:
    return line.account.cap > line.account.cost


def raising(spent: Entity[budget.Budget]) -> str:
    """Return the command that raises a budget by enough for the next claim, ready to be typed."""
    whose, _, name = spent.ref.removeprefix("budget:").partition("/")
    of = f" --{whose} {name}" if name else ""
    line = _short_line(spent)
    option, write = _OPTIONS[line.resource]
    return f"budget{of} --add-{option} {write(line.share + line.account.overrun - line.account.free)}"


def in_words(resource: Resource, amount: int, of: int | None = None) -> str:
    """Return an amount in words, or an amount of a limit."""
    scale, unit = _WORDS[resource]
    whole, last = ("", amount) if of is None else (f" of {of / scale:,.{_PLACES[resource]}f}", of)
    one = unit.removesuffix("s") if last == scale == 1 else unit
    return f"{amount / scale:,.{_PLACES[resource]}f}{whole} {one}"


_WORDS: Final = {
    Resource.MONEY: (1_000_000, "USD"),
    Resource.TOKENS: (1, "tokens"),
    Resource.TIME: (60_000, "min"),
    Resource.SESSIONS: (1, "sessions"),
}
"""Units of amounts in messages: how many count as one, and the name of the unit."""

_OPTIONS: Final[Mapping[Resource, tuple[str, Callable[[int], str]]]] = {
    Resource.MONEY: ("usd", lambda microusd: f"{-(-microusd // 10_000) / 100:.2f}"),
    Resource.TOKENS: ("tokens", str),
    Resource.TIME: ("time", lambda time_ms: f"{-(-time_ms // 1_000)}s"),
    Resource.SESSIONS: ("sessions", str),
}
"""The option that raises each resource, and how its amount is written."""

_PLACES: Final = {Resource.MONEY: 2, Resource.TOKENS: 0, Resource.TIME: 1, Resource.SESSIONS: 0}


def workers_have_their_share(board: Aggregate) -> bool:
    """Every claim holds a share of each of its budgets."""
    claimed = (each for each in tasks_of(board) if each.state in CLAIMED)
    return all(
        each.owner in board.entities[ref].record.holders
        for each in claimed
        for ref in _concerned(each.owner, each.id)
        if ref in board.entities
    )


def shares_have_a_worker(board: Aggregate) -> bool:
    """Every holder of a share is at a task."""
    all_budgets = (entity for ref, entity in board.entities.items() if ref.startswith("budget:"))
    return all(
        board.entities[f"worker_slot:{holder}"].state is worker_slot.State.WORKING
        for each in all_budgets
        for holder in each.record.holders
    )


def nothing_is_open_without_money(board: Aggregate) -> bool:
    """A task that needs a budget which is spent for good does not wait: it is blocked, with the reason."""
    waiting = (name for name, each in work_of(board).offered.items() if each.can_be_hindered)
    return all(out_of_money(board, name) is None for name in waiting)


def is_blocked_by_its_own_budget(board: Aggregate) -> bool:
    """A task that is blocked by a budget needs that budget."""
    blocked = (
        each for each in tasks_of(board) if each.state is task.State.BLOCKED and each.blocked_by.startswith("budget:")
    )
    return all(each.blocked_by in {FLEET, of_task(each.id)} for each in blocked)


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("every claim has a reservation in each of its budgets", workers_have_their_share),
    always("every holder of a reservation is at a task", shares_have_a_worker),
    always("a task is blocked only by a budget that it needs", is_blocked_by_its_own_budget),
    always("no open task waits for a budget that only an operator can raise", nothing_is_open_without_money),
)
