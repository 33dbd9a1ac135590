"""Two traps in a worktree: files of the branch that are not checked out, and pipes at which git waits for ever.

An agent can reduce the worktree to a part of the files (``sparse-checkout``); the next claim needs all of them. Git
reads rules from files with certain names. If an agent has put a pipe at such a name, git waits for ever.
"""

import os
import stat
from pathlib import Path
from typing import Final

from lifefold.interpreters.worktrees.aside import read_regular
from lifefold.interpreters.worktrees.git import Git

RULES_BYTES: Final = 1_048_576
"""The number of bytes that are read of the patterns of a sparse checkout."""

_READ_BY_GIT: Final = (".gitattributes", ".gitignore", ".gitmodules", ".mailmap")


async def is_as_whole_as(worktree: Git, home: Git) -> bool:
    """Tell whether a worktree omits the same files as the user's own working tree: usually none."""
    return await _left_out(worktree) == await _left_out(home)


async def _left_out(tree: Git) -> bytes:
    query = ("config", "--type=bool", "--get", "core.sparseCheckout")
    if (await tree.run(*query, accept=range(256))).text != "true":
        return b""
    return read_regular(await tree.directory() / "info" / "sparse-checkout", RULES_BYTES)


def has_pipe(folder: Path) -> bool:
    """Tell whether a working tree has a pipe or a device with the name of a file that git reads."""
    for where, folders, files in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        if any(_is_endless(Path(where) / name) for name in _READ_BY_GIT if name in files):
            return True
    return False


def _is_endless(file: Path) -> bool:
    try:
        mode = os.lstat(file).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)
