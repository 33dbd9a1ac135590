"""The page ``docs/path-of-an-event.md`` against real fleets: it names the functions that are called, in this order."""

import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import anyio

from commands_run import LIFEFOLD
from git_sandbox import git
from lifefold.core.kernel import Reaction, Refusal
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner, Verdict

PAGE: Final = Path(__file__).parents[3] / "docs" / "path-of-an-event.md"
ROW: Final = re.compile(r"^\| (`[^|]+) \| \[([^|\]]+)\]", re.MULTILINE)
SHIM: Final = "interpreters/processes/shim/"

Call = tuple[str, str]
"""A function by its file and its qualified name; an event of the log by its entity's machine and its type."""

FLEET: Final = """
[fleet]
name = "path"
repository = "."

[fleet.retry]
backoff_base = "10ms"

[[agents]]
name = "agent"
count = 2
command = ["sh", "-c", {script}, "agent", "{{prompt}}"]
session_timeout = "10m"
backoff_base = "10ms"

[[tasks]]
id = "slug"
prompt = "Write it"
verify = [["true"]]
"""


def section(number: int) -> list[Call]:
    """Return the functions of a section, without those of the shim, which is another process."""
    text = PAGE.read_text().partition(f"### {number}. ")[2].partition("\n##")[0]
    rows = [(place, re.findall(r"`([^`]+)`", names)) for names, place in ROW.findall(text)]
    found = [(place, name) for place, names in rows for name in names if not place.startswith(SHIM)]
    assert found
    return found


def prepared(folder: Path, script: str) -> Path:
    """Make a repository with a fleet of two agents and one task; return its file."""
    (folder / "fleet.toml").write_text(FLEET.format(script=f"'''{script}'''"))
    for arguments in (("init", "-q", "-b", "main"), ("commit", "-q", "--allow-empty", "-m", "first")):
        git(folder, *arguments)
    return folder / "fleet.toml"


@contextmanager
def recorded() -> Generator[list[Call]]:
    """Record each call of a function of lifefold, in all threads that begin inside the block."""
    calls: list[Call] = []

    def note(frame: FrameType, what: str, _argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if what == "call" and module.startswith("lifefold."):
            path = module.removeprefix("lifefold.").replace(".", "/")
            calls.append((f"{path}.py", frame.f_code.co_qualname))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def until(calls: list[Call], *event: str) -> list[Call]:
    """Remove and return the calls up to the next such event, which must have happened."""
    assert event in calls, event
    place = calls.index((event[0], event[1])) + 1
    first, calls[:] = calls[:place], calls[place:]
    return first


async def run(file: Path, calls: list[Call]) -> None:
    """Run a fleet until all its tasks are closed, and add each transition to the calls."""

    def note(_aggregate: str, outcome: Reaction | Refusal) -> None:
        if isinstance(outcome, Reaction):
            calls.extend((each.machine, type(each.event).__name__) for each in outcome.transitions)

    runner = await Runner.open(load(file), file.with_name("path.db"))
    runner.observers.append(note)
    try:
        assert await runner.run() is Verdict.ALL_CLOSED
    finally:
        runner.close()


def test_a_crashed_session_takes_the_path_of_the_page(tmp_path: Path) -> None:
    """Each function of sections 1 to 7 is called between the inputs that its section stands between."""
    failed, prompts = shlex.quote(str(tmp_path / "failed")), shlex.quote(str(tmp_path / "prompts"))
    script = (
        f'echo "$1" >> {prompts}; if [ -e {failed} ]; then echo done > it; else touch {failed}; echo Oh; exit 1; fi'
    )
    file = prepared(tmp_path, script)
    with recorded() as calls:
        anyio.run(run, file, calls)
    until(calls, "session", "SessionStarted")
    paths = (
        (until(calls, "session", "SessionExited"), (1, 2, 3, 4)),
        (until(calls, "task", "Failed"), (5,)),
        (until(calls, "task", "Claimed"), (6,)),
        (until(calls, "session", "SessionStarted"), (7,)),
    )
    missing = {number: set(section(number)) - set(path) for path, numbers in paths for number in numbers}
    assert missing == {number: set() for number in range(1, 8)}
    assert "An earlier attempt at this task failed: Error(exit status 1: Oh)" in (tmp_path / "prompts").read_text()


def test_the_session_of_a_dead_runner_takes_the_path_of_the_page(tmp_path: Path) -> None:
    """The next runner calls each function of section 8 before the end of the session is an input."""
    failed, gate = shlex.quote(str(tmp_path / "failed")), tmp_path / "gate"
    os.mkfifo(gate)
    waits = f"touch {failed}; read line < {shlex.quote(str(gate))}; exit 1"
    file = prepared(tmp_path, f"if [ -e {failed} ]; then echo done > it; else {waits}; fi")
    command = (*LIFEFOLD, "run", str(file), "--db", str(tmp_path / "path.db"), "--transitions")
    runner = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with gate.open("w"):  # returns when the session reads, and lets it fail at the end of the block
        runner.kill()
        runner.wait()
    with recorded() as calls:
        anyio.run(run, file, calls)
    path = until(calls, "session", "SessionExited")
    assert set(section(8)) - set(path) == set()
    assert ("task", "Claimed") not in path
