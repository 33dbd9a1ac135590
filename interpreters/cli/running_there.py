"""``lifefold run`` on a Temporal server: a brain in this process, with the display of a local run.

Ctrl-C drains: all agents hold, and the brain leaves when no session runs. Any brain or local runner can go on then.
"""

import signal
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from lifefold.core.policy.reasons import AbortReason
from lifefold.interpreters.cli.account import Account, account_of
from lifefold.interpreters.cli.cluster_options import cluster_of, destination_of, must_be_able_to, pools_of, server_of
from lifefold.interpreters.cli.display import Display, ShownFleet
from lifefold.interpreters.cli.errors import BadInput, first_of
from lifefold.interpreters.cli.run_summary import summary
from lifefold.interpreters.cli.watched_brain import OfBrain
from lifefold.interpreters.desk import registry
from lifefold.interpreters.engine import LogMismatchError
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_file.cluster import ENGINE
from lifefold.interpreters.fleet_file.values import RefusedError
from lifefold.interpreters.fleet_runner import OtherFleetError, Verdict
from lifefold.interpreters.fleet_runner.log_owner import Before
from lifefold.interpreters.store import Fenced, StoreError
from lifefold.interpreters.worktrees.errors import WorkplaceError

if TYPE_CHECKING:
    from lifefold.interpreters.fleet_cluster import FleetBrain

LOCAL: Final = "local"
"""The engine of one machine: a runner in this process."""

Show = Callable[[ShownFleet, Account], Display]
Beside = Callable[[Path], AbstractContextManager[None]]

_LEAVING: Final = (
    "leaving: all agents hold, and sessions are asked to end; Ctrl-C again to leave them to their hosts",
    "leaving: sessions go on without a brain",
)


def engine_of(arguments: Namespace, fleet: Fleet) -> str:
    """Return the address of the engine of a run; empty for a local one. Raises ``BadInput``."""
    engine = arguments.engine or fleet.cluster.engine or LOCAL
    if engine == LOCAL:
        return ""
    try:
        ENGINE.parse(engine)
    except RefusedError as refused:
        raise BadInput(f'--engine: {refused}; or "{LOCAL}"') from refused
    return engine


def run_there(  # noqa: PLR0913, PLR0917 - what a run is, each with its name
    arguments: Namespace, fleet: Fleet, log: Path, before: Before, show: Show, beside: Beside
) -> int:
    """Run a fleet on the engine of its arguments, after the runs ``before``; return the exit code."""
    options = dict.fromkeys(("detection", "tls", "tls_ca", "tls_cert", "tls_key"))
    words = {"command": arguments.command, "no_wait": arguments.no_wait}
    named = Namespace(server=arguments.engine, named_by="--engine", **words, **options)
    must_be_able_to(named, fleet)
    try:
        verdict, of, account = anyio.run(_run, named, fleet, log, before, show, beside)
    except* (OtherFleetError, Fenced, LogMismatchError) as errors:
        raise BadInput(str(first_of(errors))) from errors
    summary(of, account, verdict, log)  # no brain has the log any more, so the summary names unmerged work
    return verdict


async def _run(  # noqa: PLR0913, PLR0917 - as above
    named: Namespace, fleet: Fleet, log: Path, before: Before, show: Show, beside: Beside
) -> tuple[Verdict, OfBrain, Account]:
    from lifefold.interpreters.fleet_cluster import FleetBrain  # noqa: PLC0415 - needs an extra

    begins = not log.exists()  # noqa: ASYNC240 - before there is anything to wait for
    cluster = await cluster_of(named, fleet)
    try:
        brain = await FleetBrain.open(fleet, log, cluster, partial(pools_of, []), before)
    except (OtherFleetError, WorkplaceError, StoreError) as error:
        raise BadInput(str(error)) from error
    registry.note(log, fleet.name, fleet.source)
    verdict, of = Verdict.LEFT, OfBrain(brain)
    try:
        account = Account() if begins else await account_of(log)
        brain.observers.append(account.observe)
        brain.commits.keep_notes(account.notes)
        brain.waits_for_operators = not named.no_wait
        with beside(log):
            print(destination_of(fleet, brain.branch), end="")
            print(
                f"deciding on {server_of(named, fleet)}; hosts run the sessions: lifefold host {fleet.source}",
                flush=True,
            )
            shown = show(of, account)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_leave_on_signal, brain, shown)
                tasks.start_soon(shown.run)
                verdict = await brain.run()
                tasks.cancel_scope.cancel()
    finally:
        brain.close()
    return verdict, of, account


async def _leave_on_signal(brain: "FleetBrain", shown: Display) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for number in signals:
            if brain.leaving < len(_LEAVING):
                words = _LEAVING[brain.leaving]
                brain.leave(AbortReason.USER_INTERRUPT if number == signal.SIGINT else AbortReason.SHUTDOWN_SIGNAL)
                shown.leaving(words)
            else:
                shown.give_up()
                sys.exit(Verdict.LEFT)
