"""Where a repository and a worktree of it are, found without git, so that their configuration cannot say otherwise.

Every agent can write the configuration that all worktrees share. Git takes from it where the working tree is
(``core.worktree``), and whether there is one at all (``core.bare``); and it follows whatever ``.git`` points to. So
each command of ours is told by its environment which git directory and which working tree are meant: git then asks
neither the configuration nor the folder. A place is looked at with ``lstat``: a symbolic link is never followed.
"""

import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

POINTER_BYTES: Final = 16_384
"""How much is read of a file that names a folder."""

_POINTS: Final = "gitdir: "
_FOLDERS: Final = ("info", "logs", "refs")
"""The folders in the git directory of a worktree, as far as they are there."""


@dataclass(frozen=True, slots=True)
class Pins:
    """A working tree, its own git directory, and the one that the worktrees of the repository share.

    ``excludes`` is the file with the rules by which untracked files are ignored, beside those of ``.gitignore``. None
    stands for the rules that the repository has now.
    """

    folder: Path
    directory: Path
    common: Path
    excludes: Path | None = None

    def by(self, rules: Path) -> "Pins":
        """Return these with the rules that a file has, if it is there."""
        return replace(self, excludes=rules if rules.is_file() else None)

    def environment(self) -> dict[str, str]:
        """Return the variables by which git uses these, and looks for no others."""
        where = {"GIT_WORK_TREE": self.folder, "GIT_DIR": self.directory, "GIT_COMMON_DIR": self.common}
        return {name: str(path) for name, path in where.items()}


def repository_at(folder: Path) -> Pins | None:
    """Return the repository that a folder of the user's lies in; None if there is none.

    Its working tree is the folder that has its ``.git``. Links are followed: these places are the user's own.
    """
    start = _real(folder)
    for top in (start, *start.parents):
        found = top / ".git"
        directory = found if found.is_dir() else _pointed_to(found, _POINTS)
        if directory is not None and (directory / "HEAD").is_file():
            directory = _real(directory)
            return Pins(top, directory, _pointed_to(directory / "commondir") or directory)
    return None


def worktree_at(folder: Path, common: Path) -> Pins | None:
    """Return the worktree at a folder, of the repository whose shared git directory is ``common``.

    None if it is not sound: it is a link, is none of this repository's, belongs to another folder, or its git directory
    has links in it, through which git would write elsewhere, or pipes, at which git would wait.
    """
    if not is_folder(folder) or not stat.S_ISREG(_mode(folder / ".git")):
        return None
    directory = _pointed_to(folder / ".git", _POINTS)
    if directory is None or directory.parent != _real(common) / "worktrees" or not _is_plain(directory):
        return None
    owner = _pointed_to(directory / "gitdir")
    is_its = owner == _real(folder.parent) / folder.name / ".git" or (owner is not None and not os.path.lexists(owner))
    if not is_its or _pointed_to(directory / "commondir") != _real(common):
        return None
    return Pins(folder, directory, common)


def remove_pipes(common: Path) -> None:
    """Remove what keeps every git in a repository waiting: a pipe or a device in the git directory of a worktree."""
    for where, _, files in os.walk(common / "worktrees"):
        for path in (Path(where) / name for name in files):
            if stat.S_ISFIFO(_mode(path)) or stat.S_ISCHR(_mode(path)):
                path.unlink(missing_ok=True)


def is_folder(path: Path) -> bool:
    """Tell whether a folder is at a path, and no link to one."""
    return stat.S_ISDIR(_mode(path))


def _is_plain(directory: Path) -> bool:
    """Tell whether a git directory has nothing but files and folders in it: no link, and no pipe that git waits at."""
    folders = [directory / name for name in _FOLDERS]
    return (
        is_folder(directory)
        and all(is_folder(each) or not _mode(each) for each in folders)
        and all(
            stat.S_ISREG(mode) or stat.S_ISDIR(mode)
            for where, folders, files in os.walk(directory)
            for mode in (_mode(Path(where) / name) for name in (*folders, *files))
        )
    )


def _pointed_to(file: Path, begins: str = "") -> Path | None:
    """Return the path that a file names, behind the word that it begins with; None if it names none."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            text = os.fsdecode(os.read(descriptor, POINTER_BYTES))
        finally:
            os.close(descriptor)
    except OSError:
        return None
    said = text.removeprefix(begins).rstrip("\r\n")
    if not said or not text.startswith(begins) or "\0" in said:
        return None
    target = file.parent / said
    return _real(target.parent) / target.name if target.name not in {"", ".."} else _real(target)


def _mode(path: Path) -> int:
    """Return what is at a path, not what a link there points to; 0 if nothing can be found out."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _real(path: Path) -> Path:
    """Return a path without links in it; of a loop of links, as much as can be said."""
    return Path(os.path.realpath(path))
