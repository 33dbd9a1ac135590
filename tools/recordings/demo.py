"""Three real agent programs in one repository: through a limit, a permission and a crash of the runner.

``python tools/recordings/demo.py`` needs lifefold, git, and the programs of ``make agents``. A model service on
loopback answers by the scripts of this folder, so nothing leaves the machine and nothing costs money. At the end the
demo compares what the log has with what the service has served. Its exit status is 0 if both are the same.

Claude Code is limited for some seconds, and asks the permission tool of ``permission_server``. While Codex waits for
an answer, the runner is killed, and a new one takes over. opencode works beside them.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import anyio
import msgspec

from homes import MODELS, environment, is_there
from lifefold.interpreters.store import SqliteStore
from permission_server import NAME, TOOL, config
from scripted_service import ScriptedService, scripts

PATIENCE_S: Final = 240
"""The longest time of the fleet."""

ASKED: Final = "asked.txt"
"""The file with the tools that leave was asked for."""

PROMPTS: Final = {
    "claude-words": "Write words.py with a function words(text), and try it.",
    "codex-count": "Write count.py with a function count(text), and try it.",
    "opencode-notes": "Write NOTES.md and names.txt about words.py and count.py.",
}
VERIFIED: Final = {
    "claude-words": ["python3", "-c", "import words; assert words.words('a b') == ['a', 'b']"],
    "codex-count": ["python3", "-c", "import count; assert count.count('a b') == 2"],
    "opencode-notes": ["grep", "-q", "words", "names.txt"],
}
HEAD: Final = """[fleet]
name = "agents-demo"
repository = "repo"
"""

AGENT: Final = """
[[agents]]
name = "{program}"
kind = "{program}"
program = {place}
roles = ["{program}"]
session_timeout = "3m"
env = {{ {env} }}
{more}

[[tasks]]
id = "{task}"
role = "{program}"
prompt = "[{task}] {prompt}"
verify = [{verify}]
"""


class Told(msgspec.Struct, frozen=True):
    """What the log has of a task: its state, its conversations, and its tokens: all that were read, and written."""

    state: str
    conversations: tuple[str, ...]
    read: int
    written: int


def write_fleet(folder: Path, service: ScriptedService) -> Path:
    """Write the repository, a home for each program, and the fleet file; return its path."""
    repo = folder / "repo"
    git = ["git", "-C", str(repo), "-c", "user.name=demo", "-c", "user.email=demo@example.org"]
    subprocess.run(["git", "init", "-q", "-b", "main", repo], check=True)  # noqa: S603, S607  # a new repository
    (repo / ".gitignore").write_text("__pycache__/\n")
    subprocess.run([*git, "add", "."], check=True)  # noqa: S603  # as above
    subprocess.run([*git, "commit", "-q", "-m", "start"], check=True)  # noqa: S603  # as above
    parts = [HEAD]
    for task, prompt in PROMPTS.items():
        program = task.partition("-")[0]
        home = folder / "homes" / program
        home.mkdir(parents=True)
        env = environment(program, home, service.url, "subscription")
        parts.append(
            AGENT.format(
                program=program,
                place=json.dumps(program),
                env=", ".join(f"{name} = {json.dumps(value)}" for name, value in env.items()),
                more="\n".join(_keys(program, folder / ASKED)),
                task=task,
                prompt=prompt,
                verify=json.dumps(VERIFIED[task]),
            )
        )
    file = folder / "fleet.toml"
    file.write_text("".join(parts))
    return file


def _keys(program: str, asked: Path) -> Iterator[str]:
    """Yield what is said of an agent besides: what it may do, and whom it asks."""
    if program in MODELS:
        yield f"model = {json.dumps(MODELS[program])}"
    if program == "claude":
        asks = [f"--mcp-config={config('allow', asked)}", f"--permission-prompt-tool=mcp__{NAME}__{TOOL}"]
        yield 'permissions = "edit"'
        yield f"args = {json.dumps(asks)}"
    else:
        yield 'permissions = "all"'


class Runner:
    """``lifefold run``, as a process that can be killed."""

    def __init__(self, file: Path) -> None:
        """Begin or continue the fleet of a file."""
        argv = [sys.executable, "-m", "lifefold.interpreters.cli", "run", str(file), "--no-live"]
        self._process: Final = subprocess.Popen(argv, cwd=file.parent, env=_plain_environment())  # noqa: S603  # ours

    @property
    def is_at_work(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the runner as a crash does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def wait(self) -> int:
        """Wait for the end of the fleet, and return the exit code."""
        try:
            return self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return 1


def _plain_environment() -> dict[str, str]:
    """Return this environment without the variables of a fleet around it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LIFEFOLD_")}


def told(file: Path) -> dict[str, Told]:
    """Return what the log has of each task."""
    argv = [sys.executable, "-m", "lifefold.interpreters.cli", "tasks", "--json"]
    shown = subprocess.run(argv, cwd=file.parent, env=_plain_environment(), capture_output=True, check=True)  # noqa: S603  # ours
    conversations = _conversations(file.parent / ".lifefold" / "agents-demo.db")
    return {
        each["id"]: Told(
            each["state"],
            conversations.get(each["role"], ()),
            each["input_tokens"] or 0,
            each["output_tokens"] or 0,
        )
        for each in json.loads(shown.stdout)
    }


def _conversations(log: Path) -> dict[str, tuple[str, ...]]:
    """Return the conversations of each agent's sessions. An agent has one task here."""
    with SqliteStore.peek(log) as store:
        entries = anyio.run(store.read)
    found: dict[str, dict[str, None]] = {}
    for entry in entries:
        event = msgspec.json.decode(entry.envelope)["event"]
        if event["type"] == "SessionExited":
            found.setdefault(entry.stream.partition("/")[2], {})[event.get("conversation", "")] = None
    return {agent: tuple(names) for agent, names in found.items()}


def differences(log: dict[str, Told], service: ScriptedService) -> list[str]:
    """Return what is not as it should be: open tasks, several conversations, other tokens than were served."""
    found: list[str] = []
    for task, each in log.items():
        served = service.spent[task]
        if each.state != "CLOSED":
            found.append(f"{task} is {each.state}")
        if len(each.conversations) != 1 or not each.conversations[0]:
            found.append(f"{task} has the conversations {', '.join(each.conversations) or 'none'}")
        if (each.read, each.written) != (served.input + served.cached, served.output):
            found.append(f"{task}: the log has {each.read} and {each.written} tokens, the service served {served}")
    return found


def skipped(folder: Path, service: ScriptedService) -> list[str]:
    """Return the troubles that did not happen."""
    asked = folder / ASKED
    happened = {
        "no account was limited": service.limits.total(),
        "no leave was asked for": asked.exists() and asked.read_text(),
        "no answer was held back": service.held.is_set(),
    }
    return [sentence for sentence, has_happened in happened.items() if not has_happened]


def main() -> int:
    """Run the fleet through its troubles, and compare the log with the service."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="an empty folder for the fleet (default: a temporary one)")
    options = parser.parse_args()
    if missing := [each.partition("-")[0] for each in PROMPTS if not is_there(each.partition("-")[0])]:
        print(f"not there: {', '.join(missing)}; make agents installs them")
        return 1
    with TemporaryDirectory() as place, ScriptedService(scripts()) as service:
        folder = options.folder or Path(place)
        folder.mkdir(exist_ok=True)
        file = write_fleet(folder, service)
        began = time.monotonic()
        runner = Runner(file)
        while runner.is_at_work and not service.held.wait(1):
            pass
        if runner.is_at_work:
            runner.kill()
            print("demo: the runner is killed, and a new one takes over")
            runner = Runner(file)
        service.release()
        code = runner.wait()
        print(f"\ndemo: {round(time.monotonic() - began)} s, exit code {code}")
        wrong = [*differences(told(file), service), *skipped(folder, service)]
        for task, served in service.spent.items():
            limits = f", {service.limits[task]} limit" if service.limits[task] else ""
            print(f"{task}: {service.answers[task]} answers{limits}, {sum(served):,} tokens")
        print("\n".join(wrong) or "each task is closed with one conversation; the log has every token that was served")
        return 1 if wrong else code


if __name__ == "__main__":
    sys.exit(main())
