"""The worktrees of the agents: made, repaired, locked for one operation at a time, emptied, and removed."""

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio import to_thread

from lifefold.interpreters.worktrees.aside import is_taken, make_own, make_room, move_into, set_aside
from lifefold.interpreters.worktrees.branch_guard import LOGGED
from lifefold.interpreters.worktrees.claim_commit import CLAIM
from lifefold.interpreters.worktrees.errors import GitError, WorkplaceError
from lifefold.interpreters.worktrees.excludes import RULES, copy_rules
from lifefold.interpreters.worktrees.git import Git, path_name, remove_locks
from lifefold.interpreters.worktrees.locks import holding
from lifefold.interpreters.worktrees.pinned import remove_pipes
from lifefold.interpreters.worktrees.salvage import Salvage, salvage_name
from lifefold.interpreters.worktrees.target_branch import TargetBranch
from lifefold.interpreters.worktrees.withheld import has_pipe, is_as_whole_as


class AgentWorktrees:
    """The worktrees ``root/AGENT`` of the repository ``home``. Several processes may use one root."""

    def __init__(self, home: Git, root: Path, target: TargetBranch, salvaged: Salvage) -> None:
        self._home = home
        self._root = root
        self._target = target
        self._salvaged = salvaged
        self._lock = anyio.Lock()

    def folder(self, agent: str) -> Path:
        """Return the agent's worktree."""
        return self._root / path_name(agent)

    async def clear(self) -> None:
        """Remove the agents' worktrees; the claims' branches stay.

        Unmerged work is kept as salvage. A worktree stays if git cannot keep all of its contents. Ignored files are
        removed with their worktree. The next call completes an interrupted removal.
        """
        root = _real(self._root)
        for known in (await self._home.worktrees())[1:]:
            folder = Path(known["worktree"])
            if folder.parent == root:
                await self._remove(folder.name, known.get("HEAD", ""))
        shutil.rmtree(self._gone, ignore_errors=True)

    @property
    def rules(self) -> Path:
        """The file with the ignore rules of this run."""
        return self._root / RULES

    @property
    def _gone(self) -> Path:
        """The folder of worktrees that are being removed."""
        return self._root / ".gone"

    async def _worktree(self, folder: Path) -> Git | None:
        """Return the worktree at a folder, with this run's ignore rules; None if it is not sound."""
        found = await self._home.worktree_at(folder)
        if found is not None and await to_thread.run_sync(has_pipe, folder):
            return None
        if found is not None and found.pins is not None:
            found.pins = found.pins.by(self.rules)
        return found

    @asynccontextmanager
    async def place(self, agent: str) -> AsyncGenerator[Git, None]:
        """Lock the agent's worktree, made or repaired, for one operation.

        No git of the fleet runs there meanwhile, so lock files in it may be removed.
        """
        folder = self.folder(agent)
        async with self._alone_in(folder.name):
            if not self.rules.exists():
                make_room(self.rules)
                await copy_rules(self._home, self.rules)
            worktree = await self._worktree(folder)
            if worktree is None:
                worktree = await self.replace(folder)
            elif worktree.pins is not None:
                remove_locks(worktree.pins.directory)
            yield worktree

    async def replace(self, folder: Path) -> Git:
        """Move aside the file or folder at the worktree's path, and make a new worktree."""
        async with self.alone():
            for known in await self._home.worktrees():
                if Path(known["worktree"]) == _real(folder.parent) / folder.name:
                    await self._salvaged.keep_lost(folder.name, known.get("HEAD", ""))
            set_aside(folder, self._root / ".aside")
            add = (*LOGGED, "worktree", "add", "--quiet", "--force", "--force", "--detach")
            await self._home.run(*add, str(folder), await self._target.tip())
        made = await self._worktree(folder)
        if made is None:
            raise WorkplaceError("The new worktree was taken away at once", folder, "See what else works there.")
        return made

    async def _remove(self, name: str, head: str) -> None:
        """Salvage and remove a worktree of the fleet; leave one that is not sound or cannot be emptied.

        It is first moved away as a whole. Git would remove it file by file, and after a crash in between it would look
        like a worktree that an agent has damaged.
        """
        folder = self._root / name
        async with self._alone_in(name):
            if is_taken(folder):
                worktree = await self._worktree(folder)
                if worktree is None or worktree.pins is None:
                    return
                remove_locks(worktree.pins.directory)
                if not await self.vacate(worktree):
                    return
                move_into(self._gone, folder)
            else:
                await self._salvaged.keep_lost(name, head)
            async with self.alone():
                await self._home.run("worktree", "remove", "--force", "--force", str(folder))

    async def vacate(self, worktree: Git) -> bool:
        """Salvage the work of an earlier claim, end its operations, and clean up; return whether that succeeded."""
        try:
            await worktree.heed_all()
            await self.salvage(worktree)
            await worktree.forget_unfinished()
            await worktree.run("checkout", "--quiet", "--force", "--detach", await self._target.tip())
            await worktree.run("clean", "--quiet", "--force", "-d")
            return await worktree.is_clean() and await is_as_whole_as(worktree, self._home)
        except GitError:
            return False

    async def salvage(self, worktree: Git) -> None:
        """Keep the work in a worktree, uncommitted files included; its claim is over."""
        claimed = await worktree.target_of(CLAIM)
        name = salvage_name(claimed) or "unclaimed"
        if not await worktree.is_clean():
            await worktree.detach()  # the agent may have switched to a branch of the user's
            await worktree.commit_all(f"Salvage of {name}, left by {worktree.folder.name}")
        head = await worktree.commit_at("HEAD")
        if head:
            await self._salvaged.keep(worktree.folder.name, name, head)
        if claimed:
            await worktree.run("symbolic-ref", "--delete", CLAIM)

    @asynccontextmanager
    async def _alone_in(self, name: str) -> AsyncGenerator[None, None]:
        """Exclude other operations in the worktree of this name."""
        lock = self._root / ".locks" / name
        for own in (self._root, lock.parent):
            make_own(own)
        make_room(lock)
        async with holding(lock):
            yield

    @asynccontextmanager
    async def alone(self, limit_ms: int | None = None) -> AsyncGenerator[None, None]:
        """Exclude other merges and changes of the set of worktrees, in this process and in others.

        Concurrent merges would only repeat each other. But while a worktree is being made, every git command that reads
        all worktrees can fail on the incomplete one. A checkout of a branch is such a command.
        """
        make_own(self._root)
        make_room(self._root / ".lock")
        async with self._lock, holding(self._root / ".lock", limit_ms):
            remove_pipes(await self._home.common_directory())
            yield


def _real(path: Path) -> Path:
    """Return a path without links, as git lists it."""
    return Path(os.path.realpath(path))
