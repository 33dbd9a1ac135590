"""The command ``clean``: removes what a fleet that is over has left: its logs, worktrees and branches."""

import os
import shlex
import shutil
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import msgspec

from lifefold.core.fleet.system.rerun import is_over
from lifefold.interpreters.cli import inside, logs
from lifefold.interpreters.cli.confirming import must_be_confirmed
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.wording import as_typed
from lifefold.interpreters.explain.why.phrases import brief, count, enumerated
from lifefold.interpreters.fleet_file import FleetFileError, load
from lifefold.interpreters.fleet_runner.folder import BESIDE, FleetFolder
from lifefold.interpreters.store import Locked, SqliteStore
from lifefold.interpreters.worktrees.cleaning import Left, Place, left_of, remove
from lifefold.interpreters.worktrees.errors import GitError, WorkplaceError


class Remains(msgspec.Struct, frozen=True):
    """What one log of a fleet that is over has left. Without ``place`` the fleet had no repository, or it is gone.

    ``folders``: without a repository, the folders of the tasks have the only copy of their work.
    """

    log: Path
    fleet: str
    branch: str
    place: Place | None
    left: Left
    folders: bool


def clean(arguments: Namespace) -> int:
    """Show what a fleet has left, ask, and remove it. Work that is not merged stays without ``--unmerged``."""
    inside.must_be_outside("clean")
    found = [_remains(log) for log in _logs(arguments.log)]
    for each in found:
        for line in _lines(each, unmerged=arguments.unmerged):
            print(line)
    if not arguments.yes:
        must_be_confirmed("remove this, for good?", "--yes")
    # The references belong to the latest run, and have what the worktrees of earlier ones contained.
    for each in reversed(found):
        _remove(each, unmerged=arguments.unmerged)
    return 0


def _logs(named: str | None) -> Sequence[Path]:
    """Return the log that is meant and those of the runs before it, the latest first. Raises ``BadInput``."""
    if named is not None and named.endswith(".toml"):
        try:
            fleet = load(Path(named), watch=True)
        except FleetFileError as error:
            raise BadInput(str(error)) from error
        log = logs.default_log(fleet.source, fleet.name)
    else:
        log = logs.find_log(named)
    then = logs.next_log(log)
    if then.exists():
        raise BadInput(f"{then} continues {log}; to remove both: lifefold clean {shlex.quote(str(then))}")
    return (log, *logs.earlier_logs(log))


def _remains(log: Path) -> Remains:
    """Return what a log and its fleet have left. Raises ``BadInput`` unless the fleet is over and has no runner."""
    with logs.peek(str(log)) as store:
        if store.is_written():
            raise BadInput(f"{store.path}: a runner is at work with it; nothing is removed")
        if not is_over(logs.fold(store).aggregates):
            onward = logs.typed(f"lifefold run {logs.FLEET_FILE} continues it, and lifefold stop --all ends it", store)
            raise BadInput(f"{store.path}: its fleet is not over; {onward}; nothing is removed")
        path = store.path
        home, fleet, branch, run = (store.meta(each) or "" for each in ("git_directory", "fleet", "branch", "run"))
    place = Place(Path(home), FleetFolder(path).worktrees, fleet, branch, run) if home and Path(home).is_dir() else None
    try:
        left = anyio.run(left_of, place) if place is not None else Left()
    except GitError as error:
        raise BadInput(f"{home}: {error}; nothing is removed") from error
    return Remains(path, fleet, branch, place, left, folders=not home and FleetFolder(path).worktrees.is_dir())


def _lines(of: Remains, *, unmerged: bool) -> Iterator[str]:
    """Yield what is removed, with sizes, and what stays."""
    folder, left = FleetFolder(of.log), of.left
    yield f"fleet {of.fleet}, which is over:"
    yield f"  the log {of.log}, {_size(_beside(of.log))}"
    files = [each for each in folder.root.glob("*") if each != folder.worktrees]
    yield f"  sessions, outputs and verifications, {_size(files)}"
    if left.worktrees:
        size = _size(left.worktrees)
        yield f"  {count(len(left.worktrees), 'worktree')}, {size}; ignored files are removed with them"
    if left.merged:
        branches = [each for each in left.merged if each.startswith(_BRANCHES)]
        if branches:
            yield f"  the branches of merged work: {_names(branches)}"
        yield f"  {count(len(left.merged) - len(branches), 'other reference')} of the fleet"
    if left.unmerged and unmerged:
        yield f"  {count(len(left.unmerged), 'reference')} of work that is not merged: {_names(left.unmerged)}"
    elif left.unmerged:
        yield f"stays, because it is not merged into {of.branch} (see --unmerged): {_names(left.unmerged)}"
    if left.worktrees and not unmerged:
        yield "stays as salvage: files in a worktree that are not committed"
    if of.folders:
        size = _size([folder.worktrees])
        yield (
            f"  the folders of the tasks, {size}" if unmerged else f"stays (see --unmerged): {folder.worktrees}, {size}"
        )
    if left.in_use:
        yield f"stays, because another checkout has it: {_names(left.in_use)}"


def _names(references: Iterable[str]) -> str:
    names = [each.removeprefix(_BRANCHES) for each in references]
    return brief(enumerated(sorted(names)))


def _beside(log: Path) -> list[Path]:
    return [path for end in BESIDE if (path := log.with_name(log.name + end)).exists()]


def _size(paths: Sequence[Path]) -> str:
    """Return the size of files and folders in words."""
    size = float(sum(_bytes(each) for each in paths))
    for unit in ("bytes", "kB", "MB"):
        if size < _THOUSAND:
            return f"{size:.0f} {unit}"
        size /= _THOUSAND
    return f"{size:.1f} GB"


_BRANCHES: Final = "refs/heads/"
_THOUSAND: Final = 1_000


def _bytes(path: Path) -> int:
    if not path.is_dir() or path.is_symlink():
        return path.lstat().st_size
    files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sum(each.lstat().st_size for each in files)


def _remove(of: Remains, *, unmerged: bool) -> None:
    """Remove what a log has left, the log last, so that the same command completes an interrupted removal."""
    try:
        store = SqliteStore.open(of.log, patient=False)
    except Locked as error:
        raise BadInput(f"{of.log}: a runner is at work with it; nothing is removed") from error
    with store:
        left = Left()
        if of.place is not None:
            try:
                left = anyio.run(partial(remove, of.place, unmerged=unmerged))
            except (WorkplaceError, GitError) as error:
                raise BadInput(f"{error}; the log {of.log} stays") from error
        keeps = bool(left.worktrees) or (of.folders and not unmerged)
        _remove_files(FleetFolder(of.log), keeps_worktrees=keeps)
        for path in _beside(of.log):
            path.unlink(missing_ok=True)
    stays = [*(str(each) for each in left.worktrees), *(left.unmerged or {}), *left.in_use]
    told = f"; {brief(enumerated([each.removeprefix(_BRANCHES) for each in stays]))} stays" if stays else ""
    print(as_typed(f"removed: {of.log}{told}"))


def _remove_files(folder: FleetFolder, *, keeps_worktrees: bool) -> None:
    """Remove the files of a log; an agent may have closed folders to their owner."""
    for path in folder.root.glob("*"):
        if path == folder.worktrees and keeps_worktrees:
            continue
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
            continue
        path.chmod(0o700)
        for around, names, _ in os.walk(path):
            for name in names:
                each = Path(around, name)
                if not each.is_symlink():
                    each.chmod(0o700)
        shutil.rmtree(path)
    if not keeps_worktrees and folder.root.is_dir():
        folder.root.rmdir()
