"""What waits for a person is said, with the command that answers it: nothing waits in silence."""

import io
import signal
from pathlib import Path

import anyio
import pytest
from rich.console import Console

from fleet_log import ME, FleetLog, folded
from fleet_sandbox import Sandbox
from lifefold.core.fleet import AgentPlan, ServicePlan, TaskPlan
from lifefold.core.fleet.worker import assignment, stall_detector
from lifefold.core.fleet.worker.stall_detector import Limits
from lifefold.core.kernel import replace
from lifefold.core.lifecycles import session, task
from lifefold.interpreters.cli.account import Account, account_of
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.awaited import lines, stuck
from lifefold.interpreters.cli.picture import Picture
from lifefold.interpreters.cli.watched import Followed
from lifefold.interpreters.cli.wording import next_of
from lifefold.interpreters.explain import status
from lifefold.interpreters.explain.pending import Awaited, Waiting
from lifefold.interpreters.fleet_runner import Verdict
from lifefold.interpreters.store import SqliteStore

NAME = ME.removeprefix("operator:")
T1 = TaskPlan("T1", "do it")


def paused(name: str, reason: str = "") -> Waiting:
    """Return that an agent is paused."""
    return Waiting(Awaited.AGENT, (name,), "resume", 0, reason=reason)


def test_agents_that_were_paused_together_are_said_together() -> None:
    """All of them are resumed by one short command; those with other reasons are named."""
    every = [paused("agent-10", "lunch"), paused("agent-2", "lunch")]
    assert list(lines(every, {"agent-2": "mo", "agent-10": "mo"})) == [
        "agent-2 and agent-10 are paused (by mo, lunch): lifefold resume"
    ]
    assert list(lines([*every, paused("zoe")], {}, " --db x")) == [
        "zoe is paused: lifefold resume zoe --db x",
        "agent-2 and agent-10 are paused (lunch): lifefold resume agent-2 agent-10 --db x",
    ]


def test_a_reason_does_no_harm_to_a_terminal() -> None:
    """Whatever was pasted into it."""
    (line,) = lines([paused("ann", "a\n\x1b[2Jb")], {})
    assert line == "ann is paused (a b): lifefold resume ann"


def test_a_task_that_waits_says_until_when() -> None:
    """With the date, unless that is today's."""
    (line,) = lines([Waiting(Awaited.TASK, ("T3",), "approve", 0, 1_000)], {})
    assert line.startswith("T3 is done and waits for your approval, until 19")
    assert line.endswith(":01: lifefold approve T3")


def test_an_agent_that_the_stall_detector_has_warned_of_is_stuck(tmp_path: Path) -> None:
    log = FleetLog(tmp_path / "fleet.db", T1)
    agent = replace(*status.agents(folded(log.path).aggregates), task="T1")
    assert list(stuck([agent], 60_000)) == []
    silent = replace(agent, silent_since_ms=20_000)
    said = "ann is stuck: its session at T1 has shown no progress for 40s"
    assert list(stuck([agent, silent], 60_000)) == [said]
    assert list(stuck([silent], 60_000, " --db x")) == [f"{said}: lifefold output ann --db x"]


def test_the_live_displays_name_a_stuck_agent_by_the_rule_of_status(tmp_path: Path) -> None:
    """At the entry of the warning, and in the same words; the mark of the agent changes with it."""
    limits = Limits(60_000, None, 120_000)
    log = FleetLog(tmp_path / "fleet.db", T1, agents=(AgentPlan("ann", stall=limits),))
    log.reported("worker/ann", "session", session.WorktreeReady()).claimed("T1")
    log.happens("worker/ann", "assignment", assignment.Assigned(task.Brief("T1", 1, "do it")))
    log.reported("worker/ann", "assignment", assignment.CheckedOut())
    log.reported("worker/ann", "session", session.SessionStarted(0))
    said = "ann is stuck: its session at T1 has shown no progress for"
    before = drawn(log.path)
    assert said not in before
    assert "● running" in before
    log.later(61_000).reported("worker/ann", stall_detector.REF, stall_detector.Silent(61_000))
    (line,) = stuck(status.agents(folded(log.path).aggregates), 61_000)
    assert line.startswith(said)
    after = drawn(log.path)
    assert said in after
    assert "◐ running · silent" in after
    assert "●" not in after


def drawn(log: Path) -> str:
    """Return the live display of a log without a runner, as text."""
    with SqliteStore.peek(log) as store:
        picture = Picture(Followed(store, folded(log)), Account())
        console = Console(file=io.StringIO(), width=200, force_terminal=False)
        with console.capture() as captured:
            console.print(picture.draw(200, 40))
    return captured.get()


@pytest.mark.parametrize(
    ("limits", "silences_ms", "expected"),
    [
        (Limits(60_000, None, 120_000), (61_000,), "ended in 1m00s"),
        (Limits(60_000, 90_000, 120_000), (61_000,), "nudged in 30s"),
        (Limits(60_000, 90_000, 120_000), (60_000, 95_000), "ended in 30s"),
        (Limits(60_000, None, 900_000), (61_000,), "times out in 3m59s"),
    ],
)
def test_the_next_step_of_a_silent_session_is_that_of_its_stall_detector(
    tmp_path: Path, limits: Limits, silences_ms: tuple[int, ...], expected: str
) -> None:
    """Its nudge or its end, unless its time limit comes before; without its process there is no next step."""
    agent = AgentPlan("ann", stall=limits, limits=session.Limits(session_timeout_ms=300_000))
    log = FleetLog(tmp_path / "fleet.db", T1, agents=(agent,)).claimed("T1")
    for event in (session.WorktreeReady(), session.PromptReady("do it"), session.SessionStarted(0)):
        log.reported("worker/ann", "session", event)
    for silent_ms in silences_ms:
        log.later(silent_ms).reported("worker/ann", stall_detector.REF, stall_detector.Silent(silent_ms))
    (ann,) = status.agents(folded(log.path).aggregates)
    assert next_of(ann, silences_ms[-1]) == expected
    assert next_of(ann, silences_ms[-1], is_gone=True) == "-"


def test_a_diff_is_named_only_where_an_approval_merges_a_commit() -> None:
    """A fleet without a repository has no difference to show."""
    (line,) = lines([Waiting(Awaited.TASK, ("T3",), "approve", 0, commit="c0ffee")], {}, " --db x")
    assert line.endswith(": lifefold approve T3 --db x, after lifefold diff T3 --db x")
    (line,) = lines([Waiting(Awaited.TASK, ("T3",), "approve", 0)], {})
    assert line == "T3 is done and waits for your approval: lifefold approve T3"


def test_status_says_what_waits_for_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan, and who has paused an agent and why, until it was answered; the log is named where it has to be."""
    log = tmp_path / "fleet.db"

    def said(*words: str) -> str:
        assert main([*words, "--db", str(log)]) == 0
        return capsys.readouterr().out

    FleetLog(log, T1, agents=(AgentPlan("ann"), AgentPlan("bob")), approve_plan=True)
    assert f"\n! the plan waits for your approval (1 task): lifefold approve --db {log}\n" in said("status")
    said("pause", "bob", "--reason", "lunch")
    assert f"\n! bob is paused (by {NAME}, lunch): lifefold resume bob --db {log}\n" in said("status")
    assert '"about": "agent"' in said("status", "--json")
    said("resume", "bob")
    said("approve")
    assert "!" not in said("status")


def test_a_run_that_waits_for_its_plan_and_then_for_its_agents_says_so(sandbox: Sandbox) -> None:
    """Once each, and in the end nothing waits any more; who leaves meanwhile is told it once more."""
    sandbox.prepare("plain-1", "plain-2", repository=False)
    sandbox.demand("", "approve_plan = true")
    with sandbox.running() as run:
        assert run.until("! the plan waits").endswith("for your approval (2 tasks): lifefold approve\n")
        sandbox.call("pause", "--reason", "lunch")
        assert run.until("! agent is paused").endswith(f"(by {NAME}, lunch): lifefold resume agent\n")
        sandbox.call("approve")
        run.until("task plain-1", "OPEN")
        run.signal(signal.SIGINT)
        rest = run.rest()
    assert f"  agent is paused (by {NAME}, lunch): lifefold resume agent\n" in rest
    assert "the plan waits" not in rest
    assert run.process.returncode == Verdict.LEFT
    with sandbox.running() as run:
        run.until(f"! agent is paused (by {NAME}, lunch)")
        sandbox.call("resume")
        assert "waits for your approval" not in run.rest()
    assert "".join(run.seen).count("is paused") == 1
    assert "! " not in sandbox.call("status").stdout


def test_a_run_whose_work_is_parked_says_so_and_a_kept_one_that_it_has_nothing_to_do(sandbox: Sandbox) -> None:
    """With the commands that let it go on."""
    sandbox.prepare("plain-1")
    sandbox.demand("plain-1", 'approval = "merge"').demand("", 'approval_timeout = "1h"')
    with sandbox.running("--watch") as run:
        assert run.until("! plain-1 is done and waits for your approval, until ").endswith(
            ": lifefold approve plain-1, after lifefold diff plain-1\n"
        )
        sandbox.call("approve", "plain-1")
        line = run.until("! all tasks are settled, and more may come")
        assert line.endswith("more may come: lifefold task add, or lifefold finish\n")
        sandbox.call("finish")
        assert "1 of 1 tasks closed" in run.rest()


def test_a_continued_run_knows_the_operator_of_each_pause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Agents and services."""
    log = tmp_path / "fleet.db"
    FleetLog(log, TaskPlan("T1", "do it"), services=(ServicePlan("web"),))
    assert main(["pause", "--db", str(log)]) == 0
    assert "web: paused" in capsys.readouterr().out
    me = ME.partition(":")[2]
    assert anyio.run(account_of, log).paused_by == {"ann": me, "web": me}
