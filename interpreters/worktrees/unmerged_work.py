"""Finding unmerged work in a repository, through the references of ``worktrees``.

The search takes no locks, so it is only for repositories without a running fleet, and it has a time limit.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import anyio

from lifefold.interpreters.worktrees.claim_commit import CLAIM
from lifefold.interpreters.worktrees.errors import GitError, PipeError
from lifefold.interpreters.worktrees.excludes import RULES
from lifefold.interpreters.worktrees.git import GIT_LIMITS, Git, path_name
from lifefold.interpreters.worktrees.pinned import worktree_at

LOOK_MS: Final = 3_000
"""The time limit of the search: a user waits for the answer, and can repeat the command."""

_LIMITS: Final = replace(GIT_LIMITS, grace_ms=0)


@dataclass(frozen=True, slots=True)
class Unmerged:
    """The places of work that is not in the target branch, by task in the form of references (``path_name``).

    Places are short names of branches, references of salvage, worktrees with uncommitted files, and references of a
    remote. ``why`` says why the search is not complete; it is empty if it is.
    """

    places: Mapping[str, tuple[str, ...]]
    why: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the search is complete."""
        return not self.why


async def unmerged(home: Path, fleet: str, branch: str, worktrees: Path, *, limit_ms: int = LOOK_MS) -> Unmerged:
    """Search for unmerged work, until the time limit. Places that git cannot read are skipped.

    ``home`` is the git directory that the worktrees share.
    """
    name = path_name(fleet)
    prefixes = (f"refs/heads/lifefold/{name}/", f"refs/lifefold/{name}/salvage/")
    found: dict[str, list[str]] = {}
    why = f"git took longer than {limit_ms:,} ms"
    with anyio.move_on_after(limit_ms / 1_000), suppress(PipeError):
        for task, reference in await _kept(home, branch, prefixes):
            found.setdefault(task, []).append(reference.removeprefix("refs/heads/"))
        for folder in _folders(worktrees):
            if task := await _claimed(home, folder, prefixes[0]):
                found.setdefault(task, []).append(str(folder))
        why = ""
    return Unmerged({task: tuple(places) for task, places in found.items()}, why)


async def _kept(home: Path, branch: str, prefixes: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the tasks of unmerged commits, each with the first reference to the commit for that task."""
    query = ("for-each-ref", f"--no-merged=refs/heads/{branch}", "--format=%(objectname) %(refname)", *prefixes)
    try:
        lines = (await Git(home, _LIMITS).run(*query)).text.splitlines()
    except PipeError:
        raise
    except (GitError, OSError):
        return []
    first: dict[tuple[str, str], str] = {}
    for commit, _, reference in (line.partition(" ") for line in lines):
        if task := _task(reference):
            first.setdefault((task, commit), reference)
    return [(task, reference) for (task, _), reference in first.items()]


async def _claimed(home: Path, folder: Path, branches: str) -> str:
    """Return the task of a worktree's claim if it has uncommitted files; else an empty text."""
    pins = worktree_at(folder, home)
    if pins is None:
        return ""
    worktree = Git(folder, _LIMITS, pins.by(folder.parent / RULES))
    try:
        claimed = await worktree.target_of(CLAIM)
        is_left = claimed.startswith(branches) and not await worktree.is_clean()
    except PipeError:
        raise
    except (GitError, OSError):
        return ""
    return _task(claimed) if is_left else ""


def _folders(root: Path) -> Iterator[Path]:
    with suppress(PermissionError):  # a user may read the log, but not its folder
        yield from [each for each in sorted(root.glob("*")) if (each / ".git").exists()]


def _task(reference: str) -> str:
    """Return the task of a claim's branch, ``.../TASK/EPOCH``, or of its salvage, ``.../TASK-EPOCH``."""
    *_, before, last = reference.split("/")
    return before if reference.startswith("refs/heads/") else last.rpartition("-")[0]
