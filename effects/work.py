"""The effects of one claimed task: its place, its verification, and the merge of its work."""

from lifefold.effects.base import Activity


class CheckOutWork(Activity, frozen=True):
    """Prepare a clean place for the task: a branch of its own in the agent's worktree, or a folder.

    ``epoch`` numbers the claims of the task, so that a branch belongs to exactly one of them. The place has the work of
    the earlier claim ``result``, which is kept as ``commit``; without one it begins at the target branch. With
    the conversation that the agent ``resumes`` the place also has the changes of its last claim of the task.
    """

    opaque = ("result", "commit", "resumes")

    task: str
    epoch: int
    result: int = 0
    commit: str = ""
    resumes: str = ""


class VerifyWork(Activity, frozen=True):
    """Run ``commands`` in the task's place; all must exit 0, each within ``timeout_ms``."""

    task: str
    epoch: int
    commands: tuple[tuple[str, ...], ...]
    timeout_ms: int


class InspectWork(Activity, frozen=True):
    """Find out whether the task's place differs from the start of the claim; change nothing."""

    task: str
    epoch: int


class ParkWork(Activity, frozen=True):
    """Commit the task's changes, and keep them for a later merge, if any."""

    opaque = ("title",)

    task: str
    epoch: int
    title: str


class MergeWork(Activity, frozen=True):
    """Commit the task's changes and merge them into the target branch, exactly once.

    Parked work is kept under the number of an earlier claim, ``result``; otherwise that is 0. ``commit`` is the commit
    to merge, if it exists already. ``accepted`` is the position of the target branch that the operator accepts, though
    an agent has moved it there. ``to_branch``: the commit becomes a ready branch, and nothing is merged.
    """

    opaque = ("title", "result", "commit")

    task: str
    epoch: int
    title: str
    result: int = 0
    commit: str = ""
    accepted: str = ""
    to_branch: bool = False


class WatchBranch(Activity, frozen=True):
    """See whether the target branch still is at the commit ``found``, where an agent has moved it."""

    task: str
    found: str
