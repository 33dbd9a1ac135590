"""The errors of workplaces."""

from pathlib import Path


class WorkplaceError(Exception):
    """A workplace could not be made, or work could not be merged: what is wrong, where, and what to do."""

    def __init__(self, what: str, where: Path, remedy: str) -> None:
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} (in {self.where}). {self.remedy}"


class InTheWayError(WorkplaceError):
    """The operation must be retried later: the user's changes, a lock, or a moving branch block it."""


class MergeConflict(WorkplaceError):
    """The work and commits that were merged meanwhile change the same lines or files."""


class TakenOverError(WorkplaceError):
    """Another run, with the log ``log``, has taken over the name of the fleet in its repository."""

    def __init__(self, what: str, where: Path, remedy: str, log: Path) -> None:
        super().__init__(what, where, remedy)
        self.log = log
