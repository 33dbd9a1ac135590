"""The command line as users and programs rely on it: exit codes, JSON shapes, errors that change nothing."""

import json
import shutil
import signal
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pytest

from fleet_sandbox import Sandbox
from lifefold.interpreters.cli.app import main


def _everything(folder: Path) -> dict[str, str]:
    """Return a digest of every file below a folder."""
    return {
        str(path): blake2b(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith((".lock", "-shm", "-wal")) and ".git" not in path.parts
    }


def _replace(old: str, new: str) -> Callable[[Sandbox], None]:
    def replace(sandbox: Sandbox) -> None:
        sandbox.fleet.write_text(sandbox.fleet.read_text().replace(old, new))

    return replace


def _unmake(sandbox: Sandbox) -> None:
    shutil.rmtree(sandbox.folder / "repo" / ".git")


BAD_FILES: dict[str, tuple[Callable[[Sandbox], None], str]] = {
    "unknown key": (_replace("grace =", "grase ="), "grase"),
    "wrong type": (_replace('"60s"', "60"), "session_timeout"),
    "missing command": (_replace("command =", "# command ="), "command"),
    "command not found": (_replace('command = ["', 'command = ["/no/such/program", "'), "/no/such/program"),
    "duplicate id": (_replace('id = "plain-2"', 'id = "plain-1"'), "plain-1"),
    "dependency cycle": (
        _replace('id = "plain-1"', 'id = "plain-1"\ndepends_on = ["plain-2"]'),
        "plain-2",
    ),
    "not TOML": (_replace("[fleet]", "[fleet"), "fleet.toml"),
    "not a git repository": (_unmake, "repo"),
    "no such repository": (_replace('"repo"', '"elsewhere"'), "elsewhere"),
    "zero limit": (_replace("grace =", "max_total_errors = 0\ngrace ="), "max_total_errors"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_input_is_named_exits_with_2_and_changes_nothing(sandbox: Sandbox, name: str) -> None:
    """What, where, what is accepted; no log is begun and no file is touched."""
    sandbox.prepare("plain-1", "plain-2")
    spoil, word = BAD_FILES[name]
    if name == "dependency cycle":
        _replace('id = "plain-2"', 'id = "plain-2"\ndepends_on = ["plain-1"]')(sandbox)
    spoil(sandbox)
    before = _everything(sandbox.folder)
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2)
    assert word in refused.stderr
    assert "Traceback" not in refused.stderr
    assert refused.stdout == ""
    assert _everything(sandbox.folder) == before


def test_a_missing_fleet_file_is_bad_input(sandbox: Sandbox) -> None:
    """The path is in the message."""
    assert "nowhere.toml" in sandbox.call("run", "nowhere.toml", code=2).stderr


def test_the_log_of_another_fleet_is_refused(sandbox: Sandbox) -> None:
    """By its name, and by what has been changed in the file since."""
    sandbox.prepare("plain-1", repository=False)
    sandbox.run()
    text = sandbox.fleet.read_text()
    sandbox.fleet.write_text(text.replace('"sandbox"', '"other"'))
    refused = sandbox.call("run", str(sandbox.fleet), "--db", str(sandbox.log), code=2)
    assert "'sandbox', not of 'other'" in refused.stderr
    sandbox.fleet.write_text(text.replace("300ms", "400ms"))
    refused = sandbox.call("run", str(sandbox.fleet), code=2)
    assert "grace" in refused.stdout
    assert "the fleet is over" in refused.stderr
    assert "sandbox-anew.db" in refused.stderr, "--again would have nothing to do"


def test_commands_without_a_log_say_where_they_looked(sandbox: Sandbox) -> None:
    """No log, or several: exit code 2 and what to do."""
    assert "--db" in sandbox.call("status", code=2).stderr
    (sandbox.folder / ".lifefold").mkdir()
    (sandbox.folder / ".lifefold" / "a.db").touch()
    (sandbox.folder / ".lifefold" / "b.db").touch()
    assert "several logs" in sandbox.call("tasks", code=2).stderr


def test_an_unknown_agent_is_bad_input(sandbox: Sandbox) -> None:
    """The message lists the agents."""
    sandbox.prepare("plain-1", repository=False, agents=2)
    sandbox.run()
    assert "agent-1, agent-2" in sandbox.call("send", "nobody", "hi", code=2).stderr
    assert "agent-1, agent-2" in sandbox.call("stop", "nobody", code=2).stderr


def test_the_json_of_status_tasks_and_log_has_the_documented_keys(sandbox: Sandbox) -> None:
    """Programs read these."""
    sandbox.prepare("crash-1", repository=False)
    sandbox.run()
    status = sandbox.json("status")
    assert list(status) == [
        "fleet", "log", "runner", "is_over", "change", "agents", "hosts", "tasks", "removed", "waiting", "unmerged",
        "doubts", "quarantined", "in_the_way", "unread", "notifiers", "cost_usd", "input_tokens", "output_tokens",
    ]  # fmt: skip
    assert (status["waiting"], status["cost_usd"], status["is_over"]) == ([], None, True)
    assert (status["fleet"], status["runner"], status["tasks"]) == ("sandbox", "not running", {"CLOSED": 1})
    agent = status["agents"][0]
    assert {
        "name",
        "desired_state",
        "state",
        "since_ms",
        "task",
        "session_seq",
        "sessions",
        "attempt",
        "timer",
        "process",
    } <= agent.keys()
    assert agent["process"]["alive"] is False
    task = sandbox.json("tasks")[0]
    assert {"id", "state", "owner", "attempts", "retries", "depends_on", "reason", "commit"} <= task.keys()
    assert (task["attempts"], task["retries"]) == (2, 1)
    event = sandbox.json("log")[0]
    assert list(event)[:9] == [
        "timestamp", "entity_type", "entity_id", "from_status", "to_status", "actor", "reason", "transition_reason",
        "abort_reason",
    ]  # fmt: skip


def test_status_doubts_a_session_whose_process_is_gone(sandbox: Sandbox) -> None:
    """Belief is not shown as evidence: a log that says Running without a process says so (claude-code#65925)."""
    sandbox.prepare("slow-1", repository=False, gates=["slow-1"])
    with sandbox.running() as run, sandbox.at_gate("slow-1"):
        run.until("SessionStarted")
        assert sandbox.json("status")["agents"][0]["process"]["alive"] is True
        assert "a runner is at work" in sandbox.call("status").stdout
        run.signal(signal.SIGKILL)
        run.rest()
        sandbox.kill_all()
    assert sandbox.json("status")["agents"][0]["process"]["alive"] is False
    shown = sandbox.call("status").stdout
    assert ("running? no process" in shown, " gone " in shown) == (True, True)
    sandbox.call("stop", "--all")
    sandbox.run(code=1)
    shown = sandbox.call("status").stdout
    assert ("no process" in shown, " gone " in shown) == (False, False)


def test_tables_and_diagrams_are_printed_in_every_format(sandbox: Sandbox) -> None:
    """Each with exit code 0; JSON is a list of rows with the documented keys."""
    rows = json.loads(sandbox.call("table", "session", "--format", "json").stdout)
    assert all(list(each) == ["from", "event", "when", "to", "effects"] for each in rows)
    assert {"from": "ANY", "event": "FatalError", "when": "", "to": "Stopped", "effects": ["LogFatal"]} in rows
    page = sandbox.call("table", "session", "--format", "markdown").stdout
    assert "| Running | UrgentMessage | Interrupting |" in page
    assert "BuildingPrompt" in sandbox.call("table", "session").stdout
    words = {"mermaid": "stateDiagram-v2", "dot": "digraph", "svg": "<svg", "scxml": "<scxml", "xstate": '"initial"'}
    for form, word in words.items():
        assert word in sandbox.call("diagram", "session", "--format", form).stdout


def test_the_wiring_of_a_system_is_printed(sandbox: Sandbox) -> None:
    """In the formats of pictures; a statechart is of one machine."""
    for form, word in {"mermaid": "flowchart", "dot": "digraph", "svg": "<svg"}.items():
        printed = sandbox.call("diagram", "fleet", "--format", form).stdout
        assert word in printed
        assert "hand over" in printed
    assert "known are mermaid, dot, svg" in sandbox.call("diagram", "fleet", "--format", "scxml", code=2).stderr


def test_an_unknown_machine_is_bad_input(sandbox: Sandbox) -> None:
    """The message lists what is known."""
    for command in ("table", "diagram"):
        assert "session" in sandbox.call(command, "sessoin", code=2).stderr
        assert "'nowhere' cannot be imported" in sandbox.call(command, "nowhere:machine", code=2).stderr


def test_a_table_is_of_one_machine(sandbox: Sandbox) -> None:
    """Of a system it is said which machines it has; one's own is named as everywhere."""
    refused = sandbox.call("table", "fleet", code=2).stderr
    assert "its machines are task" in refused
    assert refused.count(" mailbox,") == 1
    assert "fleet-governed is a system" in sandbox.call("table", "fleet-governed", code=2).stderr
    assert "the small fleets are" in sandbox.call("diagram", "fleet-nope", code=2).stderr
    own, shipped = (
        sandbox.call("table", name).stdout for name in ("lifefold.core.lifecycles.session:machine", "session")
    )
    assert own == shipped


def test_machines_lists_lifecycles_and_systems(sandbox: Sandbox) -> None:
    """With what each governs."""
    known = sandbox.json("machines")
    assert {"session", "task", "fleet"} <= {each["name"] for each in known}
    assert all(each["about"] for each in known)
    assert "session" in sandbox.call("machines").stdout


def test_init_writes_a_fleet_that_runs(sandbox: Sandbox) -> None:
    """The two commands of the README, for a project of one's own; nothing is overwritten."""
    sandbox.call("init", "mine")
    mine = Sandbox(sandbox.folder / "mine")
    assert "tasks closed" in mine.call("run", "fleet.toml", "--transitions").stdout
    assert all(task["state"] == "CLOSED" for task in mine.json("tasks"))
    assert "fleet.toml" in sandbox.call("init", "mine", code=2).stderr


@pytest.mark.campaign
def test_the_demonstration_ends_with_everything_closed_and_sums_up_what_it_has_shown(sandbox: Sandbox) -> None:
    """All ten tasks; a crash, a hang, a deaf agent and an interruption; and it says where the log is.

    The comments on what to try next stand in one column.
    """
    printed = sandbox.call("demo", "--folder", "demo", "--transitions").stdout
    assert "10 of 10 tasks closed; the log is" in printed
    recap, _, hints = printed.partition("Failures on the way")[2].partition("What to try next:")
    happened = dict(line.split(maxsplit=1) for line in recap.splitlines() if line.startswith("  "))
    shown = {"roman": "2 times", "initials": "hung until its timeout", "plural": "ignored", "guide": "urgent message"}
    assert [task for task, words in shown.items() if words not in happened[task]] == []
    assert len({line.rindex("  ") for line in hints.splitlines() if line.count("  ") > 1}) == 1
    demo = Sandbox(sandbox.folder / "demo")
    claims = {task["id"]: task["attempts"] for task in demo.json("tasks")}
    assert (claims["roman"] >= 3, claims["initials"] >= 2, claims["plural"] >= 2) == (True, True, True)
    assert any(event["metadata"]["event"] == "UrgentMessage" for event in demo.json("log"))
    assert demo.processes() == []
    assert "not empty" in sandbox.call("demo", "--folder", "demo", code=2).stderr


def test_help_and_version_answer_at_once(sandbox: Sandbox) -> None:
    """Every command is named; no command prints the help."""
    words = "run demo init doctor schema status tasks log why send stop pause resume approve reject cancel retry task"
    words += " finish split check simulate machines table diagram"
    help_text = sandbox.call("--help").stdout
    assert [word for word in words.split() if f"\n    {word} " not in help_text] == []
    assert sandbox.call().stdout == help_text
    assert sandbox.call("flyy", code=2).stdout == ""


def test_a_log_where_none_can_be_is_bad_input(sandbox: Sandbox) -> None:
    """A path below a file, a folder that cannot be written: exit code 2, no traceback, nothing changed."""
    sandbox.prepare("plain-1", repository=False)
    for place in (sandbox.fleet / "x.db", Path("/proc/x.db")):
        refused = sandbox.call("run", str(sandbox.fleet), "--db", str(place), code=2)
        assert str(place) in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_message_that_says_nothing_or_too_much_is_bad_input(sandbox: Sandbox) -> None:
    """It would interrupt a session for nothing, or be too long for a command's arguments."""
    sandbox.prepare("plain-1", repository=False)
    sandbox.run()
    for text in ("", "  ", "x" * 10_001):
        assert "1 to 10000 characters" in sandbox.call("send", "all", text, code=2).stderr


@pytest.mark.parametrize(
    ("typed", "usage"),
    [(("status", "nosuch"), "usage: lifefold status "), (("task", "add", "--bogus"), "lifefold task add ")],
)
def test_a_superfluous_argument_is_shown_with_the_usage_of_its_command(
    typed: tuple[str, ...], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*typed, *(("--id", "x", "--prompt", "y") if "add" in typed else ())])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert usage in said
    assert f"unrecognized arguments: {typed[-1]}" in said
