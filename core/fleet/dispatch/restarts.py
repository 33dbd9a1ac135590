"""Restarts of agents that have stopped by their errors: the rules of the board, and properties of the fleet.

How often agents may restart is a fact about several workers, so the board keeps the account. It has permits
(``restart_permit``): some for each worker and some for all. The worker asks (``RestartWanted``) and is answered. With a
permit of each kind it rests, restarts, and reports it (``RestartDone``). The window of the permits begins then. A
worker that goes for good returns the permits that it holds. The rules of the worker are in ``worker.restarts``.
"""

from collections.abc import Iterator
from itertools import count, takewhile
from typing import Final

import msgspec

from lifefold.core.fleet.board import restart_permit, worker_slot
from lifefold.core.fleet.worker import supervisor
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
from lifefold.core.policy.intensity import Intensity, span
from lifefold.effects import Tell

OF_ALL: Final = "*"
"""The owner in references of permits that all workers share. No agent has this name."""


def restart_permits(of: str, intensity: Intensity) -> dict[str, restart_permit.RestartPermit]:
    """Return the permits that a board begins with, for a worker or for all, by their references."""
    return {
        _ref(of, n): restart_permit.RestartPermit(window_ms=intensity.window_ms)
        for n in range(1, intensity.max_restarts + 1)
    }


def _ref(of: str, number: int) -> str:
    return f"restart_permit:{of}.{number}"


def permits_of(board: Aggregate, of: str) -> list[Entity[restart_permit.RestartPermit]]:
    """Return the permits of a worker, or of all."""
    refs = takewhile(board.entities.__contains__, (_ref(of, number) for number in count(1)))
    return [board.entities[ref] for ref in refs]


@rule(on=worker_slot.machine, event=worker_slot.RestartWanted)
def grant(board: Aggregate, transition: Transition) -> Iterator[Dispatch | Tell]:
    """Grant a permit of the worker and one of all, or refuse with the reason."""
    name = transition.entity.removeprefix("worker_slot:")
    found = [permits_of(board, each) for each in (name, OF_ALL)]
    free = [[each for each in every if each.state is restart_permit.State.FREE] for every in found]
    to = f"worker/{name}"
    if all(free):
        for each in free:
            yield Dispatch(each[0].ref, restart_permit.Reserved(name))
        recent = len(found[0]) - len(free[0]) + 1
        yield Tell(to, supervisor.REF, supervisor.Granted(recent))
    else:
        own, of_all = found
        often = _often("it was", own) if not free[0] else _often("agents of this fleet were", of_all)
        yield Tell(to, supervisor.REF, supervisor.Refused(often))


def _often(who: str, every: list[Entity[restart_permit.RestartPermit]]) -> str:
    """Return a phrase about too many restarts."""
    times = "once" if len(every) == 1 else f"{len(every)} times"
    return f"{who} restarted {times} within {span(every[0].record.window_ms)}" if every else "it is not restarted"


@rule(on=worker_slot.machine, event=worker_slot.RestartDone)
def spend(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Mark the permits of a restarted agent as used."""
    for each in _held(board, transition.entity.removeprefix("worker_slot:")):
        yield Dispatch(each.ref, restart_permit.Used())


@rule(on=worker_slot.machine, enters=worker_slot.State.GONE)
def give_back(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Return the unused permits of a worker that is gone."""
    for each in _held(board, transition.entity.removeprefix("worker_slot:")):
        yield Dispatch(each.ref, restart_permit.Returned())


def _held(board: Aggregate, name: str) -> list[Entity[restart_permit.RestartPermit]]:
    every = [*permits_of(board, name), *permits_of(board, OF_ALL)]
    return [each for each in every if each.record.worker == name]


class Held(msgspec.Struct, frozen=True):
    """The holders of permits; a name is repeated for each permit."""

    names: tuple[str, ...]


def holders(of: Aggregate) -> Held | bool:
    """Return the holders of permits of a board; of a worker, whether it is about to restart."""
    if of.kind == "worker":
        found = of.entities.get(supervisor.REF)
        return found is not None and found.state is supervisor.State.RESTING
    held = (each.record.worker for ref, each in of.entities.items() if ref.startswith("restart_permit:"))
    return Held(tuple(sorted(name for name in held if name)))


def _holding(fleet: Projection) -> list[str]:
    """Return the names of the holders, each as often as it holds a permit."""
    return [name for each in fleet.aggregates.values() if isinstance(each, Held) for name in each.names]


def _resting(fleet: Projection) -> set[str]:
    """Return the names of the workers that are about to restart."""
    return {name.partition("/")[2] for name, each in fleet.aggregates.items() if each is True}


def are_permitted(fleet: Projection) -> bool:
    """An agent about to be restarted holds a permit of its own and one of all."""
    held = _holding(fleet)
    return all(held.count(name) == _ONE_OF_EACH for name in _resting(fleet))


_ONE_OF_EACH: Final = 2


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = projected(
    holders,
    always("an agent about to be restarted holds its permits", are_permitted),
    always(
        "with no message in flight, only agents about to restart hold permits",
        lambda fleet: bool(fleet.under_way) or set(_holding(fleet)) <= _resting(fleet),
    ),
)
