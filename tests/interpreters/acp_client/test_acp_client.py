"""The client of the Agent Client Protocol: its lines, its answers to requests, and its signals."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from acp_sandbox import SPEAKER
from lifefold.interpreters.acp_client.order import order_of
from lifefold.interpreters.acp_client.printer import MOST_CHARS, PIECE_CHARS, Printer
from lifefold.interpreters.adapters import Brief, Conversation, Permissions, Tokens, adapter_of
from lifefold.interpreters.fleet_runner.agent_programs import CLIENT

pytest.importorskip("acp")

from acp.helpers import start_tool_call, update_tool_call
from acp.schema import PermissionOption, PromptResponse, ToolCallLocation, ToolCallUpdate, Usage

from lifefold.interpreters.acp_client import permission
from lifefold.interpreters.acp_client.client import AgentListener, tokens_of
from lifefold.interpreters.acp_client.permission import Decision

HANG_S = 200


def lines(*calls: tuple[str, str]) -> list[dict[str, Any]]:
    """Return what a printer prints for these pieces of texts."""
    printed: list[bytes] = []
    printer = Printer(printed.append)
    for kind, piece in calls:
        printer.say(kind, piece)
    printer.line("end")
    assert all(each.count(b"\n") == 1 for each in printed)
    return [json.loads(each) for each in printed]


def test_the_pieces_of_a_text_are_one_line() -> None:
    found = lines(("text", "I "), ("text", "do"), ("thought", "hm"), ("text", "it"))
    assert [(each["acp"], each.get("text")) for each in found] == [
        ("text", "I do"),
        ("thought", "hm"),
        ("text", "it"),
        ("end", None),
    ]


def test_a_long_text_is_printed_before_its_end_and_in_lines_that_an_adapter_reads() -> None:
    assert len(lines(*[("text", "x" * 10)] * PIECE_CHARS)) == 11
    assert max(len(each.get("text", "")) for each in lines(("text", "x" * 3 * MOST_CHARS))) == MOST_CHARS


def test_half_a_character_is_printed_as_another_one() -> None:
    """JSON can name it, and UTF-8 cannot have it."""
    assert lines(("text", "a\ud800b"))[0]["text"] == "a?b"


@pytest.mark.parametrize("prompt", ["write", "--", "--help", "a\nb"])
def test_the_client_understands_what_the_adapter_writes(prompt: str) -> None:
    talk = Conversation("c1", begun=True, charged=Tokens(input=100, output=5))
    brief = Brief(prompt, "large", Permissions.EDIT, ("acp", "--x", "--"), mcp_config="{}")
    _, *words = adapter_of("acp").argv(brief, talk)
    order = order_of(["program", *words])
    assert order.command == ("program", "acp", "--x", "--")
    assert (order.prompt, order.resume, order.charged) == (prompt, "c1", (100, 5))
    assert (order.model, order.permissions, order.mcp) == ("large", "edit", True)


@pytest.mark.parametrize(
    "words", [["program"], ["program", "--prompt=x", "--charged=1"], ["program", "--prompt=x", "--y"], []]
)
def test_another_command_line_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        order_of(words)


def call(**more: Any) -> ToolCallUpdate:
    """Return a request for leave."""
    return ToolCallUpdate(tool_call_id="c1", title="pytest -q", **more)


@pytest.mark.parametrize(
    ("more", "subject", "is_cut"),
    [
        ({"raw_input": {"command": "make"}}, "make", False),
        ({"locations": [ToolCallLocation(path="/a")]}, "/a", False),
        ({"locations": [ToolCallLocation(path="/a"), ToolCallLocation(path="/b")]}, "pytest -q", True),
        ({"raw_input": ["pytest"]}, "pytest -q", True),
        ({}, "pytest -q", True),
    ],
)
def test_a_question_is_about_the_command_or_the_path_and_a_title_matches_no_pattern(
    more: dict[str, Any], subject: str, *, is_cut: bool
) -> None:
    """A title is for people, and can be anything."""
    asked = permission.question_of(call(**more), "execute")
    assert (asked.tool, asked.subject, asked.is_cut) == ("execute", subject, is_cut)


def test_two_requests_are_two_questions() -> None:
    """Agents number their calls anew in each session, and the answer to one call is none to another."""
    assert permission.question_of(call(), "edit").id != permission.question_of(call(), "edit").id


def option(kind: Any) -> PermissionOption:
    """Return an option of a request."""
    return PermissionOption(option_id=f"my-{kind}", name=kind, kind=kind)


def test_a_decision_is_for_one_use_only() -> None:
    """Leave for ever is never given, and an agent that offers nothing else is refused."""
    always = [option("allow_always"), option("reject_always")]
    once = [*always, option("allow_once"), option("reject_once")]
    allowed, refused = Decision(allows=True), Decision(allows=False)
    answers = [permission.answer(each, once) for each in (allowed, refused)]
    assert [getattr(each and each.outcome, "option_id", "") for each in answers] == ["my-allow_once", "my-reject_once"]
    assert permission.answer(allowed, always) is None
    assert permission.answer(refused, always) == permission.cancelled()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "allows"), [("a.txt", True), ("/etc/passwd", False), ("../a.txt", False), ("up/x", False)]
)
async def test_an_agent_that_may_edit_changes_files_of_its_worktree_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, *, allows: bool
) -> None:
    """Also through a link that leads out of it. No operator can be asked here."""
    (tmp_path / "up").symlink_to("/")
    monkeypatch.chdir(tmp_path)
    wanted = call(locations=[ToolCallLocation(path=path)])
    found = await permission.decided(wanted, "edit", "edit", None)
    assert (found.allows, found.reason) == (allows, "" if allows else permission.NO_CLAIM)


def listening() -> tuple[AgentListener, list[dict[str, Any]]]:
    """Return a listener whose agent was prompted, and the lines that it prints from now on."""
    printed: list[dict[str, Any]] = []
    listener = AgentListener(Printer(lambda line: printed.append(json.loads(line))), "", None)
    listener.is_prompted = True
    return listener, printed


@pytest.mark.anyio
async def test_a_tool_whose_input_is_still_written_is_printed_with_its_next_report() -> None:
    """So a screen and a standing answer have the command. Its kind is that of its first report."""
    listener, printed = listening()
    await listener.session_update("s", start_tool_call("c", "Terminal", kind="execute", status="pending", raw_input={}))
    assert printed == []
    await listener.session_update("s", update_tool_call("c", raw_input={"command": "pytest -q"}))
    await listener.session_update("s", update_tool_call("c", status="completed"))
    begun = {"acp": "tool", "id": "c", "kind": "execute", "subject": "pytest -q"}
    assert printed == [begun, {"acp": "tool_over", "id": "c", "ok": True}]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_tool_whose_input_is_told_by_its_request_is_printed_before_the_answer() -> None:
    listener, printed = listening()
    await listener.session_update("s", start_tool_call("c", "Terminal", kind="execute", status="pending", raw_input={}))
    wanted = ToolCallUpdate(tool_call_id="c", raw_input={"command": "pytest -q"})
    await listener.request_permission("s", wanted, [])
    assert [(each["acp"], each["kind"], each.get("subject")) for each in printed] == [
        ("tool", "execute", "pytest -q"),
        ("denied", "execute", None),
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("more", [{"raw_input": None}, {"status": "in_progress"}, {"raw_input": {"command": "ls"}}])
async def test_a_tool_that_is_under_way_is_printed_at_once(more: dict[str, Any]) -> None:
    """Some agents never tell an input."""
    listener, printed = listening()
    first: dict[str, Any] = {"kind": "execute", "status": "pending", "raw_input": {}, **more}
    await listener.session_update("s", start_tool_call("c", "Terminal", **first))
    assert [each["acp"] for each in printed] == ["tool"]


@pytest.mark.parametrize(("total", "output"), [(1207, 7), (1209, 9)])
def test_thoughts_count_once_whether_they_are_part_of_the_output_or_not(total: int, output: int) -> None:
    """The sum of all tokens tells it."""
    usage = Usage(
        input_tokens=200, cached_read_tokens=1000, output_tokens=7, thought_tokens=2, total_tokens=total
    )  # fmt: skip
    assert tokens_of(PromptResponse(stop_reason="end_turn", usage=usage)) == Tokens(200, 1000, 0, output)


@contextmanager
def client(folder: Path, *behaviours: str) -> Generator[subprocess.Popen[str]]:
    """Run a client outside a fleet; its agent waits at a gate."""
    os.mkfifo(folder / "task.gate")
    argv = (*CLIENT, "lifefold.interpreters.acp_client", sys.executable, "--prompt=do", "--", str(SPEAKER), *behaviours)
    env = {"PATH": os.environ["PATH"], "COUNTS": str(folder)}
    with subprocess.Popen(argv, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            with (folder / "task.gate").open("wb"):
                (folder / "task.gate").unlink()
                yield process
        finally:
            process.kill()


def test_a_nudge_cancels_the_turn_and_the_next_one_goes_on(tmp_path: Path) -> None:
    """SIGINT reaches the client alone, as that of the stall detector does."""
    with client(tmp_path, "gate") as process:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == 0
    found = [json.loads(line) for line in output.splitlines()]
    assert [each["reason"] for each in found if each["acp"] == "turn_over"] == ["cancelled", "end_turn"]
    (conversation,) = json.loads((tmp_path / "task.talks.json").read_text()).values()
    assert conversation[0] == "do"
    assert conversation[1].startswith("Your turn was interrupted")


def test_a_client_that_is_asked_to_end_cancels_the_turn_and_begins_no_other(tmp_path: Path) -> None:
    with client(tmp_path, "gate", "patient") as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=HANG_S)
    assert '"reason":"cancelled"' in output
    assert len(json.loads((tmp_path / "task.talks.json").read_text())["talk-1"]) <= 2


def test_a_process_that_the_program_leaves_behind_does_not_hold_up_the_end_of_the_session(tmp_path: Path) -> None:
    """It keeps the pipes of the program open, and the shim of the session ends it."""
    argv = (*CLIENT, "lifefold.interpreters.acp_client", sys.executable, "--prompt=do", "--", str(SPEAKER), "parent")
    env = {"PATH": os.environ["PATH"], "COUNTS": str(tmp_path)}
    try:
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANG_S, check=False)
    finally:
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"reason":"end_turn"' in done.stdout
