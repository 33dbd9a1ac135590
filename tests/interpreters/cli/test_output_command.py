"""`lifefold output`: what the session of an agent at work, or of a task that is over, has printed."""

import json
import threading
from pathlib import Path

from commands_run import start_command
from desk_sandbox import talking
from fleet_sandbox import HANG_S


def test_the_output_of_the_last_session_is_shown_decoded_by_agent_and_by_task(tmp_path: Path) -> None:
    """Text, tools, cost and end; no control code; another session by its number; an error names what there is."""
    sandbox = talking(tmp_path, "one", "two")
    sandbox.run()
    said = sandbox.call("output", "one").stdout
    assert said.startswith("== session 1 of agent at one, attempt 1 (claude), begun ")
    assert said.splitlines()[1:] == [
        "conversation: c-one",
        "  I look at one.",
        "tool: Bash",
        "tool: Bash failed",
        "  not of the format: ]0;titlered",
        "cost: $0.2500, 1,200 tokens in, 340 out",
        "end: success: All done.",
    ]
    assert "  I look at two." in sandbox.call("output", "agent").stdout
    assert "  I look at one." in sandbox.call("output", "agent", "--session", "1").stdout
    assert sandbox.call("output", "one", "--last", "1").stdout.splitlines()[1:] == ["end: success: All done."]
    lines = [json.loads(line) for line in sandbox.call("output", "two", "--json").stdout.splitlines()]
    assert {(each["agent"], each["session"], each["task"]) for each in lines} == {("agent", 2, "two")}
    assert [each["kind"] for each in lines][-2:] == ["cost", "end"]
    raw = sandbox.call("output", "one", "--raw").stdout
    assert "\x1b]0;title" in raw
    refused = sandbox.call("output", "one", "--attempt", "9", code=2).stderr
    assert "--attempt 9: one has no such attempt with a session; accepted: 1\n" in refused
    refused = sandbox.call("output", "agent", "--session", "9", code=2).stderr
    assert "--session 9: agent has no such session; accepted: 1, 2\n" in refused
    for words in (("one", "--session", "1"), ("agent", "--attempt", "1"), ("one", "--session", "1", "--attempt", "1")):
        assert "accepted: " in sandbox.call("output", *words, code=2).stderr
    assert "there is no agent or task 'ones'; did you mean one?" in sandbox.call("output", "ones", code=2).stderr
    assert "--raw and --json: accepted: one of them" in sandbox.call("output", "one", "--raw", "--json", code=2).stderr


def test_a_followed_agent_is_shown_across_its_sessions_until_its_fleet_is_over(tmp_path: Path) -> None:
    """The output goes on while the session prints, and with a line between sessions; it ends with the fleet."""
    sandbox = talking(tmp_path, "one", "two", gates=("one",))
    with sandbox.running() as run:
        with sandbox.at_gate("one"):
            run.until("task one", "IN_PROGRESS")
            follows = start_command(sandbox.folder, "output", "agent", "--follow")
            found: list[str] = []
            stands = threading.Event()

            def read() -> None:
                assert follows.stdout is not None
                for line in follows.stdout:
                    found.append(line.rstrip("\n"))
                    if "not of the format" in line:
                        stands.set()

            reader = threading.Thread(target=read)
            reader.start()
            assert stands.wait(HANG_S)
            assert not any("Through the gate" in line for line in found)
        run.rest()
        reader.join(HANG_S)
    with follows:
        assert follows.wait(HANG_S) == 0
    assert "  Through the gate." in found
    heads = [line for line in found if line.startswith("== ")]
    assert [head.partition(",")[0] for head in heads] == [
        "== session 1 of agent at one",
        "== session 2 of agent at two",
    ]
    assert found[-1] == "end: success: All done."


def test_a_task_without_a_session_says_so_and_names_the_command_that_explains_it(tmp_path: Path) -> None:
    """A task that waits for another has printed nothing."""
    sandbox = talking(tmp_path, "fails-1", "two")
    sandbox.demand("two", 'depends_on = ["fails-1"]')
    sandbox.run(code=1)
    assert "two has had no session yet; lifefold why two explains it" in sandbox.call("output", "two", code=2).stderr
    assert sandbox.call("output", "two", "--follow").stdout == ""
    assert "end: failed: I give up." in sandbox.call("output", "fails-1").stdout


def test_secrets_of_the_environment_are_not_shown(tmp_path: Path) -> None:
    """A value that the fleet file names as secret is replaced by its name; the raw bytes are as they were written."""
    sandbox = talking(tmp_path, "one")
    sandbox.demand("", 'env = { MY_TOKEN = "I look at" }')
    sandbox.run()
    assert "  [redacted MY_TOKEN] one." in sandbox.call("output", "one").stdout
    assert "I look at one." in sandbox.call("output", "one", "--raw").stdout
