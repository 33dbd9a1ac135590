"""The report of a benchmark: targets first, then tables, as text for a terminal or as Markdown."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

BEGIN = "<!-- The rest of this file is written by `python -m benchmarks --write`. -->"
"""The line in the document after which the benchmarks write."""


@dataclass(frozen=True)
class Target:
    """A target, with the measured value."""

    what: str
    wanted: str
    measured: str
    met: bool

    @property
    def cells(self) -> tuple[str, ...]:
        """The target as a row of a table."""
        return self.what, self.wanted, self.measured, "met" if self.met else "NOT met"


@dataclass(frozen=True)
class Table:
    """Rows under a heading. The first column has names, the others have figures."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Report:
    """The results of one benchmark. ``notes`` are sentences."""

    name: str
    tables: tuple[Table, ...]
    targets: tuple[Target, ...] = ()
    notes: tuple[str, ...] = ()


def tables_of(report: Report) -> Iterator[Table]:
    """Yield a report's targets as a table, if it has any, and then its tables."""
    if report.targets:
        rows = tuple(target.cells for target in report.targets)
        yield Table("Targets", ("what", "target", "measured (least to greatest)", ""), rows)
    yield from report.tables


def plain(report: Report) -> str:
    """Return a report for a terminal."""
    blocks = [f"== {report.name}"]
    for table in tables_of(report):
        lines = [table.columns, *table.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(table.columns))]
        aligned = ["  ".join(_aligned(line, widths)).rstrip() for line in lines]
        blocks.append("\n".join([f"{table.title}:", *(f"  {line}" for line in aligned)]))
    return "\n\n".join([*blocks, *report.notes])


def _aligned(cells: tuple[str, ...], widths: list[int]) -> Iterator[str]:
    first, *rest = zip(cells, widths, strict=True)
    yield first[0].ljust(first[1])
    yield from (cell.rjust(width) for cell, width in rest)


def markdown(report: Report) -> str:
    """Return a report as a section of a document."""
    blocks = [f"### `{report.name}`"]
    for table in tables_of(report):
        rule = ("---", *("--:" for _ in table.columns[1:]))
        lines = [f"| {' | '.join(cells)} |" for cells in (table.columns, rule, *table.rows)]
        blocks.append("\n".join([f"{table.title}:", "", *lines]))
    return "\n\n".join([*blocks, *report.notes])


def write_alone(document: Path, host: Table, reports: Iterable[Report]) -> None:
    """Replace the results of some benchmarks in a document, or add them at its end, each with its own machine and load.

    Raises ``ValueError`` if the line ``BEGIN`` is missing.
    """
    text, mark, results = document.read_text().partition(BEGIN)
    if not mark:
        raise ValueError(f"{document}: there is no line {BEGIN!r}")
    machine = "\n".join(f"- {name}: {value}" for name, value in host.rows)
    for report in reports:
        head, *rest = markdown(report).split("\n\n")
        block = "\n\n".join([head, "Measured by itself:", machine, *rest])
        before, found, after = f"{results}\n".partition(f"\n{head}\n")
        _, next_one, others = after.partition("\n### ")
        results = f"{before.rstrip()}\n\n{block}\n" + (f"\n### {others.rstrip()}\n" if found and next_one else "")
    document.write_text(f"{text}{mark}{results}")


def write(document: Path, host: Table, reports: Iterable[Report]) -> None:
    """Replace the results in a document. Raises ``ValueError`` if the line ``BEGIN`` is missing."""
    text, mark, _old = document.read_text().partition(BEGIN)
    if not mark:
        raise ValueError(f"{document}: there is no line {BEGIN!r}")
    machine = "\n".join(f"- {name}: {value}" for name, value in host.rows)
    blocks = [f"{text}{BEGIN}", "## The last run", machine, *(markdown(report) for report in reports)]
    document.write_text("\n\n".join(blocks) + "\n")
