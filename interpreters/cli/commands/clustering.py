"""The commands ``brain`` and ``host``: a fleet on a Temporal server."""

import signal
import socket
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import to_thread

from lifefold.interpreters.cli.account import account_of
from lifefold.interpreters.cli.cluster_options import (
    cluster_of,
    destination_of,
    fleet_and_log,
    must_be_able_to,
    pools_of,
)
from lifefold.interpreters.cli.display import NOTICE_PAUSE_S
from lifefold.interpreters.cli.errors import BadInput, first_of
from lifefold.interpreters.cli.server_logs import is_begun
from lifefold.interpreters.cli.wording import as_typed, clock_time
from lifefold.interpreters.engine import LogMismatchError
from lifefold.interpreters.explain.why.phrases import count
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_file.cluster import DEFAULT_POOL
from lifefold.interpreters.fleet_runner import OtherFleetError, UnusableInterpreterError
from lifefold.interpreters.fleet_runner.retry_until import patiently
from lifefold.interpreters.store import Busy, Locked, StoreError, Unreachable
from lifefold.interpreters.worktrees.errors import InTheWayError, WorkplaceError

if TYPE_CHECKING:
    from lifefold.interpreters.fleet_cluster import FleetBrain, FleetHost
    from lifefold.interpreters.fleet_cluster.brain import PoolsOf
    from lifefold.interpreters.temporal import Cluster

LOG_POLL_S: Final = 0.5

LEFT: Final = 130


def brain(arguments: Namespace) -> int:
    """Decide for a fleet until it is over; return the exit code of its verdict."""
    fleet, _ = fleet_and_log(arguments)
    return anyio.run(_brain, arguments, fleet)


def host(arguments: Namespace) -> int:
    """Run sessions of a fleet until SIGTERM."""
    fleet, log = fleet_and_log(arguments)
    return anyio.run(_host, arguments, fleet, log)


async def _brain(arguments: Namespace, fleet: Fleet) -> int:
    pools = partial(pools_of, arguments.place)
    pools(fleet)
    must_be_able_to(arguments, fleet)
    cluster = await cluster_of(arguments, fleet)
    try:
        opened = await _opened_in_turn(arguments, cluster, pools)
    except (OtherFleetError, WorkplaceError) as error:
        raise BadInput(str(error)) from error
    if opened is None:
        print(f"the brain of {fleet.name} has left; it has decided nothing")
        return LEFT
    fleet, log = opened.fleet, opened.log
    code, account = LEFT, await account_of(log)
    opened.observers.append(account.observe)
    opened.commits.keep_notes(account.notes)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_on_signal, tasks.cancel_scope.cancel)
            tasks.start_soon(_print_notices, opened.watch.notices)
            print(destination_of(fleet, opened.branch), end="")
            print(f"the brain of {fleet.name} decides, with the log {log}", flush=True)
            code = int(await opened.run())
            tasks.cancel_scope.cancel()
    except* (OtherFleetError, LogMismatchError) as errors:
        raise BadInput(str(first_of(errors))) from errors
    except* StoreError as errors:  # such as ``Fenced``
        raise first_of(errors) from errors
    finally:
        opened.close()
    print(f"the brain of {fleet.name} has left; the fleet goes on" if code == LEFT else _OUTCOMES[code])
    return code


async def _opened_in_turn(arguments: Namespace, cluster: "Cluster", pools: "PoolsOf") -> "FleetBrain | None":
    """Open the log of a fleet once no other process writes it; None if this process is asked to leave before.

    The fleet file is read again after the wait, because the plan may have changed meanwhile.
    """
    from lifefold.interpreters.fleet_cluster import FleetBrain  # noqa: PLC0415 - needs an extra

    has_waited = False
    while True:
        fleet, log = fleet_and_log(arguments)
        try:
            return await FleetBrain.open(fleet, log, cluster, pools)
        except (Locked, FileExistsError):  # another first brain has made the log meanwhile
            if not has_waited:
                print(f"the brain of {fleet.name} stands by: another process decides, with the log {log}", flush=True)
            has_waited = True
        except (Busy, Unreachable):
            if not has_waited:
                raise
        if not await _is_free(log):
            return None


async def _is_free(log: Path) -> bool:
    """Wait until no process writes a log; return False if this process is asked to leave before."""
    from lifefold.interpreters.fleet_cluster import until_free  # noqa: PLC0415 - needs an extra

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_on_signal, tasks.cancel_scope.cancel)
        await until_free(log)
        tasks.cancel_scope.cancel()
        return True
    return False


_OUTCOMES: Final = {0: "all tasks are closed", 1: "some tasks have failed; lifefold tasks has the reasons"}


async def _host(arguments: Namespace, fleet: Fleet, log: Path) -> int:
    must_be_able_to(arguments, fleet)
    from lifefold.interpreters.fleet_cluster import FleetHost, NameTakenError  # noqa: PLC0415 - needs an extra

    cluster = await cluster_of(arguments, fleet)
    name = arguments.name or socket.gethostname()
    await _wait_for(log)
    pools = arguments.pool or [DEFAULT_POOL]
    drain_s = fleet.cluster.drain_ms / 1_000 if arguments.drain is None else arguments.drain
    begin = partial(
        FleetHost.open,
        fleet,
        log,
        cluster,
        name,
        pools={pool: arguments.capacity or fleet.cluster.capacity_of(pool) for pool in pools},
        capacity=arguments.capacity,
        drain_s=drain_s,
    )
    try:
        opened = await patiently(begin, (InTheWayError,), _told_once())
    except (NameTakenError, OtherFleetError, WorkplaceError, UnusableInterpreterError) as error:
        raise BadInput(str(error)) from error
    opened.presence.warn = _warn
    try:
        await opened.presence.begin()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_on_signal, partial(drain_aloud, opened, drain_s))
            print(f"the host {name} takes work of {fleet.name}", flush=True)
            await opened.run()
            tasks.cancel_scope.cancel()
    except NameTakenError as error:  # it has begun at the same time
        raise BadInput(str(error)) from error
    finally:
        opened.close()
    print(f"the host {name} has left")
    return 0


def drain_aloud(opened: "FleetHost", drain_s: float) -> None:
    """Let a host drain, and say so once."""
    if not opened.host.is_draining:
        ends = f"lets {count(opened.sessions, 'session')} end (at most {drain_s:g} s)"
        print(f"the host {opened.host.name} drains: it takes no more work, and {ends}", flush=True)
    opened.drain()


def _told_once() -> Callable[[str], None]:
    """Return a function that prints why a host waits, and no repetition of the same reason."""
    said: list[str] = []

    def tell(why: str) -> None:
        if said[-1:] != [why]:
            said.append(why)
            print(f"waiting: {why}", file=sys.stderr, flush=True)

    return tell


def _warn(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr, flush=True)


async def _print_notices(notices: Sequence[tuple[str, str]]) -> None:
    """Print what hosts tell, and which host comes, leaves or is lost."""
    printed = 0
    while True:
        for agent, message in notices[printed:]:
            print(f"{clock_time(time.time())}  ! {agent}: {as_typed(message)}", flush=True)
        printed = len(notices)
        await anyio.sleep(NOTICE_PAUSE_S)


async def _wait_for(log: Path) -> None:
    if not is_begun(log):
        print(f"waiting for the brain to begin {log}", file=sys.stderr, flush=True)
    while not await to_thread.run_sync(is_begun, log):  # noqa: ASYNC110 - another process makes it
        await anyio.sleep(LOG_POLL_S)


async def _on_signal(leave: Callable[[], Any]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _number in signals:
            leave()
