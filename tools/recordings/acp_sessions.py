"""Sessions of real agent programs through the Agent Client Protocol, against a model service on loopback.

``python tools/recordings/acp_sessions.py --into FOLDER [CASE...]`` records them, as ``record.py`` does for the other
adapters. A case has the name of its program before a dash. These sessions have no operator, so a request that the
permissions leave open is refused.
"""

import argparse
import json
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cases import UNKNOWN, Case
from homes import BIN, environment
from lifefold.interpreters.adapters import Brief, Conversation, Permissions, adapter_of
from lifefold.interpreters.fleet_runner.agent_programs import CLIENT
from model_service import Mode, Service
from record import without_places
from sessions import Command, Sandbox, Session, run

LOGGED: Final = ("--print-logs", "--log-level", "ERROR")
"""opencode says with these arguments why it tries again."""

ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "opencode": ("acp",),
    "gemini": ("--acp", "--model", "gemini-2.5-pro"),
    "claude": (),
    "codex": (),
}
"""The arguments with which each program speaks the protocol."""

SPEAKERS: Final = {"claude": "claude-agent-acp", "codex": "codex-acp"}
"""The programs that speak the protocol for another one."""

ASKS: Final = "ask"
TRIES: Final = 6
"""The errors after which opencode has told the first of them; some are of its requests for a title."""

CASES: Final[dict[str, Case]] = {
    "opencode-success": Case(Mode.TEXT),
    "opencode-resumed": Case(Mode.TEXT, prompt="--help", after="opencode-success", conversation="resumed"),
    "opencode-written": Case(Mode.WRITE),
    "opencode-killed": Case(Mode.HANG),
    "opencode-continued": Case(Mode.TEXT, after="opencode-killed", conversation="resumed"),
    "opencode-failing-command": Case(Mode.SHELL),
    "opencode-denied": Case(Mode.WRITE, settings=ASKS),
    "opencode-permitted": Case(Mode.WRITE, Permissions.EDIT, settings=ASKS),
    "opencode-limit": Case(Mode.LIMIT, arguments=LOGGED),
    "opencode-login": Case(Mode.LOGIN),
    "opencode-too-long": Case(Mode.TOO_LONG),
    "opencode-lost-conversation": Case(Mode.TEXT, conversation="lost"),
    "gemini-success": Case(Mode.TEXT),
    "gemini-denied": Case(Mode.WRITE),
    "gemini-permitted": Case(Mode.WRITE, Permissions.ALL),
    "gemini-lost-conversation": Case(Mode.TEXT, after="gemini-success", conversation="lost"),
    "claude-success": Case(Mode.TEXT, settings=ASKS),
    "claude-resumed": Case(Mode.TEXT, prompt="Go on", after="claude-success", conversation="resumed", settings=ASKS),
    "claude-denied": Case(Mode.WRITE, settings=ASKS),
    "claude-permitted": Case(Mode.WRITE, Permissions.EDIT, settings=ASKS),
    "claude-failing-command": Case(Mode.SHELL, Permissions.ALL, settings=ASKS),
    "claude-killed": Case(Mode.HANG, Permissions.EDIT, settings=ASKS),
    "claude-continued": Case(Mode.TEXT, after="claude-killed", conversation="resumed", settings=ASKS),
    "claude-limit": Case(Mode.LIMIT, settings=ASKS),
    "claude-login": Case(Mode.LOGIN, settings=ASKS),
    "claude-too-long": Case(Mode.TOO_LONG, settings=ASKS),
    "claude-lost-conversation": Case(Mode.TEXT, conversation="lost", settings=ASKS),
    "codex-success": Case(Mode.TEXT),
    "codex-resumed": Case(Mode.TEXT, prompt="Go on", after="codex-success", conversation="resumed"),
    "codex-written": Case(Mode.WRITE),
    "codex-read-only": Case(Mode.WRITE, Permissions.READ),
    "codex-failing-command": Case(Mode.SHELL),
    "codex-killed": Case(Mode.HANG),
    "codex-continued": Case(Mode.TEXT, after="codex-killed", conversation="resumed"),
    "codex-limit": Case(Mode.LIMIT),
    "codex-login": Case(Mode.LOGIN),
    "codex-lost-conversation": Case(Mode.TEXT, conversation="lost"),
}
"""The cases, each after the case that it needs."""


def program_of(name: str) -> str:
    """Return the program of a case."""
    return name.partition("-")[0]


def place_of(program: str) -> Path:
    """Return the path of what speaks the protocol for a program."""
    return BIN / SPEAKERS.get(program, program)


class AcpSandbox(Sandbox):
    """A repository and a home for the sessions of one program that speaks the protocol."""

    def case(self, name: str) -> Case:
        """Return a case of the protocol by its name."""
        return CASES[name]

    def session(
        self,
        case: Case,
        before: str = "",
        *,
        resets_at_s: int | None = None,
        ended_by: signal.Signals = signal.SIGTERM,
    ) -> Session:
        """Run the session of a case; ``before`` is the conversation of the case before it."""
        (self.work / "made.txt").unlink(missing_ok=True)
        adapter = adapter_of("acp")
        lost = UNKNOWN.get(self.program, "5b0f8f4e-3c1d-4c58-9a51-00000000dead")
        resumed = {"resumed": before, "lost": lost}.get(case.conversation, "")
        brief = Brief(case.prompt, "", case.permissions, (*ARGUMENTS[self.program], *case.arguments))
        with Service(case.mode, resets_at_s=resets_at_s, tries=TRIES) as service:
            env = environment(self.program, self.home, service.url, case.settings)
            if self.program == "opencode":
                _tell_the_context(self.home / ".config/opencode/opencode.json")
            _, *words = adapter.argv(brief, Conversation(resumed, begun=True) if resumed else None)
            argv = (*CLIENT, "lifefold.interpreters.acp_client", str(place_of(self.program)), *words)
            return run(Command("acp", argv, env, self.work), service, ended_by)


def _tell_the_context(settings: Path) -> None:
    """Write the size of the context into the settings of opencode, which reports a cost only with it."""
    known = json.loads(settings.read_text())
    known["provider"]["mock"]["models"]["m"]["limit"] = {"context": 100_000, "output": 4_096}
    settings.write_text(json.dumps(known))


def main() -> None:
    """Record the chosen cases, and note their exit statuses in ``statuses.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--into", type=Path, required=True)
    options = parser.parse_args()
    into: Path = options.into / "acp"
    into.mkdir(parents=True, exist_ok=True)
    known = into / "statuses.json"
    statuses: dict[str, int] = json.loads(known.read_text()) if known.exists() else {}
    last = {case.after for case in CASES.values()}
    for name in options.cases or [name for name in CASES if name not in last]:
        with TemporaryDirectory() as place:
            for each, session in AcpSandbox(program_of(name), Path(place)).chain(name).items():
                sys.stderr.write(f"{each}: status {session.status}, {session.requests} requests, {session.end}\n")
                (into / f"{each}.txt").write_bytes(without_places(session.output, Path(place)))
                statuses[each] = session.status
    known.write_text(json.dumps(dict(sorted(statuses.items())), indent=2) + "\n")


if __name__ == "__main__":
    main()
