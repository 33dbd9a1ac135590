"""The commands ``run`` and ``demo``."""

import gc
import logging
import os
import shlex
import signal
import sqlite3
import sys
import tempfile
import traceback
from argparse import Namespace
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import cast

import anyio

from lifefold.core.policy.reasons import AbortReason
from lifefold.interpreters import store
from lifefold.interpreters.cli import busy, demo_message, displaced, inside, logs, outlet
from lifefold.interpreters.cli.account import Account, account_of
from lifefold.interpreters.cli.again import again
from lifefold.interpreters.cli.cluster_options import log_of
from lifefold.interpreters.cli.commands.planning import must_keep_its_name, settle
from lifefold.interpreters.cli.desk_beside import Address, desk_beside
from lifefold.interpreters.cli.display import Display, Wanted, display
from lifefold.interpreters.cli.dry_run import dry_run
from lifefold.interpreters.cli.errors import FOR_ANOTHER, BadInput, denied
from lifefold.interpreters.cli.recap import Recap
from lifefold.interpreters.cli.run_summary import summary, this_run
from lifefold.interpreters.cli.running_there import engine_of, run_there
from lifefold.interpreters.cli.wording import columns, this_command
from lifefold.interpreters.demo.project import ScaffoldError, write_demo
from lifefold.interpreters.desk import registry
from lifefold.interpreters.engine import LogMismatchError, WallClock
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load, place_of
from lifefold.interpreters.fleet_file.tasks import unproven
from lifefold.interpreters.fleet_runner import FleetFolder, OtherFleetError, Runner, UnusableInterpreterError, Verdict
from lifefold.interpreters.fleet_runner.log_owner import NONE_BEFORE, Before
from lifefold.interpreters.fleet_runner.notices import About
from lifefold.interpreters.fleet_runner.python_targets import unloadable
from lifefold.interpreters.fleet_runner.variables import untold
from lifefold.interpreters.processes.private import is_open_to_others, make_private, open_private
from lifefold.interpreters.store import NotAStore, StoreError, Unwritable
from lifefold.interpreters.store.address import is_address
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.left_at_pipes import end_own_at_pipes

UNEXPECTED = 3

Prepare = Callable[[Runner], None]
Show = Callable[[Runner, Account], Display]


def run(arguments: Namespace) -> int:
    """Run a fleet from its fleet file."""
    with outlet.opened() as out, ExitStack() as beside:
        fleet = _load(Path(arguments.fleet), watch=arguments.watch)
        serve = partial(desk_beside, port=arguments.serve, address=(address := Address()))
        engine = engine_of(arguments, fleet)
        log = log_of(arguments, fleet) if engine else logs.log_of(fleet.source, fleet.name, arguments.db)
        if arguments.db and not is_address(arguments.db) and not log.absolute().parent.is_dir():
            raise BadInput(
                f"--db {log}: {log.absolute().parent} is not a folder; accepted: a file in an existing folder"
            )
        inside.must_not_run(log)
        if not arguments.db and not engine:
            must_keep_its_name(fleet, log)
        if arguments.dry_run:
            return dry_run(fleet, *_before(fleet, log, is_again=arguments.again))
        if not engine:
            displaced.must_not_restart(log, this_run(fleet, log))
        busy.wait_until_readable(log)
        before = NONE_BEFORE
        if arguments.again:
            before, log = again(fleet, log)
        elif settle(fleet, log, accepted=arguments.accept, partial=arguments.rest):
            return 0
        show = partial(display, out=out, wanted=_wanted(arguments, address))
        if engine:
            return run_there(arguments, fleet, log, before, show, serve)

        def prepare(runner: Runner) -> None:
            runner.waits_for_operators = not arguments.no_wait
            beside.enter_context(serve(runner.log))

        return _run_and_tell(fleet, log, show, prepare, before)


def _before(fleet: Fleet, log: Path, *, is_again: bool) -> tuple[Path, Before | None]:
    """Return the log of a run, and the runs before a new log of ``--again``."""
    if not is_again:
        return log, None
    before, then = again(fleet, log)
    return then, before


def demo(arguments: Namespace) -> int:
    """Write the demonstration project, and run its fleet."""
    with outlet.opened() as out:
        return _demo(arguments, partial(display, out=out, wanted=_wanted(arguments, Address())))


def _wanted(arguments: Namespace, address: Address) -> Wanted:
    """Return how the options want a run to be shown, with the address of the desk beside it."""
    return Wanted(not (arguments.no_live or arguments.transitions), arguments.transitions, address)


def _demo(arguments: Namespace, show: Show) -> int:
    folder = Path(arguments.folder) if arguments.folder else Path(tempfile.mkdtemp(prefix="lifefold-demo-"))
    try:
        fleet_file = write_demo(folder)
    except (ScaffoldError, OSError) as error:
        raise BadInput(str(error)) from error
    print(f"The demo's project, a git repository with a fleet of scripted agents, is in {folder}")
    fleet, recap = _load(fleet_file), Recap()
    code = _run_and_tell(fleet, logs.default_log(fleet.source, fleet.name), show, prepare=partial(_stage, recap))
    print(f"\nFailures on the way, all recovered:\n{columns(recap.rows())}")
    print(f"\nWhat to try next:\n  cd {shlex.quote(str(folder))}\n{columns(_next_steps(this_command()))}")
    return code


def _stage(recap: Recap, runner: Runner) -> None:
    runner.observers.append(recap.observe)
    demo_message.send(runner)


def _next_steps(lifefold: str) -> list[tuple[str, str]]:
    return [
        ("  git log --oneline --graph", "what the agents have done"),
        (f"  {lifefold} tasks", "the outcome of each task, and the number of its attempts"),
        (f"  {lifefold} log", "what has happened, and how each attempt ended"),
        (f"  {lifefold} table session", "the lifecycle of every session"),
        (f"  {lifefold} init ~/my-fleet", "a fleet of your own"),
    ]


def _load(path: Path, *, watch: bool = False) -> Fleet:
    try:
        return load(path, watch=watch)
    except FleetFileError as error:
        raise BadInput(str(error)) from error


def _calm_the_collector() -> None:
    """Let the garbage collector run less often: the state of a fleet is large and has no cycles."""
    gc.set_threshold(50_000, 20, 100)


def _run_and_tell(
    fleet: Fleet, log: Path, show: Show, prepare: Prepare | None = None, before: Before = NONE_BEFORE
) -> int:
    _calm_the_collector()
    verdict: Verdict | None = None
    try:
        runner, account, verdict = anyio.run(_run, fleet, log, show, prepare, before)
        if runner.displaced is not None:
            return UNEXPECTED  # it was reported when the runner had left
        summary(runner, account, verdict, log)
    except BadInput:
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: reports what is safe and what to do
        code = _unwritten(failure) if (failure := _of_the_store(error)) else _unexpected(log)
        return code if verdict is None else verdict
    return verdict


async def _run(
    fleet: Fleet, log: Path, show: Show, prepare: Prepare | None, before: Before
) -> tuple[Runner, Account, Verdict]:
    clock, begins = WallClock(), not log.exists()  # noqa: ASYNC240 - before there is anything to wait for
    wrong = await unloadable(fleet)
    if wrong:
        raise BadInput("\n".join(wrong))
    try:
        runner = await busy.patiently(partial(Runner.open, fleet, log, clock=clock, before=before))
    except WorkplaceError as error:
        raise BadInput(f"{place_of(fleet.source, 'fleet', 'repository')}: {error}") from error
    except Unwritable as error:
        raise BadInput(f"{error}; {FOR_ANOTHER}") from error
    except PermissionError as error:
        raise BadInput(denied(error)) from error
    except (StoreError, OtherFleetError, LogMismatchError, UnusableInterpreterError) as error:
        raise BadInput(str(error)) from error
    except (OSError, sqlite3.Error) as error:
        raise BadInput(f"{log}: the log cannot be opened there: {error}") from error
    clock.not_before(runner.engine.ledger.last_ms)
    registry.note(log, fleet.name, fleet.source)
    _introduce(runner, begins=begins)
    try:
        account = Account() if begins else await account_of(log)
        runner.observers.append(account.observe)
        runner.engine.keep_notes(account.notes)
        if prepare is not None:
            prepare(runner)
        verdict = Verdict.LEFT
        with _store_heard(runner):
            shown = show(runner, account)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_leave_on_signal, runner, shown)
                tasks.start_soon(shown.run)
                verdict = await runner.run()
                tasks.cancel_scope.cancel()
        return runner, account, verdict
    finally:
        if runner.displaced is not None:
            print(displaced.sentence(runner.displaced, this_run(fleet, log)), file=sys.stderr)
        runner.close()


def _introduce(runner: Runner, *, begins: bool) -> None:
    """Print the target branch, and at the start of a log the warnings about the fleet file."""
    fleet = runner.fleet
    unverified = unproven(fleet.tasks, merges=fleet.repository is not None)
    for warning in (*fleet.warnings, *unverified, *untold(fleet, os.environ)) if begins else ():
        print(f"warning: {warning}", file=sys.stderr)
    for path in [path for path in (runner.log, runner.folder.root) if is_open_to_others(path)][:1]:
        close = f"chmod -R o-rwx {shlex.quote(str(runner.log))}*"
        print(f"warning: {path}: every user of this machine may read it; to prevent that: {close}", file=sys.stderr)
    if fleet.repository is not None:
        top = next((each for each in (fleet.repository, *fleet.repository.parents) if (each / ".git").exists()), None)
        print(f"work is merged into the branch {runner.branch} of {top or fleet.repository}")


class _Heard(logging.Handler):
    """Makes a notice of each record of a Python logger."""

    def __init__(self, runner: Runner) -> None:
        super().__init__()
        self._runner = runner

    def emit(self, record: logging.LogRecord) -> None:
        self._runner.handlers.operator.tell_while(About.WAITING, "log", record.getMessage())


@contextmanager
def _store_heard(runner: Runner) -> Generator[None]:
    """Show the log records of the store, which may wait for another program, as notices."""
    logger, heard = logging.getLogger(store.__name__), _Heard(runner)
    logger.addHandler(heard)
    try:
        yield
    finally:
        logger.removeHandler(heard)
        runner.handlers.operator.over(About.WAITING, "log")


async def _leave_on_signal(runner: Runner, shown: Display) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for number in signals:
            before = runner.leaving
            interrupted = number == signal.SIGINT
            if not runner.leave(AbortReason.USER_INTERRUPT if interrupted else AbortReason.SHUTDOWN_SIGNAL):
                continue
            if before == len(_LEAVING):
                shown.give_up()
                end_own_at_pipes()
                os._exit(Verdict.LEFT)  # as safe as a crash: the leases end the sessions that still run
            shown.leaving(_LEAVING[before])


_LEAVING = (
    "leaving: sessions are asked to end; Ctrl-C again to kill them",
    "leaving: sessions are killed; Ctrl-C again to leave at once",
)


def _of_the_store(error: BaseException) -> StoreError | None:
    """Return the error of the log that has ended a run, if one has."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return next(filter(None, map(_of_the_store, group.exceptions)), None)
    return error if isinstance(error, StoreError) else None


def _unwritten(failure: StoreError) -> int:
    onward = (
        ""
        if isinstance(failure, NotAStore)
        else " When that is fixed, give the same command again: it goes on from there."
    )
    print(f"lifefold: {failure}\nThe run has ended.{onward}", file=sys.stderr)
    return UNEXPECTED


def _unexpected(log: Path) -> int:
    report, details = FleetFolder(log).root / "crash.txt", traceback.format_exc()
    try:
        make_private(report.parent)
        with open_private(report) as file:
            file.write(details)
    except OSError:
        where = f"the details:\n{details}"
    else:
        where = f"the details are in {report}"
    print(
        f"lifefold: unexpected error; {where}\n"
        "Everything in the log is safe. Give the same command again: it goes on from there.",
        file=sys.stderr,
    )
    return UNEXPECTED
