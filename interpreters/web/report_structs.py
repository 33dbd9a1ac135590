"""The contents of the pages of reports: one struct a page, and their parts. Times are Unix time in milliseconds."""

import msgspec

from lifefold.interpreters.report.steps import Told as Finding
from lifefold.interpreters.report.steps import TracedStep


class ReportLine(msgspec.Struct, frozen=True):
    """A report of ``lifefold check`` or ``lifefold simulate`` in a ``file``, which was written at ``written_ms``.

    ``broken`` counts its findings with a trace.
    """

    key: str
    file: str
    target: str
    is_ok: bool
    conclusion: str
    broken: int
    written_ms: int


class ReportsPage(msgspec.Struct, frozen=True):
    """All reports that this desk was given. ``problems`` says why files cannot be read."""

    reports: tuple[ReportLine, ...]
    problems: tuple[str, ...]


class FindingLine(msgspec.Struct, frozen=True):
    """A finding with a trace: its number in the report, its words, and the number of its steps."""

    number: int
    words: str
    kind: str
    mark: str
    steps: int


class ReportPage(msgspec.Struct, frozen=True):
    """A report: the size of the work and its further facts, the findings with a trace, and the other findings."""

    report: ReportLine
    title: str
    met: str
    extent: tuple[tuple[str, str], ...]
    traced: tuple[FindingLine, ...]
    told: tuple[Finding, ...]


class StepLine(msgspec.Struct, frozen=True):
    """A step in the list of all: what was said, and the moves that followed. ``stage`` is that of a runner."""

    number: int
    stage: str
    said: str
    moves: tuple[str, ...]
    repeats: bool


class Placed(msgspec.Struct, frozen=True):
    """An entity after a step: its state, the one before its last move, and its picture, if there is one.

    ``picture`` is the name of a shipped one. ``is_drawn``: the report itself has one.
    """

    aggregate: str
    entity: str
    machine: str
    picture: str
    is_drawn: bool
    before: str
    state: str
    is_moved: bool


class TracePage(msgspec.Struct, frozen=True):
    """The trace of a finding at a ``step``: what it has done, and where all entities are after it.

    Step 0 is the time before the first one; ``now`` is then null. ``earlier`` counts the inputs before the trace.
    """

    report: ReportLine
    finding: FindingLine
    step: int
    now: TracedStep | None
    placed: tuple[Placed, ...]
    steps: tuple[StepLine, ...]
    begins: tuple[tuple[str, str], ...]
    end: str
    earlier: int
    notes: tuple[str, ...]
