"""What can go wrong with places to work."""

from pathlib import Path


class WorkplaceError(Exception):
    """A place to work could not be made, or work could not be brought home: what is wrong, where, and what to do."""

    def __init__(self, what: str, where: Path, remedy: str) -> None:
        super().__init__(what, where, remedy)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} (in {self.where}). {self.remedy}"


class InTheWayError(WorkplaceError):
    """Something hinders it that others have to end: the user's changes, a lock, a branch that moves. Do it again."""


class MergeConflict(WorkplaceError):
    """The work and what others have merged meanwhile change the same places."""
