"""The desk beside a run: a process of its own, so that pages take no time of the runner. It ends with the run.

The standard input of the desk is a pipe that the runner holds open. When the runner ends in any way, the pipe ends, and
the desk with it.
"""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_LINES: Final = 2
"""The lines that ``serve`` prints: its address, and the place of its token."""

_SAID: Final = "the desk is at"
"""The words before the address in the first of them."""

END_S: Final = 10
"""How long the desk has to end."""


class Address:
    """The address of the desk beside a run, with its token; empty without a desk.

    A live display covers the printed address, so it shows this one.
    """

    def __init__(self) -> None:
        """Begin without a desk."""
        self.text = ""


@contextmanager
def desk_beside(log: Path, port: int | None, address: Address) -> Generator[None]:
    """Serve the desk of a log while the block runs; print its address, and keep it. None is no desk.

    A desk that cannot begin is a warning: the run goes on without it.
    """
    if port is None:
        yield
        return
    command = [sys.executable, "-m", "lifefold.interpreters.cli", "serve", "--beside", f"--port={port}", "--", str(log)]
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - this program
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as desk:
        address.text = _introduce(desk)
        try:
            yield
        finally:
            address.text = ""
            _end(desk)


def _introduce(desk: "subprocess.Popen[str]") -> str:
    """Print the address of the desk, or why there is none; return the address."""
    if desk.stdout is None or desk.stderr is None:
        return ""
    said = [line for _ in range(_LINES) if (line := desk.stdout.readline())]
    if len(said) < _LINES:
        print(f"warning: no desk: {desk.stderr.read().strip().removeprefix('lifefold: ')}", file=sys.stderr)
        return ""
    print(said[0], end="", flush=True)
    return said[0].removeprefix(_SAID).strip()


def _end(desk: "subprocess.Popen[str]") -> None:
    """End the desk by ending its input."""
    if desk.stdin is not None:
        desk.stdin.close()
    try:
        desk.wait(END_S)
    except subprocess.TimeoutExpired:
        desk.kill()
