"""Three real agent programs in one repository: through a limit, a permission and a crash of the runner.

``python tools/recordings/demo.py`` needs lifefold, git, and the programs of ``make agents``. A model service on
loopback answers by the scripts of this folder, so nothing leaves the machine and nothing costs money. At the end the
demo compares what the log has with what the service has served. Its exit status is 0 if both are the same.

Claude Code is limited for some seconds, and asks for permissions, which the operator of the demo gives. While Codex
waits for an answer of its model, the runner is killed, and a new one takes over. opencode works beside them.
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
from threading import Event, Thread
from typing import Any, Final, Self

import anyio
import msgspec

from homes import MODELS, environment, is_there
from lifefold.interpreters.store import SqliteStore
from scripted_service import ScriptedService, scripts

PATIENCE_S: Final = 240
"""The longest time of the fleet."""

LOOK_S: Final = 0.5
"""The pause between two looks of the operator."""

LIFEFOLD: Final = (sys.executable, "-m", "lifefold.interpreters.cli")

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

[fleet.questions]
timeout = "2m"
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
                more="\n".join(_keys(program)),
                task=task,
                prompt=prompt,
                verify=json.dumps(VERIFIED[task]),
            )
        )
    file = folder / "fleet.toml"
    file.write_text("".join(parts))
    return file


def _keys(program: str) -> Iterator[str]:
    """Yield the model of an agent, and what it may do without asking."""
    if program in MODELS:
        yield f"model = {json.dumps(MODELS[program])}"
    yield f'permissions = "{"edit" if program == "claude" else "all"}"'


class Runner:
    """``lifefold run``, as a process that can be killed."""

    def __init__(self, file: Path) -> None:
        """Begin or continue the fleet of a file."""
        argv = [*LIFEFOLD, "run", str(file), "--transitions"]
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


class Operator:
    """An operator who approves every question, in a thread; ``approved`` has what was asked."""

    def __init__(self, file: Path) -> None:
        """Look at the fleet of a file."""
        self.approved: Final[dict[str, str]] = {}
        self._file: Final = file
        self._is_over: Final = Event()
        self._thread: Final = Thread(target=self._answer_all, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_args: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _answer_all(self) -> None:
        while not self._is_over.wait(LOOK_S):
            shown = lifefold(self._file, "status", "--json")
            waiting: list[dict[str, Any]] = json.loads(shown.stdout)["waiting"] if shown.returncode == 0 else []
            for each in waiting:
                if each["about"] == "question":
                    name: str = each["names"][0]
                    self.approved[name] = each["reason"]
                    lifefold(self._file, "approve", name)


def lifefold(file: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Give a command of an operator in the folder of the fleet."""
    argv = [*LIFEFOLD, *words]
    return subprocess.run(argv, cwd=file.parent, env=_plain_environment(), capture_output=True, check=False)  # noqa: S603  # ours


def _plain_environment() -> dict[str, str]:
    """Return this environment without the variables of a fleet around it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LIFEFOLD_")}


def told(file: Path) -> dict[str, Told]:
    """Return what the log has of each task."""
    shown = lifefold(file, "tasks", "--json")
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


def skipped(service: ScriptedService, operator: Operator) -> list[str]:
    """Return the troubles that did not happen."""
    happened = {
        "no account was limited": service.limits.total(),
        "no permission was asked for": operator.approved,
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
        with Operator(file) as operator:
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
        wrong = [*differences(told(file), service), *skipped(service, operator)]
        for name, question in operator.approved.items():
            print(f"approved {name}: {question}")
        for task, served in service.spent.items():
            limits = f", {service.limits[task]} limit" if service.limits[task] else ""
            print(f"{task}: {service.answers[task]} answers{limits}, {sum(served):,} tokens")
        print("\n".join(wrong) or "each task is closed with one conversation; the log has every token that was served")
        return 1 if wrong else code


if __name__ == "__main__":
    sys.exit(main())
