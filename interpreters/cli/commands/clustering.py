"""The commands ``brain`` and ``host``: a fleet on a Temporal server."""

import os
import signal
import socket
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.fleet_runner import OtherFleetError, UnusableInterpreterError
from lifefold.interpreters.worktrees.errors import WorkplaceError

if TYPE_CHECKING:
    from lifefold.interpreters.temporal import Cluster

API_KEY: Final = "TEMPORAL_API_KEY"
"""The variable with the key of a Temporal service: a key on a command line is visible to all users."""

LOG_POLL_S: Final = 0.5

LEFT: Final = 130

NEEDS: Final = "needs the package temporalio: pip install 'lifefold[temporal]'"


def brain(arguments: Namespace) -> int:
    """Decide for a fleet until it is over; return the exit code of its verdict."""
    fleet, log = _fleet_and_log(arguments)
    return anyio.run(_brain, arguments, fleet, log)


def host(arguments: Namespace) -> int:
    """Run sessions of a fleet until SIGTERM."""
    fleet, log = _fleet_and_log(arguments)
    return anyio.run(_host, arguments, fleet, log)


def _fleet_and_log(arguments: Namespace) -> tuple[Fleet, Path]:
    try:
        fleet = load(Path(arguments.fleet))
    except FleetFileError as error:
        raise BadInput(str(error)) from error
    return fleet, logs.log_of(fleet.source, fleet.name, arguments.db)


async def _brain(arguments: Namespace, fleet: Fleet, log: Path) -> int:
    pools = _pools(arguments.place, fleet)
    _must_be_able_to(arguments, fleet)
    from lifefold.interpreters.fleet_cluster import FleetBrain  # noqa: PLC0415 - needs an extra

    cluster = await _cluster(arguments, fleet)
    try:
        opened = await FleetBrain.open(fleet, log, cluster, pools)
    except (OtherFleetError, WorkplaceError) as error:
        raise BadInput(str(error)) from error
    code = LEFT
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_on_signal, tasks.cancel_scope.cancel)
            print(f"the brain of {fleet.name} decides, with the log {log}", flush=True)
            code = int(await opened.run())
            tasks.cancel_scope.cancel()
    except* OtherFleetError as errors:
        raise BadInput(str(errors.exceptions[0])) from errors
    finally:
        opened.close()
    print(f"the brain of {fleet.name} has left; the fleet goes on" if code == LEFT else _OUTCOMES[code])
    return code


_OUTCOMES: Final = {0: "all tasks are closed", 1: "some tasks have failed; lifefold tasks has the reasons"}


async def _host(arguments: Namespace, fleet: Fleet, log: Path) -> int:
    _must_be_able_to(arguments, fleet)
    from lifefold.interpreters.fleet_cluster import FleetHost  # noqa: PLC0415 - needs an extra

    cluster = await _cluster(arguments, fleet)
    name = arguments.name or socket.gethostname()
    await _wait_for(log, arguments, fleet)
    try:
        opened = await FleetHost.open(
            fleet,
            log,
            cluster,
            name,
            pools=tuple(arguments.pool or ["default"]),
            capacity=arguments.capacity,
            drain_s=arguments.drain,
        )
    except (OtherFleetError, WorkplaceError, UnusableInterpreterError) as error:
        raise BadInput(str(error)) from error
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_on_signal, opened.host.drain)
            print(f"the host {name} takes work of {fleet.name}", flush=True)
            await opened.host.run()
            tasks.cancel_scope.cancel()
    finally:
        opened.close()
    print(f"the host {name} has left")
    return 0


async def _wait_for(log: Path, arguments: Namespace, fleet: Fleet) -> None:
    if not log.exists():  # noqa: ASYNC240 - a look at one file
        print(f"waiting for the brain to begin {log}", file=sys.stderr, flush=True)
    while not logs.log_of(fleet.source, fleet.name, arguments.db).exists():  # noqa: ASYNC110 - another process makes it
        await anyio.sleep(LOG_POLL_S)


async def _on_signal(leave: Callable[[], Any]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _number in signals:
            leave()


def _must_be_able_to(arguments: Namespace, fleet: Fleet) -> None:
    """Raise ``BadInput`` without the library of Temporal, and for a fleet that cannot run on a cluster."""
    try:
        from lifefold.interpreters.fleet_cluster import UnfitFleetError, must_fit  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "temporalio":
            raise
        raise BadInput(f"lifefold {arguments.command.partition(':')[2]} {NEEDS}") from error
    try:
        must_fit(fleet)
    except UnfitFleetError as error:
        raise BadInput(str(error)) from error


async def _cluster(arguments: Namespace, fleet: Fleet) -> "Cluster":
    from temporalio.service import TLSConfig  # noqa: PLC0415 - needs an extra

    from lifefold.interpreters.temporal import Cluster, Times, connect  # noqa: PLC0415 - as above

    address, _, namespace = arguments.server.removeprefix("temporal://").partition("/")
    files = {name: _read(getattr(arguments, name)) for name in ("tls_ca", "tls_cert", "tls_key")}
    tls: TLSConfig | bool = arguments.tls or API_KEY in os.environ
    if any(files.values()):
        tls = TLSConfig(files["tls_ca"], None, files["tls_cert"], files["tls_key"])
    try:
        times = Times(detection_ms=1_000 * arguments.detection)
        client = await connect(address, namespace or "default", tls=tls, api_key=os.environ.get(API_KEY))
    except ValueError as error:
        raise BadInput(f"--detection, --server: {error}") from error
    except RuntimeError as error:
        raise BadInput(f"--server {arguments.server}: no Temporal server answers there") from error
    return Cluster(client, fleet.name, times)


def _read(path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def _pools(placed: list[str], fleet: Fleet) -> dict[str, str]:
    """Return the pools of agents. Raises ``BadInput`` for a text that is not AGENT=POOL, and for an unknown agent."""
    pools: dict[str, str] = {}
    for each in placed:
        agent, _, pool = each.partition("=")
        if not pool or fleet.named(agent) is None:
            raise BadInput(f"--place {each}: accepted: AGENT=POOL, with an agent of {fleet.source}")
        pools[agent] = pool
    return pools
