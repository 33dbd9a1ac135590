"""A program that speaks the Agent Client Protocol, for tests: ``acp_agent.py BEHAVIOUR...``.

It keeps its conversations in ``$COUNTS/TASK.talks.json``: the prompts of each. A prompt costs a cent, and the total
of the conversation is reported before the end of its turn, with the tokens of the turn after it. ``$COUNTS/wire.jsonl``
has what the client has sent.

Behaviours: ``ask`` asks for leave to write; ``command`` asks to run ``pytest -q``. ``gate`` waits in its first turn
until ``$COUNTS/TASK.gate`` is opened. ``no-resume`` and ``no-load`` offer less, ``forget`` finds no conversation,
``login``, ``limit`` and ``broken`` fail, ``old`` speaks another version, ``crash`` ends in its turn, ``free`` tells no
cost, ``models`` offers a model and modes, and ``patient`` goes on after SIGTERM until its turn is cancelled.
``parent`` leaves a process behind that keeps its pipes open.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any, cast

from acp import PROTOCOL_VERSION, RequestError, run_agent
from acp.connection import StreamDirection, StreamEvent
from acp.helpers import start_tool_call, text_block, update_agent_message, update_agent_thought_text, update_tool_call
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    AuthMethodAgent,
    Cost,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    ToolCallLocation,
    ToolCallStatus,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)

COUNTS = Path(os.environ.get("COUNTS", "."))
WORK = Path.cwd()
TASK = os.environ.get("LIFEFOLD_TASK", "task")
BEHAVIOURS = {*sys.argv[1:]}
CENT = 0.01


def conversations() -> dict[str, list[str]]:
    """Return the prompts of each conversation."""
    kept = COUNTS / f"{TASK}.talks.json"
    return cast("dict[str, list[str]]", json.loads(kept.read_text())) if kept.exists() else {}


def choice(name: str, *values: str) -> SessionConfigOptionSelect | SessionConfigOptionBoolean:
    """Return an option of a session."""
    options = [SessionConfigSelectOption(value=each, name=each) for each in values]
    return SessionConfigOptionSelect(
        id=f"my-{name}", name=name, category=cast("Any", name), type="select", current_value=values[0], options=options
    )


class Speaker:
    """The agent's side of one connection."""

    def __init__(self) -> None:
        self.client: Client = cast("Client", None)
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, **_: Any) -> InitializeResponse:
        if "broken" in BEHAVIOURS:
            raise RequestError.internal_error({"details": "no settings"})
        sys.stderr.write("[log] an error of no account\n")
        resume = None if BEHAVIOURS & {"no-resume", "no-load"} else SessionResumeCapabilities()
        return InitializeResponse(
            protocol_version=0 if "old" in BEHAVIOURS else PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session="no-load" not in BEHAVIOURS, session_capabilities=SessionCapabilities(resume=resume)
            ),
            auth_methods=[AuthMethodAgent(id="a", name="a", description="Run `speaker login`")],
            agent_info=Implementation(name="speaker", version="1.0"),
        )

    async def new_session(self, **_: Any) -> NewSessionResponse:
        if "login" in BEHAVIOURS:
            raise RequestError.auth_required()
        name = f"talk-{len(conversations()) + 1}"
        self._keep(name, [])
        offered = [choice("model", "small", "large"), choice("mode", "build", "plan")]
        return NewSessionResponse(session_id=name, config_options=offered if "models" in BEHAVIOURS else None)

    def _known(self, session_id: str) -> None:
        if "forget" in BEHAVIOURS or session_id not in conversations():
            raise RequestError.resource_not_found(session_id)

    async def resume_session(self, session_id: str, **_: Any) -> ResumeSessionResponse:
        self._known(session_id)
        return ResumeSessionResponse()

    async def load_session(self, session_id: str, **_: Any) -> LoadSessionResponse:
        self._known(session_id)
        for each in conversations()[session_id]:
            await self._say(session_id, f"as I said about {each}")
        return LoadSessionResponse()

    async def set_config_option(self, **_: Any) -> SetSessionConfigOptionResponse:
        return SetSessionConfigOptionResponse(config_options=[])

    async def cancel(self, **_: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        text = "\n".join(each.text for each in prompt)
        self._keep(session_id, [*conversations().get(session_id, []), text])
        if "crash" in BEHAVIOURS:
            sys.stderr.write("panic: cannot go on\n")
            sys.stderr.flush()
            os._exit(3)
        if "limit" in BEHAVIOURS:
            raise RequestError(-32603, "Internal error: usage limit reached, try again in 2 hours")
        await self.client.session_update(session_id, update_agent_thought_text("let me see"))
        stopped = "gate" in BEHAVIOURS and await self._wait()
        if not stopped:
            stopped = not await self._work(session_id, text)
        if "free" not in BEHAVIOURS:
            cost = Cost(amount=len(conversations()[session_id]) * CENT, currency="USD")
            await self.client.session_update(
                session_id, UsageUpdate(session_update="usage_update", used=100, size=1000, cost=cost)
            )
        usage = Usage(input_tokens=90, cached_read_tokens=10, output_tokens=5, total_tokens=105)
        return PromptResponse(stop_reason="cancelled" if stopped else "end_turn", usage=usage)

    async def _wait(self) -> bool:
        """Wait at the gate; return whether the turn was cancelled meanwhile."""
        gate = COUNTS / f"{TASK}.gate"
        if not gate.exists():
            return False
        loop, opened = asyncio.get_running_loop(), asyncio.Event()

        def pass_it() -> None:
            gate.read_bytes()
            loop.call_soon_threadsafe(opened.set)

        Thread(target=pass_it, daemon=True).start()
        waits = [asyncio.ensure_future(each.wait()) for each in (opened, self.cancelled)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        return self.cancelled.is_set()

    async def _work(self, session_id: str, text: str) -> bool:
        """Write the file of the task; return False if the turn was cancelled."""
        file = WORK / f"{TASK}.txt"
        call = f"call_{len(conversations()[session_id])}"
        place = [ToolCallLocation(path=str(file))]
        await self.client.session_update(session_id, start_tool_call(call, "write", kind="edit", status="pending"))
        allowed = True
        if BEHAVIOURS & {"ask", "command"}:
            wanted = ToolCallUpdate(
                tool_call_id=call,
                title=str(file),
                kind="execute" if "command" in BEHAVIOURS else "edit",
                locations=None if "command" in BEHAVIOURS else place,
                raw_input={"command": "pytest -q"} if "command" in BEHAVIOURS else {"content": text},
            )
            options = [
                PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
                PermissionOption(option_id="always", name="Always", kind="allow_always"),
                PermissionOption(option_id="no", name="Reject", kind="reject_once"),
            ]
            answer = await self.client.request_permission(session_id=session_id, tool_call=wanted, options=options)
            if answer.outcome.outcome == "cancelled":
                return False
            allowed = answer.outcome.option_id == "yes"
        if allowed:
            file.write_text(text)
        status: ToolCallStatus = "completed" if allowed else "failed"
        for _ in range(2):
            await self.client.session_update(session_id, update_tool_call(call, status=status))
        for piece in ("I have ", "written it" if allowed else "not written it"):
            await self._say(session_id, piece)
        return True

    async def _say(self, session_id: str, text: str) -> None:
        await self.client.session_update(session_id, update_agent_message(text_block(text)))

    def _keep(self, session_id: str, prompts: list[str]) -> None:
        (COUNTS / f"{TASK}.talks.json").write_text(json.dumps({**conversations(), session_id: prompts}))


def noted(event: StreamEvent) -> None:
    """Write down what the client has sent."""
    if event.direction is StreamDirection.INCOMING:
        with (COUNTS / "wire.jsonl").open("a") as wire:
            wire.write(json.dumps(event.message) + "\n")


if __name__ == "__main__":
    if "patient" in BEHAVIOURS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "parent" in BEHAVIOURS:
        child = subprocess.Popen(["sleep", "600"])  # noqa: S607 - the test ends it
        (COUNTS / "child").write_text(str(child.pid))
    asyncio.run(run_agent(cast("Agent", Speaker()), observers=[noted], use_unstable_protocol=True))
