"""A bare repository as the remote of a fleet, and hosts that share nothing but that remote."""

import subprocess
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from git_sandbox import commit, git, new_repository
from lifefold.interpreters.worktrees.cloned_workplace import ClonedWorkplace

FLEET: Final = "fleet"
RUN: Final = "0123abcd"


class RemoteSandbox:
    """The remote ``url``, and the folders of hosts beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.url: Final = folder / "remote.git"
        origin = new_repository(folder / "origin")
        git(folder, "clone", "--quiet", "--bare", str(origin), str(self.url))
        git(origin, "remote", "add", "origin", str(self.url))

    async def host(self, name: str) -> ClonedWorkplace:
        """Open the workplace of a host."""
        return await ClonedWorkplace.open(str(self.url), self.folder / name, FLEET, RUN, "main")

    def git(self, *arguments: str) -> str:
        """Run git in the remote."""
        return git(self.url, *arguments)

    def tip(self) -> str:
        """Return the commit of the remote's target branch."""
        return self.git("rev-parse", "refs/heads/main")

    def merges(self) -> list[str]:
        """Return the subjects of the merges in the target branch, the latest first."""
        return self.git("log", "--merges", "--format=%s", "main").splitlines()

    def files(self, revision: str = "main") -> set[str]:
        """Return the names of the files of a commit of the remote."""
        return set(self.git("ls-tree", "-r", "--name-only", revision).splitlines())

    def push(self, message: str = "by another person", **files: str) -> str:
        """Push a commit of another person onto the target branch."""
        origin = self.folder / "origin"
        git(origin, "pull", "--quiet", "--rebase", "origin", "main")
        made = commit(origin, message, **files)
        git(origin, "push", "--quiet", "origin", "main")
        return made

    def hook(self, name: str, *lines: str) -> Path:
        """Let the remote run a hook; return its file."""
        file = self.url / "hooks" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        file.chmod(0o700)
        return file

    def is_sound(self) -> bool:
        """Tell whether git finds no damage in the remote."""
        try:
            self.git("fsck", "--strict")
        except subprocess.CalledProcessError:
            return False
        return True


@asynccontextmanager
async def hosts(sandbox: RemoteSandbox, *names: str) -> AsyncGenerator[list[ClonedWorkplace], None]:
    """Open the workplaces of hosts during the block."""
    async with AsyncExitStack() as opened:
        found = [await sandbox.host(name) for name in names]
        for each in found:
            opened.callback(each.close)
        yield found
