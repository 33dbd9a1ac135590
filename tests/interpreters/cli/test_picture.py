"""The picture of a fleet on a terminal: it fits, what matters most stands first, and nothing is cut without a word."""

import io
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from rich.console import Console

from fleet_ground import Ground
from lifefold.core import session
from lifefold.core.kernel import Reaction, Refusal
from lifefold.effects import RunSession
from lifefold.interpreters.cli.picture import Picture
from lifefold.interpreters.engine import Interpreter, Ongoing
from lifefold.interpreters.fleet import load
from lifefold.interpreters.run import Runner

SIZES = [(120, 40), (60, 20), (50, 12)]


async def hang(activity: RunSession, ongoing: Ongoing) -> None:
    """Be a session that runs, and never ends by itself."""
    await ongoing.report(session.SessionStarted(activity.session_seq))
    await anyio.sleep_forever()


async def crash(_activity: RunSession, ongoing: Ongoing) -> None:
    """Be a session that cannot be started."""
    await ongoing.report(session.SessionExited(session.Error("no program")))


Draw = Callable[[int, int], list[str]]


async def drawing(ground: Ground, act: Callable[[Draw, Runner], None], *, crashing: bool = False) -> None:
    """Have every agent at work, and then draw."""
    interpreter = Interpreter(activities={RunSession: crash if crashing else hang})
    runner = await Runner.open(load(ground.fleet), ground.log, interpreter=interpreter)
    picture = Picture(runner)
    begun = anyio.Event()
    runner.observers.append(Begun(len(runner.fleet.agents), begun).observe)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.run)
        with anyio.fail_after(60):
            await begun.wait()
        act(partial(lines, picture), runner)
        tasks.cancel_scope.cancel()
    runner.close()


class Begun:
    """Waits, as the picture does, to be told of what is durable: until every agent has a session, or has had one."""

    def __init__(self, agents: int, begun: anyio.Event) -> None:
        self.agents = agents
        self.begun = begun
        self.workers: set[str] = set()

    def observe(self, name: str, outcome: Reaction | Refusal) -> None:
        working = {"Running", "CoolingDown"}
        if not isinstance(outcome, Reaction) or not name.startswith("worker"):
            return
        if outcome.aggregate.record("session").state in working:
            self.workers.add(name)
        if len(self.workers) == self.agents:
            self.begun.set()


def lines(picture: Picture, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    with console.capture() as captured:
        console.print(picture.draw(width, height))
    return captured.get().splitlines()


def in_words(drawn: list[str]) -> str:
    """Return wrapped lines as they were before."""
    return " ".join(" ".join(drawn).split())


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_many_agents_leave_room_for_all_else(tmp_path: Path, width: int, height: int) -> None:
    """The picture fits; how many agents and tasks are not in it is said."""
    ground = Ground(tmp_path).prepare(*(f"plain-{n}" for n in range(200)), agents=40, repository=False)

    def act(draw: Draw, _runner: Runner) -> None:
        drawn = draw(width, height)
        assert len(drawn) < height
        assert all(len(line) <= width for line in drawn)
        assert "160 open" in in_words(drawn[:2])
        assert sum(" more" in line for line in drawn) == 2
        assert "-> " in drawn[-1]

    anyio.run(drawing, ground, act)


def test_agents_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """``agent-2`` before ``agent-10``."""
    ground = Ground(tmp_path).prepare(*(f"plain-{n}" for n in range(11)), agents=11, repository=False)

    def act(draw: Draw, _runner: Runner) -> None:
        names = [line.split()[0] for line in draw(120, 40) if line.startswith("agent-")]
        assert names == [f"agent-{n}" for n in range(1, 12)]

    anyio.run(drawing, ground, act)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_notice_stands_above_the_agents_with_its_remedy(tmp_path: Path, width: int, height: int) -> None:
    """However narrow the terminal is, it is wrapped and not cut."""
    ground = Ground(tmp_path).prepare("plain-1", agents=1, repository=False)

    def act(draw: Draw, runner: Runner) -> None:
        runner.notices.append(("agent", "an older one"))
        runner.notices.append(("agent", "something is in the way of a merge, here and there. " * 2 + "Put it aside."))
        drawn = draw(width, height)
        top = in_words(drawn[: next(n for n, line in enumerate(drawn) if line.startswith("AGENT"))])
        assert top.endswith("Put it aside.")

    anyio.run(drawing, ground, act)


@pytest.mark.parametrize(("width", "height"), [(120, 40), (60, 20)])
def test_a_line_of_what_has_happened_says_where_it_led_and_why(tmp_path: Path, width: int, height: int) -> None:
    """Before anything else is cut."""
    ground = Ground(tmp_path).prepare("plain-1", agents=1, repository=False)
    ground.fleet.write_text(ground.fleet.read_text().replace('backoff_base = "200ms"', 'backoff_base = "1h"'))

    def act(draw: Draw, _runner: Runner) -> None:
        drawn = draw(width, height)
        assert any("CoolingDown" in line and "no program" in line for line in drawn)
        assert width < 60 or any("next try in" in line for line in drawn)

    anyio.run(partial(drawing, ground, act, crashing=True))


def test_what_a_timer_brings_is_said_in_words(tmp_path: Path) -> None:
    """Not by the name of its event; and a runner that leaves says what it waits for."""
    ground = Ground(tmp_path).prepare("plain-1", agents=1, repository=False)

    def act(draw: Draw, runner: Runner) -> None:
        assert any(re.search(r"times out in \d", line) for line in draw(120, 40))
        runner.leaving = 1
        assert "no session runs any more" in draw(120, 40)[1]

    anyio.run(drawing, ground, act)
