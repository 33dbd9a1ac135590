"""The real agent programs: where they are, and a home for each that knows a model service on loopback only.

Telemetry, updates and requests for anything but the model are turned off, by the documented variables and settings.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / ".agents"
"""Where ``make agents`` installs the programs."""

BIN: Final = FOLDER / "bin"
PATH: Final = os.pathsep.join((str(BIN), os.environ.get("PATH", os.defpath)))
"""The search path of the programs: those of ``make agents`` come first."""

KEY: Final = "a-key-of-loopback"

MODELS: Final = {"claude": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro", "aider": "openai/gpt-4o"}
"""The models of programs that need to be told one."""


def is_there(program: str) -> bool:
    """Return whether a program can be run here."""
    return shutil.which(program, path=PATH) is not None


def environment(program: str, home: Path, url: str, settings: str = "") -> dict[str, str]:
    """Write the settings of a program into its home, and return its environment."""
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    env = {"PATH": PATH, "HOME": str(home), "TMPDIR": str(temporary)}
    env |= {"TZ": "UTC", "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    match program:
        case "claude":
            env |= {"ANTHROPIC_BASE_URL": url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
            env |= {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_MAX_RETRIES": "1"}
            env |= {"CLAUDE_CODE_OAUTH_TOKEN" if settings == "subscription" else "ANTHROPIC_API_KEY": KEY}
            if settings == "ask":
                (home / ".claude").mkdir(exist_ok=True)
                (home / ".claude/settings.json").write_text('{"permissions": {"defaultMode": "default"}}')
        case "codex":
            (home / ".codex").mkdir(exist_ok=True)
            provider = 'model = "mock"\nmodel_provider = "mock"\n[model_providers.mock]\nname = "mock"\n'
            retries = "request_max_retries = 0\nstream_max_retries = 0\n"
            address = f'base_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "MOCK_KEY"\n'
            (home / ".codex/config.toml").write_text(provider + retries + address)
            env |= {"MOCK_KEY": KEY}
        case "opencode":
            folder = home / ".config/opencode"
            folder.mkdir(parents=True, exist_ok=True)
            options = {"baseURL": f"{url}/v1", "apiKey": KEY}
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
            env |= {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        case _:
            env |= {"OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": KEY, "AIDER_ANALYTICS": "false"}
            env |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONUNBUFFERED": "1"}
    return env
