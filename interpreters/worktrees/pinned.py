"""The folders of a repository and its worktrees, found without git, so that the configuration cannot redirect them.

Every agent can write the configuration that all worktrees share. It names the working tree (``core.worktree``), or says
that there is none (``core.bare``); and git follows the pointer in ``.git``. So lifefold passes the git directory and
the working tree to each command in its environment. Git then reads neither the configuration nor ``.git`` for them.
Paths are examined with ``lstat``: a symbolic link is never followed.
"""

import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

POINTER_BYTES: Final = 16_384
"""The number of bytes that are read of a file that names a folder."""

_POINTS: Final = "gitdir: "
_FOLDERS: Final = ("info", "logs", "refs")
"""The folders that may exist in the git directory of a worktree."""


@dataclass(frozen=True, slots=True)
class Pins:
    """A working tree, its own git directory, and the one that the worktrees of the repository share.

    ``excludes`` is a file with the rules for ignored files, beside those in ``.gitignore``. None stands for the present
    rules of the repository. ``objects`` is the folder of objects if it is another one than that of the repository.
    """

    folder: Path
    directory: Path
    common: Path
    excludes: Path | None = None
    objects: Path | None = None

    def by(self, rules: Path) -> "Pins":
        """Return these pins with the rules of a file, if it exists."""
        return replace(self, excludes=rules if rules.is_file() else None)

    def environment(self) -> dict[str, str]:
        """Return the variables that make git use these folders, and look for no others."""
        where = {"GIT_WORK_TREE": self.folder, "GIT_DIR": self.directory, "GIT_COMMON_DIR": self.common}
        objects = {} if self.objects is None else {"GIT_OBJECT_DIRECTORY": self.objects}
        return {name: str(path) for name, path in (where | objects).items()}


def repository_at(folder: Path) -> Pins | None:
    """Return the repository that contains a folder of the user; None if there is none.

    Its working tree is the folder with ``.git``. Links are followed, because these folders belong to the user.
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

    None if the worktree is not sound: it is a link, or belongs to another repository or another folder. It is also not
    sound if its git directory contains links, through which git would write elsewhere, or pipes, at which git would
    wait.
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
    """Remove pipes and devices from the git directories of worktrees, where every git of the repository would block."""
    for where, _, files in os.walk(common / "worktrees"):
        for path in (Path(where) / name for name in files):
            if stat.S_ISFIFO(_mode(path)) or stat.S_ISCHR(_mode(path)):
                path.unlink(missing_ok=True)


def is_folder(path: Path) -> bool:
    """Tell whether a path is a folder, and not a link to one."""
    return stat.S_ISDIR(_mode(path))


def _is_plain(directory: Path) -> bool:
    """Tell whether a git directory contains only files and folders: no link, and no pipe at which git would wait."""
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
    """Return the path that a file names after the prefix ``begins``; None if it names none."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            text = os.fsdecode(os.read(descriptor, POINTER_BYTES))
        finally:
            os.close(descriptor)
    except OSError:
        return None
    named = text.removeprefix(begins).rstrip("\r\n")
    if not named or not text.startswith(begins) or "\0" in named:
        return None
    target = file.parent / named
    return _real(target.parent) / target.name if target.name not in {"", ".."} else _real(target)


def _mode(path: Path) -> int:
    """Return the mode of the file at a path, without following a link; 0 if it cannot be read."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _real(path: Path) -> Path:
    """Return a path without links; a loop of links is resolved as far as possible."""
    return Path(os.path.realpath(path))
