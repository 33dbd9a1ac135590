"""What was found of one thing that a fleet may need."""

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """Whether a fleet can use it."""

    OK = "ok"
    NOTE = "note"
    """It is there, and something about it cannot be told or was not tested."""
    MISSING = "missing"


class Finding(msgspec.Struct, frozen=True):
    """One thing: ``what`` it is, the ``verdict``, what was found, its ``place``, and a remedy if it is missing.

    ``needed`` is False for a thing that the examined fleet does without.
    """

    what: str
    verdict: Verdict
    found: str
    place: str = ""
    remedy: str = ""
    needed: bool = True

    @property
    def fails(self) -> bool:
        """Whether a fleet cannot run because of it."""
        return self.needed and self.verdict is Verdict.MISSING


class ProgramFinding(Finding, frozen=True):
    """An agent program with its version.

    ``is_tested``: the adapter was tested with this version. ``login`` is a login that was seen; an empty one does not
    mean that there is none.
    """

    version: str = ""
    is_tested: bool = False
    login: str = ""
