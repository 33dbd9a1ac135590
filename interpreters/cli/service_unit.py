"""The systemd unit of a fleet: its runner as a service of the user, which is started again after a failure.

See ``systemd.exec(5)``, ``systemd.kill(5)`` and ``systemd.service(5)``. The exit codes are those of ``lifefold run``.
"""

from collections.abc import Sequence
from typing import Final

from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.worktrees.git import path_name

RESTART_S: Final = 5
"""The delay of a restart; at most half of the lease, so that the new runner adopts the sessions."""

MARGIN_S: Final = 30
"""The time of a leaving runner beside the grace of its sessions."""

SETTLED: Final = (1, 2)
"""The exit codes after which another start does the same: all tasks are settled, and bad input."""

LEFT: Final = 130
"""The exit code of a runner that was asked to leave."""


def unit(fleet: Fleet, command: Sequence[str], path: str) -> str:
    """Return the unit of a fleet whose runner is ``command``, with ``path`` as the PATH of its processes."""
    name = path_name(fleet.name)
    program, *arguments = command
    start = " ".join((_quoted(program), *(_quoted(each).replace("$", "$$") for each in arguments)))
    return f"""\
# ~/.config/systemd/user/{unit_name(fleet)}
[Unit]
Description=lifefold fleet {_plain(name)}
StartLimitIntervalSec=10min
StartLimitBurst=10

[Service]
Type=exec
ExecStart={start}
Environment={_quoted(f"PATH={path}")}
# Keys of model services, such as ANTHROPIC_API_KEY=...; readable by you only.
EnvironmentFile=-%E/lifefold/{_plain(name)}.env
Restart=on-failure
RestartSec={max(1, min(RESTART_S * 1000, fleet.lease_ms // 2) // 1000)}
RestartPreventExitStatus={" ".join(map(str, SETTLED))}
SuccessExitStatus={LEFT}
# Only the runner is ended: the shims keep the sessions for the lease, and the next runner adopts them.
KillMode=process
TimeoutStopSec={stop_s(fleet)}
# A session that the kernel kills for its memory is a failed attempt, and no end of the fleet.
OOMPolicy=continue

[Install]
WantedBy=default.target
"""


def unit_name(fleet: Fleet) -> str:
    """Return the file name of a fleet's unit; systemd permits fewer characters there than a path does."""
    return f"lifefold-{path_name(fleet.name).replace('%', '_')}.service"


def stop_s(fleet: Fleet) -> int:
    """Return the time in which a runner leaves: the longest grace of its sessions, and a margin."""
    graces = (*(fleet.grace_ms(each) for each in fleet.agents), *(each.runs.grace_ms for each in fleet.services))
    return -(-max(graces, default=0) // 1000) + MARGIN_S


def _plain(text: str) -> str:
    """Return a text without specifiers of systemd."""
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    """Return a word of a command or an assignment in quotes, without specifiers, on one line."""
    escaped = _plain(word).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if each.isprintable() else _escaped(each) for each in escaped) + '"'


def _escaped(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
