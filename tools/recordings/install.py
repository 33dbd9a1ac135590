"""Install the real agent programs into ``.agents``, in the versions that their adapters were tested with last.

``python tools/recordings/install.py [PROGRAM...]`` needs lifefold, and npm or pip. Each program is optional: one that
cannot be installed is left out with a word, and its tests are skipped. A program that is there is left as it is.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from homes import BIN, FOLDER, ROOT
from lifefold.interpreters.adapters import adapter_of

PACKAGES: Final = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "opencode": "opencode-ai",
    "gemini": "@google/gemini-cli",
    "claude-agent-acp": "@agentclientprotocol/claude-agent-acp",
    "codex-acp": "@agentclientprotocol/codex-acp",
}
"""The packages of npm. Aider is a package of PyPI, ``aider-chat``."""

SHORT: Final = ("claude", "codex", "opencode", "gemini")
"""The programs that CI installs: each takes seconds. The others take a minute."""

ALL: Final = (*PACKAGES, "aider")
PATIENCE_S: Final = 900
"""The longest time of one installation, in seconds."""


class Unavailable(Exception):
    """A program cannot be installed here; the message says why."""


def version(program: str) -> str:
    """Return the version that is installed: the last one that the adapter was tested with.

    A package that speaks the Agent Client Protocol for another program calls itself by the name of the package.
    """
    spoken = dict(each.rsplit(" ", 1) for each in adapter_of("acp").tested_versions)
    return spoken.get(PACKAGES.get(program, "")) or adapter_of(program).tested_versions[-1]


def is_installed(program: str) -> bool:
    """Return whether the program is there, in this version."""
    return (FOLDER / program / version(program)).exists() and (BIN / program).exists()


def install(program: str) -> None:
    """Install a program into a folder of its own, and link it into ``.agents/bin``."""
    home = FOLDER / program
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    found = _with_pip(home, version(program)) if program == "aider" else _with_npm(home, program)
    if not found.exists():
        raise Unavailable(f"the installation has no {found.relative_to(ROOT)}")
    BIN.mkdir(exist_ok=True)
    (BIN / program).unlink(missing_ok=True)
    (BIN / program).symlink_to(os.path.relpath(found, BIN))
    (home / version(program)).touch()


def _with_npm(home: Path, program: str) -> Path:
    package = f"{PACKAGES[program]}@{version(program)}"
    _run("npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", str(home), package)
    return home / "node_modules/.bin" / program


def _with_pip(home: Path, wanted: str) -> Path:
    _run(sys.executable, "-m", "venv", str(home))
    _run(str(home / "bin/python"), "-m", "pip", "install", "--quiet", f"aider-chat=={wanted}")
    return home / "bin/aider"


def _run(*argv: str) -> None:
    """Run a step of an installation, and raise ``Unavailable`` with its last line if it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False)  # noqa: S603  # npm, pip
    except FileNotFoundError:
        raise Unavailable(f"there is no {argv[0]} here") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{argv[0]} takes longer than {PATIENCE_S} s") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable(f"{Path(argv[0]).name}: {lines[-1] if lines else f'exit status {done.returncode}'}")


def size_mb(folder: Path) -> int:
    """Return the size of a folder in millions of bytes; a file with two names counts once."""
    found = {each.st_ino: each.st_size for path in folder.rglob("*") for each in (path.lstat(),)}
    return sum(found.values()) // 10**6


def main() -> None:
    """Install the chosen programs, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(ALL)} (default: {', '.join(SHORT)})"
    )
    parser.add_argument("--all", action="store_true", help="all programs")
    options = parser.parse_args()
    for program in ALL if options.all else options.programs or SHORT:
        if program not in ALL:
            parser.error(f"there is no program {program}; accepted: {', '.join(ALL)}")
        if is_installed(program):
            print(f"{program} {version(program)}: is there")
            continue
        began = time.monotonic()
        try:
            install(program)
        except Unavailable as error:
            print(f"{program} {version(program)}: left out, and the tests of it are skipped: {error}")
        else:
            took_s = round(time.monotonic() - began)
            print(f"{program} {version(program)}: installed in {took_s} s, {size_mb(FOLDER / program)} MB")


if __name__ == "__main__":
    main()
