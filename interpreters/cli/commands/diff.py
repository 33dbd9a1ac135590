"""The command ``diff``: the changes that the work at a task makes, against their base."""

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import msgspec

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.system import board
from lifefold.core.kernel import replace
from lifefold.interpreters.cli import excerpts, logs
from lifefold.interpreters.cli.earlier import found_earlier
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.names import UnknownName, must_be_there
from lifefold.interpreters.cli.pager import is_coloured, page
from lifefold.interpreters.cli.wording import age
from lifefold.interpreters.desk.changes import Changes, NoChangesError, Repository, Then
from lifefold.interpreters.desk.difference import Attempts, compared, difference, patch, verified
from lifefold.interpreters.desk.history import History, open_claims
from lifefold.interpreters.desk.verifications import Verification
from lifefold.interpreters.desk.visible import lines, visible
from lifefold.interpreters.explain import task_status
from lifefold.interpreters.fleet_runner.remote_work import is_at_remote
from lifefold.interpreters.store import LogStore

COLOURS: Final = {"+": "32", "-": "31", "@": "36"}
"""The colours of lines by their first character, as git's: added, removed, and the place in the file."""

_BOLD: Final = "1"
_FILE: Final = ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "rename ", "similarity ", "old mode")


def diff(arguments: Namespace) -> int:
    """Print what is compared, and the difference; with ``--tool`` show it in another program."""
    if arguments.log:
        from lifefold.interpreters.cli.commands.comparing import compare  # noqa: PLC0415 - seldom needed

        if arguments.at is not None:
            raise BadInput("--at means nothing with two logs: it is of the work at a task")
        return compare((arguments.task, *arguments.log), arguments)
    if arguments.tool and arguments.json:
        raise BadInput("--tool and --json: accepted: one of them")
    with logs.peek(arguments.db, arguments.at) as store:
        history = History()
        task = task_of(store, arguments.task, history)
        then = None if store.past is None else Then(store.past[1], open_claims(history.claims(task.id)))
        of = replace(_attempts(task, history, arguments.attempt, arguments.since), then=then)
        try:
            return _with_tool(store, task, arguments.tool, of) if arguments.tool else _print(store, task, arguments, of)
        except NoChangesError as error:
            raise BadInput(
                logs.typed(f"{error}; lifefold why {task.id}{logs.LOG} explains its state", store)
            ) from error


def _attempts(task: FleetTask, history: History, attempt: int, since: int) -> Attempts:
    """Return which attempts are compared. Raises ``BadInput`` for one that was not."""
    claims = {each: history.claims_of_attempt(task.id, each) for each in (attempt, since) if each}
    for option, number in (("--attempt", attempt), ("--since", since)):
        if number and not claims[number]:
            last = history.attempt(task.id, task.epoch)
            accepted = f"1 to {last}" if last > 1 else "1" if last else "none yet"
            raise BadInput(f"{option} {number}: {task.id} has no such attempt; accepted: {accepted}")
    return Attempts(attempt, since, claims)


def _print(store: LogStore, task: FleetTask, arguments: Namespace, of: Attempts) -> int:
    options = (f"--stat={shutil.get_terminal_size().columns}",) if arguments.stat else ()
    if arguments.json:
        found = anyio.run(partial(difference, store, task, options, of, with_verification=arguments.verification))
        print(json.dumps(msgspec.to_builtins(found), indent=2))
        return 0
    changes, text = anyio.run(patch, store, task, options, of)
    checked = _verified_lines(store, task, changes) if arguments.verification else ()
    if sys.stdout.isatty():
        page((*_shown(changes, text, coloured=is_coloured()), *checked))
        return 0
    print(visible(changes.said), file=sys.stderr, flush=True)
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()
    for line in checked:
        print(line)
    return 0


def _verified_lines(store: LogStore, task: FleetTask, changes: Changes) -> tuple[str, ...]:
    """Return the lines of the verification of what is compared; a host of a cluster keeps those of its own."""
    found = anyio.run(verified, store, task, changes)
    if found or not task.verify or not is_at_remote(store):
        return tuple(verified_lines(found))
    folder = f"verifications/{task.id} of the files beside its log"
    return ("", f"no output of a verification is on this machine; the host that has run it keeps it, in {folder}")


def task_of(store: LogStore, name: str, history: History) -> FleetTask:
    """Return the record of a task, and fill the history of its log. Raises ``BadInput`` for an unknown one."""
    ledger = logs.fold(store)
    there = ledger.aggregates
    names = [each.id for each in task_status.tasks(there)] if board.NAME in there else []
    try:
        must_be_there("task", [name], names)
    except UnknownName as unknown:
        raise found_earlier(store, unknown) from None
    for decision in excerpts.of_claims(store, ledger, name):
        history.observe(decision.entry.stream, decision.reaction)
    found: FleetTask = there[board.NAME].record(f"task:{name}")
    return found


def _shown(changes: Changes, text: bytes, *, coloured: bool) -> Iterator[str]:
    """Yield the lines for a terminal; no control character of a file reaches it."""
    yield visible(changes.said)
    yield ""
    if not text:
        yield "(nothing is changed)"
    for line in lines(text) if text else ():
        colour = _colour(line) if coloured else ""
        yield f"\x1b[{colour}m{line}\x1b[m" if colour else line


def _colour(line: str) -> str:
    return _BOLD if line.startswith(_FILE) else COLOURS.get(line[:1], "")


def verified_lines(found: Sequence[Verification]) -> Iterator[str]:
    """Yield the commands of a verification, each with its end and its output."""
    for each in found:
        took = f" after {age(each.ended_ms - each.began_ms)}" if each.ended_ms and each.began_ms else ""
        yield ""
        yield f"verification of claim {each.claim}: `{each.command}` {each.ended}{took}"
        yield from (f"  {line}" for line in each.output)


def _words(tool: str) -> list[str]:
    try:
        words = shlex.split(tool)
    except ValueError as error:
        raise BadInput(f"--tool {tool}: {error}; accepted: a command, as meld or 'diff -ru'") from error
    if not words or shutil.which(words[0]) is None:
        raise BadInput(
            f"--tool {tool}: there is no such program; accepted: a command that compares two folders, as meld"
        )
    return words


def _with_tool(store: LogStore, task: FleetTask, tool: str, of: Attempts) -> int:
    """Run a program on two folders with the changed files of both states; they are removed after it."""
    words = _words(tool)
    with tempfile.TemporaryDirectory(prefix="lifefold-diff-") as folder:
        changes, (before, after) = anyio.run(_sides, store, task, Path(folder), of)
        print(visible(changes.said), file=sys.stderr, flush=True)
        subprocess.call([*words, str(before), str(after)])  # noqa: S603 - the user's own program
    return 0


async def _sides(store: LogStore, task: FleetTask, folder: Path, of: Attempts) -> tuple[Changes, tuple[Path, Path]]:
    repository = Repository(store)
    changes = await compared(repository, task, of)
    return changes, await repository.sides(changes, folder)
