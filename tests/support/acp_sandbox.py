"""A sandbox for fleets with agents of ``kind = "acp"``: their program is the one in ``acp_agent.py``."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from program_sandbox import ProgramSandbox

SPEAKER = Path(__file__).with_name("acp_agent.py")


class AcpSandbox(ProgramSandbox):
    """A sandbox whose agents speak the protocol; each has a task of its own name."""

    def speaker(self, name: str, *behaviours: str, lines: tuple[str, ...] = ()) -> str:
        """Return an agent with these behaviours."""
        args = f"args = {json.dumps([str(SPEAKER), *behaviours])}"
        script = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n'
        return self.agent("acp", name, args, *lines, script=script)

    def gate(self, name: str) -> None:
        """Make the gate at which an agent with ``gate`` waits in its first turn."""
        os.mkfifo(self.folder / "counts" / f"{name}.gate")

    def heard(self, method: str = "session/prompt") -> list[dict[str, Any]]:
        """Return what the agents were sent by a method, in order."""
        lines = (self.folder / "counts" / "wire.jsonl").read_text().splitlines()
        messages = map(json.loads, lines)
        return [each["params"] for each in messages if each.get("method") == method]

    def prompts(self) -> list[tuple[str, str]]:
        """Return the conversation and the text of each prompt."""
        return [(each["sessionId"], each["prompt"][0]["text"]) for each in self.heard()]
