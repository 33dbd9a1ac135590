"""The machine under a fleet: git, Python, SQLite, and the folder of the log."""

import os
import re
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lifefold.interpreters.doctor.finding import Finding, Verdict
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.processes.command import Limits, plain, run
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.survey import OLDEST_GIT, survey, survey_remote

LIMITS: Final = Limits(timeout_ms=30_000, grace_ms=1_000, keep_bytes=4_096)

OLDEST_PYTHON: Final = (3, 11)

MOUNTS: Final = Path("/proc/self/mountinfo")
"""The mounted file systems, where the kernel is Linux."""

NETWORK: Final = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|afs|9p|ceph|lustre|gfs2|ocfs2|beegfs|drvfs|virtiofs"
    r"|fuse\.(?:sshfs|glusterfs|s3fs|rclone|gcsfuse|davfs2?)|davfs"
)
"""The types of file systems that other machines share; SQLite's write-ahead log needs memory that is shared."""


def python() -> Finding:
    """Return the version of Python that runs lifefold."""
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding("python", Verdict.MISSING, found, remedy="install Python 3.11 or newer")
    return Finding("python", Verdict.OK, found, sys.executable)


def sqlite() -> Finding:
    """Return the version of SQLite in this Python."""
    return Finding("sqlite", Verdict.OK, sqlite3.sqlite_version)


async def git(env: Mapping[str, str], *, needed: bool) -> Finding:
    """Return the version of git, and whether it is new enough."""
    oldest = ".".join(map(str, OLDEST_GIT))
    remedy = f"install git {oldest} or newer"
    path = shutil.which("git", path=env.get("PATH"))
    if path is None:
        return Finding("git", Verdict.MISSING, "there is no git", remedy=remedy, needed=needed)
    try:
        done = await run((path, "version"), Path("/"), LIMITS, env=env)
    except (OSError, ValueError) as error:
        return Finding("git", Verdict.MISSING, f"{path} cannot be run: {error}", remedy=remedy, needed=needed)
    version = re.search(r"(\d+)\.(\d+)\S*", plain(done.output))
    if version is None:
        return Finding("git", Verdict.MISSING, f"{path} tells no version", remedy=remedy, needed=needed)
    if (int(version[1]), int(version[2])) < OLDEST_GIT:
        return Finding("git", Verdict.MISSING, f"{version[0]}, which is too old", remedy=remedy, needed=needed)
    return Finding("git", Verdict.OK, version[0], path, needed=needed)


async def repository(folder: Path) -> Finding:
    """Return whether a fleet can work with a repository."""
    try:
        top, branch = await survey(folder)
    except WorkplaceError as error:
        return Finding("repository", Verdict.MISSING, error.what, str(error.where), error.remedy)
    return Finding("repository", Verdict.OK, f"branch {branch}", str(top))


async def remote(fleet: Fleet) -> Finding:
    """Return whether the git remote of a fleet answers here, and has its target branch."""
    try:
        shown, branch = await survey_remote(fleet.cluster.remote, fleet.cluster.branch, fleet.source)
    except WorkplaceError as error:
        return Finding("remote", Verdict.MISSING, error.what, str(error.where), error.remedy)
    return Finding("remote", Verdict.OK, f"branch {branch}", shown)


def log_folder(folder: Path) -> Finding:
    """Return whether a log can be written in a folder, which may be made later, and whether it is on this machine."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir():
        remedy = f"remove or rename {there}"
        return Finding("log folder", Verdict.MISSING, f"{there} is no folder", remedy=remedy)
    if not os.access(there, os.W_OK | os.X_OK):
        remedy = "give the command as the owner of the folder, or change its permissions"
        return Finding("log folder", Verdict.MISSING, f"{there} is not writable", remedy=remedy)
    kind = file_system(there.resolve(), MOUNTS.read_text(errors="replace") if MOUNTS.is_file() else "")
    if NETWORK.fullmatch(kind):
        found = f"is writable, on {kind}, which other machines can share"
        remedy = "keep the log on a disk of this machine: lifefold run --db PATH"
        return Finding("log folder", Verdict.MISSING, found, remedy=remedy)
    if not kind:
        return Finding(
            "log folder", Verdict.NOTE, "is writable; cannot tell whether it is local", str(folder), needed=True
        )
    return Finding("log folder", Verdict.OK, f"is writable, on {kind}", str(folder))


def file_system(path: Path, mounts: str) -> str:
    """Return the type of the file system of a path, out of Linux's list of mounts; empty if it is not in there."""
    best, found = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        words, types = before.split(), after.split()
        if len(words) > _POINT and types:
            point = _unescaped(words[_POINT])
            if path.is_relative_to(point) and len(point) >= best:  # a later mount hides an earlier one
                best, found = len(point), types[0]
    return found


_POINT: Final = 4
"""The place of the mount point in a line."""


def _unescaped(word: str) -> str:
    """Return a path of the list of mounts, in which spaces and such are octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), word)
