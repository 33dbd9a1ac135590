"""The option ``--itf``: the traces of a report as files in the Informal Trace Format."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lifefold.core.kernel import Machine, World
from lifefold.interpreters.cli.written import see_to, write
from lifefold.interpreters.report.finding import Finding
from lifefold.interpreters.report.itf import Json, is_written_here, of_trace, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lifefold.interpreters.targets.target import Target


def see_to_itf(path: str | None) -> None:
    """Check that the file can be written later. Raises ``BadInput``."""
    if path is not None:
        see_to(Path(path), "trace", is_written_here)


def world_of(target: "Target") -> World:
    """Return the world in which the search or the simulation of a target begins."""
    from lifefold.interpreters.replay import Replay  # noqa: PLC0415 - slow, and seldom needed

    if target.begin is not None:
        return target.begin
    if isinstance(target.subject, Machine):
        of = target.subject if target.record is None else target.subject.starting(target.record)
        return Replay(of).world
    return Replay(target.subject, target.opening).world


def traces_of(target: "Target", findings: "Iterable[Finding]") -> Iterator[Json]:
    """Yield the traces of the findings of a target that have one, with the finding as their description."""
    for each in findings:
        if each.shown is not None:
            yield of_trace(f"{target.name}: {each.words()}", each.shown, world_of(target))


def write_itf(path: str, traces: "Sequence[Json]", *, is_quiet: bool) -> None:
    """Write the first trace into a file, and further ones beside it: ``NAME-2.json`` after ``NAME.json``."""
    if not traces:
        print(f"lifefold: no trace is shown, so {path} is not written", file=sys.stderr)
    for number, each in enumerate(traces, 1):
        write(_numbered(Path(path), number), text(each).encode(), is_quiet=is_quiet)


def _numbered(path: Path, number: int) -> Path:
    name, _, ends = path.name.partition(".")
    return path if number == 1 else path.with_name(f"{name}-{number}{f'.{ends}' if ends else ''}")
