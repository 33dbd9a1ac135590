"""`lifefold why`: what a person reads in the morning, of a log that a real fleet has written."""

import signal

import pytest

from fleet_sandbox import Sandbox
from lifefold.interpreters.cli.commands.explaining import command, lines
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.explain.why import Chapter, Explanation, Line, Option


def test_a_blocked_task_is_explained_down_to_what_has_failed(sandbox: Sandbox) -> None:
    """The state first, then the causes, how each came there, and what helps; the same as data."""
    sandbox.prepare("plain-1", "plain-2", "plain-3", repository=False)
    text = sandbox.fleet.read_text().replace('["test", "-s", "plain-1.txt"]', '["test", "-f", "x"]')
    text = text.replace('id = "plain-1"', 'id = "plain-1"\nmax_retries = 0')
    for name, needs in (("plain-2", "plain-1"), ("plain-3", "plain-2")):
        text = text.replace(f'id = "{name}"', f'id = "{name}"\ndepends_on = ["{needs}"]')
    sandbox.fleet.write_text(text)
    sandbox.run(code=1)
    said = sandbox.call("why", "plain-3").stdout
    failed = "plain-1, which has failed (The command `test -f x` exited with status 1."
    assert said.startswith(
        "plain-3 is blocked: it depends on plain-2, which is blocked, in the end because of " + failed
    )
    assert "\n  plain-2 is blocked, because of plain-1\n" in said
    assert "put on the board" in said
    assert "Nothing moves plain-1 on: the fleet is finished." in said
    assert "lifefold retry" not in said
    assert "No runner" not in said
    story = sandbox.call("why", "plain-1").stdout
    assert "failed: not accepted: The command `test -f x`" in story
    explained = sandbox.json("why", "plain-3")
    assert list(explained) == [
        "task", "state", "since_ms", "owner", "sentence", "reason", "causes", "story", "onward", "options", "turn",
        "runner", "doubts", "in_the_way", "unmerged", "output", "untold", "agent",
    ]  # fmt: skip
    assert sandbox.json("why", "task:plain-3")["sentence"] == explained["sentence"]
    assert [each["task"] for each in explained["causes"]] == ["plain-3", "plain-2", "plain-1"]
    assert (explained["runner"], explained["doubts"]) == ("not running", [])
    assert explained["story"][0]["lines"][0]["said"] == "put on the board"


def test_an_unknown_task_is_bad_input_and_names_those_that_are_like_it(sandbox: Sandbox) -> None:
    """A mistyped one is found."""
    sandbox.prepare("plain-1", "other-2", repository=False)
    sandbox.run()
    assert "there is no task 'plane-1'; did you mean plain-1?" in sandbox.call("why", "plane-1", code=2).stderr
    assert "there are plain-1, other-2\n" in sandbox.call("why", "zzz", code=2).stderr
    assert "agent is an agent, not a task; lifefold status" in sandbox.call("why", "agent", code=2).stderr


def test_a_task_whose_runner_has_died_is_not_said_to_be_worked_at_without_a_doubt(sandbox: Sandbox) -> None:
    """What the log believes is said, and that no runner and no process is there (claude-code#65925)."""
    sandbox.prepare("slow-1", repository=False, gates=["slow-1"])
    with sandbox.running() as run, sandbox.at_gate("slow-1"):
        run.until("SessionStarted")
        at_work = sandbox.call("why", "slow-1").stdout
        assert "slow-1 is running: agent began with it " in at_work
        assert "in attempt 1.\nagent is working: ● running, with its last sign of life " in at_work
        assert " ago.\n\nHow it came there:" in at_work
        assert "lifefold send agent" in at_work
        run.signal(signal.SIGKILL)
        run.rest()
        sandbox.kill_all()
    said = sandbox.call("why", "slow-1", "--db", str(sandbox.log)).stdout
    assert "No runner is at work" in said
    assert "its process is not there" in said
    assert "agent is working" not in said
    assert f"--db {sandbox.log}" in said


def test_what_is_repeated_is_told_once_with_the_number_of_times() -> None:
    """A task that was given back again and again is no wall of text."""
    given, back = Line(0, "rule match", "given to", "ann, bob"), Line(1, "ann, bob", "given back: no disk")
    explained = Explanation(
        "T1", "OPEN", 0, "", "T1 is not begun.", "", (), (Chapter(3, 0, 60_000, (given, back)),), "It waits.", ()
    )
    _, heading, when, *told = (line.strip() for line in lines(explained, (), None))
    assert heading == "How it came there:"
    assert "  3 times until " in when
    assert told[:2] == ["rule match     given to ann, bob", "ann, bob       given back: no disk"]


def test_what_has_happened_stands_in_one_column() -> None:
    """However long the names of those are who have done it, within reason."""
    names = ("plan", "rule retry_granted", "ann, bob, carol, dave, eve")
    story = tuple(Chapter(1, 0, 0, (Line(0, name, "happened"),)) for name in names)
    explained = Explanation("T1", "OPEN", 0, "", "T1 is not begun.", "", (), story, "It waits.", ())
    first, second, third = (line.index("happened") for line in lines(explained, (), None) if "happened" in line)
    assert first == second < third


@pytest.mark.parametrize("verb", "approve reject retry cancel resume send stop".split())
def test_a_command_that_is_offered_is_one_that_can_be_typed(verb: str) -> None:
    """As it stands there: what this program does not know is not offered."""
    known = parser().get_default("known")
    words = command(Option(verb, "T1", "")).split()
    assert verb not in known or parser().parse_args(words).command
