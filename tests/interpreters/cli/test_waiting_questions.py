"""A session that waits for an operator's answer shows it beside the phase of its turn, on every screen.

Document 004 has no phase for that: the turn stays in the phase that it had, and the question entity has the waiting.
"""

import io
from pathlib import Path

import anyio
import pytest
from rich.console import Console

from aggregate_hand import Hand
from fleet_sandbox import Sandbox
from fleet_worker import BRIEF, following, next_task, start
from lifefold.core.fleet.worker import output, question
from lifefold.core.fleet.worker.output import Doing, Work, WorkSeen
from lifefold.core.fleet.worker.question import Answer, Kind, QuestionAnswered, QuestionAsked, Questions, Verdict
from lifefold.core.kernel import Envelope, Reaction, Refusal
from lifefold.core.lifecycles import session
from lifefold.effects import FollowOutput, RunSession
from lifefold.interpreters.cli.account import Account
from lifefold.interpreters.cli.picture import Picture
from lifefold.interpreters.cli.watch_keys import Screen, settled
from lifefold.interpreters.cli.watch_picture import WatchPicture
from lifefold.interpreters.cli.watched import Followed, OfRunner
from lifefold.interpreters.engine import ActivityContext, Interpreter
from lifefold.interpreters.explain.turn_status import TurnStatus, turn_status
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner
from lifefold.interpreters.store import SqliteStore

LEAVE = QuestionAsked(BRIEF.task, BRIEF.epoch, BRIEF.token, "a", Kind.PERMISSION, "Bash", "make")
WORDS = QuestionAsked(BRIEF.task, BRIEF.epoch, BRIEF.token, "b", text="which?")


def at_work() -> Hand:
    """Return a worker that may ask, whose session runs and is followed."""
    return start(next_task(following(more={question.REF: Questions()})))


def told(of: Hand) -> TurnStatus:
    """Return the turn of a worker."""
    found = turn_status(of.aggregate)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("asked", "words", "names"),
    [
        ((), "working", ()),
        ((LEAVE,), "working, asks for Bash: ann/Q1", ("ann/Q1",)),
        ((WORDS, LEAVE), "working, asks: ann/Q1", ("ann/Q1", "ann/Q2")),
    ],
)
def test_the_turn_names_the_questions_that_wait(
    asked: tuple[QuestionAsked, ...], words: str, names: tuple[str, ...]
) -> None:
    """The oldest one is in words, and ends with its answer; the phase is one of the document's all the time."""
    of = at_work()
    for each in asked:
        of.give(question.REF, each)
    assert (told(of).in_words(), told(of).questions) == (words, names)
    for number, each in enumerate(asked, 1):
        verdict = Verdict.ALLOWED if each.kind is Kind.PERMISSION else Verdict.ANSWERED
        of.give(question.REF, QuestionAnswered(number, Answer(verdict)))
    assert (told(of).in_words(), told(of).questions, told(of).wanted) == ("working", (), "")


def test_a_question_does_not_change_the_phase_of_a_turn() -> None:
    """A tool that asks for leave is in use for the document."""
    of = at_work()
    of.report(output.REF, FollowOutput.__name__, WorkSeen(1, (Doing(Work.TOOL, "Bash"),), 1))
    of.give(question.REF, LEAVE)
    assert told(of).in_words() == "using a tool, asks for Bash: ann/Q1"


async def _hang(activity: RunSession, context: ActivityContext) -> None:
    """Be a session that runs, and never ends by itself."""
    await context.report(session.SessionStarted(activity.session_seq))
    await anyio.sleep_forever()


async def _asking(sandbox: Sandbox) -> tuple[str, str]:
    """Return a wide and a narrow picture of a fleet whose session has asked for leave."""
    runner = await Runner.open(
        load(sandbox.fleet), sandbox.log, interpreter=Interpreter(activities={RunSession: _hang})
    )
    picture, asked, waits = Picture(OfRunner(runner), Account()), anyio.Event(), anyio.Event()

    def observe(name: str, outcome: Reaction | Refusal) -> None:
        if not isinstance(outcome, Reaction) or not name.startswith("worker"):
            return
        if outcome.aggregate.record("session").state is session.State.RUNNING and not asked.is_set():
            asked.set()
            brief = outcome.aggregate.record("assignment").brief
            event = QuestionAsked(brief.task, brief.epoch, brief.token, "a", Kind.PERMISSION, "Bash", "make")
            runner.engine.offer(name, Envelope(question.REF, event, runner.engine.clock.now_ms(), "operator:mo"))
        if question.waits(outcome.aggregate):
            waits.set()

    runner.observers.append(observe)
    wide = narrow = ""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.run)
        with anyio.fail_after(60):
            await waits.wait()
        wide, narrow = _drawn(picture, 160), _drawn(picture, 60)
        tasks.cancel_scope.cancel()
    runner.close()
    return wide, narrow


def _watched(log: Path) -> list[str]:
    """Return the lines of ``watch`` on a small terminal."""
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=False)
    with SqliteStore.peek(log) as store, console.capture() as captured:
        followed = Followed(store)
        followed.look()
        picture = WatchPicture(followed, Account())
        console.print(picture.drawn(settled(Screen(), picture.items()), 80, 24))
    return captured.get().splitlines()


def _drawn(picture: Picture, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, height=40, force_terminal=False)
    with console.capture() as captured:
        console.print(picture.draw(width, 40))
    return captured.get()


def test_every_screen_shows_that_a_session_waits_for_an_answer(tmp_path: Path) -> None:
    """The live display, ``status`` and ``why``, in words and as JSON."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1, repository=False)
    text = sandbox.fleet.read_text()
    sandbox.fleet.write_text(text.replace("[fleet.retry]", "[fleet.questions]\n\n[fleet.retry]"))
    wide, narrow = anyio.run(_asking, sandbox)
    assert "running · working, asks for Bash: agent/Q1" in wide
    assert any("agent " in line and " asks" in line for line in narrow.splitlines())
    watched = _watched(sandbox.log)
    assert any(line.split()[1:3] == ["agent", "asks"] for line in watched), watched
    (row,) = [line for line in sandbox.call("status").stdout.splitlines() if line.startswith("agent ")]
    assert "working, asks for Bash: agent/Q1" in row
    (agent,) = sandbox.json("status")["agents"]
    assert (agent["turn"]["state"], agent["turn"]["questions"]) == ("RUNNING", ["agent/Q1"])
    assert "agent asks: may it run `make`?" in sandbox.call("why", "plain-1").stdout
    assert sandbox.json("why", "plain-1")["turn"]["questions"] == ["agent/Q1"]
