"""Operator messages to agents: their delivery, and none is lost beside other commands."""

import subprocess
from pathlib import Path

import anyio
import pytest

from commands_run import LIFEFOLD
from fleet_log import ME, FleetLog, folded, said
from fleet_sandbox import HANG_S, Sandbox
from lifefold.core.fleet import AgentPlan, ServicePlan, TaskPlan
from lifefold.core.fleet.service import inbox
from lifefold.core.fleet.worker import assignment, desired_state, mailbox
from lifefold.core.kernel import Envelope, Reaction, Refusal, encode
from lifefold.core.lifecycles import process, session, task
from lifefold.core.lifecycles.task import Brief
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import Runner, Verdict
from lifefold.interpreters.store import SqliteStore
from printed_commands import tell

T1 = TaskPlan("T1", "do it")
BOB = AgentPlan("bob")
PAIR = (AgentPlan("ann"), BOB)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "fleet.db"


def wanted(log: Path, agent: str) -> desired_state.DesiredState:
    """Return what is wanted of an agent."""
    record: desired_state.DesiredState = folded(log).record(f"worker/{agent}", "desired_state")
    return record


def test_a_paused_agent_is_resumed_by_operators(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With why; each again is refused in words, and who was stopped is neither paused nor resumed."""
    FleetLog(log, T1, agents=PAIR)
    assert tell(log, capsys, "resume", code=2).startswith("ann: is not paused\nbob: is not paused\n")
    assert tell(log, capsys, "pause", "ann", "--reason", "lunch").startswith(
        f"ann: paused, until lifefold resume ann --db {log};"
    )
    assert wanted(log, "ann") == desired_state.DesiredState(desired_state.State.PAUSE, "lunch")
    assert "Pause: lunch" in tell(log, capsys, "status")
    assert tell(log, capsys, "pause").splitlines() == [
        "ann: is paused already: lunch",
        f"bob: paused, until lifefold resume bob --db {log}; the next run acts on it",
    ]
    assert tell(log, capsys, "resume", "bob", "ann", "bob").count("goes on") == 2
    assert wanted(log, "ann") == desired_state.DesiredState()
    tell(log, capsys, "stop", "ann")
    for command in ("pause", "resume", "stop"):
        assert "for good" in tell(log, capsys, command, "ann", code=2)
    assert "'bop'; did you mean bob?" in tell(log, capsys, "pause", "ann", "bop", code=2)
    assert "the reason must have 1 to" in tell(log, capsys, "pause", "bob", "--reason", " ", code=2)


STOPS = (
    "stops for good: its processes are asked to end, and killed after their grace;"
    " lifefold status --db {} shows progress"
)


def test_a_stop_reports_its_consequences(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answers name the effect on sessions, and its place. A message has its sender and its delivery."""
    FleetLog(log, T1)
    assert (
        tell(log, capsys, "send", "ann", "look") == "ann: accepted; its next prompt has it; the next run acts on it\n"
    )
    assert tell(log, capsys, "stop", "--all") == f"ann: {STOPS.format(log)}; the next run acts on it\n"


def test_a_message_for_a_task_waits_for_its_next_claim(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first one creates the mailbox of the task, and a full mailbox refuses."""
    FleetLog(log, T1)
    waits = "T1: accepted; no agent works at it (it is not begun), and the prompt of its next claim has the message"
    for typed, text in (("T1", "one"), ("task:T1", "two")):
        assert tell(log, capsys, "send", typed, text) == f"{waits}; the next run acts on it\n"
    assert folded(log).record("board", "mailbox:T1").messages == ("one", "two")
    for _ in range(6):
        tell(log, capsys, "send", "T1", "x" * 10_000)
    assert "T1: refused: its mailbox is full" in tell(log, capsys, "send", "T1", "x" * 10_000, code=2)


def test_a_message_for_a_task_at_work_names_the_agent_that_gets_it(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The owner gets it with the name of the task."""
    FleetLog(log, T1).claimed("T1")
    has_it = "T1: accepted; ann has the task, and its next prompt has the message"
    assert tell(log, capsys, "send", "T1", "look") == f"{has_it}; the next run acts on it\n"


def test_a_message_for_finished_work_waits_for_another_try(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The work is verified and merged without another prompt."""
    FleetLog(log, T1).claimed("T1").happens("board", "task:T1", task.Completed(1))
    later = "T1: accepted; its work is over for now (it is done, not merged), and only a later try has the message"
    assert tell(log, capsys, "send", "T1", "look").startswith(later)


def test_a_message_for_an_agent_names_its_task(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An agent without a task has the message in its next prompt, whatever the task will be."""
    of = FleetLog(log, T1, agents=PAIR).reported("worker/ann", "session", session.WorktreeReady())
    of.happens("worker/ann", "assignment", assignment.Assigned(Brief("T1", 1, "do it")))
    assert tell(log, capsys, "send", "all", "look").splitlines() == [
        "ann: accepted; its next prompt has it, at the task T1; the next run acts on it",
        "bob: accepted; its next prompt has it; the next run acts on it",
    ]


def test_a_message_needs_an_addressee_that_can_read_it(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A task that is over has no later prompt; a name of two things, or of none, is refused with what is accepted."""
    FleetLog(log, T1, TaskPlan("ann", "x"))
    tell(log, capsys, "cancel", "T1")
    over = "T1: refused: it is cancelled, and no prompt will have the message\n"
    assert tell(log, capsys, "send", "T1", "look", code=2).startswith(over)
    assert "accepted: agent:ann for the agent, task:ann for the task" in tell(log, capsys, "send", "ann", "x", code=2)
    assert "no agent or task 'anne'; did you mean ann?" in tell(log, capsys, "send", "anne", "x", code=2)
    for typed in ("agent:ann", "task:ann"):
        assert "accepted" in tell(log, capsys, "send", typed, "look")
    assert folded(log).record("board", "mailbox:ann").messages == ("look",)
    assert folded(log).record("worker/ann", "mailbox").messages == ("look",)


@pytest.mark.parametrize("command", ["pause", "resume", "stop", "stop --drain", "stop --kill", "send"])
def test_an_agent_that_stopped_by_errors_accepts_no_message(
    log: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """It is refused as with those whom a person has stopped; the others are told all the same."""
    of = FleetLog(log, T1, agents=(AgentPlan("ann", session.Limits(max_consecutive_errors=1)), BOB)).fallen("ann")
    words = [*command.split(), "ann", *(["hello"] if command == "send" else [])]
    before = folded(log).record("worker/ann", "desired_state")
    assert "for good" in tell(of.path, capsys, *words, code=2)
    assert folded(log).record("worker/ann", "desired_state") == before
    if command == "stop":
        both = tell(of.path, capsys, "stop", "--all").splitlines()
        assert both == ["ann: has stopped already, and for good", f"bob: {STOPS.format(log)}; the next run acts on it"]


def test_a_service_that_is_down_for_good_is_told_nothing_more(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As with an agent."""
    of = FleetLog(log, T1, services=(ServicePlan("web"),)).reported("service/web", "process", process.Crashed("no"))
    for command in ("pause", "stop"):
        assert "for good" in tell(of.path, capsys, command, "web", code=2)


def test_the_operator_of_a_command_is_in_the_log(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The login name, with every transition that follows from no rule."""
    FleetLog(log, TaskPlan("T1", "x", most_subtasks=2)).claimed("T1")
    tell(log, capsys, "split", "T1", "--token", "1", "--part", "x")
    tell(log, capsys, "cancel", "T1")
    tell(log, capsys, "pause")
    printed = tell(log, capsys, "log", "--all")
    assert f"Split: claim 1, into 1 part (by {ME})" in printed
    assert f"Cancelled (by {ME})" in printed
    assert f"PauseWanted (by {ME})" in printed
    assert "(by rule:" not in printed


def test_a_reason_cannot_spoil_what_others_see(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It stands in one line, and moves no cursor."""
    FleetLog(log, T1)
    tell(log, capsys, "pause", "--reason", "first\nsecond \x1b[31mred")
    shown = [tell(log, capsys, "status"), tell(log, capsys, "pause", code=2)]
    assert [any("first second red" in line for line in each.splitlines()) for each in shown] == [True, True]
    assert "\x1b" not in "".join(shown)


def test_a_user_without_a_name_is_known_by_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that has no entry for its user."""
    monkeypatch.setattr("os.geteuid", lambda: 4_123_456_789)
    assert operator_commands.login() == "4123456789"


def test_two_concurrent_commands_are_decided_one_after_the_other(log: Path) -> None:
    """Both wait for another writer; then one of them writes both commands."""
    FleetLog(log, T1, TaskPlan("T2", "x"))
    commands = [["cancel", "T1"], ["task", "add", "--id", "T3", "--prompt", "x"]]
    with SqliteStore.open(log) as busy:
        running = [
            subprocess.Popen([*LIFEFOLD, *words, "--db", str(log)], stdout=subprocess.PIPE, text=True)
            for words in commands
        ]
        while len(anyio.run(busy.commands)) < len(commands):
            assert [each.poll() for each in running] == [None, None]
    printed = [each.communicate(timeout=HANG_S)[0] for each in running]
    assert [each.returncode for each in running] == [0, 0]
    assert [text.partition(";")[0] for text in printed] == ["T1: cancelled", "T3: added"]
    assert sorted(each.entity for each in said(log)) == ["task:T1", "task:T3"]
    assert folded(log).record("board", "task:T3").state == "OPEN"


def test_a_command_that_came_too_late_is_refused_in_plain_words(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was possible when it was looked at and is no more when it is taken; what was left is taken first."""
    FleetLog(log, T1, TaskPlan("T2", "x"))
    with SqliteStore.peek(log) as store:
        for name, event in (
            ("desired_state", desired_state.StopWanted("enough")),
            ("mailbox", mailbox.OperatorMessageArrived("hello")),
        ):
            anyio.run(store.submit, "worker/ann", encode(Envelope(name, event, 0, "operator:eve")))
        anyio.run(store.submit, "board", b"{}")
    assert tell(log, capsys, "pause", "ann", code=2).startswith("ann: refused: it has stopped, for good\n")
    with SqliteStore.peek(log) as store:
        answers = [str(each.answer) for each in anyio.run(lambda: store.commands(unanswered=False))]
    assert [answer.partition(":")[0] for answer in answers] == [
        "accepted; the next run acts on it",
        "refused",
        "refused",
        "refused",
    ]


def test_a_message_is_as_urgent_without_a_runner_as_beside_one(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it interrupts is interrupted by the next run; one that can wait does not. The status says that they wait."""
    FleetLog(log, T1)
    tell(log, capsys, "send", "ann", "look")
    assert "1 message waiting" in tell(log, capsys, "status")
    tell(log, capsys, "send", "ann", "later", "--no-interrupt")
    assert [each.event for each in said(log)] == [
        mailbox.OperatorMessageArrived("look", urgent=True),
        mailbox.OperatorMessageArrived("later", urgent=False),
    ]
    assert "2 messages waiting" in tell(log, capsys, "status")


def test_what_an_agent_was_never_told_stays_in_its_status(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An agent that has stopped for good does not read it, and the answer says so."""
    of = FleetLog(log, T1).happens("worker/ann", "mailbox", mailbox.OperatorMessageArrived("look"))
    of.happens("worker/ann", "desired_state", desired_state.StopWanted("enough"))
    assert "1 message undelivered" in tell(log, capsys, "status")


def test_a_message_to_a_full_inbox_is_refused_with_the_reason(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is full by the length of what waits, also if that is one message only; a short one has room."""
    long = "x" * (inbox.MESSAGES_BYTES - 10)
    service = ServicePlan("web", takes_messages=True)
    of = FleetLog(log, T1, services=(service,)).happens("service/web", "desired_state", desired_state.HoldWanted())
    of.happens("service/web", "inbox", inbox.MessageArrived(long))
    assert tell(log, capsys, "send", "web", "y" * 11, code=2).startswith(f"web: refused: {inbox.FULL}\n")
    assert tell(log, capsys, "send", "web", "y" * 10).startswith("web: accepted; it is run once, in its turn")
    assert folded(log).record("service/web", "inbox").messages == (long, "y" * 10)


def test_a_command_says_that_a_runner_has_not_answered(
    log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is not lost: the next writer takes it, once."""
    FleetLog(log, T1)
    monkeypatch.setattr(operator_commands, "ANSWER_TIMEOUT_S", 0.2)
    with SqliteStore.open(log):
        assert "stored in the log" in tell(log, capsys, "pause", "ann")
    assert tell(log, capsys, "pause", "ann", code=2).startswith("ann: is paused already")
    assert len(said(log)) == 1


def test_a_runner_whose_agents_are_all_paused_leaves_at_once(tmp_path: Path) -> None:
    """Nothing comes of them that would have it look whether it may; and nothing is refused."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", repository=False)

    async def run() -> tuple[Verdict, desired_state.State, int]:
        runner = await Runner.open(load(sandbox.fleet), sandbox.log)

        async def leave() -> None:
            await anyio.wait_all_tasks_blocked()
            runner.leave()

        def leave_when_it_waits(_name: str, outcome: Reaction | Refusal) -> None:
            for each in outcome.transitions if isinstance(outcome, Reaction) else ():
                if each.entered is session.State.INITIALIZING:
                    at_ms = runner.engine.clock.now_ms()
                    runner.engine.offer("worker/agent", Envelope("desired_state", desired_state.PauseWanted(), at_ms))
                elif each.entered is session.State.BUILDING_PROMPT:
                    runner.engine.spawn(leave)

        runner.observers.append(leave_when_it_waits)
        with anyio.fail_after(HANG_S):
            verdict = await runner.run()
        runner.close()
        return verdict, runner.aggregates["worker/agent"].record("desired_state").state, runner.refused.counts.total()

    assert anyio.run(run) == (Verdict.LEFT, desired_state.State.PAUSE, 0)


def test_an_agent_resumed_during_a_shutdown_is_held_again(tmp_path: Path) -> None:
    """Or the runner would never leave; the next one lets it go on."""
    sandbox = Sandbox(tmp_path).prepare("hang-1", repository=False)

    async def run() -> tuple[Verdict, desired_state.State, int]:
        runner = await Runner.open(load(sandbox.fleet), sandbox.log)

        def say(event: desired_state.PauseWanted | desired_state.ResumeWanted) -> None:
            runner.engine.offer("worker/agent", Envelope("desired_state", event, runner.engine.clock.now_ms()))

        def resume_when_it_leaves(_name: str, outcome: Reaction | Refusal) -> None:
            for each in outcome.transitions if isinstance(outcome, Reaction) else ():
                if each.entered is session.State.INITIALIZING:
                    say(desired_state.PauseWanted())
                elif each.entered is desired_state.State.PAUSE:
                    runner.leave()
                    say(desired_state.ResumeWanted())

        runner.observers.append(resume_when_it_leaves)
        with anyio.fail_after(HANG_S):
            verdict = await runner.run()
        runner.close()
        return verdict, runner.aggregates["worker/agent"].record("desired_state").state, runner.refused.counts.total()

    assert anyio.run(run) == (Verdict.LEFT, desired_state.State.HOLD, 0)
    assert sandbox.sessions("hang-1") == 0
