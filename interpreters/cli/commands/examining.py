"""The command ``doctor``: prints what of this machine a fleet can use."""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Final

import anyio
import msgspec

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.logs import FOLDER, default_log
from lifefold.interpreters.doctor import Examination, Finding, Verdict, examine
from lifefold.interpreters.fleet_file import Fleet, FleetFileError, load

MARKS: Final = {Verdict.OK: "✓", Verdict.NOTE: "!", Verdict.MISSING: "✗"}
NOT_NEEDED: Final = "-"
"""The mark of a missing thing that the fleet does without."""

WIDTH: Final = 100
"""The width of a line without a terminal."""


def doctor(arguments: Namespace) -> int:
    """Examine the machine, for a fleet file if one is named. Return 1 if something that is needed is missing."""
    fleet, problems = _loaded(arguments.fleet) if arguments.fleet else (None, "")
    beside = Path(arguments.fleet).absolute().parent if arguments.fleet else Path.cwd()
    folder = default_log(fleet.source, fleet.name).parent if fleet else beside / FOLDER
    found = anyio.run(examine, fleet, folder, problems)
    if arguments.json:
        print(msgspec.json.format(msgspec.json.encode({"ok": found.ok, **msgspec.structs.asdict(found)})).decode())
    else:
        print("\n".join(lines(found, fleet.name if fleet else "")))
    return 0 if found.ok else 1


def _loaded(path: str) -> tuple[Fleet | None, str]:
    """Return the fleet of a file, or else the errors of the file. A fleet that waits for tasks may have none yet."""
    if not Path(path).is_file():
        raise BadInput(f"{path} is no file")
    try:
        return load(path, watch=True), ""
    except FleetFileError as error:
        return None, str(error)


def lines(found: Examination, name: str) -> Iterator[str]:
    """Yield the lines of a report."""
    room = get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    yield f"lifefold {version('lifefold')}"
    for title, findings in (("agent programs", found.programs), ("machine", found.machine)):
        yield ""
        yield title if findings else f"{title}: the fleet needs none of those that lifefold knows"
        yield from _rows(findings, room)
    yield ""
    what = f"the fleet {name}" if name else "a fleet"
    yield f"{what} can run here" if found.ok else f"{what} cannot run here; see {MARKS[Verdict.MISSING]}"


def _wrapped(text: str, width: int) -> list[str]:
    """Return a text in lines, cut at spaces only: a path stays whole."""
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _rows(findings: Sequence[Finding], room: int) -> Iterator[str]:
    """Yield the findings: marks, names and texts in columns."""
    width = max((len(each.what) for each in findings), default=0)
    indent = width + 4
    for each in findings:
        texts = [part for text in (each.found, each.place, each.remedy) for part in text.splitlines()]
        wrapped = [line for text in texts for line in _wrapped(text, max(20, room - indent))]
        mark = MARKS[each.verdict] if each.needed or each.verdict is not Verdict.MISSING else NOT_NEEDED
        yield f"{mark} {each.what:<{width}}  {wrapped[0]}"
        yield from (" " * indent + line for line in wrapped[1:])
