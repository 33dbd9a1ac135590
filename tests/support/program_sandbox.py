"""A sandbox for fleets with agent programs: scripts that print what the real programs printed, one agent for each."""

import shlex
from typing import Any

import anyio
import msgspec

from agent_recordings import FOLDER, recordings
from fleet_sandbox import Sandbox
from lifefold.interpreters.store import SqliteStore

HEAD = """
[fleet]
name = "sandbox"
{repository}

[fleet.retry]
backoff_base = "10ms"
{fleet}
"""

AGENT = """
[[agents]]
name = "{name}"
kind = "{kind}"
program = "{program}"
roles = ["{name}"]
session_timeout = "60s"
env = {{ COUNTS = "{folder}/counts" }}
{lines}

[[tasks]]
id = "{name}"
role = "{name}"
prompt = "Write {name}.txt"
verify = [["test", "-s", "{name}.txt"]]
max_retries = 0
"""

SCRIPT = """#!/bin/sh
printf '%s\\0' "$@" > {counts}/"$LIFEFOLD_TASK".argv
cat {output}
[ {status} = 0 ] && echo done > "$LIFEFOLD_TASK".txt
{end}
"""


class ProgramSandbox(Sandbox):
    """A sandbox whose agents are scripts in the place of agent programs; each agent has a task of the same name."""

    def cast(self, *agents: str, fleet: str = "", repository: bool = False) -> "ProgramSandbox":
        """Write a fleet of these agents (see ``agent``), beside the repository of a prepared sandbox if wanted."""
        self.prepare("none", repository=repository)
        place = 'repository = "repo"' if repository else ""
        self.fleet.write_text(HEAD.format(repository=place, fleet=fleet) + "".join(agents))
        return self

    def agent(self, kind: str, name: str, *lines: str, script: str = "") -> str:
        """Return an agent that prints a recording and ends as the program did; or of another script."""
        program = self.folder / "programs" / name
        program.parent.mkdir(exist_ok=True)
        if not script:
            status = recordings(kind)[name].status
            assert status is not None
            script = SCRIPT.format(
                counts=shlex.quote(str(self.folder / "counts")),
                output=shlex.quote(str(FOLDER / kind / f"{name}.txt")),
                status=status,
                end=f"kill -{-status} $$" if status < 0 else f"exit {status}",
            )
        program.write_text(script)
        program.chmod(0o755)
        name = name.replace(".", "_")
        return AGENT.format(name=name, kind=kind, program=program, folder=self.folder, lines="\n".join(lines))

    def argv(self, name: str) -> list[str]:
        """Return the arguments of an agent's last session."""
        return (self.folder / "counts" / f"{name}.argv").read_text().split("\0")[:-1]

    def ends(self) -> dict[str, list[dict[str, Any]]]:
        """Return the ends of all sessions, by agent, as the log has them."""
        with SqliteStore.peek(self.log) as store:
            entries = anyio.run(store.read)
        found: dict[str, list[dict[str, Any]]] = {}
        for entry in entries:
            event = msgspec.json.decode(entry.envelope)["event"]
            if event["type"] == "SessionExited":
                found.setdefault(entry.stream.partition("/")[2], []).append(event)
        return found

    def tasks(self) -> dict[str, dict[str, Any]]:
        """Return the tasks, as ``lifefold tasks --json`` has them, by name."""
        return {each["id"]: each for each in self.json("tasks")}
