"""Run the real agent programs against a model service on loopback, and record what they print.

``python tools/recordings/record.py PROGRAM [CASE...] --into FOLDER`` needs lifefold, and the program on the PATH. The
command lines are those of the adapters. Each program has a home of its own, and no network but loopback. The recordings
of tests/data/adapters were made so; its README says of which versions.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from lifefold.interpreters.adapters import Brief, Conversation, ConversationBegan, Now, Permissions, adapter_of
from model_service import Mode, Service

CHOSEN: Final = "5b0f8f4e-3c1d-4c58-9a51-000000000001"
UNKNOWN: Final = {"opencode": "ses_000000000000000000000000ab"}
PATIENCE_S: Final = 150
KILLED_S: Final = 45
ASK: Final = "Write made.txt"
MODELS: Final = {"claude": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro", "aider": "openai/gpt-4o"}


class Case(msgspec.Struct, frozen=True):
    """A session to record.

    ``conversation`` is "new" for a chosen identifier, "begun" for the one of the case ``success``, "lost" for one that
    is not there, or empty. ``kill_s`` is when the session gets a SIGTERM. ``settings`` change the program's settings.
    """

    mode: Mode
    permissions: Permissions = Permissions.DEFAULT
    prompt: str = ASK
    conversation: str = ""
    kill_s: float | None = None
    turns: int | None = None
    budget_microusd: int | None = None
    arguments: tuple[str, ...] = ()
    settings: str = ""


_EDIT, _ALL = Permissions.EDIT, Permissions.ALL

COMMON: Final = {
    "success": Case(Mode.TEXT, conversation="new"),
    "resumed": Case(Mode.TEXT, prompt="--help", conversation="begun"),
    "written": Case(Mode.WRITE, _ALL),
    "failing-command": Case(Mode.SHELL, _ALL),
    "killed": Case(Mode.HANG, _ALL, kill_s=KILLED_S),
    "limit": Case(Mode.LIMIT, kill_s=PATIENCE_S),
    "rate": Case(Mode.RATE, kill_s=PATIENCE_S),
    "overloaded": Case(Mode.OVERLOADED, kill_s=PATIENCE_S),
    "too-long": Case(Mode.TOO_LONG),
    "login": Case(Mode.LOGIN),
    "credit": Case(Mode.CREDIT, kill_s=PATIENCE_S),
    "lost-conversation": Case(Mode.TEXT, conversation="lost"),
}
"""The cases of all programs."""

CASES: Final[dict[str, dict[str, Case]]] = {
    "claude": {
        **COMMON,
        "written": Case(Mode.WRITE, _EDIT),
        "killed": Case(Mode.HANG, _EDIT, kill_s=KILLED_S),
        "failing-command": Case(Mode.SHELL, arguments=("--allowedTools=Bash",)),
        "denied": Case(Mode.WRITE),
        "limit": Case(Mode.LIMIT, settings="subscription"),
        "turns": Case(Mode.WRITE, _EDIT, turns=1),
        "budget": Case(Mode.WRITE, _EDIT, budget_microusd=100),
        "taken-conversation": Case(Mode.TEXT, conversation="new"),
        "compacted": Case(Mode.TEXT, prompt="/compact", conversation="begun"),
    },
    "codex": {**COMMON, "read-only": Case(Mode.WRITE, Permissions.READ)},
    "opencode": {
        **COMMON,
        "denied": Case(Mode.WRITE, settings="ask"),
        "limit": Case(Mode.LIMIT, kill_s=KILLED_S),
        "rate": Case(Mode.RATE, kill_s=KILLED_S),
        "overloaded": Case(Mode.OVERLOADED, kill_s=KILLED_S),
        "credit": Case(Mode.CREDIT, kill_s=KILLED_S),
    },
    "gemini": {
        **COMMON,
        "not-offered": Case(Mode.WRITE),
        "turns": Case(Mode.WRITE, _ALL, settings="one-turn"),
    },
    "aider": {
        key: msgspec.structs.replace(case, permissions=_ALL)
        for key, case in COMMON.items()
        if key not in {"failing-command", "lost-conversation", "rate"}
    },
}
"""The cases of each program."""


def environment(program: str, home: Path, url: str, settings: str) -> dict[str, str]:
    """Write the settings of a program into its home, and return its environment."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC", "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    match program:
        case "claude":
            env |= {"ANTHROPIC_BASE_URL": url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
            env |= {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_MAX_RETRIES": "1"}
            env |= {"CLAUDE_CODE_OAUTH_TOKEN" if settings == "subscription" else "ANTHROPIC_API_KEY": "none"}
        case "codex":
            (home / ".codex").mkdir(exist_ok=True)
            provider = 'model = "mock"\nmodel_provider = "mock"\n[model_providers.mock]\nname = "mock"\n'
            retries = "request_max_retries = 0\nstream_max_retries = 0\n"
            address = f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "MOCK_KEY"\n'
            (home / ".codex/config.toml").write_text(provider + retries + address)
            env |= {"MOCK_KEY": "none"}
        case "opencode":
            folder = home / ".config/opencode"
            folder.mkdir(parents=True, exist_ok=True)
            options = {"baseURL": f"{url}/v1", "apiKey": "none"}
            model = {"m": {"name": "m", "cost": {"input": 1, "output": 2}}}
            provider_of = {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": options, "models": model}
            chosen = {"provider": {"mock": provider_of}, "model": "mock/m", "small_model": "mock/m"}
            asks = {"permission": {"edit": "ask"} if settings == "ask" else {}}
            (folder / "opencode.json").write_text(
                json.dumps({**chosen, **asks, "autoupdate": False, "share": "disabled"})
            )
            env |= {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
        case "gemini":
            (home / ".gemini").mkdir(exist_ok=True)
            general = {"general": {"maxAttempts": 2, "disableAutoUpdate": True}}
            login = {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": False},
            }
            turns = {"model": {"maxSessionTurns": 1 if settings == "one-turn" else -1}}
            (home / ".gemini/settings.json").write_text(json.dumps({**general, **login, **turns}))
            env |= {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        case _:
            env |= {"OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": "none", "AIDER_ANALYTICS": "false"}
            env |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return env


def run(argv: tuple[str, ...], env: Mapping[str, str], work: Path, kill_s: float | None) -> tuple[bytes, int]:
    """Run a session to its end, and return its output and its exit status."""
    with subprocess.Popen(  # noqa: S603  # it runs the programs that it records
        argv,
        cwd=work,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        for patience_s, ending in ((kill_s or PATIENCE_S, signal.SIGTERM), (20, signal.SIGKILL), (None, None)):
            with suppress(subprocess.TimeoutExpired):
                output, _ = process.communicate(timeout=patience_s)
                return output, process.returncode
            if ending is not None:
                os.killpg(process.pid, ending)
    raise AssertionError


def record(program: str, case: Case, begun: str, folder: Path) -> tuple[bytes, int]:
    """Record one session: its output without the places of this machine, and its exit status."""
    adapter = adapter_of(program)
    names = {"new": CHOSEN, "begun": begun, "lost": UNKNOWN.get(program, "5b0f8f4e-3c1d-4c58-9a51-00000000dead")}
    conversation = Conversation(names[case.conversation], case.conversation != "new") if case.conversation else None
    brief = Brief(
        case.prompt,
        MODELS.get(program, ""),
        case.permissions,
        case.arguments,
        budget_microusd=case.budget_microusd,
        turns=case.turns,
    )
    home, work = folder / "home", folder / "repo"
    home.mkdir(exist_ok=True)
    if not work.exists():
        git = ["git", "-C", str(work), "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "init", "-q", work], check=True)  # noqa: S603, S607  # a new repository
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "start"], check=True)  # noqa: S603  # as above
    (work / "made.txt").unlink(missing_ok=True)
    with Service(case.mode) as service:
        env = environment(program, home, service.url, case.settings)
        output, status = run(adapter.argv(brief, conversation), env, work, case.kill_s)
        sys.stderr.write(f"{program}: status {status}, {len(service.served)} requests\n")
    output = output.replace(str(folder).encode(), b"").replace(service.url.encode(), b"http://127.0.0.1:1")
    return re.sub(rb"127\.0\.0\.1:\d+", b"127.0.0.1:1", output), status


def conversation_of(program: str, output: bytes) -> str:
    """Return the identifier of the conversation that an output names."""
    adapter = adapter_of(program)
    state, found = adapter.initial, ""
    for line in output.splitlines():
        state, facts = adapter.read(state, line, Now(0))
        found = next((fact.id for fact in facts if isinstance(fact, ConversationBegan)), found)
    return found


def main() -> None:
    """Record the chosen cases, and note their exit statuses in ``statuses.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=sorted(CASES))
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--into", type=Path, required=True)
    options = parser.parse_args()
    into = options.into / options.program
    into.mkdir(parents=True, exist_ok=True)
    known = into / "statuses.json"
    statuses: dict[str, int] = json.loads(known.read_text()) if known.exists() else {}
    with TemporaryDirectory() as folder:
        begun = ""
        for name, case in CASES[options.program].items():
            if options.cases and name not in {*options.cases, "success"}:
                continue
            output, status = record(options.program, case, begun, Path(folder))
            begun = conversation_of(options.program, output) if name == "success" else begun
            (into / f"{name}.txt").write_bytes(output)
            statuses[name] = status
    known.write_text(json.dumps(dict(sorted(statuses.items())), indent=2) + "\n")


if __name__ == "__main__":
    main()
