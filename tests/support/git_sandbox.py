"""A sandbox for git: a repository of the user's, and a fleet's worktrees in it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lifefold.interpreters.worktrees.worktrees import GitWorkplace


def git(folder: Path, *arguments: str) -> str:
    user = ("-c", "user.name=user", "-c", "user.email=user@example.org")
    command = ("git", *user, *arguments)
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().removesuffix("\n")


def before_git(folder: Path, *lines: str) -> str:
    """Return a PATH on which every git command does something before; ``$*`` is what git is told."""
    stand_in, real = folder / "stand-in" / "git", shutil.which("git")
    stand_in.parent.mkdir()
    stand_in.write_text("\n".join(["#!/bin/sh", *lines, f'exec {real} "$@"', ""]))
    stand_in.chmod(0o700)
    return f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def attempt(folder: Path, *arguments: str) -> None:
    """Run a git command that is expected to fail, in a way that leaves something behind."""
    with pytest.raises(subprocess.CalledProcessError):
        git(folder, *arguments)


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def commit(folder: Path, message: str = "by the user", **files: str) -> str:
    write(folder, **files)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def new_repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main", "--template=")
    write(folder, shared="1\n2\n3\n", other="as it was\n")
    (folder / ".gitignore").write_text("cache/\n")
    commit(folder, "first")
    return folder


class GitScene:
    """A repository, and the workplace of a fleet in it."""

    def __init__(self, folder: Path, template: Path) -> None:
        self.repository = folder / "repository"
        shutil.copytree(template, self.repository)
        self.root = folder / "work"
        self.workplace = self.again()
        self.log: dict[tuple[str, int], str] = {}

    def again(self) -> GitWorkplace:
        """Return the workplace as a runner that was started anew has it."""
        return GitWorkplace(self.repository, self.root, "fleet", "main")

    async def park(self, agent: str, task: str, epoch: int, title: str, place: GitWorkplace | None = None) -> str:
        """Commit what is to be merged, and remember it as a log does."""
        self.log[task, epoch] = await (place or self.workplace).park(agent, task, epoch, title)
        return self.log[task, epoch]

    async def merge(  # noqa: PLR0913 - as a workplace has it
        self, agent: str, task: str, epoch: int, title: str, *, place: GitWorkplace | None = None, accepted: str = ""
    ) -> str:
        """Merge a claim as a runner does: it commits what is to be merged, if the log has no such commit yet."""
        place = place or self.again()
        result = self.log.get((task, epoch)) or await self.park(agent, task, epoch, title, place)
        return await place.merge(agent, task, epoch, title, result=result, accepted=accepted)

    def place(self, agent: str = "a") -> Path:
        return self.workplace.folder(agent, "T1")

    def git(self, *arguments: str) -> str:
        return git(self.repository, *arguments)

    def merges(self) -> list[str]:
        return self.git("log", "--merges", "--format=%s", "main").splitlines()

    def salvaged(self) -> dict[str, str]:
        """Return what was salvaged: reference, without what all have in common, and commit."""
        listed = self.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/lifefold/fleet/salvage")
        pairs = (line.split(" ") for line in listed.splitlines())
        return {name.removeprefix("refs/lifefold/fleet/salvage/"): commit for name, commit in pairs}

    def is_clean(self) -> bool:
        return self.git("status", "--porcelain") == ""
