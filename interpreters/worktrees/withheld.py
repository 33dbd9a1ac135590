"""What a worktree lacks although it is in the branch, and what git waits for there although it never comes.

An agent can have git check out a part of the files only (``sparse-checkout``); the next claim is to have them all. And
git reads rules from files of certain names: if an agent has put a pipe there, git waits for ever.
"""

import os
import stat
from pathlib import Path
from typing import Final

from lifefold.interpreters.worktrees.aside import read_regular
from lifefold.interpreters.worktrees.git import Git

RULES_BYTES: Final = 1_048_576
"""How much of the patterns of a sparse checkout is read."""

_READ_BY_GIT: Final = (".gitattributes", ".gitignore", ".gitmodules", ".mailmap")


async def is_as_whole_as(worktree: Git, home: Git) -> bool:
    """Tell whether a worktree leaves out the same files as the user's own working tree does: as a rule none."""
    return await _left_out(worktree) == await _left_out(home)


async def _left_out(tree: Git) -> bytes:
    asked = ("config", "--type=bool", "--get", "core.sparseCheckout")
    if (await tree.run(*asked, accept=range(256))).text != "true":
        return b""
    return read_regular(await tree.directory() / "info" / "sparse-checkout", RULES_BYTES)


def has_pipe(folder: Path) -> bool:
    """Tell whether a pipe or a device has the name of a file that git reads, in a working tree."""
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
