"""The form of every report: what was tried, how far it went, the findings, and the conclusion."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from lifefold.interpreters.report.finding import Finding
from lifefold.interpreters.report.trace import WIDTH, wrapped

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
    def told(self) -> Sequence[Finding]:
        """Return the findings in the order of the report: broken properties at the end."""

    @abstractmethod
    def conclusion(self) -> str:
        """Return the conclusion in a few words."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return everything that the text has, in types of JSON."""

    def below(self, what: str, width: int) -> Iterator[str]:  # noqa: ARG002 - few facts have more lines
        """Yield further lines below a fact."""
        return iter(())

    def lines(self, width: int = WIDTH) -> Iterator[str]:
        """Yield the lines of the report; the last ones are the conclusion."""
        yield from wrapped(f"{self.title}: ", self.met(), width)
        for what, said in self.said():
            yield from wrapped(f"  {what:<13}", said, width)
            yield from self.below(what, width)
        yield ""
        last = ""
        for finding in self.told():
            for last in finding.lines(width, of=self.title, margin=MARGIN):
                yield last
        if last:
            yield ""
        yield from wrapped(f"{self.title}: ", self.conclusion(), width)

    def __str__(self) -> str:
        """Return the report as text."""
        return "\n".join(self.lines())
