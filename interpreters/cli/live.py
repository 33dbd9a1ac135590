"""The live display: agents and tasks, drawn again and again on a terminal."""

from collections.abc import Iterator
from typing import Final

import anyio
import rich.live
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from lifefold.core.fleet import status
from lifefold.core.kernel import Reaction, Refusal, Transition, journal
from lifefold.interpreters.cli.outlet import Outlet
from lifefold.interpreters.cli.words import SHOWN, age, line
from lifefold.interpreters.run import Runner

REFRESH_HZ: Final = 4
STYLES: Final = {
    "Running": "green",
    "Spawning": "yellow",
    "Interrupting": "yellow",
    "CoolingDown": "red",
    "Stopped": "dim",
    "CLOSED": "green",
    "FAILED": "red",
    "BLOCKED": "red",
    "CANCELLED": "dim",
    "IN_PROGRESS": "cyan",
    "DONE": "blue",
}


COLUMNS: Final = ("AGENT", "STATE", "FOR", "TASK", "SESSION", "ATTEMPT", "PROCESS", "NEXT")
WIDE_CHARACTERS: Final = 100
NARROW: Final = (0, 1, 2, 3, 7)
"""The columns that are shown on a terminal of fewer characters: who, what, since when, at what, what next."""


class Live:
    """Draws the agents and the tasks, again and again, on a terminal."""

    def __init__(self, runner: Runner, out: Outlet) -> None:
        """Begin to watch the runner."""
        self._runner = runner
        self._out = out
        self._news: list[tuple[str, Transition]] = []
        self._live = rich.live.Live(console=Console(file=out), refresh_per_second=REFRESH_HZ, auto_refresh=False)
        runner.observers.append(self._observe)

    def _observe(self, aggregate: str, outcome: Reaction | Refusal) -> None:
        if isinstance(outcome, Reaction):
            self._news += [(aggregate, each) for each in outcome.transitions if each.machine in SHOWN and each.entered]
            del self._news[:-6]

    async def run(self) -> None:
        """Draw until cancelled; a picture that the reader is not ready for is left out."""
        with self._live:
            try:
                while True:
                    if self._out.idle:
                        self._live.update(self.picture(), refresh=True)
                    await anyio.sleep(1 / REFRESH_HZ)
            finally:
                self._live.update(self.picture(), refresh=True)

    def picture(self) -> RenderableType:
        """Return how things stand."""
        runner = self._runner
        if not runner.aggregates:
            return Text("starting…")
        now_ms = runner.engine.clock.now_ms()
        agents = Table(box=None, pad_edge=False, header_style="bold")
        shown = range(len(COLUMNS)) if self._live.console.width >= WIDE_CHARACTERS else NARROW
        for index in shown:
            agents.add_column(COLUMNS[index], no_wrap=True)
        for agent in status.agents(runner.aggregates):
            cells = list(_agent_cells(agent, runner.handlers.pid(agent.name), now_ms))
            agents.add_row(*(cells[index] for index in shown))
        return Group(self._headline(), agents, Text(""), _tasks(runner), Text(""), *self._footer())

    def _headline(self) -> RenderableType:
        tasks = status.tasks(self._runner.aggregates)
        closed = sum(1 for task in tasks if task.state == "CLOSED")
        bar = "█" * round(24 * closed / len(tasks)) if tasks else ""
        leaving = {0: "", 1: "  leaving: waiting for sessions to end (Ctrl-C again to kill them)"}.get(
            self._runner.leaving, "  leaving at once"
        )
        head = Text(f"fleet {self._runner.fleet.name}  ", style="bold")
        return head + Text(f"{bar:░<24} {closed}/{len(tasks)} tasks closed{leaving}", style="not bold")

    def _footer(self) -> Iterator[RenderableType]:
        for aggregate, transition in self._news:
            yield Text(line(journal(aggregate, transition)), style="dim", no_wrap=True, overflow="ellipsis")
        for agent, message in self._runner.notices[-3:]:
            yield Text(f"! {agent}: {message}", style="bold red", no_wrap=True, overflow="ellipsis")


def _agent_cells(agent: status.AgentStatus, pid: int | None, now_ms: int) -> Iterator[RenderableType]:

    doing = (
        agent.state if agent.doing not in {"Preparing", "Verifying", "Merging"} else f"{agent.state} · {agent.doing}"
    )
    yield Text(agent.name)
    yield Text(
        doing + (" (ending)" if agent.state == "Stopped" and agent.processes else ""), STYLES.get(agent.state, "")
    )
    yield Text(age(now_ms - agent.since_ms))
    yield Text(agent.task or "-")
    yield Text(str(agent.session_seq))
    yield Text(str(agent.attempt))
    yield Text("-" if pid is None else str(pid))
    yield Text(f"{agent.timer.event} in {age(agent.timer.deadline_ms - now_ms)}" if agent.timer else "-")


def _tasks(runner: Runner) -> RenderableType:
    """Return every task's name in the colour of its state, and the counts of the states."""
    tasks = status.tasks(runner.aggregates)
    text = Text("TASKS  ", style="bold")
    for task in tasks:
        claims = f" ({task.claims} claims)" if task.claims > 1 else ""
        style = f"not bold {STYLES.get(task.state, 'default')}"
        text += Text(f"{task.id}:{task.state.lower().replace('_', ' ')}{claims}  ", style)
    return text
