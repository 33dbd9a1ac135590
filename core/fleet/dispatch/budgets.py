"""How the board keeps to its budgets: nothing is begun for which nothing is left.

There may be a budget for the fleet, for each agent and for each task; without any, nothing is limited.

- Whoever claims a task to work at it has a share of everything set aside from all budgets that are concerned, before it
  hears of the task; when it is through, the shares are settled. Who only has to verify or to merge needs none.
- What is spent and not filled again by itself holds what needs it: an agent whose budget is spent waits, a task whose
  budget is spent is blocked, and with the fleet's all tasks are. A person may raise any of them, and it goes on.
- What is filled again by itself is waited for.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast

from lifefold.core.fleet.board import budget, fleet_task, worker_slot
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.dispatch.task_index import CLAIMED, tasks_of, whole_of, work_of
from lifefold.core.kernel import Aggregate, Dispatch, Entity, Property, Transition, always, replace, rule
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Amounts, Resource

FLEET: Final = "budget:fleet"
"""The budget of the whole fleet."""


def of_agent(name: str) -> str:
    """Return the reference of an agent's budget."""
    return f"budget:agent/{name}"


def of_task(name: str) -> str:
    """Return the reference of a task's budget. The parts of a task, and theirs, have the budget of the whole."""
    return f"budget:task/{whole_of(name)}"


def admits(board: Aggregate, agent: str, name: str) -> bool:
    """Tell whether an agent may have a share set aside for a task from every budget that is concerned.

    It may not as long as it holds another one.
    """
    all_budgets = (board.entities.get(ref) for ref in _concerned(agent, name))
    return all(
        each is None or (each.state in budget.ADMITS and agent not in each.record.holders) for each in all_budgets
    )


def leaves_a_share(board: Aggregate, agent: str, name: str) -> bool:
    """Tell whether there is a share for a task in every budget that is concerned, besides what the agent holds now."""
    all_budgets = (board.entities.get(ref) for ref in _concerned(agent, name))
    return all(each is None or each.state in budget.ADMITS for each in all_budgets)


def out_of_money(board: Aggregate, name: str) -> Dispatch | None:
    """Return what blocks a task because a budget that it needs is spent for good; None if none is."""
    for ref in (FLEET, of_task(name)):
        entity = board.entities.get(ref)
        if entity is not None and budget.is_spent_for_good(entity.record):
            return _blocked(entity, name)
    return None


def share_of(board: Aggregate, record: FleetTask) -> Amounts:
    """Return what a claim is given; 0 is no limit."""
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
    """Who claims a task has a share set aside from every budget that is concerned, before anything else."""
    record: FleetTask = transition.after.record
    for ref in _concerned(record.owner, record.id):
        if ref in board.entities:
            yield Dispatch(ref, budget.Reserve(record.owner))


@rule(on=worker_slot.machine, event=(worker_slot.WorkWanted, worker_slot.WorkLeft, worker_slot.WorkerGone))
def settle(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Who is through with its task, or gone, has its shares settled with what it has spent."""
    event = cast("worker_slot.WorkWanted | worker_slot.WorkLeft | worker_slot.WorkerGone", transition.event)
    agent, name = transition.entity.removeprefix("worker_slot:"), transition.was.task
    for ref in _concerned(agent, name) if name else ():
        entity = board.entities.get(ref)
        if entity is not None and agent in entity.record.holders:
            yield Dispatch(ref, budget.Settle(agent, _cost(entity.record, event)))


def _cost(p: budget.Budget, event: worker_slot.WorkWanted | worker_slot.WorkLeft | worker_slot.WorkerGone) -> Amounts:
    """Return what was spent; whoever has not said it has spent its share at least, if the fleet wants it so."""
    least = p.share if p.charges_the_silent and event.silent else Amounts()
    spent = event.spent
    return replace(spent, microusd=max(spent.microusd, least.microusd), tokens=max(spent.tokens, least.tokens))


@rule(on=budget.machine, enters=budget.State.RENEWED)
def reopen(_board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """When a period is over the next one begins."""
    yield Dispatch(transition.entity, budget.Reopened())


@rule(on=budget.machine, enters=budget.State.SPENT)
def go_without(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """When a budget is spent for good, what needs it is blocked. An agent whose own is spent waits for more."""
    if not budget.is_spent_for_good(transition.after.record):
        return
    ref = transition.entity
    offered = work_of(board).offered
    for name in sorted(name for name, each in offered.items() if each.can_be_hindered):
        if ref in {FLEET, of_task(name)}:
            yield _blocked(transition.after, name)


@rule(on=budget.machine, leaves=budget.State.SPENT)
def go_on_with_more(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What was blocked because a budget was spent goes on when there is more in it."""
    if budget.is_spent_for_good(transition.was):
        for ref in sorted(board.entities):
            entity = board.entities[ref]
            if entity.state is task.State.BLOCKED and entity.record.lacks == transition.entity:
                yield Dispatch(ref, fleet_task.DependencyBack(transition.entity))


def _blocked(spent: Entity[budget.Budget], name: str) -> Dispatch:
    """Return that a task is blocked because this budget is spent."""
    return Dispatch(f"task:{name}", fleet_task.DependencyLost(spent.ref, reason_of(spent)))


def reason_of(spent: Entity[budget.Budget]) -> str:
    """Return why nothing can be set aside from a budget any more, for people."""
    line = next(each for each in spent.record.lines if not each.suffices)
    left = max(0, line.account.cap - line.account.cost)
    whose = "the fleet's" if spent.ref == FLEET else "its"
    rest = f"; a claim is given {in_words(line.resource, line.share)}" if left else ""
    return f"{whose} budget is spent: {in_words(line.resource, line.account.cost, line.account.cap)}{rest}"


def raising(spent: Entity[budget.Budget]) -> str:
    """Return the command that lets the next claim have its share: for people, and to be typed."""
    whose, _, name = spent.ref.removeprefix("budget:").partition("/")
    of = f" --{whose} {name}" if name else ""
    line = next(each for each in spent.record.lines if not each.suffices)
    option, write = _OPTIONS[line.resource]
    return f"budget{of} --add-{option} {write(line.share + line.account.overrun - line.account.free)}"


def in_words(resource: Resource, amount: int, of: int | None = None) -> str:
    """Return so much of something, for people; or so much of a limit."""
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
"""How many of a unit people count as one, and what they call it."""

_OPTIONS: Final[Mapping[Resource, tuple[str, Callable[[int], str]]]] = {
    Resource.MONEY: ("usd", lambda microusd: f"{-(-microusd // 10_000) / 100:.2f}"),
    Resource.TOKENS: ("tokens", str),
    Resource.TIME: ("time", lambda time_ms: f"{-(-time_ms // 1_000)}s"),
    Resource.SESSIONS: ("sessions", str),
}
"""By which option so much more of something may be spent, and how that is written."""

_PLACES: Final = {Resource.MONEY: 2, Resource.TOKENS: 0, Resource.TIME: 1, Resource.SESSIONS: 0}


def workers_have_their_share(board: Aggregate) -> bool:
    """Whoever has claimed a task to work at it holds a share of every budget that is concerned."""
    claimed = (each for each in tasks_of(board) if each.state in CLAIMED)
    return all(
        each.owner in board.entities[ref].record.holders
        for each in claimed
        for ref in _concerned(each.owner, each.id)
        if ref in board.entities
    )


def shares_have_a_worker(board: Aggregate) -> bool:
    """Whoever holds a share sits at a task."""
    all_budgets = (entity for ref, entity in board.entities.items() if ref.startswith("budget:"))
    return all(
        board.entities[f"worker_slot:{holder}"].state is worker_slot.State.WORKING
        for each in all_budgets
        for holder in each.record.holders
    )


def nothing_is_open_without_money(board: Aggregate) -> bool:
    """What needs a budget that is spent for good does not wait for it; it is blocked, and says so."""
    waiting = (name for name, each in work_of(board).offered.items() if each.can_be_hindered)
    return all(out_of_money(board, name) is None for name in waiting)


def is_blocked_by_its_own_purse(board: Aggregate) -> bool:
    """What lacks money lacks that of a budget which it needs."""
    blocked = (
        each for each in tasks_of(board) if each.state is task.State.BLOCKED and each.lacks.startswith("budget:")
    )
    return all(each.lacks in {FLEET, of_task(each.id)} for each in blocked)


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("every claim has a reservation in each of its budgets", workers_have_their_share),
    always("every holder of a reservation is at a task", shares_have_a_worker),
    always("a task is blocked only by a budget that it needs", is_blocked_by_its_own_purse),
    always("no open task waits for a budget that only an operator can raise", nothing_is_open_without_money),
)
