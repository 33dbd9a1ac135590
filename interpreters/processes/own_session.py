"""Starting a process in a session of its own, out of reach of the keys of a terminal from its first moment.

A new process belongs to its parent's group until it has called ``setsid``. On a busy machine that takes milliseconds.
A Ctrl-C in this time would end it, and a merge or a session would fail. So the process begins with the signals of a
terminal blocked. They stay blocked in it and in its descendants, unless one of them changes that. The session ends its
processes by SIGTERM and SIGKILL.
"""

import signal
import subprocess
from collections.abc import Sequence
from typing import Any, Final

OF_TERMINALS: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""The signals that a terminal sends to a group: by Ctrl-C, by Ctrl-Backslash, and when it is closed."""


def start(command: Sequence[str], **settings: Any) -> "subprocess.Popen[bytes]":
    """Start a command in its own session; ``settings`` are those of ``Popen``. Raises OSError."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, OF_TERMINALS)
    try:
        started: subprocess.Popen[Any] = subprocess.Popen(command, start_new_session=True, **settings)  # noqa: S603 - the caller's command
        return started
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
