"""Writes the tables of docs/operating-a-cluster.md, from recorded benchmarks and from a run of the rules.

A table stands between ``<!-- sizing: NAME -->`` and ``<!-- end of sizing -->``. What a task costs is counted in a
simulation without costs. What an entry costs is read from the section `boards` of docs/benchmarks.md, and its size
from the section `long`.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.boards import COSTS, HISTORY, SERVER
from benchmarks.busy_brain import BOARD, BusyBrain, Costs, Load
from lifefold.core.cluster.fencing import Fencing
from lifefold.interpreters.fleet_file.cluster import DEFAULT_DETECTION_MS
from lifefold.interpreters.targets.fleet_plans import MINUTE_MS

DOCS: Final = Path(__file__).parent
PAGE: Final = DOCS / "operating-a-cluster.md"
PART: Final = re.compile(r"<!-- sizing: (?P<name>\w+) -->\n.*?<!-- end of sizing -->", re.DOTALL)

FLEETS: Final = ((100, 5), (1_000, 5), (1_000, 20), (10_000, 5), (10_000, 20), (10_000, 60))
"""Agents, and the mean length of their sessions in minutes."""

BUSY: Final = 0.7
"""The share of its time that a brain should be busy at most: a queue grows fast beyond it."""

Row = tuple[str, ...]


class Task(NamedTuple):
    """What one task of one session has: entries of the log, those of the board, and messages of the board."""

    entries: float
    board_entries: float
    messages: float


class Recorded(NamedTuple):
    """What an entry costs on the machine of the benchmarks."""

    costs: Costs
    server_ms: float
    history_events: float
    entry_bytes: float


def counted() -> Task:
    """Count what a task has, by the rules of a fleet. The opening of the fleet and its first task are left out."""
    short, long = (
        BusyBrain(Load(1, 5 * MINUTE_MS, until_ms), Costs()).run() for until_ms in (20 * MINUTE_MS, 500 * MINUTE_MS)
    )
    tasks = long.closed - short.closed
    of_board = long.inputs_by_kind[BOARD] - short.inputs_by_kind[BOARD]
    return Task((long.inputs - short.inputs) / tasks, of_board / tasks, (long.sent - short.sent) / tasks)


def recorded(text: str) -> Recorded:
    """Read what docs/benchmarks.md has. Raises ``LookupError`` for a figure that is not there."""
    boards, long = _section(text, "boards"), _section(text, "long")
    costs = Costs(*(_figure(boards, name) for name in COSTS))
    size = re.search(r"the logs have .* (\d+) MB\.", long)
    if size is None:
        raise LookupError("long: no size of a log")
    return Recorded(costs, _figure(boards, SERVER), _figure(boards, HISTORY), float(size[1]))


def _section(text: str, name: str) -> str:
    _, found, rest = text.partition(f"\n### `{name}`\n")
    if not found:
        raise LookupError(f"docs/benchmarks.md has no section `{name}`")
    return rest.partition("\n### ")[0]


def _figure(section: str, name: str) -> float:
    row = re.search(rf"^\| {re.escape(name)} \| ([\d.,]+)", section, re.MULTILINE)
    if row is None:
        raise LookupError(f"no figure for {name}")
    return float(row[1].replace(",", ""))


def boards_for(entries_per_s: float, commit_ms: float) -> int:
    """Return how many boards, each with a brain, decide so many entries each second."""
    return max(1, math.ceil(entries_per_s * commit_ms / 1_000 / BUSY))


def of_a_task(task: Task, known: Recorded) -> Iterator[Row]:
    """Yield the table of what a task costs."""
    entries = task.entries
    yield "one task, of one session", "", "from"
    yield "entries of the log", f"{entries:.0f}", "the rules"
    yield "of these, entries of the board", f"{task.board_entries:.0f}", "the rules"
    yield "messages of the board", f"{task.messages:.0f}", "the rules"
    yield "processor time of the brain and a host", f"{entries * known.costs.commit_ms / 1_000:.2f} s", "`boards`"
    yield "processor time of Temporal's server", f"{entries * known.server_ms / 1_000:.2f} s", "`boards`"
    yield "events in the histories of Temporal", f"{entries * known.history_events:.0f}", "`boards`"
    yield "size of the log", f"{entries * known.entry_bytes / 1_000:.1f} kB", "`long`"


def of_fleets(task: Task, known: Recorded) -> Iterator[Row]:
    """Yield the table of fleets whose agents always have a task."""
    beat_s = Fencing(DEFAULT_DETECTION_MS).beat_ms / 1_000
    yield (
        "agents",
        "session",
        "tasks per min",
        "entries per s",
        "heartbeats per s",
        "history events per s",
        "log per day",
        "boards",
    )
    for agents, minutes in FLEETS:
        tasks_per_s = agents / (60 * minutes)
        entries_per_s = tasks_per_s * task.entries
        yield (
            f"{agents:,}",
            f"{minutes} min",
            f"{60 * tasks_per_s:,.0f}",
            f"{entries_per_s:,.1f}",
            f"{agents / beat_s:,.0f}",
            f"{entries_per_s * known.history_events:,.0f}",
            f"{entries_per_s * known.entry_bytes * 86_400 / 1e9:,.2f} GB",
            f"{boards_for(entries_per_s, known.costs.commit_ms)}",
        )  # fmt: skip


def page(text: str, task: Task, known: Recorded) -> str:
    """Return the page with its tables written anew."""
    tables = {"task": of_a_task, "fleets": of_fleets}

    def table(part: re.Match[str]) -> str:
        head, *rows = tables[part["name"]](task, known)
        lines = [head, ("---", *("--:" for _ in head[1:])), *rows]
        return f"<!-- sizing: {part['name']} -->\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + _END

    return PART.sub(table, text)


_END: Final = "<!-- end of sizing -->"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(), counted(), recorded((DOCS / "benchmarks.md").read_text())))


if __name__ == "__main__":
    main()
