"""What the tests of the examples stand on: where they are, and the command line."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


def lifefold(*arguments: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end; ``env`` is added to the environment."""
    command = [sys.executable, "-m", "lifefold.interpreters.cli", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, **env}, timeout=120)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done
