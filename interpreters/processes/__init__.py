"""Agent processes that outlive their runner: each session runs under a shim, and is identified by its run directory.

``launch`` starts a session. ``adopt`` finds a session after a restart of the runner. Both return a ``SessionProcess``
to wait for and to end.

Limits: descendants that leave the agent's process group are found on Linux only. Processes that an agent starts through
a service outside the session (systemd, a container engine) are not found. The run directory must be on a local disk. An
agent runs as the runner's user, so a session is no security boundary.
"""

from lifefold.interpreters.processes.identity import (
    ProcessIdentity,
    identify,
    is_alive,
    signal_group_if_ours,
    signal_if_ours,
)
from lifefold.interpreters.processes.progress import Silence, SilentSince, last_progress_ms
from lifefold.interpreters.processes.session_files import (
    Fence,
    LaunchError,
    Outcome,
    SessionError,
    SessionExit,
    SessionFileError,
    SessionSpec,
    SessionStart,
    SessionUsage,
    ShimUnresponsiveError,
    SurvivorsError,
    read_exit,
    read_order,
    read_start,
)
from lifefold.interpreters.processes.session_process import (
    SessionProcess,
    adopt,
    hold,
    interrupt,
    launch,
    output_pieces,
    output_tail,
)

__all__ = [
    "Fence",
    "LaunchError",
    "Outcome",
    "ProcessIdentity",
    "SessionError",
    "SessionExit",
    "SessionFileError",
    "SessionProcess",
    "SessionSpec",
    "SessionStart",
    "SessionUsage",
    "ShimUnresponsiveError",
    "Silence",
    "SilentSince",
    "SurvivorsError",
    "adopt",
    "hold",
    "identify",
    "interrupt",
    "is_alive",
    "last_progress_ms",
    "launch",
    "output_pieces",
    "output_tail",
    "read_exit",
    "read_order",
    "read_start",
    "signal_group_if_ours",
    "signal_if_ours",
]
