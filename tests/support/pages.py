"""The blocks of a documentation page, and its commands in a folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BIN = Path(sys.executable).parent


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of one language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def called(folder: Path, *argv: str, code: int = 0) -> str:
    """Run a command in a folder; return what it prints.

    Python keeps no bytecode: it would take a file of the same size, changed within the same second, for the old one.
    """
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def lifefold(folder: Path, *argv: str, code: int = 0) -> str:
    """Run the command line."""
    return called(folder, str(BIN / "lifefold"), *argv, code=code)
