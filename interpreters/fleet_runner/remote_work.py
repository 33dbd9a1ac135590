"""The git remote of a log: a log has no address of it, so that is read in the fleet file.

A command that reads a log may run on any machine. So the fleet file is looked for at its path when the log began, in
the folder of the log, and in the folder of the command. Only the name of the fleet and its remote are read there: other
parts of the file may not fit this machine.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lifefold.interpreters.fleet_file.glance import Glance, glance
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.store import LogStore
from lifefold.interpreters.worktrees.git import path_name
from lifefold.interpreters.worktrees.mirror import Mirror

_HIDDEN: Final = ".lifefold"
"""The folder of logs, beside the fleet file."""


class NoRemoteError(Exception):
    """No fleet file is found that names the remote of a log."""


def is_at_remote(store: LogStore) -> bool:
    """Tell whether the work of a log is at a git remote: it has a target branch, and no repository on its machine."""
    return bool(store.meta("branch")) and not store.meta("git_directory")


def may_have_moved(store: LogStore) -> bool:
    """Tell whether the work of a log may be at a git remote by now: its fleet file names an engine and a remote."""
    return any(each.has_engine for each in _with_remote(store))


def mirror_of(store: LogStore) -> Mirror:
    """Return the mirror of the work of a log at its remote. Raises ``NoRemoteError``."""
    fleet, run, branch = (store.meta(each) or "" for each in ("fleet", "run", "branch"))
    url = next((each.remote for each in _with_remote(store)), "")
    if not url:
        where = f"refs/lifefold/{path_name(fleet)}/{run}/"
        said = f"no fleet file of {fleet} with remote in [cluster] is here; give the command in the folder of one"
        raise NoRemoteError(f"the work of this fleet is at its git remote, in {where}, and {said}")
    folder = FleetFolder(store.path).mirrors / f"{path_name(run)}.git"
    return Mirror(url, folder, fleet, run, branch)


def _with_remote(store: LogStore) -> Iterator[Glance]:
    """Yield what the fleet files of a log say that name a remote."""
    seen = map(glance, _fleet_files(store))
    return (each for each in seen if each.remote and each.name == store.meta("fleet"))


def _fleet_files(store: LogStore) -> Iterator[Path]:
    """Yield the files that may be the fleet file of a log."""
    yield Path(store.meta("source") or "")
    beside = store.path.absolute().parent
    for folder in dict.fromkeys((beside.parent if beside.name == _HIDDEN else beside, Path.cwd())):
        yield from sorted(folder.glob("*.toml"))
