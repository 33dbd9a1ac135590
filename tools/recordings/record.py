"""Run the real agent programs against a model service on loopback, and record what they print.

``python tools/recordings/record.py PROGRAM CASE... --into FOLDER`` needs the program on the PATH. Each case runs in a
repository and a home of its own, with no network but loopback. See tests/data/adapters/README.md.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from model_service import Mode, Service

UUID = "5b0f8f4e-3c1d-4c58-9a51-000000000001"


def settings(program: str, home: Path, url: str) -> dict[str, str]:
    """Write the settings of a program into its home, and return its environment."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC", "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    if program == "claude":
        env |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_MAX_RETRIES": "1"}
        if os.environ.get("OAUTH"):
            del env["ANTHROPIC_API_KEY"]
            env["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat01-none"
    if program == "codex":
        (home / ".codex").mkdir(exist_ok=True)
        (home / ".codex/config.toml").write_text(
            f'model = "mock"\nmodel_provider = "mock"\n[model_providers.mock]\nname = "mock"\nbase_url = "{url}/v1"\n'
            'wire_api = "responses"\nrequest_max_retries = 0\nstream_max_retries = 0\nenv_key = "MOCK_KEY"\n'
        )
        env |= {"MOCK_KEY": "none"}
    if program == "opencode":
        (home / ".config/opencode").mkdir(parents=True, exist_ok=True)
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
                    "models": {"m": {"name": "m", "cost": {"input": 1, "output": 2}}}}
        (home / ".config/opencode/opencode.json").write_text(json.dumps(
            {"provider": {"mock": provider}, "model": "mock/m", "small_model": "mock/m", "autoupdate": False, "share": "disabled",
             "permission": os.environ.get("OPENCODE_PERMISSION_JSON") and json.loads(os.environ["OPENCODE_PERMISSION_JSON"]) or {}}))
        env |= {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
    if program == "gemini":
        (home / ".gemini").mkdir(exist_ok=True)
        (home / ".gemini/settings.json").write_text(json.dumps(
            {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"maxAttempts": 1, "disableAutoUpdate": True},
             "privacy": {"usageStatisticsEnabled": False}, "model": {"maxSessionTurns": int(os.environ.get("GEMINI_TURNS", "-1"))}}))
        env |= {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    if program == "aider":
        env |= {"OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": "none", "AIDER_ANALYTICS": "false", "AIDER_CHECK_UPDATE": "false"}
    return env


def record(program: str, mode: Mode, argv: list[str], output: Path, home: Path, work: Path, kill_s: float | None, sig: int) -> int:
    with Service(mode) as service:
        env = settings(program, home, service.url)
        with output.open("wb") as out:
            started = time.monotonic()
            process = subprocess.Popen(argv, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(kill_s or 45)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, sig)
                try:
                    status = process.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    status = process.wait()
        print(f"{output.name}: status {status}, {time.monotonic() - started:.1f} s, served {service.served[:6]}", flush=True)
    return status


CLAUDE = ["claude", "-p", "--model", "claude-sonnet-4-5", "--output-format", "stream-json", "--verbose"]
CODEX = ["codex", "exec", "--json", "--skip-git-repo-check"]
OPENCODE = ["opencode", "run", "--format", "json"]
GEMINI = ["gemini", "-m", "gemini-2.5-pro", "-o", "stream-json"]
AIDER = ["aider", "--no-pretty", "--no-stream", "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--no-gitignore", "--model", "openai/mock"]
ASK = "Write made.txt"

CASES = {
    "claude": {
        "success": (Mode.TEXT, [*CLAUDE, "--session-id", UUID, "--", ASK]),
        "resumed": (Mode.TEXT, [*CLAUDE, "--resume", UUID, "--", "--help"]),
        "written": (Mode.WRITE, [*CLAUDE, "--permission-mode", "acceptEdits", "--", ASK]),
        "denied": (Mode.WRITE, [*CLAUDE, "--", ASK]),
        "failing-command": (Mode.SHELL, [*CLAUDE, "--allowedTools=Bash", "--", ASK]),
        "limit": (Mode.LIMIT, [*CLAUDE, "--", ASK]),
        "rate": (Mode.RATE, [*CLAUDE, "--", ASK]),
        "overloaded": (Mode.OVERLOADED, [*CLAUDE, "--", ASK]),
        "too-long": (Mode.TOO_LONG, [*CLAUDE, "--", ASK]),
        "login": (Mode.LOGIN, [*CLAUDE, "--", ASK]),
        "credit": (Mode.CREDIT, [*CLAUDE, "--", ASK]),
        "turns": (Mode.WRITE, [*CLAUDE, "--permission-mode", "acceptEdits", "--max-turns", "1", "--", ASK]),
        "budget": (Mode.WRITE, [*CLAUDE, "--permission-mode", "acceptEdits", "--max-budget-usd", "0.0001", "--", ASK]),
        "lost-conversation": (Mode.TEXT, [*CLAUDE, "--resume", "5b0f8f4e-3c1d-4c58-9a51-00000000dead", "--", ASK]),
        "taken-conversation": (Mode.TEXT, [*CLAUDE, "--session-id", UUID, "--", ASK]),
        "killed": (Mode.HANG, [*CLAUDE, "--permission-mode", "acceptEdits", "--", ASK]),
    },
    "codex": {
        "success": (Mode.TEXT, [*CODEX, "--", ASK]),
        "resumed": (Mode.TEXT, [*CODEX, "resume", "THREAD", "--", "--help"]),
        "written": (Mode.WRITE, [*CODEX, "--dangerously-bypass-approvals-and-sandbox", "--", ASK]),
        "denied": (Mode.WRITE, [*CODEX, "--sandbox", "read-only", "--", ASK]),
        "failing-command": (Mode.SHELL, [*CODEX, "--dangerously-bypass-approvals-and-sandbox", "--", ASK]),
        "limit": (Mode.LIMIT, [*CODEX, "--", ASK]),
        "rate": (Mode.RATE, [*CODEX, "--", ASK]),
        "overloaded": (Mode.OVERLOADED, [*CODEX, "--", ASK]),
        "too-long": (Mode.TOO_LONG, [*CODEX, "--", ASK]),
        "login": (Mode.LOGIN, [*CODEX, "--", ASK]),
        "credit": (Mode.CREDIT, [*CODEX, "--", ASK]),
        "lost-conversation": (Mode.TEXT, [*CODEX, "resume", UUID, "--", ASK]),
        "killed": (Mode.HANG, [*CODEX, "--dangerously-bypass-approvals-and-sandbox", "--", ASK]),
    },
    "opencode": {
        "success": (Mode.TEXT, [*OPENCODE, "--", ASK]),
        "resumed": (Mode.TEXT, [*OPENCODE, "--session", "THREAD", "--", "--help"]),
        "written": (Mode.WRITE, [*OPENCODE, "--", ASK]),
        "denied": (Mode.WRITE, [*OPENCODE, "--", ASK]),
        "failing-command": (Mode.SHELL, [*OPENCODE, "--auto", "--", ASK]),
        "limit": (Mode.LIMIT, [*OPENCODE, "--", ASK]),
        "rate": (Mode.RATE, [*OPENCODE, "--", ASK]),
        "overloaded": (Mode.OVERLOADED, [*OPENCODE, "--", ASK]),
        "too-long": (Mode.TOO_LONG, [*OPENCODE, "--", ASK]),
        "login": (Mode.LOGIN, [*OPENCODE, "--", ASK]),
        "credit": (Mode.CREDIT, [*OPENCODE, "--", ASK]),
        "lost-conversation": (Mode.TEXT, [*OPENCODE, "--session", "ses_000000000000000000000000ab", "--", ASK]),
        "killed": (Mode.HANG, [*OPENCODE, "--auto", "--", ASK]),
    },
    "gemini": {
        "success": (Mode.TEXT, [*GEMINI, "--session-id", UUID, f"--prompt={ASK}"]),
        "resumed": (Mode.TEXT, [*GEMINI, "--resume", UUID, "--prompt=--help"]),
        "written": (Mode.WRITE, [*GEMINI, "--approval-mode", "yolo", f"--prompt={ASK}"]),
        "denied": (Mode.WRITE, [*GEMINI, f"--prompt={ASK}"]),
        "failing-command": (Mode.SHELL, [*GEMINI, "--approval-mode", "yolo", f"--prompt={ASK}"]),
        "limit": (Mode.LIMIT, [*GEMINI, f"--prompt={ASK}"]),
        "rate": (Mode.RATE, [*GEMINI, f"--prompt={ASK}"]),
        "overloaded": (Mode.OVERLOADED, [*GEMINI, f"--prompt={ASK}"]),
        "too-long": (Mode.TOO_LONG, [*GEMINI, f"--prompt={ASK}"]),
        "login": (Mode.LOGIN, [*GEMINI, f"--prompt={ASK}"]),
        "credit": (Mode.CREDIT, [*GEMINI, f"--prompt={ASK}"]),
        "turns": (Mode.WRITE, [*GEMINI, "--approval-mode", "yolo", f"--prompt={ASK}"]),
        "lost-conversation": (Mode.TEXT, [*GEMINI, "--resume", "5b0f8f4e-3c1d-4c58-9a51-00000000dead", f"--prompt={ASK}"]),
        "killed": (Mode.HANG, [*GEMINI, "--approval-mode", "yolo", f"--prompt={ASK}"]),
    },
    "aider": {
        "success": (Mode.TEXT, [*AIDER, "--yes-always", f"--message={ASK}"]),
        "resumed": (Mode.TEXT, [*AIDER, "--yes-always", "--restore-chat-history", "--message=--help"]),
        "limit": (Mode.RATE, [*AIDER, "--yes-always", f"--message={ASK}"]),
        "overloaded": (Mode.OVERLOADED, [*AIDER, "--yes-always", f"--message={ASK}"]),
        "too-long": (Mode.TOO_LONG, [*AIDER, "--yes-always", f"--message={ASK}"]),
        "login": (Mode.LOGIN, [*AIDER, "--yes-always", f"--message={ASK}"]),
        "credit": (Mode.CREDIT, [*AIDER, "--yes-always", f"--message={ASK}"]),
        "killed": (Mode.OVERLOADED, [*AIDER, "--yes-always", f"--message={ASK}"]),
    },
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--thread", default="")
    parser.add_argument("--limit-s", type=float, default=None)
    parser.add_argument("--signal", type=int, default=15)
    options = parser.parse_args()
    home = options.into / f"home-{options.program}"
    home.mkdir(parents=True, exist_ok=True)
    for case in options.cases or CASES[options.program]:
        mode, argv = CASES[options.program][case]
        argv = [options.thread if each == "THREAD" else each for each in argv]
        work = options.into / "repo"
        subprocess.run(["rm", "-rf", work], check=True)
        subprocess.run(["git", "init", "-q", work], check=True)
        subprocess.run(["git", "-C", work, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "start"], check=True)
        kill = options.limit_s or (15 if case == "killed" else None)
        output = options.into / f"{options.program}-{case}.txt"
        record(options.program, mode, argv, output, home, work, kill, options.signal)


if __name__ == "__main__":
    main()
