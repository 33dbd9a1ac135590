"""`lifefold log`, not all of it: what concerns tasks or agents, what has happened since, and what comes."""

import json
import signal
import subprocess
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands_run import LIFEFOLD
from fleet_log import FleetLog
from fleet_sandbox import HANG_S, Sandbox
from lifefold.core.fleet import AgentPlan, Budget, ServicePlan, TaskPlan
from lifefold.core.lifecycles.budget.amounts import Amounts, Caps
from lifefold.core.policy.intensity import Intensity
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.log_filter import since
from lifefold.interpreters.fleet_runner import Verdict

T1 = TaskPlan("T1", "do it")
T2 = TaskPlan("T2", "do that", depends_on=("T1",))
ANN, BOB = AgentPlan("ann"), AgentPlan("bob")


def entries(log: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[tuple[str, str, str]]:
    """Return what the command prints: the machine, whose it is, and the event of each transition."""
    assert main(["log", *words, "--json", "--db", str(log)]) == 0
    found = json.loads(capsys.readouterr().out)
    return [(each["entity_type"], each["entity_id"], each["metadata"]["event"]) for each in found]


def test_a_task_is_concerned_by_its_own_transitions_and_those_of_its_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And of an agent what happens to itself, and to what it owns."""
    log = FleetLog(tmp_path / "x.db", T1, T2, agents=(ANN, BOB)).failed("T1").path
    every = entries(log, capsys)
    of_first = entries(log, capsys, "--task", "T1")
    assert of_first == [
        ("task", "T1", "Created"),
        ("task", "T1", "Claimed"),
        ("worker_slot", "ann", "TaskGiven"),
        ("task", "T1", "Started"),
        ("task", "T1", "Failed"),
    ]
    assert entries(log, capsys, "--task", "T2") == [("task", "T2", "Created")]
    assert entries(log, capsys, "--task", "T1", "--task", "T2") == [
        each for each in every if each in of_first or each[1] == "T2"
    ]
    of_ann = entries(log, capsys, "--agent", "ann")
    assert {each[:2] for each in of_ann} == {
        ("worker_slot", "ann"), ("task", "T1"), ("desired_state", "ann"), ("mailbox", "ann"), ("assignment", "ann"),
        ("session", "ann"),
    }  # fmt: skip
    assert ("task", "T1", "Created") not in of_ann
    assert entries(log, capsys, "--agent", "ann", "--agent", "bob") == [
        each for each in every if each in of_ann or each[1] == "bob"
    ]
    assert entries(log, capsys, "--task", "T1", "--agent", "bob") == []
    assert set(entries(log, capsys, "--task", "T1", "--agent", "ann")) == set(of_first) - {("task", "T1", "Created")}


def test_how_a_session_ended_concerns_the_task_that_it_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The end of the session and the worker's giving the task away are one reaction."""
    sandbox = Sandbox(tmp_path).prepare("crash-1", "plain-1", repository=False)
    sandbox.run()
    of_task = entries(sandbox.log, capsys, "--task", "crash-1")
    ends = [each for each in entries(sandbox.log, capsys) if each[0] == "session" and each[2] == "SessionExited"]
    assert len(ends) == 3
    assert [each for each in of_task if each in ends] == ends[:2]
    of_other = entries(sandbox.log, capsys, "--task", "plain-1")
    assert [each for each in of_other if each in ends] == ends[:1]


def test_the_entities_of_an_agent_on_the_board_concern_that_agent_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Budgets, permits for restarts, room that he makes, and what a service has to do; names may be alike."""
    caps = Caps(sessions=5)
    log = FleetLog(
        tmp_path / "x.db",
        TaskPlan("fleet", "do it", caps=caps),
        TaskPlan("ann", "do that"),
        agents=(AgentPlan("ann", caps=caps), AgentPlan("fleet")),
        budget=Budget(caps, Amounts(sessions=1)),
        restarts=Intensity(3, 1_000),
        services=(ServicePlan("web", takes_messages=True),),
    ).path
    of = {
        words: {each[0] for each in entries(log, capsys, *words)}
        for words in (("--task", "fleet"), ("--task", "ann"), ("--agent", "ann"), ("--agent", "fleet"))
    }
    assert of["--task", "fleet"] == {"task", "budget"}
    assert of["--task", "ann"] == {"task"}
    assert {"budget", "restart_permit", "worker_slot", "session"} <= of["--agent", "ann"]
    assert "budget" not in of["--agent", "fleet"]
    assert {("service_slot", "web"), ("process", "web")} <= {
        each[:2] for each in entries(log, capsys, "--agent", "web")
    }
    assert len([each for each in entries(log, capsys, "--agent", "ann") if each[0] == "budget"]) == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--task", "T3"), "there is no task 'T3'; there is only T1"),
        (("--task", "T1", "--task", "t1"), "there is no task 't1'; did you mean T1?"),
        (("--agent", "anne"), "there is no agent 'anne'; did you mean ann?"),
        (("--since", "yesterday"), "--since: found 'yesterday'; accepted: a duration, as 10m"),
    ],
)
def test_what_is_not_there_is_bad_input_and_names_what_is_like_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    """As with every other command."""
    log = FleetLog(tmp_path / "x.db", T1).path
    assert main(["log", *words, "--db", str(log)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, complaint in printed.err) == ("", True)


NOW_MS = int(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp() * 1_000)


@pytest.mark.parametrize(
    ("text", "ago_ms"),
    [
        ("10m", 600_000),
        ("1h30m", 5_400_000),
        ("2026-11-20T11:00Z", 3_600_000),
        ("2026-11-20T13:00+02:00", 3_600_000),
        (datetime.fromtimestamp(NOW_MS / 1_000 - 60, UTC).astimezone().replace(tzinfo=None).isoformat(), 60_000),
    ],
)
def test_since_is_a_duration_or_a_time(text: str, ago_ms: int) -> None:
    """A time without a zone is local."""
    assert since(text, NOW_MS) == NOW_MS - ago_ms


@pytest.mark.parametrize("text", ["", "10", "10 m", "tomorrow", "2026-13-01", "9999-99-99"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """And it is said what one is."""
    with pytest.raises(BadInput, match="accepted: a duration, as 10m"):
        since(text, NOW_MS)


def test_what_happened_before_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """This log is as old as Unix time."""
    log = FleetLog(tmp_path / "x.db", T1).path
    assert entries(log, capsys, "--since", "10m") == []
    assert entries(log, capsys, "--since", "1970-01-01T00:00Z") == entries(log, capsys)


def test_a_log_that_is_followed_shows_what_comes_until_the_fleet_is_over(tmp_path: Path) -> None:
    """First what there is, then each entry when it is written, then it ends by itself."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", repository=False, gates=["plain-1"])
    with ExitStack() as ends:
        run = ends.enter_context(sandbox.running())
        with sandbox.at_gate("plain-1"):
            run.until("IN_PROGRESS")
            command = [*LIFEFOLD, "log", "--follow", "--json", "--agent", "agent"]
            follows = ends.enter_context(
                subprocess.Popen(command, cwd=sandbox.folder, stdout=subprocess.PIPE, text=True)
            )
            ends.callback(follows.kill)
            assert follows.stdout is not None
            first = json.loads(follows.stdout.readline())
            assert first["metadata"]["event"] == "Created"
        run.rest()
        rest = [json.loads(line) for line in follows.stdout]
        follows.wait(HANG_S)
    assert follows.returncode == 0
    seen = [(each["entity_type"], each["to_status"]) for each in [first, *rest]]
    assert ("session", "Stopped") in seen
    assert ("task", "CLOSED") in seen
    assert [first, *rest] == sandbox.json("log", "--agent", "agent")
    again = sandbox.call("log", "--follow").stdout
    assert again == sandbox.call("log").stdout, "what is over is not waited for"


@pytest.mark.parametrize("option", ["--task", "--agent"])
def test_what_is_not_there_yet_may_be_followed(tmp_path: Path, option: str) -> None:
    """A part of a task comes when its task is split. A mistyped name is named all the same."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", repository=False)
    sandbox.run()
    done = sandbox.call("log", "--follow", option, "plain-1.1")
    instead = "did you mean plain-1?" if option == "--task" else "there is only agent"
    assert (done.stdout, done.stderr) == (
        "",
        f"warning: there is no {option[2:]} 'plain-1.1'; {instead}\n",
    )


def test_following_a_log_can_be_interrupted(tmp_path: Path) -> None:
    """By Ctrl-C, with the exit code of an interrupted command."""
    log = FleetLog(tmp_path / "x.db", T1).path
    command = [*LIFEFOLD, "log", "--follow", "--task", "T1", "--db", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as follows:
        assert follows.stdout is not None
        assert "T1" in follows.stdout.readline()
        follows.send_signal(signal.SIGINT)
        follows.wait(HANG_S)
    assert follows.returncode == Verdict.LEFT


def test_a_log_is_a_sequence_diagram_of_the_chosen_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each input with a chosen transition is an arrow; a diagram is neither JSON nor ever complete while it grows."""
    log = FleetLog(tmp_path / "x.db", T1, T2, agents=(ANN, BOB)).failed("T1").path
    assert main(["log", "--task", "T1", "--format", "sequence", "--db", str(log)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("sequenceDiagram\n")
    assert [line.split(". ")[1] for line in text.splitlines() if "->>" in line] == [
        "Opened", "WorkWanted", "Started", "Failed",
    ]  # fmt: skip
    assert "task#58;T1#58; CLAIMED → IN_PROGRESS" in text
    for other in ("--json", "--follow"):
        assert main(["log", "--format", "sequence", other, "--db", str(log)]) != 0
        assert "goes with neither --json nor --follow" in capsys.readouterr().err
