"""A finding: one line of a report about a property, with the way to it.

A check finds the outcome of every property (``Verdict``) and messages in vain (``Message``). A simulation finds broken
properties, each with a shrunk run (``interpreters/campaign/findings.py``). All are printed here.
"""

from abc import abstractmethod
from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar

import msgspec

from lifefold.core.kernel import PropertyKind
from lifefold.interpreters.report.trace import WIDTH, Trace, wrapped


class Outcome(StrEnum):
    """The outcome of a property, in the order of a report.

    ``UNDECIDED``: the search is not complete. ``VACUOUS``: the property was never due. ``UNSOUND``: the reduced search
    and the unreduced rules disagree about it, so a record declares too much (see ``disagreement``).
    """

    HOLDS = "holds"
    UNDECIDED = "undecided"
    VACUOUS = "vacuous"
    NEVER_SEEN = "never seen"
    UNSOUND = "unsound"
    BROKEN = "broken"


class Finding(msgspec.Struct, frozen=True):
    """What a report says about one property. Each kind of finding has its mark, its words and its way."""

    inset: ClassVar[str | None] = None
    """The beginning of each line of the way; None for two characters more than the words."""

    @property
    def mark(self) -> str:
        """A character for the outcome."""
        return "✗"

    @property
    def kind(self) -> str:
        """The kind of property, for the column after the mark."""
        return ""

    @property
    def shown(self) -> Trace | None:
        """The trace of the way, for a picture."""
        return None

    @property
    def head(self) -> str:
        """The beginning of the line, before the words."""
        return f"{self.mark} {self.kind:<11} " if self.kind else f"{self.mark} "

    @abstractmethod
    def words(self, *, of: str = "") -> str:
        """Return the finding without the way; without the owner if it is ``of``."""

    @abstractmethod
    def way(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the lines of the way to it; nothing if there is none."""

    def lines(self, width: int = WIDTH, *, of: str = "", margin: str = "") -> Iterator[str]:
        """Yield the lines of the finding and of the way to it, without the owner if it is ``of``."""
        yield from wrapped(f"{margin}{self.head}", self.words(of=of), width)
        inset = f"{margin}  " if self.inset is None else self.inset
        yield from (f"{inset}{line}" for line in self.way(width - len(inset)))

    def __repr__(self) -> str:
        """Return a few words, as a test runner shows them."""
        return f"<{self.head.rstrip()}: {self.words()}>"


class Verdict(Finding, frozen=True):
    """A property and its outcome. ``trace`` leads to where it is broken, or to where it is reached."""

    owner: str
    name: str
    property_kind: PropertyKind
    outcome: Outcome
    trace: Trace | None = None
    note: str = ""

    @property
    def mark(self) -> str:
        """A character for the outcome."""
        return "✓" if self.outcome is Outcome.HOLDS else "?" if self.outcome is Outcome.UNDECIDED else "✗"

    @property
    def kind(self) -> str:
        """The kind of the property."""
        return self.property_kind

    @property
    def shown(self) -> Trace | None:
        """The trace of a broken or unsound property."""
        return self.trace if self.outcome in {Outcome.BROKEN, Outcome.UNSOUND} else None

    def words(self, *, of: str = "") -> str:
        """Return the property and its outcome, without the trace."""
        owner = "" if self.owner == of else f"{self.owner}: "
        note = f" ({self.note})" if self.note else ""
        said = "" if self.outcome is Outcome.HOLDS else f": {self.outcome}"
        return f"{owner}{self.name}{said}{note}"

    def way(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the trace of a broken or unsound property; nothing if there is none."""
        if self.shown is not None:
            yield from self.shown.lines(width)


class Message(Finding, frozen=True):
    """Messages in vain, and the reason; ``trace`` leads to the first."""

    sender: str
    receiver: str
    event: str
    why: str
    trace: Trace | None = None

    @property
    def mark(self) -> str:
        """A character for a warning."""
        return "!"

    @property
    def kind(self) -> str:
        """A word in the column of the kinds."""
        return "message"

    @property
    def shown(self) -> Trace | None:
        """The trace to the first message."""
        return self.trace

    def words(self, *, of: str = "") -> str:  # noqa: ARG002 - a message has both its ends
        """Return the message without the trace."""
        return f"{self.sender} tells {self.receiver} {self.event}: {self.why}"

    def way(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the lines of the trace."""
        if self.trace is not None:
            yield from self.trace.lines(width)
