"""The picture of a fleet on a terminal: it fits, what matters most stands first, and nothing is cut without a word."""

import io
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import pytest
from rich.console import Console

from fleet_sandbox import Sandbox
from lifefold.core.fleet.service import inbox
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Aggregate, Envelope, Reaction, Refusal
from lifefold.core.lifecycles import session
from lifefold.effects import RunSession
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.picture import Picture
from lifefold.interpreters.cli.watched import OfRunner
from lifefold.interpreters.engine import ActivityContext, Interpreter
from lifefold.interpreters.explain import pending, status, task_status
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner
from lifefold.interpreters.fleet_runner.notices import About

SIZES = [(120, 40), (60, 20), (50, 12)]


async def hang(activity: RunSession, context: ActivityContext) -> None:
    """Be a session that runs, and never ends by itself."""
    await context.report(session.SessionStarted(activity.session_seq))
    await anyio.sleep_forever()


Draw = Callable[[int, int], list[str]]


async def drawing(sandbox: Sandbox, act: Callable[[Draw, Runner], None]) -> None:
    """Have every agent at work, and then draw."""
    interpreter = Interpreter(activities={RunSession: hang})
    runner = await Runner.open(load(sandbox.fleet), sandbox.log, interpreter=interpreter)
    account = Account()
    runner.observers.append(account.observe)
    picture = Picture(OfRunner(runner), account)
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


Begins = Callable[[Runner, str], None]


async def drawing_when(
    sandbox: Sandbox, is_so: Callable[[Runner], bool], act: Callable[[Draw, Runner], None], begins: Begins
) -> None:
    """Draw when something is so; every worker ``begins`` with what is said to it as soon as it is there."""
    runner = await Runner.open(load(sandbox.fleet), sandbox.log, interpreter=Interpreter(activities={RunSession: fail}))
    account, so = Account(), anyio.Event()
    picture = Picture(OfRunner(runner), account)

    def observe(name: str, outcome: Reaction | Refusal) -> None:
        account.observe(name, outcome)
        if isinstance(outcome, Reaction) and name.startswith("worker") and outcome.aggregate.version == 1:
            begins(runner, name)
        if is_so(runner):
            so.set()

    runner.observers.append(observe)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.run)
        with anyio.fail_after(60):
            await so.wait()
        act(partial(lines, picture), runner)
        tasks.cancel_scope.cancel()
    runner.close()


async def fail(_activity: RunSession, context: ActivityContext) -> None:
    """Be a session that fails, and has cost something."""
    await context.report(session.SessionExited(session.Error("no"), session.Usage(1_240_000, 1_200, 340)))


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
    sandbox = Sandbox(tmp_path).prepare(*(f"plain-{n}" for n in range(200)), agents=40, repository=False)

    def act(draw: Draw, _runner: Runner) -> None:
        drawn = draw(width, height)
        assert len(drawn) < height
        assert all(len(line) <= width for line in drawn)
        assert "160 not begun" in in_words(drawn[:2])
        assert re.search(r"and \d+ more\b", " ".join(drawn)), "agents"
        assert re.search(r"and (\d+ running, )?160 not begun", in_words(drawn)), "tasks"
        assert re.search(r"plain-\d+ begun by agent", drawn[-1])

    anyio.run(drawing, sandbox, act)


@pytest.mark.parametrize(("width", "height"), [(60, 8), (40, 11), (60, 4)])
def test_where_hardly_an_agent_fits_a_table_they_stand_in_a_line(tmp_path: Path, width: int, height: int) -> None:
    """What each is at, as of tasks; those that do not fit are counted."""
    sandbox = Sandbox(tmp_path).prepare(*(f"plain-{n}" for n in range(9)), agents=9, repository=False)

    def act(draw: Draw, runner: Runner) -> None:
        runner.handlers.tell("agent-1", "something is in the way of a merge, and it is long enough for two lines")
        said = in_words(draw(width, height))
        shown = re.findall(r"agent-\d:● running", said)
        assert "AGENTS agent-1:● running agent-2:● running" in said
        assert f"{shown[-1]} and {9 - len(shown)} more" in said

    anyio.run(drawing, sandbox, act)


def test_an_agent_that_has_asked_for_a_task_is_shown_to_wait_for_one(tmp_path: Path) -> None:
    """Its session would have a prompt to build; nothing is wrong with it."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1, repository=False)
    sandbox.demand("", "approve_plan = true")

    def is_so(runner: Runner) -> bool:
        return any(each.doing == "Wanting" for each in status.agents(runner.aggregates))

    def act(draw: Draw, _runner: Runner) -> None:
        assert any(re.search(r"agent +□ idle .* waits for a task$", line) for line in draw(120, 40))

    def ignore(_runner: Runner, _name: str) -> None:
        """Say nothing."""

    anyio.run(drawing_when, sandbox, is_so, act, ignore)


def test_agents_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """``agent-2`` before ``agent-10``."""
    sandbox = Sandbox(tmp_path).prepare(*(f"plain-{n}" for n in range(11)), agents=11, repository=False)

    def act(draw: Draw, _runner: Runner) -> None:
        names = [line.split()[0] for line in draw(120, 40) if line.startswith("agent-")]
        assert names == [f"agent-{n}" for n in range(1, 12)]

    anyio.run(drawing, sandbox, act)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_notice_stands_above_the_agents_with_its_remedy(tmp_path: Path, width: int, height: int) -> None:
    """However narrow the terminal is, it is wrapped and not cut."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1, repository=False)

    def act(draw: Draw, runner: Runner) -> None:
        runner.handlers.tell("agent", "an older one")
        runner.handlers.tell("agent", "something is in the way of a merge, here and there. " * 2 + "Put it aside.")
        drawn = draw(width, height)
        top = in_words(drawn[: next(n for n, line in enumerate(drawn) if line.startswith("AGENT"))])
        assert top.endswith("Put it aside.")

    anyio.run(drawing, sandbox, act)


def test_a_notice_goes_when_what_it_says_is_over(tmp_path: Path) -> None:
    """What holds stays, and is said once however often people were told."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1, repository=False)

    def act(draw: Draw, runner: Runner) -> None:
        operator = runner.handlers.operator
        for _ in range(2):
            operator.tell("agent", "it stays")
            operator.tell_while(About.WAITING, "agent", "waits to merge plain-1", "merge plain-1")
        operator.tell_while(About.SILENCE, "agent", "is silent")  # it is not: its session is not even watched
        shown = draw(120, 40)
        assert [line.strip() for line in shown if line.startswith("! ")] == [
            "! agent: it stays",
            "! agent: waits to merge plain-1",
        ]
        operator.over(About.WAITING, "agent", "merge plain-1")
        assert [line.strip() for line in draw(120, 40) if line.startswith("! ")] == ["! agent: it stays"]

    anyio.run(drawing, sandbox, act)


@pytest.mark.parametrize(("width", "height"), [(120, 40), (60, 20)])
def test_a_line_of_what_has_happened_says_where_it_led_and_why(tmp_path: Path, width: int, height: int) -> None:
    """Before anything else is cut."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1, repository=False)
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('backoff_base = "200ms"', 'backoff_base = "1h"'))

    def act(draw: Draw, _runner: Runner) -> None:
        drawn = draw(width, height)
        assert any("plain-1 attempt 1 failed: no" in line for line in drawn)
        assert width < 60 or any("next try in" in line for line in drawn)

    def is_so(runner: Runner) -> bool:
        return bool(runner.aggregates) and task_status.tasks(runner.aggregates)[0].retries == 1

    def ignore(_runner: Runner, _name: str) -> None:
        """Say nothing."""

    anyio.run(drawing_when, sandbox, is_so, act, ignore)


def test_a_task_shows_its_attempt_if_it_is_not_the_first_one(tmp_path: Path) -> None:
    """A task that was given back is claimed again without a retry, so retries are not the number of its tries."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", "plain-2", agents=2, repository=False)

    def act(_draw: Draw, runner: Runner) -> None:
        account = Account()
        account.attempts.update({"plain-1": 3, "plain-2": 1})
        drawn = " ".join(lines(Picture(OfRunner(runner), account), 120, 40))
        assert re.search(r"plain-1:running \(attempt 3\)", drawn)
        assert re.search(r"plain-2:running\s", drawn)

    anyio.run(drawing, sandbox, act)


def test_a_service_stands_with_the_agents_and_says_what_it_runs_and_what_waits(tmp_path: Path) -> None:
    """Beside those who take tasks; a text that is long is cut."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1, repository=False)
    served = '[[agents]]\nname = "web"\nkind = "service"\ncommand = ["sh"]\ntriggers = [{ queue = true }]\n'
    sandbox.fleet.write_text(f"{sandbox.fleet.read_text()}\n{served}")

    def act(draw: Draw, runner: Runner) -> None:
        assert any(line.split()[:2] == ["web", "awaiting"] for line in draw(120, 40))
        now_ms = runner.engine.clock.now_ms()
        for text in ("answer the message", "then this"):
            runner.engine.ledger.decide("service/web", Envelope("inbox", inbox.MessageArrived(text), now_ms))
        assert any("answer the message, 1 waiting" in line for line in draw(120, 40))

    anyio.run(drawing, sandbox, act)


def test_what_a_timer_brings_is_said_in_words(tmp_path: Path) -> None:
    """Not by the name of its event; and a runner that leaves says what it waits for."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1, repository=False)

    def act(draw: Draw, runner: Runner) -> None:
        assert any(re.search(r"times out in \d", line) for line in draw(120, 40))
        runner.leaving = 1
        assert "no session runs any more" in draw(120, 40)[1]

    anyio.run(drawing, sandbox, act)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_what_waits_for_a_person_stands_on_top(
    tmp_path: Path, width: int, height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that answers. Paused agents are marked, and lines that do not fit are counted."""
    sandbox = Sandbox(tmp_path).prepare(*(f"plain-{n}" for n in range(20)), agents=6, repository=False)
    sandbox.demand("", "approve_plan = true")
    monkeypatch.chdir(sandbox.folder)

    def pause(runner: Runner, name: str) -> None:
        said = desired_state.PauseWanted(
            f"for the reason that {name} has, which is long enough to fill a line of its own"
        )
        runner.engine.offer(name, Envelope("desired_state", said, runner.engine.clock.now_ms(), "operator:mo"))

    def act(draw: Draw, _runner: Runner) -> None:
        drawn = draw(width, height)
        assert len(drawn) < height
        table = next(n for n, line in enumerate(drawn) if line.startswith("AGENT"))
        top = in_words(drawn[:table])
        assert "· 20 planned" in top
        assert "! the plan waits for your approval (20 tasks): lifefold approve" in top
        assert "! agent-1 is paused (by mo, for the reason" in top or " more: lifefold status" in top
        assert "paused" in drawn[table + 1]

    def is_so(runner: Runner) -> bool:
        return len(pending.waiting(runner.aggregates)) == 7

    anyio.run(drawing_when, sandbox, is_so, act, pause)


def test_the_head_says_what_was_spent_and_a_task_when_it_is_tried_again(tmp_path: Path) -> None:
    """As agents say what comes next."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1, repository=False)
    text = sandbox.fleet.read_text().replace('backoff_base = "10ms"', 'backoff_base = "1h"\nbackoff_cap = "1h"')
    sandbox.fleet.write_text(text)

    def is_so(runner: Runner) -> bool:
        return any(each.state == "FAILED" for each in task_status.tasks(runner.aggregates))

    def act(draw: Draw, _runner: Runner) -> None:
        drawn = draw(120, 40)
        assert drawn[0].endswith("0/1 tasks closed · 1 to be retried · $1.24 spent")
        assert any("plain-1:to be retried (next try in " in line for line in drawn)

    def ignore(_runner: Runner, _name: str) -> None:
        """Say nothing."""

    anyio.run(drawing_when, sandbox, is_so, act, ignore)


def test_a_task_is_not_said_to_be_tried_again_where_no_agent_is_left(tmp_path: Path) -> None:
    """Its rest would have an end; but the only agent has stopped, by its errors."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1, repository=False)
    sandbox.fleet.write_text(
        sandbox.fleet.read_text().replace('grace = "300ms"', 'grace = "300ms"\nmax_total_errors = 1')
    )

    def is_so(runner: Runner) -> bool:
        return board.NAME in runner.aggregates and board.finished(runner.aggregates[board.NAME])

    def act(draw: Draw, runner: Runner) -> None:
        assert task_status.tasks(runner.aggregates)[0].timer is not None
        assert any(re.search("TASKS  plain-1:failed *$", line) for line in draw(120, 40))

    def ignore(_runner: Runner, _name: str) -> None:
        """Say nothing."""

    anyio.run(drawing_when, sandbox, is_so, act, ignore)


@pytest.mark.parametrize(("width", "height"), [(100, 40), (60, 20), (50, 20)])
def test_two_long_names_that_begin_alike_are_told_apart(tmp_path: Path, width: int, height: int) -> None:
    """They are cut in their middle, agents' names last of all."""
    tasks = [f"plain-{'x' * 50}-{n}" for n in (1, 2)]
    sandbox = Sandbox(tmp_path).prepare(*tasks, agents=2, repository=False)
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('name = "agent"', f'name = "{"agent-" * 8}"'))

    def act(draw: Draw, _runner: Runner) -> None:
        drawn = draw(width, height)
        head = next(n for n, line in enumerate(drawn) if line.startswith("AGENT"))
        first, second = (line.split() for line in drawn[head + 1 : head + 3])
        place = 4  # the mark of the agent is a word, too
        assert (first[0][:5], first[0][-2:], second[0][-2:]) == ("agent", "-1", "-2")
        assert (first[place][:5], first[place][-2:], second[place][-2:]) == ("plain", "-1", "-2")
        assert all(len(line) <= width for line in drawn)

    anyio.run(drawing, sandbox, act)


def test_how_things_stand_is_computed_when_something_has_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not with every picture; what has happened is in the next one."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1, repository=False)
    asked = list[int]()
    tasks_of = task_status.tasks

    def counted(aggregates: Mapping[str, Aggregate]) -> tuple[task_status.TaskStatus, ...]:
        asked.append(1)
        return tasks_of(aggregates)

    monkeypatch.setattr(task_status, "tasks", counted)

    def act(draw: Draw, runner: Runner) -> None:
        first = draw(120, 40)
        known = len(asked)
        assert draw(120, 40) == first
        assert len(asked) == known
        said = desired_state.PauseWanted("lunch")
        runner.engine.ledger.decide(
            "worker/agent", Envelope("desired_state", said, runner.engine.clock.now_ms(), "operator:mo")
        )
        assert any("paused" in line for line in draw(120, 40))
        assert len(asked) > known

    anyio.run(drawing, sandbox, act)
