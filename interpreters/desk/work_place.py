"""Where the work of a fleet is that an operator looks at: its repository, or the mirror of its git remote."""

from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from lifefold.interpreters.fleet_runner.remote_work import mirror_of
from lifefold.interpreters.store import LogStore
from lifefold.interpreters.worktrees.claim_commit import Claim
from lifefold.interpreters.worktrees.git import GIT_LIMITS, Git
from lifefold.interpreters.worktrees.mirror import Mirror

GIT_OF_OPERATOR: Final = replace(GIT_LIMITS, timeout_ms=60_000, grace_ms=0)
"""The limits of a git command for which an operator waits."""


class Words(NamedTuple):
    """The parts of sentences: where a commit is missing, how no work is left, and what keeps the files of a claim."""

    where: str
    left: str
    kept: str


class WorkPlace:
    """A repository with the references of a fleet, by its git directory ``home``; of a remote it is a ``mirror``."""

    def __init__(self, home: Path, words: Words, mirror: Mirror | None = None) -> None:
        self.home: Final = home
        self.where, self.left, self.kept = words
        self.mirror: Final = mirror
        self.git: Final = Git(home, GIT_OF_OPERATOR, None if mirror is None else mirror.pins)

    def branch_of(self, claim: Claim) -> str:
        """Return the name of the branch of a claim, or of the reference at the remote that stands for it."""
        return _short(claim) if self.mirror is None else self.mirror.work_of(claim)

    def result_of(self, claim: Claim) -> str:
        """Return the same for the commit that is to be merged."""
        return _short(claim) if self.mirror is None else self.mirror.result_of(claim)


def place_here(store: LogStore) -> WorkPlace:
    """Return the repository of a log, which is on this machine."""
    words = Words("in the repository", "left: neither in a worktree nor on a branch", "branch")
    return WorkPlace(Path(store.meta("git_directory") or ""), words)


def place_at_remote(store: LogStore) -> WorkPlace:
    """Return the mirror of the git remote of a log. Raises ``NoRemoteError``."""
    mirror = mirror_of(store)
    pushed = "at the remote: a host pushes the files of a session when it ends"
    return WorkPlace(mirror.folder, Words(f"at {mirror.remote.shown}", pushed, "files at the remote,"), mirror)


def _short(claim: Claim) -> str:
    return claim.branch.removeprefix("refs/heads/")
