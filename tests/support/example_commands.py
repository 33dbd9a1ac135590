"""The folder of the examples, and the command line, for their tests."""

import subprocess
from pathlib import Path
from typing import Final

from commands_run import run_command

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


def lifefold(*arguments: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end; ``env`` is added to the environment."""
    done = run_command(Path.cwd(), *arguments, timeout_s=120, **env)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done
