"""Fleets of real agent programs, each alone: the runner is killed in its first answer, and a new one takes over.

An operator writes to the agent while it works. An agent of the Agent Client Protocol gets the message in its running
session, and asks before it writes.
"""

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from demo import Operator, Runner, lifefold
from homes import MODELS, environment, is_there
from model_service import EDIT, FILE
from scripted_service import Script, ScriptedService, ScriptStep

PATIENCE_S: Final = 120

FLEET: Final = """[fleet]
name = "one"
repository = "repo"

[fleet.questions]
timeout = "2m"

[[agents]]
name = "agent"
kind = {kind}
program = {program}
{more}
session_timeout = "2m"
env = {{ {env} }}

[[tasks]]
id = "greeting"
prompt = "[greeting] Write {file}"
verify = [["grep", "-q", "hello", "{file}"]]
"""

TOOLS: Final = Script(
    (ScriptStep(write=FILE, content="hello\n", hold=True), ScriptStep(run=f"cat {FILE}"), ScriptStep(say="written"))
)
TEXT: Final = Script((ScriptStep(say=f"I greet.\n\n{EDIT}", hold=True),))
"""The answers to a program with tools, and to one without."""


class Case(msgspec.Struct, frozen=True):
    """An agent: its kind, its program, more keys, the settings of its home, and the answers of its model."""

    kind: str
    program: str
    more: str
    script: Script = TOOLS
    settings: str = ""


CASES: Final = {
    "gemini": Case("gemini", "gemini", f'model = "{MODELS["gemini"]}"\npermissions = "all"'),
    "aider": Case("aider", "aider", f'model = "{MODELS["aider"]}"\npermissions = "all"', TEXT),
    "acp-gemini": Case("acp", "gemini", f'args = ["--experimental-acp", "--model", "{MODELS["gemini"]}"]'),
    "acp-opencode": Case("acp", "opencode", 'args = ["acp"]', settings="ask"),
}


def written(folder: Path, case: Case, service: ScriptedService) -> Path:
    """Write the repository, the home of the program, and the fleet file; return its path."""
    repo, home = folder / "repo", folder / "home"
    home.mkdir()
    git = ["git", "-C", str(repo), "-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", "init", "-q", "-b", "main", repo], check=True)  # noqa: S607 - a new repository
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "start"], check=True)
    env = environment(case.program, home, service.url, case.settings)
    words = ", ".join(f"{name} = {json.dumps(value)}" for name, value in env.items())
    kind, program = json.dumps(case.kind), json.dumps(case.program)
    (folder / "fleet.toml").write_text(FLEET.format(kind=kind, program=program, more=case.more, env=words, file=FILE))
    return folder / "fleet.toml"


@contextmanager
def killed(file: Path, service: ScriptedService) -> Generator[Runner]:
    """Yield a runner that takes over from one that was killed while the first answer is held back."""
    first = Runner(file)
    try:
        assert service.held.wait(PATIENCE_S)
        said = lifefold(file, "send", "agent", "Please be brief", "--no-interrupt")
        assert said.returncode == 0, said.stderr
    finally:
        first.kill()
    second = Runner(file)
    try:
        service.release()
        yield second
    finally:
        second.kill()


def told(file: Path, *words: str) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(lifefold(file, *words, "--json").stdout)


@pytest.mark.all_agents
@pytest.mark.parametrize("name", CASES)
def test_a_killed_runner_costs_no_attempt_no_message_and_no_question(name: str, tmp_path: Path) -> None:
    """One session does the work. It ends soon after its last turn, and its sentence for people is the agent's own."""
    case = CASES[name]
    if not is_there(case.program):
        pytest.skip(f"{case.program} is not there: make agents-all installs it")
    if case.kind == "acp":
        pytest.importorskip("acp", reason="the package agent-client-protocol is not there")
    with ScriptedService({"greeting": case.script}) as service:
        file = written(tmp_path, case, service)
        with Operator(file) as operator, killed(file, service) as runner:
            assert runner.wait() == 0
        (task,) = told(file, "tasks")
        served = service.spent["greeting"]
    assert (task["state"], task["attempts"]) == ("CLOSED", 1)
    if case.program != "opencode":  # which tells the tokens of the last step of a turn only
        assert (task["input_tokens"], task["output_tokens"]) == (served.input + served.cached, served.output)
    shown = lifefold(file, "output", "task:greeting").stdout.decode()
    assert shown.rstrip().rpartition("\n")[2] == f"end: success: {'made.txt' if name == 'aider' else 'written'}"
    if case.kind == "acp":
        assert list(operator.approved) == ["agent/Q1"]
        (session,) = sorted((tmp_path / ".lifefold/one.db.files/sessions/agent").iterdir())
        assert '"acp":"taken","number":1' in (session / "start-1/output.log").read_text()
