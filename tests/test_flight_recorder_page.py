"""The page of the flight recorder works as it stands: an incident becomes a failing test in three commands."""

import re
import sys
from pathlib import Path

from pages import DOCS, blocks, called, lifefold

PAGE = DOCS / "flight-recorder.md"


def timeless(text: str) -> str:
    """Return a text without times of day, digests, and the spaces that depend on them."""
    return re.sub(r" {2,}", "  ", re.sub(r"\b[0-9a-f]{16}\b", "LINK", re.sub(r"\d\d:\d\d:\d\d(\.\d+)?", "TIME", text)))


def printed(command: str) -> str:
    """Return what the page shows as the output of a command."""
    for block in blocks(PAGE, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE):
            if part.startswith(f"{command}\n"):
                return part.partition("\n")[2]
    raise LookupError(command)


def test_an_incident_is_replayed_forked_and_becomes_a_failing_test(tmp_path: Path) -> None:
    """Every command prints what the page says; the test fails with the defect, and passes with the fix of the page."""
    (hall,), (written, fix) = blocks(PAGE, "python"), blocks(PAGE, "py")
    (tmp_path / "hall.py").write_text(hall)
    called(tmp_path, sys.executable, "hall.py", "1", "1", "-1", "1", "2", "-1")
    for command, code in (
        ("lifefold log hall:system hall.db --format table", 0),
        ("lifefold verify hall:system hall.db", 1),
        ("lifefold replay hall:system hall.db --at 5", 0),
        ("lifefold fork hall:system hall.db --at 5 --pytest test_incident.py", 1),
    ):
        said = lifefold(tmp_path, *command.split()[1:], code=code)
        assert timeless(said).strip() == timeless(printed(command)).strip()
    assert written in (tmp_path / "test_incident.py").read_text()
    tests = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_incident.py")
    called(tmp_path, *tests, code=1)
    rows = re.findall(r"^ +row\(Hall.OPEN, Entered.*\n", hall, re.MULTILINE)
    fixed = hall.replace("".join(rows), "".join(f"        {row},\n" for row in fix.splitlines()))
    assert len(rows) == 2
    assert fixed != hall
    (tmp_path / "hall.py").write_text(fixed)
    called(tmp_path, *tests)
    said = lifefold(tmp_path, "verify", "hall:system", "hall.db")
    assert "entry 6 (hall, version 6), which other rules decided, would not be allowed: hall: every guest has a" in said
