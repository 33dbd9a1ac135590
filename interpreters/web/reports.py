"""Reports of ``lifefold check`` and ``lifefold simulate``: files of ``--json``, read again when they change.

Nothing in a file is executed or looked up, except the name of a shipped picture. All texts of it are escaped by the
templates. A picture of a file is an image with an address of its own, and no part of a page: a browser runs no script
of an image.
"""

import hashlib
import os
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Final, cast

import msgspec
from msgspec.structs import replace

from lifefold.interpreters.report.steps import Moved, TracedFinding, TracedReport, TracedStep
from lifefold.interpreters.views.picture import lit
from lifefold.interpreters.web.agent_page import PICTURES, UnknownName
from lifefold.interpreters.web.machine_pages import picture
from lifefold.interpreters.web.report_structs import (
    FindingLine,
    Placed,
    ReportLine,
    ReportPage,
    ReportsPage,
    StepLine,
    TracePage,
)

MOST_BYTES: Final = 100_000_000
"""The largest file of a report."""

_MARK: Final = 6
"""The characters that tell apart files of the same name."""


class _One(msgspec.Struct, frozen=True):
    """A report in a file; its other fields are not read."""

    target: str
    page: TracedReport


_FILE: Final = msgspec.json.Decoder(list[_One] | _One)

_Stamp = tuple[int, int]
"""The time of the last change of a file in nanoseconds, and its size."""


def is_report(path: Path) -> bool:
    """Tell whether a file is named as JSON, or begins so: a log begins otherwise."""
    if path.suffix == ".json":
        return True
    try:
        with path.open("rb") as opened:
            return opened.read(64).lstrip()[:1] in {b"[", b"{"}
    except OSError:
        return False


class Reports:
    """The reports of some files."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        """Take the files; they are read when a page needs them."""
        self.files: Final = tuple(dict.fromkeys(each.absolute() for each in files))
        self._read: dict[Path, tuple[_Stamp, tuple[_One, ...], str]] = {}

    def __bool__(self) -> bool:
        """Tell whether there are any files."""
        return bool(self.files)

    def every(self) -> Iterator[tuple[ReportLine, TracedReport]]:
        """Yield the reports that can be read. A file with several has a key for each target."""
        for path in self.files:
            stamp, found, _ = self._of(path)
            stem = self._stem(path)
            for number, each in enumerate(found):
                alone = sum(one.target == each.target for one in found) == 1
                key = stem if len(found) == 1 else f"{stem}-{each.target}" if alone else f"{stem}-{number + 1}"
                of = each.page
                line = ReportLine(
                    key, str(path), each.target, of.is_ok, of.conclusion, len(of.traced), stamp[0] // 1_000_000
                )
                yield line, of

    def problems(self) -> tuple[str, ...]:
        """Return why files cannot be read."""
        return tuple(why for path in self.files if (why := self._of(path)[2]))

    def named(self, key: str) -> tuple[ReportLine, TracedReport]:
        """Return a report by its key. Raises ``UnknownName``."""
        found = next((each for each in self.every() if each[0].key == key), None)
        if found is None:
            message = f"there is no report {key!r}"
            raise UnknownName(message)
        return found

    def of(self, target: str) -> tuple[ReportLine, ...]:
        """Return the reports on a machine or a system."""
        return tuple(line for line, _ in self.every() if line.target == target)

    def _stem(self, path: Path) -> str:
        if sum(each.stem == path.stem for each in self.files) == 1:
            return path.stem
        return f"{path.stem}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:_MARK]}"

    def _of(self, path: Path) -> tuple[_Stamp, tuple[_One, ...], str]:
        """Return the reports of a file, read again if it has changed."""
        try:
            stat = path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
            if path not in self._read or self._read[path][0] != stamp:
                self._read[path] = (stamp, *_read(path, stat.st_size))
        except OSError as error:
            self._read[path] = (0, 0), (), f"{path}: {error.strerror}"
        return self._read[path]


def _read(path: Path, size: int) -> tuple[tuple[_One, ...], str]:
    """Return the reports of a file, and why it has none."""
    if size > MOST_BYTES:
        return (), f"{path}: it has {size:,} bytes; accepted: at most {MOST_BYTES:,}"
    try:
        found = _FILE.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        written = "lifefold check TARGET --json, or lifefold simulate TARGET --json"
        return (), f"{path}: it is not a report ({error}); accepted: what {written} has printed"
    return tuple(cast("list[_One]", found)) if isinstance(found, list) else (found,), ""


def reports_page(reports: Reports) -> ReportsPage:
    """Return all reports."""
    return ReportsPage(tuple(line for line, _ in reports.every()), reports.problems())


def report_page(reports: Reports, key: str) -> ReportPage:
    """Return a report. Raises ``UnknownName``."""
    line, of = reports.named(key)
    traced = tuple(_line(number, each) for number, each in enumerate(of.traced, 1))
    return ReportPage(line, of.title, of.met, of.extent, traced, of.told)


def trace_page(reports: Reports, key: str, finding: int, step: int) -> TracePage:
    """Return the trace of a finding at a step; 0 is the time before the first step. Raises ``UnknownName``."""
    line, of = reports.named(key)
    if not 0 < finding <= len(of.traced):
        message = f"the report {key!r} has no finding {finding} with a trace"
        raise UnknownName(message)
    traced = of.traced[finding - 1]
    if not 0 <= step <= len(traced.steps):
        message = f"finding {finding} has the steps 0 to {len(traced.steps)}, and no step {step}"
        raise UnknownName(message)
    return TracePage(
        line,
        _line(finding, traced),
        step,
        traced.steps[step - 1] if step else None,
        tuple(_placed(traced, step, line.target, of.pictures)),
        tuple(map(_step_line, traced.steps)),
        traced.begins,
        traced.end,
        traced.earlier,
        traced.notes,
    )


def _line(number: int, of: TracedFinding) -> FindingLine:
    return FindingLine(number, of.words, of.kind, of.mark, len(of.steps))


def _step_line(of: TracedStep) -> StepLine:
    moves = (f"{each.entity} {f'{each.before} → ' if each.before else ''}{each.after}" for each in of.moved)
    said = of.said if of.moved or not of.refused else f"{of.said} (refused)"
    return StepLine(of.number, of.stage, said, tuple(moves), of.repeats)


def _placed(of: TracedFinding, step: int, target: str, drawn: Container[str]) -> Iterator[Placed]:
    """Yield the state of each entity after a step, with a picture; those that the step has moved come first.

    An entity that has not moved yet has the state that its first move leaves. One that comes later has none yet.
    """
    now: dict[tuple[str, str], Placed] = {}
    for each in of.steps:
        for moved in each.moved:
            key = (each.aggregate, moved.entity)
            if each.number <= step:
                now.pop(key, None)
                now[key] = _one(each.aggregate, moved, target, drawn, is_moved=each.number == step)
            elif key not in now and moved.before:
                earlier = replace(moved, before="", after=moved.before)
                now[key] = _one(each.aggregate, earlier, target, drawn, is_moved=False)
    yield from sorted(now.values(), key=lambda placed: not placed.is_moved)


def _one(aggregate: str, of: Moved, target: str, drawn: Container[str], *, is_moved: bool) -> Placed:
    own = of.machine in drawn
    shown = "" if own else _picture(target, of.machine)
    return Placed(aggregate, of.entity, of.machine, shown, own, of.before, of.after, is_moved)


def drawing_of(reports: Reports, key: str, machine: str, state: str) -> str:
    """Return the picture of a machine that a report has, with one state lit. Raises ``UnknownName``."""
    _, of = reports.named(key)
    if machine not in of.pictures:
        message = f"the report {key!r} has no picture of {machine!r}"
        raise UnknownName(message)
    return lit(of.pictures[machine], state)


def _picture(target: str, machine: str) -> str:
    """Return the name of the shipped picture of a machine: that of the target itself, if it is one of this machine."""
    of_fleet = PICTURES.get(machine, machine) if target.startswith("fleet") else machine
    own = target if target.startswith(f"{machine}-") else of_fleet
    return own if picture(own) else ""
