"""Operator messages for running sessions of ``kind = "acp"``: they reach the conversation, which goes on."""

import json
import os
import signal
from contextlib import ExitStack
from pathlib import Path

import anyio
import msgspec
import pytest

from acp_sandbox import AcpSandbox
from lifefold.interpreters.store import SqliteStore

pytest.importorskip("acp")

QUESTIONS = "[fleet.questions]"


def steered(tmp_path: Path, *behaviours: str, fleet: str = "") -> AcpSandbox:
    """Return a sandbox with an agent that waits at a gate in its first turn."""
    of = AcpSandbox(tmp_path)
    of.cast(of.speaker("slow", "gate", *behaviours), fleet=fleet)
    of.gate("slow")
    return of


def events(of: AcpSandbox, kind: str) -> list[dict[str, object]]:
    """Return the events of a type in the log, in order."""
    with SqliteStore.peek(of.log) as store:
        entries = anyio.run(store.read)
    found = [msgspec.json.decode(each.envelope)["event"] for each in entries]
    return [each for each in found if each["type"] == kind]


def until_posted(of: AcpSandbox, count: int) -> None:
    """Wait until the first session has so many messages in its inbox."""
    while len([*of.log.with_name("sandbox.db.files").glob("sessions/slow/0001/inbox/*.json")]) < count:
        pass


def test_a_message_for_a_task_is_the_next_turn_of_its_running_session(tmp_path: Path) -> None:
    """The session goes on: one conversation, one claim, one session, and the message is delivered."""
    of = steered(tmp_path)
    with of.running() as run:
        with of.at_gate("slow"):
            said = of.call("send", "task:slow", "Write it in German", "--no-interrupt").stdout
            until_posted(of, 1)
        run.rest()
    assert "slow has the task, and its running session gets the message" in said
    (first, _), (second, text) = of.prompts()
    assert first == second == "talk-1"
    assert text == "You have messages:\n- About slow: Write it in German\n\nGo on with your task."
    (end,) = of.ends()["slow"]
    assert (end["outcome"], end["messages"]) == ({"type": "Success"}, 1)
    assert of.heard("session/cancel") == []
    assert of.tasks()["slow"]["state"] == "CLOSED"
    (agent,) = of.json("status")["agents"]
    assert (agent["messages"], agent["undelivered"]) == (0, 0)


def test_an_urgent_message_ends_the_turn_and_the_session_goes_on(tmp_path: Path) -> None:
    """The log has that the session has taken the message, while the next turn waits for an operator."""
    of = steered(tmp_path, "ask", fleet=QUESTIONS)
    with of.running() as run:
        with of.at_gate("slow"):
            said = of.call("send", "agent:slow", "Write it in German").stdout
            run.until("slow asks: may it use edit")
        while not events(of, "MessageTaken"):
            pass
        of.call("approve", "slow/Q1")
        run.rest()
    assert "accepted; its running session gets it, at the task slow" in said
    names, texts = zip(*of.prompts(), strict=True)
    assert names == ("talk-1", "talk-1")
    assert texts[1].startswith("Your turn was interrupted.")
    assert of.heard("session/cancel") == [{"sessionId": "talk-1"}]
    assert [each["outcome"] for each in of.ends()["slow"]] == [{"type": "Success"}]


def test_a_killed_runner_neither_loses_nor_doubles_a_message(tmp_path: Path) -> None:
    """It dies after the message is in the log. Another message comes without a runner."""
    of = steered(tmp_path)
    with ExitStack() as stack:
        run = stack.enter_context(of.running())
        with of.at_gate("slow"):
            of.call("send", "agent:slow", "first", "--no-interrupt")
            until_posted(of, 1)
            run.signal(signal.SIGKILL)
            run.rest()
            of.call("send", "agent:slow", "second", "--no-interrupt")
            following = stack.enter_context(of.running())
            following.until("1 session adopted")
            until_posted(of, 2)
        following.rest()
    told = "\n".join(text for _, text in of.prompts())
    assert (told.count("- first"), told.count("- second")) == (1, 1)
    (end,) = of.ends()["slow"]
    assert (end["outcome"], end["messages"]) == ({"type": "Success"}, 2)
    assert events(of, "UrgentMessage") == []


def test_a_session_that_ends_before_it_takes_a_message_leaves_it_to_the_next_prompt(tmp_path: Path) -> None:
    """A pause ends the session; its successor has the message in its prompt."""
    of = steered(tmp_path, "patient")
    with of.running() as run:
        with of.at_gate("slow"):
            of.call("send", "agent:slow", "Write it in German", "--no-interrupt")
            until_posted(of, 1)
            of.call("pause", "slow")
            run.until("BuildingPrompt")
        of.call("resume", "slow")
        run.rest()
    interrupted, done = of.ends()["slow"]
    assert (interrupted["messages"], done["outcome"]) == (0, {"type": "Success"})
    (_, _), (_, text) = of.prompts()
    assert text.count("Write it in German") == 1


def test_an_urgent_message_ends_a_session_that_waits_for_an_operator(tmp_path: Path) -> None:
    """No process would wait for the answer any more, so the question is dropped with its session."""
    of = AcpSandbox(tmp_path)
    of.cast(of.speaker("writer", "ask"), fleet=QUESTIONS)
    with of.running() as run:
        run.until("writer asks: may it use edit")
        of.call("send", "agent:writer", "Write it in German")
        run.until("Interrupting", "BuildingPrompt")
        while not any(each["names"] == ["writer/Q2"] for each in of.json("status")["waiting"]):
            pass
        of.call("approve", "writer/Q2")
        run.rest()
    assert "Write it in German" in of.prompts()[1][1]
    assert json.dumps(of.ends()["writer"][-1]["outcome"]) == '{"type": "Success"}'


def test_a_late_nudge_does_not_end_the_turn_of_an_agent_that_waits_for_an_operator(tmp_path: Path) -> None:
    """The answer reaches the same turn."""
    of = AcpSandbox(tmp_path)
    of.cast(of.speaker("writer", "ask"), fleet=QUESTIONS)
    with of.running() as run:
        run.until("writer asks: may it use edit")
        (agent,) = of.json("status")["agents"]
        os.kill(agent["process"]["pid"], signal.SIGINT)
        of.call("approve", "writer/Q1")
        run.rest()
    assert [name for name, _ in of.prompts()] == ["talk-1"]
    assert of.heard("session/cancel") == []
    assert [each["outcome"] for each in of.ends()["writer"]] == [{"type": "Success"}]
