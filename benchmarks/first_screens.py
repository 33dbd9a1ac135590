"""The time until a log is first seen: the page of a desk that has just begun, and the picture of ``watch``."""

import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, perf_counter

import httpx2

WAIT_S = 600
PAUSE_S = 0.02

_LIFEFOLD = (sys.executable, "-m", "lifefold.interpreters.cli")


def serve_s(path: Path) -> float:
    """Return the time from the start of ``lifefold serve`` to the whole board of a log."""
    command = [*_LIFEFOLD, "serve", "--port", "0", str(path)]
    began = perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as desk:  # noqa: S603 - this program
        try:
            assert desk.stdout is not None
            address = re.search(r"http://\S+", desk.stdout.readline())
            assert address is not None
            with httpx2.Client(base_url=address[0].partition("/login")[0], timeout=WAIT_S) as client:
                client.get(address[0])
                until_s = monotonic() + WAIT_S
                while not client.get(f"/fleets/{path.stem}/board.json").is_success:
                    assert monotonic() < until_s
                    threading.Event().wait(PAUSE_S)
            return perf_counter() - began
        finally:
            desk.terminate()


def watch_s(path: Path) -> float:
    """Return the time from the start of ``lifefold watch`` to its first picture with the sum of the tasks."""
    return _drawn_s([*_LIFEFOLD, "watch", str(path)])


def _drawn_s(command: Sequence[str]) -> float:
    """Return the time until a command at a pseudo-terminal has drawn the sum of the tasks."""
    ours, theirs = pty.openpty()
    around = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    began = perf_counter()
    watch = subprocess.Popen(  # noqa: S603 - this program
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=around
    )
    os.close(theirs)
    try:
        drawn = b""
        while _SUM.search(_SEQUENCE.sub(b"", drawn)) is None:
            drawn += os.read(ours, 65_536)
        return perf_counter() - began
    finally:
        watch.terminate()
        watch.wait()
        os.close(ours)


_SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
_SUM = re.compile(rb"\d+/\d+ tasks closed")
