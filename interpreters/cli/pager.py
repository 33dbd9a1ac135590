"""Long output on a terminal goes through the user's pager, as git's output does; elsewhere it is printed.

The pager is git's: ``GIT_PAGER``, the user's ``core.pager``, ``PAGER``, or else ``less``. The configuration of the
repository is not asked, because agents can write it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from typing import Final

_OUTSIDE: Final = "/"
"""A folder in no repository, so that git finds the user's configuration alone."""

_ASK: Final = ("git", "var", "GIT_PAGER")

_LESS: Final = {"LESS": "FRX", "LV": "-c"}
"""What git sets for its pagers: leave at once if all fits on the screen, show colours, keep the screen."""


def is_coloured() -> bool:
    """Tell whether standard output shows colours: it is a terminal, and the user wants them."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in {"", "dumb"}


def page(lines: Iterable[str]) -> None:
    """Show lines through the pager if standard output is a terminal, else print them."""
    pager = _pager() if sys.stdout.isatty() else ""
    if not pager:
        for line in lines:
            print(line)
        return
    sys.stdout.flush()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the pager
    try:
        with subprocess.Popen(  # noqa: S602 - the user's own pager, which git runs in a shell, too
            pager, shell=True, stdin=subprocess.PIPE, env={**_LESS, **os.environ}, text=True, errors="backslashreplace"
        ) as process:
            _give(process, lines)
    finally:
        signal.signal(signal.SIGINT, before)


def _give(process: "subprocess.Popen[str]", lines: Iterable[str]) -> None:
    """Write lines to a pager, until it is left."""
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    try:
        for line in lines:
            process.stdin.write(f"{line}\n")
        process.stdin.close()
    except BrokenPipeError:
        pass


def _pager() -> str:
    """Return the user's pager as a command for a shell; empty for none."""
    kept = {name: value for name, value in os.environ.items() if name not in {"GIT_DIR", "GIT_WORK_TREE"}}
    try:
        found = subprocess.run(  # noqa: S603 - a fixed command
            _ASK, cwd=_OUTSIDE, env=kept, capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    pager = found.stdout.strip()
    return "" if pager == "cat" else pager
