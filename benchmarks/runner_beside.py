"""A whole run beside a desk with open pages, and the same run without one, in turns.

Each run does the same tasks: its agents are shell commands that end at once, so the time is the runner's. The desk is
that of the machine, a process of its own. Ten pages are open. Each listens to the stream, and asks for the page of the
fleet again after news, at most as often as the script of a page.

The processor time is that of the runner and of its sessions, without the desk. It says what the desk costs them, where
the time by the clock says what a machine with few cores has left.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import httpx2

from benchmarks.desk_beside import WAIT_S, spread
from benchmarks.report import Report, Table, Target

AGENTS = 4
TASKS = 60
ROUNDS = 4
PAGES = 10
PAUSE_S = 0.4
"""The pause of an open page between two looks, as in the script of the pages."""

MOST_RATIO = 1.1

FLEET = """
[fleet]
name = "beside"

[[agents]]
name = "agent"
count = {agents}
command = ["true", "{{prompt}}"]
session_timeout = "60s"
"""

TASK = """
[[tasks]]
id = "T{number}"
prompt = "do it"
verify = [["true"]]
"""


class Took(NamedTuple):
    """The time of a run by the clock, and the processor time of its runner and sessions, in seconds."""

    wall_s: float
    used_s: float


def measure() -> Report:
    """Measure pairs of runs, in a folder outside of any repository."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        around = {**os.environ, "XDG_STATE_HOME": str(root / "state")}
        _run(root / "first", around)  # compiles, and fills caches
        pairs: list[tuple[Took, Took]] = []
        pages, loads = 0, list[float]()
        for number in range(ROUNDS):
            found: dict[bool, Took] = {}
            loads.append(os.getloadavg()[0])
            for is_beside in (True, False) if number % 2 else (False, True):
                with ExitStack() as stack:
                    counted = stack.enter_context(_desk(around)) if is_beside else None
                    found[is_beside] = _run(root / f"{number}-{is_beside}", around)
                    pages += len(counted) if counted is not None else 0
            pairs.append((found[True], found[False]))
    walls = [beside.wall_s / alone.wall_s for beside, alone in pairs]
    used = [beside.used_s / alone.used_s for beside, alone in pairs]
    rows = tuple(
        (what, spread([each.wall_s for each in runs], "%.1f s"), spread([each.used_s for each in runs], "%.1f s"))
        for what, runs in (("beside a desk", [each for each, _ in pairs]), ("alone", [each for _, each in pairs]))
    )
    targets = (
        Target("a run beside ten open pages, by the clock", "below 1.10 x", spread(walls, "%.2f x"), _is_low(walls)),
        Target("the same, processor time", "below 1.10 x", spread(used, "%.2f x"), _is_low(used)),
    )
    notes = (
        f"Each run has {AGENTS} agents and {TASKS} tasks. There are {ROUNDS} pairs of runs, begun with either in turn.",
        (
            f"The ten pages were answered {pages} times. The load of the machine before each pair, which has the run"
            f" before in it: {spread(loads, '%.1f')}."
        ),
    )
    table = Table("Runs", ("run", "by the clock", "processor time of runner and sessions"), rows)
    return Report("runner", (table,), targets, notes)


def _is_low(ratios: list[float]) -> bool:
    return sorted(ratios)[len(ratios) // 2] < MOST_RATIO


def _run(folder: Path, around: Mapping[str, str]) -> Took:
    """Run a fleet in a new folder to its end."""
    folder.mkdir()
    tasks = "".join(TASK.format(number=number) for number in range(TASKS))
    (folder / "fleet.toml").write_text(FLEET.format(agents=AGENTS) + tasks)
    command = [sys.executable, "-m", "lifefold.interpreters.cli", "run", "fleet.toml", "--no-live"]
    began = perf_counter()
    runner = subprocess.Popen(command, cwd=folder, env=around, stdout=subprocess.DEVNULL)  # noqa: S603 - this program
    _, status, usage = os.wait4(runner.pid, 0)
    took = perf_counter() - began
    runner.returncode = os.waitstatus_to_exitcode(status)
    if runner.returncode != 0:
        message = f"the run in {folder} ended with {runner.returncode}"
        raise RuntimeError(message)
    return Took(took, usage.ru_utime + usage.ru_stime)


@contextmanager
def _desk(around: Mapping[str, str]) -> Generator[list[str]]:
    """Serve the fleets of the machine to ten pages that are open; yield the pages that were asked for so far."""
    command = [sys.executable, "-m", "lifefold.interpreters.cli", "serve", "--port", "0"]
    asked: list[str] = []
    over = threading.Event()
    with (
        subprocess.Popen(  # noqa: S603 - this program
            command, env=around, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as desk,
        ExitStack() as stack,
    ):
        stack.callback(desk.terminate)
        if desk.stdout is None or (address := re.search(r"http://\S+", desk.stdout.readline())) is None:
            raise RuntimeError("the desk has no address")
        client = stack.enter_context(httpx2.Client(base_url=address[0].partition("/login")[0], timeout=WAIT_S))
        client.get(address[0])
        pages = [threading.Thread(target=_page, args=(client, asked, over), daemon=True) for _ in range(PAGES)]
        for each in pages:
            each.start()
        yield asked
        over.set()
        desk.terminate()
        for each in pages:
            each.join(WAIT_S)


def _page(client: httpx2.Client, asked: list[str], over: threading.Event) -> None:
    """Be an open page: ask for it again after news, until the desk is gone."""
    try:
        with client.stream("GET", "/events") as answer:
            for line in answer.iter_lines():
                if over.is_set():
                    return
                if line.startswith("event: "):
                    asked.append(client.get("/").request.url.path)
                    over.wait(PAUSE_S)
    except httpx2.HTTPError:
        return
