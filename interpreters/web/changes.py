"""What a task has changed in its repository, as a diff: the merged commit, the parked result, or the worktree.

Git runs without the repository's own programs: no pager, no external diff, no text conversion.
"""

from pathlib import Path
from typing import Final

import anyio

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.web.structs import Diff
from lifefold.interpreters.worktrees.claim_commit import Claim
from lifefold.interpreters.worktrees.errors import GitError, WorkplaceError
from lifefold.interpreters.worktrees.git import GIT_LIMITS, Git, path_name
from lifefold.interpreters.worktrees.pinned import worktree_at

MOST_CHARACTERS: Final = 200_000
"""The most characters of a diff on a page."""

LIMIT_S: Final = 5
"""How long git may take, in seconds."""

_PLAIN: Final = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--stat", "--patch")


def diff_of(store: SqliteStore, task: FleetTask) -> Diff | None:
    """Return what a task has changed; None if it has changed nothing yet, or its repository is gone."""
    home, fleet = store.meta("git_directory") or "", store.meta("fleet") or ""
    if not home or not (task.epoch or task.commit):
        return None
    try:
        return anyio.run(
            _diff, Path(home), Claim(fleet, task.id, task.result or task.epoch), task, FleetFolder(store.path)
        )
    except (GitError, WorkplaceError, OSError, TimeoutError):
        return None


async def _diff(home: Path, claim: Claim, task: FleetTask, folder: FleetFolder) -> Diff | None:
    with anyio.fail_after(LIMIT_S):
        git = Git(home, GIT_LIMITS)
        if task.state is State.CLOSED:
            about = f"the merged commit {task.commit[:12]}, against the branch before it"
            return await _said(git, about, f"{task.commit}^1", task.commit) if task.commit else None
        known = await git.references(claim.base, claim.result, claim.branch)
        if claim.base not in known:
            return None
        if claim.result in known:
            return await _said(
                git, f"the finished work of claim {claim.epoch}, against its base", claim.base, claim.result
            )
        tree = worktree_at(folder.worktrees / path_name(task.owner), home) if task.owner else None
        if tree is not None:
            about = (
                f"the worktree of {task.owner} now, against the base of claim {claim.epoch}; new files are not in it"
            )
            return await _said(Git(tree.folder, GIT_LIMITS, tree), about, claim.base)
        if claim.branch in known:
            return await _said(git, f"the branch of claim {claim.epoch}, against its base", claim.base, claim.branch)
    return None


async def _said(git: Git, about: str, *revisions: str) -> Diff:
    text = (await git.run(*_PLAIN, *revisions, "--")).text
    readable = plain(text.encode("utf-8", "replace"))
    return Diff(about, readable[:MOST_CHARACTERS], len(readable) > MOST_CHARACTERS)
