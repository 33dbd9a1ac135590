"""Questions of agents to operators: a real client of ``lifefold mcp`` in a session of a real fleet."""

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fleet_sandbox import Sandbox

pytest.importorskip("mcp")

AGENT = r"""
import json, os, pathlib, sys

import anyio
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

counts = pathlib.Path(os.environ["COUNTS"])
server = StdioServerParameters(
    command=sys.executable, args=["-m", "lifefold.interpreters.cli", "mcp"], env=dict(os.environ)
)
said = []


async def call(client, name, given):
    answer = await client.call_tool(name, given)
    said.append([answer.is_error, answer.content[0].text, answer.structured_content])
    (counts / "said.json").write_text(json.dumps(said))


async def main():
    for calls in json.loads((counts / "calls.json").read_text()):
        async with stdio_client(server) as streams, ClientSession(*streams) as client:
            await client.initialize()
            (counts / "tools.json").write_text(json.dumps([each.name for each in (await client.list_tools()).tools]))
            for name, given in calls:
                if name != "abandon":
                    await call(client, name, given)
                    continue
                async with anyio.create_task_group() as group:
                    group.start_soon(call, client, *given)
                    await anyio.to_thread.run_sync(lambda: (counts / "abandon.gate").open().read())
                    group.cancel_scope.cancel()


with (counts / "sessions").open("a") as file:
    file.write(os.environ["LIFEFOLD_ATTEMPT"] + "\n")
anyio.run(main)
pathlib.Path("done.txt").write_text("done")
"""

ANSWERS = """
[fleet.questions]
{keys}

[[answers]]
tool = "Bash"
matches = "pytest*"
answer = "allow"

[[answers]]
tool = "WebFetch"
answer = "deny"

[fleet.retry]"""


def prepared(folder: Path, *servers: Sequence[tuple[str, Any]], keys: str = "", timeout: str = "60s") -> Sandbox:
    """Return the sandbox of one agent that makes these calls, in one server after the other."""
    sandbox = Sandbox(folder).prepare("T", repository=False, gates=("abandon",), timeout=timeout)
    (folder / "agent.py").write_text(AGENT)
    (folder / "counts" / "calls.json").write_text(json.dumps(servers))
    text = sandbox.fleet.read_text().replace('verify = [["test", "-s", "T.txt"]]', "")
    sandbox.fleet.write_text(text.replace("[fleet.retry]", ANSWERS.format(keys=keys)))
    return sandbox


def permission(command: str, name: str, tool: str = "Bash") -> tuple[str, dict[str, Any]]:
    """Return the call that asks for a permission."""
    key = "command" if tool == "Bash" else "url"
    return "permission", {"tool_name": tool, "input": {key: command}, "tool_use_id": name}


def said(of: Sandbox) -> list[list[Any]]:
    """Return what the agent was answered: whether as an error, the text, and structured content."""
    answers: list[list[Any]] = json.loads((of.folder / "counts" / "said.json").read_text())
    return answers


def test_a_question_reaches_a_person_and_the_answer_the_agent(tmp_path: Path) -> None:
    """Allowed, denied, answered in words, and decided by the fleet file; each call gets its own answer."""
    of = prepared(
        tmp_path,
        (
            permission("make", "a"),
            permission("rm -rf build", "b"),
            permission("pytest -q", "c"),
            permission("http://localhost", "d", "WebFetch"),
            ("ask_operator", {"question": "Which one?", "choices": ["red", "blue"]}),
            ("task", {}),
        ),
    )
    with of.running() as run:
        line = run.until("agent asks: may it run `make`?")
        assert "lifefold approve agent/Q1, or lifefold reject agent/Q1" in line
        (waits,) = of.json("status")["waiting"]
        assert (waits["about"], waits["names"], waits["command"]) == ("question", ["agent/Q1"], "approve")
        assert "agent asks: may it run `make`?" in of.call("why", "T").stdout
        assert "agent/Q1: refused" in of.call("answer", "agent/Q1", "yes", code=2).stdout
        assert of.call("approve", "Q1").stdout == "agent/Q1: approved: its agent goes on\n"
        run.until("may it run `rm -rf build`?")
        of.call("reject", "agent/Q2", "--reason", "not the folder")
        run.until("agent asks: Which one? (red or blue): lifefold answer agent/Q5")
        of.call("answer", "agent/Q5", "the blue one")
        run.rest()
    answers = said(of)
    assert [is_error for is_error, _, _ in answers] == [False] * 6
    assert [structured for _, _, structured in answers] == [None] * 6
    texts = [text for _, text, _ in answers]
    assert [json.loads(text) for text in texts[:4]] == [
        {"behavior": "allow", "updatedInput": {"command": "make"}},
        {"behavior": "deny", "message": "not the folder"},
        {"behavior": "allow", "updatedInput": {"command": "pytest -q"}},
        {"behavior": "deny", "message": "entry 2 of [[answers]] denies it"},
    ]
    assert texts[4] == "the blue one"
    task = json.loads(texts[5])
    assert (task["id"], task["prompt"], task["is_yours"]) == ("T", "Write T.txt", True)
    tools = json.loads((tmp_path / "counts" / "tools.json").read_text())
    assert tools == ["permission", "ask_operator", "split", "report", "task"]
    story = of.call("why", "T").stdout
    for words in ("asked (Q1): may it run `make`?", "approved Q1", "rejected Q2: not the folder"):
        assert words in story
    assert "asked (Q3): may it run `pytest -q`?; entry 1 of [[answers]] allows it" in story
    assert "answered Q5: the blue one" in story


def test_a_crash_of_the_runner_loses_no_question_and_no_answer(tmp_path: Path) -> None:
    """The operator answers while no runner is at work; the session hears it, and the next run goes on with it."""
    of = prepared(tmp_path, (permission("make", "a"),))
    with of.running() as run:
        run.until("may it run `make`?")
        run.signal(signal.SIGKILL)
        run.rest()
    assert [each["names"] for each in of.json("status")["waiting"]] == [["agent/Q1"]]
    of.call("approve", "agent/Q1")
    of.run()
    assert json.loads(said(of)[0][1])["behavior"] == "allow"
    assert (tmp_path / "counts" / "sessions").read_text() == "1\n"


def test_without_questions_in_the_fleet_file_no_operator_is_asked(tmp_path: Path) -> None:
    """The agent is told what is missing, and a split that is not allowed says so too."""
    of = prepared(
        tmp_path, (permission("make", "a"), ("split", {"parts": [{"prompt": "a part"}]}), ("report", {"tool": "x"}))
    )
    text = of.fleet.read_text()
    begin, end = text.index("[fleet.questions]"), text.index("[fleet.retry]")
    of.fleet.write_text(text[:begin] + text[end:])
    of.run()
    (_, denied, _), split, report = said(of)
    assert json.loads(denied)["message"] == "the fleet file has no table [fleet.questions], so no operator is asked"
    assert split[0]
    assert "it may not be split" in split[1]
    assert report[0]
    assert "[fleet.aborts]" in report[1]
