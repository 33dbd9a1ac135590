"""The server and the pools of a fleet: options of a command line, and otherwise the ``[cluster]`` of the fleet file."""

import os
import shlex
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.server_logs import is_next_begun
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load
from lifefold.interpreters.store.pointer import address_of
from lifefold.interpreters.worktrees.remote import shown_address

if TYPE_CHECKING:
    from lifefold.interpreters.temporal import Cluster

SCHEME: Final = "temporal://"

NEEDS: Final = "needs the package temporalio: pip install 'lifefold[temporal]'"


def fleet_and_log(arguments: Namespace) -> tuple[Fleet, Path]:
    """Return the fleet of a command, and its log: the option, or that of the fleet file. Raises ``BadInput``."""
    try:
        fleet = load(Path(arguments.fleet), watch=getattr(arguments, "watch", True))  # a host adds no tasks
    except FleetFileError as error:
        raise BadInput(str(error)) from error
    return fleet, log_of(arguments, fleet)


def log_of(arguments: Namespace, fleet: Fleet) -> Path:
    """Return the log of a fleet on a cluster: the option, or that of the latest run on the server of the fleet file.

    Raises ``BadInput`` if the fleet has its log in a file and none on that server, ``StoreError``.
    """
    if arguments.db or not fleet.cluster.log:
        return logs.log_of(fleet.source, fleet.name, arguments.db)
    log = logs.log_of(fleet.source, fleet.name, fleet.cluster.log)
    here, address = logs.default_log(fleet.source, fleet.name), address_of(log)
    if not log.exists() and here.exists() and address_of(here) is None:
        there = shlex.quote(str(address))
        raise BadInput(
            f"{fleet.source}: cluster.log: the fleet has its log in the file {here}, and none on the server;"
            f" lifefold move --to {there} {shlex.quote(str(here))} brings it there; --db {there} begins a new one"
        )
    return _of_latest_run(log)


def _of_latest_run(log: Path) -> Path:
    """Return the log of the latest run after this one on its server, or this one; it may have begun elsewhere."""
    while log.exists() and is_next_begun(log, then := logs.next_log(log)):
        log = then
    return log


def destination_of(fleet: Fleet, branch: str) -> str:
    """Return the sentence that says where the work of a fleet is merged; empty without a repository."""
    remote = shown_address(fleet.cluster.remote)
    return f"work is merged into the branch {branch} of {remote}\n" if fleet.repository is not None else ""


def server_of(arguments: Namespace, fleet: Fleet) -> str:
    """Return the address of the engine, ``HOST:PORT`` or ``HOST:PORT/NAMESPACE``; empty if none is named."""
    return (arguments.server or fleet.cluster.engine).removeprefix(SCHEME)


def must_be_able_to(arguments: Namespace, fleet: Fleet) -> None:
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


async def cluster_of(arguments: Namespace, fleet: Fleet) -> "Cluster":
    """Connect to the server of a fleet. Raises ``BadInput``."""
    from temporalio.service import TLSConfig  # noqa: PLC0415 - needs an extra

    from lifefold.interpreters.temporal import Cluster, Times, connect  # noqa: PLC0415 - as above

    plan, server = fleet.cluster, server_of(arguments, fleet)
    if not server:
        said = f"name the Temporal server: --server HOST:PORT, or engine in [cluster] of {fleet.source}"
        raise BadInput(said)
    address, _, namespace = server.partition("/")
    ca = _bytes_of(arguments.tls_ca or plan.tls_ca)
    cert, key = _bytes_of(arguments.tls_cert or plan.tls_cert), _bytes_of(arguments.tls_key or plan.tls_key)
    api_key = _api_key(fleet)
    tls: TLSConfig | bool = arguments.tls or plan.tls or api_key is not None
    if ca or cert or key:
        tls = TLSConfig(ca, None, cert, key)
    detection_ms = 1_000 * arguments.detection if arguments.detection else plan.detection_ms
    try:
        client = await connect(address, namespace or "default", tls=tls, api_key=api_key)
    except ValueError as error:
        raise BadInput(f"the Temporal server {server}: {error}") from error
    except RuntimeError as error:
        raise BadInput(f"no Temporal server answers at {server}, which {_where(arguments, fleet)} names") from error
    return Cluster(client, fleet.name, Times(detection_ms=detection_ms))


def _where(arguments: Namespace, fleet: Fleet) -> str:
    """Return what has named the server."""
    return arguments.named_by if arguments.server else f"[cluster] of {fleet.source}"


def _api_key(fleet: Fleet) -> str | None:
    """Return the API key of the service; the file comes before the variable."""
    if fleet.cluster.api_key_file:
        key = (_bytes_of(fleet.cluster.api_key_file) or b"").decode(errors="replace").strip()
    else:
        key = os.environ.get(fleet.cluster.api_key_env, "")
    return key or None


def _bytes_of(path: str | None) -> bytes | None:
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def pools_of(placed: list[str], fleet: Fleet) -> Mapping[str, str]:
    """Return the pools of all agents and services; ``placed`` are options, AGENT=POOL. Raises ``BadInput``."""
    names = [*(each.name for each in fleet.agents), *(each.name for each in fleet.services)]
    pools = {name: fleet.cluster.pool_of(name) for name in names}
    for each in placed:
        agent, _, pool = each.partition("=")
        if not pool or fleet.named(agent) is None:
            raise BadInput(f"--place {each}: accepted: AGENT=POOL, with an agent of {fleet.source}")
        pools[agent] = pool
    return pools
