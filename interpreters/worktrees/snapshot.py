"""The files of a worktree as a tree of git, made in a copy of the index: neither files, nor index, nor HEAD change."""

import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from lifefold.interpreters.worktrees.git import Git, Way


class Snapshot(NamedTuple):
    """The tree of all files of a worktree but ignored ones, and the commit of its HEAD."""

    tree: str
    head: str


@asynccontextmanager
async def copied_index(worktree: Git) -> AsyncGenerator[Way, None]:
    """Yield the way to run git on a copy of the worktree's index, in which no flag hides a change."""
    index = await worktree.directory() / "index"
    with tempfile.TemporaryDirectory(prefix="lifefold-index-") as temporary:
        way = Way(index=Path(temporary) / "index")
        if index.is_file():
            shutil.copyfile(index, Path(temporary) / "index")
        await worktree.heed_all(way)
        yield way


async def snapshot_of(worktree: Git) -> Snapshot | None:
    """Return the files of a worktree; None if its HEAD names no commit."""
    head = await worktree.commit_at("HEAD")
    if not head:
        return None
    async with copied_index(worktree) as way:
        await worktree.stage_all(way)
        return Snapshot((await worktree.run("write-tree", way=way)).text, head)
