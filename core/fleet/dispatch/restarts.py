"""Who is begun anew after it has stopped by its errors: the rules of a worker, and those of the board.

How often that may be is a fact about several workers, so the board keeps the account: in permits (see ``restart_permit``),
some for each worker and some for all. A worker that fell asks (``RestartWanted``) and is answered. With a permit of
each kind it rests, is begun anew, and says so (``RestartDone``); only from then on does the time run after which the
permits are free again. Who goes for good gives back what it holds.

- Only errors make an agent fall: those that its session counts, till it gives up (D1). An end that somebody wanted is
  never undone. Nor is a fatal error, which says that no retry will mend it; it is to a session what an exit with
  ``{shutdown, Reason}`` is to a *transient* child of an OTP supervisor.
- An agent that is begun anew has no errors yet, and everything else as it was: its name, its letters, the numbers of
  its sessions.
- Who is told to stop while it is down is not brought back: a permit that arrives later fits no row.
"""

from collections.abc import Iterator
from itertools import count, takewhile
from typing import Final

import msgspec

from lifefold.core.fleet.board import restart_permit, worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, supervisor
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
from lifefold.core.lifecycles import session, session_profiles
from lifefold.core.policy.intensity import Intensity, span
from lifefold.effects import LogFatal, Tell

OF_ALL: Final = "*"
"""Whose the permits are that all workers share; no agent is called so."""


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


def comes_back(worker: Aggregate) -> bool:
    """Tell whether an agent may be begun anew if it stops, or has stopped."""
    found = worker.entities.get(supervisor.REF)
    return found is not None and found.state not in supervisor.OVER


# The worker's rules


def fall(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """An agent that stops by its errors falls, and may be begun anew; any other one stays down."""
    if transition.entered is session.State.STOPPED and comes_back(worker):
        wanted = not desired_state.is_to_end(worker.record("desired_state"))
        by_errors = wanted and isinstance(
            transition.event, session.SessionExited | session_profiles.PromptFailed | session_profiles.Stalled
        )
        said = [each.message for each in transition.effects if isinstance(each, LogFatal)]
        yield Dispatch(supervisor.REF, supervisor.Fell(" ".join(said)) if by_errors else supervisor.Dismissed())


@rule(on=desired_state.machine)
def dismiss(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """An agent that is down when it is told to stop is not brought back."""
    down = worker.record("session").state is session.State.STOPPED
    if transition.entered is desired_state.State.STOP and down and comes_back(worker):
        yield Dispatch(supervisor.REF, supervisor.Dismissed())


def ask(worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Who fell asks the board, when nothing is in its hands any more: what its session has left comes first."""
    found = worker.entities.get(supervisor.REF)
    asks = found is not None and found.state is supervisor.State.ASKING
    idle = worker.record("assignment").state is assignment.State.IDLE
    if asks and idle and transition.entered in {supervisor.State.ASKING, assignment.State.IDLE}:
        yield Tell("board", f"worker_slot:{worker.key}", worker_slot.RestartWanted())


@rule(on=supervisor.machine)
def begin_anew(worker: Aggregate, transition: Transition) -> Iterator[Dispatch | Tell]:
    """Who has rested is begun anew, and the board hears of it."""
    if isinstance(transition.event, supervisor.RestartDue):
        yield Dispatch("session", session_profiles.Restarted())
        yield Tell("board", f"worker_slot:{worker.key}", worker_slot.RestartDone())


# The board's rules


@rule(on=worker_slot.machine)
def grant(board: Aggregate, transition: Transition) -> Iterator[Dispatch | Tell]:
    """Who asks is given a permit of its own and one of all, or told why not."""
    if not isinstance(transition.event, worker_slot.RestartWanted):
        return
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
    """Say how often is too often."""
    times = "once" if len(every) == 1 else f"{len(every)} times"
    return f"{who} restarted {times} within {span(every[0].record.window_ms)}" if every else "it is not restarted"


@rule(on=worker_slot.machine)
def spend(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Who was begun anew has used its permits."""
    if isinstance(transition.event, worker_slot.RestartDone):
        for each in _held(board, transition.entity.removeprefix("worker_slot:")):
            yield Dispatch(each.ref, restart_permit.Used())


@rule(on=worker_slot.machine)
def give_back(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Who goes for good gives back what it has not used."""
    if transition.entered is worker_slot.State.GONE:
        for each in _held(board, transition.entity.removeprefix("worker_slot:")):
            yield Dispatch(each.ref, restart_permit.Returned())


def _held(board: Aggregate, name: str) -> list[Entity[restart_permit.RestartPermit]]:
    every = [*permits_of(board, name), *permits_of(board, OF_ALL)]
    return [each for each in every if each.record.worker == name]


# The promises


def up_or_down(worker: Aggregate) -> bool:
    """An agent that has not fallen has not stopped, and one that fell has."""
    found = worker.entities.get(supervisor.REF)
    stopped = worker.record("session").state is session.State.STOPPED
    return found is None or (found.state is not supervisor.State.UP) is stopped


def stopped_stays_so(worker: Aggregate) -> bool:
    """An agent that was told to stop is not brought back."""
    return worker.record("desired_state").state is not desired_state.State.STOP or not comes_back(worker)


OF_WORKERS: Final[tuple[Property[Aggregate], ...]] = (
    always("an agent is up until it stops, and then it is down", up_or_down),
    always("an agent that was told to stop is not restarted", stopped_stays_so),
)


class Held(msgspec.Struct, frozen=True):
    """Who holds permits, each name as often as it does."""

    names: tuple[str, ...]


def holders(of: Aggregate) -> Held | bool:
    """Return who holds permits, of a board, each name as often; of a worker, whether it is about to use them."""
    if of.kind == "worker":
        found = of.entities.get(supervisor.REF)
        return found is not None and found.state is supervisor.State.RESTING
    held = (each.record.worker for ref, each in of.entities.items() if ref.startswith("restart_permit:"))
    return Held(tuple(sorted(name for name in held if name)))


def _holding(fleet: Projection) -> list[str]:
    """Return the names of those who hold permits, each as often as it holds one."""
    return [name for each in fleet.aggregates.values() if isinstance(each, Held) for name in each.names]


def _resting(fleet: Projection) -> set[str]:
    """Return the names of those who are about to use theirs."""
    return {name.partition("/")[2] for name, each in fleet.aggregates.items() if each is True}


def are_permitted(fleet: Projection) -> bool:
    """Whoever is about to be restarted holds a permit of its own, and one of all."""
    held = _holding(fleet)
    return all(held.count(name) == _ONE_OF_EACH for name in _resting(fleet))


_ONE_OF_EACH: Final = 2


def permits_are_counted(fleet: Projection) -> bool:
    """When nothing is under way, nobody holds a permit but who is about to use it."""
    return bool(fleet.under_way) or set(_holding(fleet)) <= _resting(fleet)


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = projected(
    holders,
    always("whoever is about to be restarted has its permits", are_permitted),
    always("when every message has arrived, nobody has permits that it does not use", permits_are_counted),
)
