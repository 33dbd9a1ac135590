"""The command ``clean``: removes what a fleet that is over has left: its logs, worktrees and branches."""

import os
import shlex
import shutil
from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import msgspec

from lifefold.core.fleet.system.rerun import is_over
from lifefold.interpreters.cli import inside, logs
from lifefold.interpreters.cli.answers import DELIVERY, answer
from lifefold.interpreters.cli.confirming import must_be_confirmed
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.wording import as_typed
from lifefold.interpreters.engine import ACCEPTED
from lifefold.interpreters.explain.why.phrases import brief, count, enumerated
from lifefold.interpreters.fleet_file import FleetFileError, load
from lifefold.interpreters.fleet_runner.folder import BESIDE, FleetFolder
from lifefold.interpreters.fleet_runner.hosts import hosts_of
from lifefold.interpreters.fleet_runner.remote_work import NoRemoteError, is_at_remote, mirror_of
from lifefold.interpreters.store import Locked, LogStore, open_log
from lifefold.interpreters.worktrees.cleaning import Left, Place, beside_worktrees, left_of, remove
from lifefold.interpreters.worktrees.cloned_workplace import HOST_LOCK
from lifefold.interpreters.worktrees.errors import GitError, WorkplaceError
from lifefold.interpreters.worktrees.locks import is_taken
from lifefold.interpreters.worktrees.mirror import Mirror
from lifefold.interpreters.worktrees.tenure import holder


class Remains(msgspec.Struct, frozen=True):
    """What one log of a fleet that is over has left. Without ``place`` the fleet had no repository, or it is gone.

    ``there`` is what it has left at its git remote, whose ``mirror`` is None without a remote. ``unknown`` says why
    nothing is known of that.
    ``files`` are in the folder of the worktrees, and no repository has them: they stay unless that is asked for.
    """

    log: Path
    run: str
    fleet: str
    branch: str
    place: Place | None
    left: Left
    files: tuple[Path, ...]
    mirror: Mirror | None = None
    there: Left = Left()
    unknown: str = ""


def clean(arguments: Namespace) -> int:
    """Show what a fleet has left, ask, and remove it. Work that is not merged stays without ``--unmerged``."""
    inside.must_be_outside("clean")
    found = [_remains(log) for log in _logs(arguments.log)]
    for each in found:
        for line in _lines(each, unmerged=arguments.unmerged):
            DELIVERY.get().note(line)
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
    """Return what a log and its fleet have left. Raises ``BadInput`` unless the fleet is over and has no runner.

    A git remote that does not answer is also an error: its references would stay for ever.
    """
    mirror, there, unknown = None, Left(), ""
    with logs.peek(str(log)) as store:
        if store.is_written():
            raise BadInput(f"{store.path}: a runner is at work with it; nothing is removed")
        _must_be_over(store)
        _must_have_no_host(FleetFolder(store.path), store)
        path = store.path
        home, fleet, branch, run = (store.meta(each) or "" for each in ("git_directory", "fleet", "branch", "run"))
        if is_at_remote(store):
            try:
                mirror = mirror_of(store)
                there = anyio.run(mirror.left)
            except NoRemoteError as error:
                unknown = str(error)
            except WorkplaceError as error:
                raise BadInput(f"{error.what}; nothing is removed") from error
    root = FleetFolder(path).worktrees
    place = Place(Path(home), root, fleet, branch, run) if home and Path(home).is_dir() else None
    if place is not None:
        _must_be_the_original(path, place)
    try:
        left = anyio.run(left_of, place) if place is not None else Left()
    except GitError as error:
        raise BadInput(f"{home}: {error}; nothing is removed") from error
    files = beside_worktrees(root, left.worktrees)
    return Remains(path, run, fleet, branch, place, left, files, mirror, there, unknown)


def _must_be_over(store: LogStore) -> None:
    if not is_over(logs.fold(store).aggregates):
        onward = logs.typed(f"lifefold run {logs.FLEET_FILE} continues it, and lifefold stop --all ends it", store)
        raise BadInput(f"{store.path}: its fleet is not over; {onward}; nothing is removed")


def _must_be_the_original(log: Path, place: Place) -> None:
    """Raise ``BadInput`` for a copy: the branches are those of the log that has begun the run, while it exists."""
    run, original = holder(place.home, place.fleet)
    if run == place.run and Path(original).exists() and not logs.are_one(log, Path(original)):
        raise BadInput(f"{log}: {original} is a log of the same run, and has its branches; nothing is removed")


def _lines(of: Remains, *, unmerged: bool) -> Iterator[str]:
    """Yield what is removed, with sizes, and what stays."""
    folder, left = FleetFolder(of.log), of.left
    yield f"fleet {of.fleet}, which is over:"
    yield f"  the log {of.log}, {_size(_beside(of.log))}"
    files = [each for each in folder.root.glob("*") if each not in (folder.worktrees, folder.hosts, folder.mirrors)]
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
    if of.files:
        size = _size(of.files)
        alone = f"  files in {folder.worktrees} that no repository has, {size}"
        yield alone if unmerged else f"stays (see --unmerged): {folder.worktrees}, {size}"
    if folder.hosts.is_dir():
        size = _size([folder.hosts])
        clones = f"  the clones of hosts in {folder.hosts}, with what they have not pushed, {size}"
        yield clones if unmerged else f"stays (see --unmerged): {folder.hosts}, {size}"
    yield from _lines_of_remote(of, unmerged=unmerged)
    if left.in_use:
        yield f"stays, because another checkout has it: {_names(left.in_use)}"


def _lines_of_remote(of: Remains, *, unmerged: bool) -> Iterator[str]:
    """Yield what is removed at a git remote, and what stays there."""
    mirrors = FleetFolder(of.log).mirrors
    if mirrors.is_dir():
        yield f"  the copy of the work at the git remote, {_size([mirrors])}"
    if of.unknown:
        yield f"stays: {of.unknown}"
    if of.mirror is None:
        return
    names = _names(each.removeprefix(of.mirror.prefix) for each in of.there.unmerged or ())
    at, there = f"at {of.mirror.remote.shown}", of.there
    if there.merged:
        yield f"  {count(len(there.merged), 'reference')} {at} in {of.mirror.prefix}"
    if there.unmerged and unmerged:
        size = count(len(there.unmerged), "reference")
        yield f"  {size} {at} of work that is not merged: {names}"
    elif there.unmerged:
        said = f"because it is not merged into {of.branch} (see --unmerged)"
        yield f"stays {at} in {of.mirror.prefix}, {said}: {names}"


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
    """Return the size of a file or folder; 0 for one that is no longer there."""
    files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    size = 0
    for each in files if path.is_dir() and not path.is_symlink() else (path,):
        with suppress(OSError):
            size += each.lstat().st_size
    return size


def _remove(of: Remains, *, unmerged: bool) -> None:
    """Remove what a log has left, the log last, so that the same command completes an interrupted removal."""
    try:
        store = open_log(of.log, patient=False)
    except Locked as error:
        raise BadInput(f"{of.log}: a runner is at work with it; nothing is removed") from error
    with store:
        if store.meta("run") != of.run:
            raise BadInput(f"{of.log}: it is the log of another run by now; nothing is removed")
        _must_be_over(store)
        folder = FleetFolder(of.log)
        _must_have_no_host(folder, store)
        left = there = Left()
        if of.mirror is not None:
            try:
                there = anyio.run(partial(of.mirror.remove, of.there, unmerged=unmerged))
            except WorkplaceError as error:
                raise BadInput(f"{error.what}; the log {of.log} stays") from error
        if of.place is not None:
            try:
                left = anyio.run(partial(remove, of.place, unmerged=unmerged))
            except (WorkplaceError, GitError) as error:
                raise BadInput(f"{error}; the log {of.log} stays") from error
        # A server ends the session of a writer that was silent so long, and another writer may have the log by now.
        anyio.run(store.say_as_writer, None)
        keeps = () if unmerged else _only_copies(folder)
        _remove_files(folder, keeps)
        store.discard()
        for path in _beside(of.log):
            path.unlink(missing_ok=True)
    stays = [*map(str, keeps), *(left.unmerged or {}), *(there.unmerged or {}), *left.in_use]
    stay = "stays" if len(stays) == 1 else "stay"
    told = f"; {brief(enumerated([each.removeprefix(_BRANCHES) for each in stays]))} {stay}" if stays else ""
    _tell(of.log, told)


def _tell(log: Path, stays: str) -> None:
    """Print that a log is removed, and what stays; for a program as an answer about the log."""
    if DELIVERY.get().command:
        DELIVERY.get().tell(answer(str(log.absolute()), ACCEPTED, f"removed{stays}"))
    else:
        print(as_typed(f"removed: {log}{stays}"))


def _only_copies(folder: FleetFolder) -> tuple[Path, ...]:
    """Return the folders of a log that may have the only copy of some work."""
    worktrees = (folder.worktrees,) if beside_worktrees(folder.worktrees) else ()
    return (*worktrees, folder.hosts) if folder.hosts.is_dir() else worktrees


def _must_have_no_host(folder: FleetFolder, store: LogStore) -> None:
    """Raise ``BadInput`` if a host of a cluster is at work with the log, or with its clone on this machine."""
    for host in anyio.run(hosts_of, store):
        if not host.is_lost:
            what = f"the host {host.status.name} on machine {host.said.machine} is at work with it"
            raise BadInput(f"{store.path}: {what}; end it first; nothing is removed")
    for file in sorted(folder.hosts.glob(f"*/*/{HOST_LOCK}")):
        if is_taken(file):
            raise BadInput(f"{file.parent}: a host is at work here; end it first; nothing is removed")


def _remove_files(folder: FleetFolder, keeps: Collection[Path]) -> None:
    """Remove the files of a log; an agent may have closed folders to their owner."""
    for path in folder.root.glob("*"):
        if path in keeps:
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
    if not keeps and folder.root.is_dir():
        folder.root.rmdir()
