"""Accounts of model services: the rules of the board by which agents of one account rest together.

A limit belongs to an account, so no agent of it is given a task while it rests. Agents of other accounts go on, also
with the task whose session has met the limit. Nothing is counted against the task or the agent, and no agent stops.

- A claim is admitted by the account of its worker before the worker learns of it. Work that only has to be verified or
  merged needs no account.
- A worker that has no task any more leaves its account.
- When an account rests, its workers are told, and when it is open again. The worker that tries a probing account is
  told so before its task.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from lifefold.core.fleet.board import account, fleet_task, worker_slot
from lifefold.core.fleet.dispatch.task_index import CLAIMED, tasks_of
from lifefold.core.fleet.worker import quota
from lifefold.core.kernel import (
    Aggregate,
    Dispatch,
    Entity,
    Projection,
    Property,
    SystemState,
    Transition,
    always,
    projected,
    rule,
)
from lifefold.core.lifecycles import task
from lifefold.effects import Tell


def ref_of(name: str) -> str:
    """Return the reference of an account on the board."""
    return f"{account.REF}:{name}"


def account_of(board: Aggregate, worker: str) -> Entity[account.Account] | None:
    """Return the account of a worker; None for a worker without one."""
    slot = board.entities.get(f"worker_slot:{worker}")
    return None if slot is None or not slot.record.account else board.entities.get(ref_of(slot.record.account))


def is_open(board: Aggregate, name: str) -> bool:
    """Tell whether an account is open; also if there is none of this name."""
    found = board.entities.get(ref_of(name))
    return found is None or found.state is account.State.OPEN


def accounts_of(board: Aggregate) -> list[Entity[account.Account]]:
    """Return all accounts, by their names."""
    return [entity for ref, entity in sorted(board.entities.items()) if ref.startswith(f"{account.REF}:")]


def admits(board: Aggregate, worker: str) -> bool:
    """Tell whether the account of a worker admits it to a task: it is open, or tried again and not in use for that."""
    found = account_of(board, worker)
    return found is None or _is_open_to(found, "")


def would_admit(board: Aggregate, worker: str) -> bool:
    """Tell whether the account would admit a worker after its present task."""
    found = account_of(board, worker)
    return found is None or _is_open_to(found, worker)


def _is_open_to(of: Entity[account.Account], worker: str) -> bool:
    tried = of.state is account.State.PROBING and of.record.probe in {"", worker}
    return tried or of.state is account.State.OPEN


def reason_of(of: account.Account) -> str:
    """Return the limit of an account in a few words: its name, or what the agent has said of it."""
    return f"{of.scope} limit" if of.scope else of.message


@rule(on=fleet_task.machine, enters=task.State.CLAIMED)
def admit(board: Aggregate, transition: Transition) -> Iterator[Dispatch | Tell]:
    """Let the account admit a claim before its worker learns of it."""
    owner: str = transition.after.record.owner
    found = account_of(board, owner)
    if found is not None:
        yield Dispatch(found.ref, account.Admitted(owner))
        if found.state is account.State.PROBING:
            yield Tell(f"worker/{owner}", quota.REF, quota.AccountOpens())


@rule(on=fleet_task.machine, event=task.Completed)
def open_after_probe(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Open a probing account when the session that tries it has completed."""
    owner: str = transition.was.owner
    found = account_of(board, owner)
    if found is not None and found.record.probe == owner:
        yield Dispatch(found.ref, account.Succeeded(owner))


_LEAVES: Final = (worker_slot.WorkWanted, worker_slot.WorkLeft, worker_slot.WorkerGone)
"""The events by which a worker tells that it has no task any more."""


@rule(on=worker_slot.machine, event=_LEAVES)
def leave_account(board: Aggregate, transition: Transition) -> Iterator[Dispatch | Tell]:
    """Let a worker that has no task any more leave its account. Another one may try a probing account then."""
    worker = transition.entity.removeprefix("worker_slot:")
    found = account_of(board, worker)
    if found is None or worker not in found.record.users:
        return
    gives_up = found.record.probe == worker
    if gives_up and transition.entered is not worker_slot.State.GONE:
        yield Tell(f"worker/{worker}", quota.REF, quota.AccountRests())
    yield Dispatch(found.ref, account.GaveUp(worker) if gives_up else account.Left(worker))


def frees_probe(board: Aggregate, transition: Transition) -> bool:
    """Tell whether a worker gives up its probe: its account is about to admit another worker."""
    if not isinstance(transition.event, _LEAVES):
        return False
    worker = transition.entity.removeprefix("worker_slot:")
    found = account_of(board, worker)
    return found is not None and found.record.probe == worker


@rule(on=account.machine, leaves=tuple(account.State), enters=(account.State.RESTING, account.State.OPEN))
def tell_workers(board: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Tell the workers of an account that it rests, or that it is open."""
    name = transition.entity.removeprefix(f"{account.REF}:")
    news = quota.AccountOpens() if transition.entered is account.State.OPEN else quota.AccountRests()
    for ref, slot in sorted(board.entities.items()):
        if ref.startswith("worker_slot:") and slot.record.account == name and slot.state is not worker_slot.State.GONE:
            yield Tell(f"worker/{ref.removeprefix('worker_slot:')}", quota.REF, news)


# The properties


def claims_are_admitted(board: Aggregate) -> bool:
    """Every claim was admitted by the account of its worker."""
    claimed = [each for each in tasks_of(board) if each.state in CLAIMED]
    found = ((each, account_of(board, each.owner)) for each in claimed)
    return all(of is None or each.owner in of.record.users for each, of in found)


def users_are_at_a_task(board: Aggregate) -> bool:
    """Every agent that uses an account is at a task, so that an account waits for no agent without one."""
    return all(
        board.entities[f"worker_slot:{worker}"].state is worker_slot.State.WORKING
        for of in accounts_of(board)
        for worker in of.record.users
    )


def success_opens(board: Aggregate) -> bool:
    """No agent that tries an account has finished its session. The work of a dead session is no such success."""
    tries = {of.record.probe for of in accounts_of(board) if of.record.probe}
    done = (each for each in tasks_of(board) if tries and each.state is task.State.DONE)
    return all(each.owner not in tries or each.orphaned is task.OnDeath.VERIFY for each in done)


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("the success of the session that tries an account opens it", success_opens),
    always("every claim is admitted by the account of its agent", claims_are_admitted),
    always("every agent that uses an account is at a task", users_are_at_a_task),
)


class Known(msgspec.Struct, frozen=True):
    """The projection of a board: the workers whose account rests, and all with one; of a worker: what it knows."""

    resting: frozenset[str] = frozenset()
    every: frozenset[str] = frozenset()
    rests: bool | None = None


def known(of: Aggregate) -> Known:
    """Return the projection of a board or a worker about accounts."""
    if of.kind == "worker":
        return Known(rests=quota.rests(of)) if quota.REF in of.entities else Known()
    if of.kind != "board":
        return Known()
    slots = [each for ref, each in of.entities.items() if ref.startswith("worker_slot:") and each.record.account]
    there = [each.ref.removeprefix("worker_slot:") for each in slots if each.state is not worker_slot.State.GONE]
    return Known(frozenset(each for each in there if not _is_open_for(of, each)), frozenset(there))


def _is_open_for(board: Aggregate, worker: str) -> bool:
    """Tell whether a worker may begin sessions: its account is open, or is tried again with this worker."""
    found = account_of(board, worker)
    is_tried = found is not None and found.record.probe == worker
    return found is None or is_tried or found.state is account.State.OPEN


def know_their_account(fleet: Projection) -> bool:
    """With no message in flight, each worker knows whether its account rests."""
    if fleet.under_way:
        return True
    knows = frozenset(name.partition("/")[2] for name, each in fleet.aggregates.items() if each.rests)
    every = frozenset[str]().union(*(each.every for each in fleet.aggregates.values()))
    resting = frozenset[str]().union(*(each.resting for each in fleet.aggregates.values()))
    return knows & every == resting


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = projected(
    known, always("with no message in flight, every agent knows whether its account rests", know_their_account)
)
