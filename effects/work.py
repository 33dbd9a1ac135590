"""What becomes of one task in an agent's hands: its place, the proof that it is done, and the way home."""

from lifefold.effects.base import Activity


class CheckOutWork(Activity, frozen=True):
    """Give the task a clean place: a branch of its own in the agent's worktree, or a folder.

    ``epoch`` numbers the claims of the task, so that a branch belongs to exactly one of them.
    """

    task: str
    epoch: int


class VerifyWork(Activity, frozen=True):
    """Run ``commands`` in the task's place; all must exit 0, each within ``timeout_ms``."""

    task: str
    epoch: int
    commands: tuple[tuple[str, ...], ...]
    timeout_ms: int


class InspectWork(Activity, frozen=True):
    """Find out whether what is in the task's place differs from where the claim began; change nothing."""

    task: str
    epoch: int


class ParkWork(Activity, frozen=True):
    """Commit what the task changed, and keep it for whoever merges it, or nobody does."""

    opaque = ("title",)

    task: str
    epoch: int
    title: str


class MergeWork(Activity, frozen=True):
    """Commit what the task changed and merge it into the fleet's branch, exactly once.

    What was parked is kept under the number of an earlier claim, ``result``; otherwise that is 0. ``commit`` is what is
    to be merged, if it is made already. ``accepted`` is where the operator accepts the branch, though an agent has
    moved it there.
    """

    opaque = ("title", "result", "commit")

    task: str
    epoch: int
    title: str
    result: int = 0
    commit: str = ""
    accepted: str = ""


class WatchBranch(Activity, frozen=True):
    """See whether the fleet's branch still is where an agent has moved it to, commit ``found``."""

    task: str
    found: str
