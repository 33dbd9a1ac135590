"""Whole fleets with real processes and real git: everything that can happen to agents and to their runner."""

import signal
from functools import partial

import anyio
import pytest

from back_ends import on_both
from fleet_sandbox import HANG_S, Sandbox
from lifefold.interpreters.explain import task_status
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner, Verdict

TEN = ("crash-1", "hang-1", "deaf-1", "child-1", "plain-1", "plain-2", "plain-3", "crash-2", "plain-4", "plain-5")


def test_agents_that_crash_hang_and_ignore_term_end_with_all_work_merged_and_no_process_left(sandbox: Sandbox) -> None:
    """Three agents, ten tasks, among them crashes, a hang, a deaf one and an escaped child (lists of #757, #47872)."""
    sandbox.prepare(*TEN, agents=3, timeout="5s")
    printed = sandbox.run()
    assert "10 of 10 tasks closed" in printed
    assert sorted(subject.split()[1].rstrip(":") for subject in sandbox.merges()) == sorted(TEN)
    assert all((sandbox.folder / "repo" / f"{task}.txt").exists() for task in TEN)
    assert sandbox.processes() == []
    twice = {task for task in TEN if sandbox.sessions(task) >= 2}
    assert twice >= {"crash-1", "hang-1", "deaf-1", "crash-2"}


@pytest.mark.parametrize("moment", ["SessionStarted", "WorkFinished", "DONE", "CLOSED", "CoolingDown"])
def test_a_killed_runner_started_again_finishes_everything_and_does_nothing_twice(
    sandbox: Sandbox, moment: str
) -> None:
    """Kill -9 of the runner at several moments; the next run adopts, re-arms and ends the same."""
    sandbox.prepare("plain-1", "crash-1", "plain-2", "plain-3", agents=2)
    words = {"WorkFinished": ("SessionComplete",)}.get(moment, (moment,))
    with sandbox.running() as run:
        run.until(*words)
        run.signal(signal.SIGKILL)
        run.rest()
    sandbox.run()
    assert len(sandbox.merges()) == len(set(sandbox.merges())) == 4
    assert {task: sandbox.sessions(task) for task in ("plain-1", "plain-2", "plain-3")} == dict.fromkeys(
        ("plain-1", "plain-2", "plain-3"), 1
    )
    assert sandbox.processes() == []
    assert [task["state"] for task in sandbox.json("tasks")] == ["CLOSED"] * 4


def test_a_session_that_ends_while_no_runner_lives_is_known_to_the_next(sandbox: Sandbox) -> None:
    """The shim records the end; nothing is done again (gastown#611, vibe-kanban#1571)."""
    sandbox.prepare("plain-1", gates=["plain-1"])
    with sandbox.running() as run:
        with sandbox.at_gate("plain-1"):
            run.signal(signal.SIGKILL)
            run.rest()
        sandbox.wait_for_all()
    sandbox.run()
    assert sandbox.sessions("plain-1") == len(sandbox.merges()) == 1
    assert sandbox.processes() == []


def test_one_interrupt_leaves_no_process_and_a_log_that_the_next_run_continues(sandbox: Sandbox) -> None:
    """Ctrl-C: sessions end within their grace, the exit code is 130, and nothing counts as an error."""
    sandbox.prepare("slow-1", "plain-1", gates=["slow-1"])
    with sandbox.running() as run, sandbox.at_gate("slow-1"):
        run.signal(signal.SIGINT)
        assert "left before the end" in run.rest()
        assert run.process.returncode == Verdict.LEFT
    assert sandbox.processes() == []
    agent = sandbox.json("status")["agents"][0]
    assert (agent["desired_state"], agent["state"], agent["total_errors"]) == ("Hold", "BuildingPrompt", 0)
    sandbox.call("send", "agent", "go on")
    sandbox.run()
    assert len(sandbox.merges()) == 2


def test_a_second_interrupt_does_not_wait_for_the_grace(sandbox: Sandbox) -> None:
    """A deaf session is killed at once; the log can be continued."""
    sandbox.prepare("deaf-1", timeout="2h", gates=["deaf-1"])
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('grace = "300ms"', 'grace = "1h"'))
    with sandbox.running() as run, sandbox.at_gate("deaf-1"):
        run.signal(signal.SIGINT)
        run.until("leaving")
        run.signal_again(signal.SIGINT)
        run.rest()
        assert run.process.returncode == Verdict.LEFT
    assert sandbox.processes() == []
    sandbox.run()
    assert sandbox.merges() == ["Merge deaf-1: Write deaf-1.txt"]


def test_an_urgent_message_interrupts_and_comes_with_the_next_prompt(sandbox: Sandbox) -> None:
    """The session is cancelled without being counted as an error; the message is in what the agent reads (D14)."""
    sandbox.prepare("slow-1", gates=["slow-1"])
    with sandbox.running() as run, sandbox.at_gate("slow-1"):
        assert "accepted" in sandbox.call("send", "agent", "use blue").stdout
        assert "1 of 1 tasks closed" in run.rest()
    assert "use blue" in (sandbox.folder / "repo" / "slow-1.txt").read_text()
    assert sandbox.json("status")["agents"][0]["total_errors"] == 0


def test_a_stopped_agent_is_not_started_again_by_any_run(sandbox: Sandbox) -> None:
    """An intended stop outlives the runner (gascity#76); the unfinished task says where it stands, the exit code 1."""
    sandbox.prepare("slow-1", gates=["slow-1"])
    with sandbox.running() as run, sandbox.at_gate("slow-1"):
        sandbox.call("stop", "--all")
        run.rest()
        assert run.process.returncode == Verdict.SOME_FAILED
    assert sandbox.processes() == []
    sandbox.run(code=1)
    assert sandbox.sessions("slow-1") == 1
    assert "it has stopped" in sandbox.call("send", "agent", "hello?", code=2).stdout


def test_what_is_said_while_no_runner_lives_is_done_by_the_next(sandbox: Sandbox) -> None:
    """``stop`` on the log of a crashed runner ends the session that survived it."""
    sandbox.prepare("slow-1", "plain-1", gates=["slow-1"])
    with sandbox.running() as run, sandbox.at_gate("slow-1"):
        run.signal(signal.SIGKILL)
        run.rest()
    assert "the next run acts on it" in sandbox.call("stop", "--all").stdout
    sandbox.run(code=1)
    assert sandbox.processes() == []


def test_an_urgent_message_to_a_session_that_survived_its_runner_interrupts_it_in_the_next_run(
    sandbox: Sandbox,
) -> None:
    """The session would go on for minutes: it ends without an error, and the next one has the message."""
    sandbox.prepare("slow-1", gates=["slow-1"])
    with sandbox.running() as run, sandbox.at_gate("slow-1"):
        run.signal(signal.SIGKILL)
        run.rest()
        assert "the next run acts on it" in sandbox.call("send", "agent", "use blue").stdout
        assert "1 of 1 tasks closed" in sandbox.run()
    assert "use blue" in (sandbox.folder / "repo" / "slow-1.txt").read_text()
    assert sandbox.json("status")["agents"][0]["total_errors"] == 0
    assert sandbox.processes() == []


def test_two_runners_on_one_log_are_refused(sandbox: Sandbox) -> None:
    """The second says so, exits with 2, and disturbs nothing."""
    sandbox.prepare("slow-1")
    with sandbox.running() as run:
        run.until("slow-1", "IN_PROGRESS")
        refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2)
        assert "another lifefold is running" in refused.stderr
        sandbox.call("send", "agent", "go on")
        assert "1 of 1 tasks closed" in run.rest()


def test_a_task_that_always_fails_is_given_up_and_its_dependents_are_blocked(sandbox: Sandbox) -> None:
    """Retries are used up, dependents say why they are blocked, everything else is done; the exit code is 1."""
    sandbox.prepare("plain-1", agents=1)
    broken = '\n[[tasks]]\nid = "bad"\nprompt = "x"\nverify = [["false"]]\nmax_retries = 1\n'
    sandbox.fleet.write_text(
        sandbox.fleet.read_text() + broken + '\n[[tasks]]\nid = "after"\nprompt = "x"\ndepends_on = ["bad"]\n'
    )
    printed = sandbox.run(code=1)
    states = {task["id"]: (task["state"], task["reason"]) for task in sandbox.json("tasks")}
    assert states["plain-1"][0] == "CLOSED"
    assert states["bad"][0] == "FAILED"
    assert "false" in states["bad"][1]
    assert states["after"] == ("BLOCKED", "depends on bad, which has failed")
    assert "bad: failed" in printed


def test_a_finished_fleet_run_again_says_so_and_writes_nothing(sandbox: Sandbox) -> None:
    """The second run changes no byte of the log's entries."""
    sandbox.prepare("plain-1", repository=False)
    sandbox.run()
    before = sandbox.json("log")
    assert "1 of 1 tasks closed" in sandbox.run()
    assert sandbox.json("log") == before
    assert (sandbox.folder / ".lifefold" / "sandbox.db.files" / "worktrees" / "plain-1" / "plain-1.txt").exists()


@on_both
def test_the_same_fleet_runs_on_both_back_ends(sandbox: Sandbox, backend: str) -> None:
    """Nothing in the runner depends on asyncio."""
    sandbox.prepare("plain-1", "crash-1", "hang-1", agents=2, timeout="5s")

    async def run() -> tuple[Verdict, list[str]]:
        runner = await Runner.open(load(sandbox.fleet), sandbox.log)
        try:
            verdict = await runner.run()
            return verdict, [task.state for task in task_status.tasks(runner.aggregates)]
        finally:
            runner.close()

    assert anyio.run(partial(run), backend=backend) == (Verdict.ALL_CLOSED, ["CLOSED"] * 3)
    assert sandbox.processes() == []


def test_work_that_is_done_waits_for_the_user_s_own_changes_to_get_out_of_the_way(sandbox: Sandbox) -> None:
    """A merge that would overwrite something of the user's is told about, and is done later."""
    sandbox.prepare("plain-1")
    mine = sandbox.folder / "repo" / "plain-1.txt"
    mine.write_text("the user's own\n")
    with sandbox.running() as run:
        run.until("waits to merge plain-1")
        assert mine.read_text() == "the user's own\n"
        mine.unlink()
        summary = run.rest().partition("1 of 1 tasks closed")
    assert summary[1]
    assert "waits to merge" not in summary[2]
    assert sandbox.sessions("plain-1") == 1
    assert "Write plain-1.txt" in mine.read_text()


def test_a_merge_that_waits_is_left_for_the_next_run(sandbox: Sandbox) -> None:
    """One wish to leave is enough, the runner says what it leaves, and the next one merges without any session."""
    sandbox.prepare("plain-1")
    mine = sandbox.folder / "repo" / "plain-1.txt"
    mine.write_text("the user's own\n")
    with sandbox.running() as run:
        run.until("waits to merge plain-1")
        run.signal(signal.SIGTERM)
        left = run.rest()
        assert "agent: the merge of plain-1 is left for the next run" in left
        assert "agent: waits to merge plain-1" in left.partition("0 of 1 tasks closed")[2]
        assert run.process.returncode == Verdict.LEFT
    mine.unlink()
    told, _, summary = sandbox.run().partition("1 of 1 tasks closed")
    assert "continuing: 0 sessions adopted, 0 tasks in progress, 1 to be verified or merged" in told
    assert "continuing" not in summary
    assert sandbox.sessions("plain-1") == len(sandbox.merges()) == 1


def test_a_reader_that_goes_away_stops_no_agent(sandbox: Sandbox) -> None:
    """The terminal is closed, the pipe is cut: the fleet goes on to its end."""
    sandbox.prepare("plain-1", "crash-1")
    with sandbox.running() as run:
        run.until("IN_PROGRESS")
        assert run.process.stdout is not None
        run.process.stdout.close()
        assert run.process.wait(HANG_S) == Verdict.ALL_CLOSED
    assert len(sandbox.merges()) == 2


def test_a_hangup_makes_the_runner_leave(sandbox: Sandbox) -> None:
    """The signal of a closed terminal has the effect of Ctrl-C, although the output has no reader any more."""
    sandbox.prepare("slow-1", gates=["slow-1"])
    with sandbox.running() as run, sandbox.at_gate("slow-1"):
        assert run.process.stdout is not None
        run.process.stdout.close()
        run.signal(signal.SIGHUP)
        assert run.process.wait(HANG_S) == Verdict.LEFT
    assert sandbox.processes() == []
    assert sandbox.json("status")["agents"][0]["desired_state"] == "Hold"


def test_a_message_stored_in_the_log_interrupts_no_session_that_has_ended_meanwhile(sandbox: Sandbox) -> None:
    """The message waits for the next prompt, however urgent it is: a session that succeeded is not run again."""
    sandbox.prepare("plain-1", "plain-2", gates=["plain-1"])
    with sandbox.running() as run:
        with sandbox.at_gate("plain-1"):
            run.signal(signal.SIGKILL)
            run.rest()
        sandbox.wait_for_all()
        sandbox.call("send", "agent", "think of me")
    sandbox.run()
    assert (sandbox.sessions("plain-1"), sandbox.sessions("plain-2")) == (1, 1)
    assert "think of me" in (sandbox.folder / "repo" / "plain-2.txt").read_text()
