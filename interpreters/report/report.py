"""The form of every report: what was tried, how far it went, the findings, and the conclusion."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from lifefold.core.kernel.shown import shown
from lifefold.interpreters.report.finding import Finding
from lifefold.interpreters.report.trace import WIDTH, wrapped

USED: Final = "used"
"""The fact that the unused parts stand below."""

UNUSED_SHOWN: Final = 6
"""The unused parts of each list that a report shows unless it is asked for all."""

MARGIN: Final = "  "
"""The beginning of each finding in a report."""


class ReportBase(msgspec.Struct, frozen=True):
    """A report on one target. A check and a simulation say what is particular to them."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The name of the target."""

    @property
    @abstractmethod
    def ok(self) -> bool:
        """Whether no property is known to be broken, or left undecided."""

    @abstractmethod
    def met(self) -> str:
        """Return the size of the work in words."""

    @abstractmethod
    def said(self) -> Iterator[tuple[str, str]]:
        """Yield each fact about the extent of the work, with its name."""

    @abstractmethod
    def shown_findings(self) -> Sequence[Finding]:
        """Return the findings in the order of the report: broken properties at the end."""

    @abstractmethod
    def conclusion(self) -> str:
        """Return the conclusion in a few words."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return everything that the text has, in types of JSON."""

    @abstractmethod
    def unused(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield the unused parts of the tables and the unused rules in words, each list with its field in ``facts``."""

    def lines(self, width: int = WIDTH, *, shows_unused: bool = False) -> Iterator[str]:
        """Yield the lines of the report; the last ones are the conclusion.

        Of the unused rows and rules it shows the first few, or all if ``shows_unused``.
        """
        yield from wrapped(f"{self.title}: ", self.met(), width)
        for what, said in self.said():
            yield from wrapped(f"  {what:<12} ", said, width)
            if what == USED:
                for field, unused in self.unused():
                    yield from _unused_lines(unused, width, field, shows_all=shows_unused)
        yield ""
        last = ""
        for finding in self.shown_findings():
            for last in finding.lines(width, of=self.title, margin=MARGIN):
                yield last
        if last:
            yield ""
        yield from wrapped(f"{self.title}: ", self.conclusion(), width)

    def __str__(self) -> str:
        """Return the report as text."""
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        """Return the target and the conclusion in one line."""
        return shown(f"Report of {self.title}: {self.conclusion()}")


def _unused_lines(unused: Sequence[str], width: int, field: str, *, shows_all: bool) -> Iterator[str]:
    """Yield the unused parts as lines of a report: all of them, or some and the number of the others in ``field``."""
    most = len(unused) if shows_all else UNUSED_SHOWN
    for line in unused[:most]:
        yield from wrapped("    - ", line, width)
    if len(unused) > most:
        yield f"    - and {len(unused) - most} more, in `{field}` (--unused)"
