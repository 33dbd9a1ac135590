"""A fleet that has run on one machine, made to look as one whose work is at a git remote, on an operator's machine.

Its references are pushed as hosts push them. The repository and the outputs of the sessions are gone from here.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from fleet_sandbox import Sandbox
from git_sandbox import git, new_repository
from lifefold.interpreters.store.meta import OF_THE_STORE, digest_of_meta
from lifefold.interpreters.worktrees.claim_commit import CLAIM

NAME: Final = "sandbox"
_GONE: Final = ("git_directory", "first_commit")


class AtRemote:
    """The sandbox of such a fleet, its ``remote``, and the prefix of its references there."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox: Final = sandbox
        self.remote: Final = sandbox.folder / "remote.git"
        self.prefix: Final = f"refs/lifefold/{NAME}/{_forget_repository(sandbox.log)}/"
        repository, files = sandbox.folder / "repo", sandbox.log.with_name(f"{sandbox.log.name}.files")
        for worktree in sorted((files / "worktrees").glob("*")):
            if (worktree / ".git").is_file():
                _keep(worktree)
        git(sandbox.folder, "clone", "--quiet", "--mirror", str(repository), str(self.remote))
        for name in self._git("for-each-ref", "--format=%(refname)").splitlines():
            self._move(name)
        for gone in (repository, files):
            shutil.rmtree(gone)
        with sandbox.fleet.open("a") as fleet:
            fleet.write(f'[cluster]\nremote = "{self.remote.name}"\n')

    def references(self) -> set[str]:
        """Return the references of the log at the remote, without their prefix."""
        found = self._git("for-each-ref", "--format=%(refname)", self.prefix)
        return {name.removeprefix(self.prefix) for name in found.splitlines()}

    def begin_elsewhere(self) -> None:
        """Let the log have begun in a repository of this machine, without the work that was done elsewhere since."""
        other = new_repository(self.sandbox.folder / "other")
        _write_meta(self.sandbox.log, git_directory=str(other / ".git"))

    def move(self) -> None:
        """Let the fleet file say that the fleet runs on a cluster."""
        with self.sandbox.fleet.open("a") as fleet:
            fleet.write('engine = "temporal://127.0.0.1:1"\n')

    def leave(self) -> Path:
        """Let the remote be away; return where it is meanwhile."""
        return self.remote.rename(self.remote.with_name("away.git"))

    def _move(self, name: str) -> None:
        """Give a reference of a local fleet the name that it has at a remote."""
        branches, others = f"refs/heads/lifefold/{NAME}/", f"refs/lifefold/{NAME}/"
        if name.startswith(branches):
            self._git("update-ref", f"{self.prefix}work/{name.removeprefix(branches)}", name)
        elif name.startswith(others):
            self._git("update-ref", f"{self.prefix}{name.removeprefix(others)}", name)
        else:
            return
        self._git("update-ref", "-d", name)

    def _git(self, *arguments: str) -> str:
        return git(self.remote, *arguments)


def _keep(worktree: Path) -> None:
    """Commit the files of a worktree to the branch of its claim, as a host does at the end of a session."""
    git(worktree, "add", "--all")
    commit = git(worktree, "commit-tree", git(worktree, "write-tree"), "-p", "HEAD", "-m", "kept")
    git(worktree, "update-ref", git(worktree, "symbolic-ref", CLAIM), commit)


def _forget_repository(log: Path) -> str:
    """Remove the repository from the metadata of a log, and return its run."""
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.executemany("DELETE FROM meta WHERE name = ?", [(name,) for name in _GONE])
    return _write_meta(log)["run"]


def _write_meta(log: Path, **values: str) -> dict[str, str]:
    """Add to the metadata of a log, correct their digest, and return them."""
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.executemany("INSERT INTO meta (name, value) VALUES (?, ?)", values.items())
        meta = dict(connection.execute("SELECT name, value FROM meta").fetchall())
        digest = digest_of_meta({name: value for name, value in meta.items() if name not in OF_THE_STORE})
        connection.execute("UPDATE meta SET value = ? WHERE name = 'digest'", (digest,))
    return {str(name): str(value) for name, value in meta.items()}
