"""The name of a host, which one process at a time may have.

The row of a host has its process: machine, number and begin. A host that begins refuses while the row of its name is of
another process that was heard within the detection time. A process that is dead on this machine does not count. On
another machine nothing but its silence tells that it is dead. Machines count as one if they have one host name.
"""

import math
import os
import socket
from typing import Final, NamedTuple

from lifefold.interpreters.fleet_runner.hosts import HOST, Host, HostSaid, hosts_in, said_by
from lifefold.interpreters.fleet_runner.notices import About, Notices
from lifefold.interpreters.processes import identify
from lifefold.interpreters.store import LogStore

ALONE_AGAIN: Final = 5
"""The number of own words without those of another process between them, after which a host has its name alone."""


class NameTakenError(Exception):
    """Another process has the name of a host that begins; the message has its place and the remedy."""


class _Process(NamedTuple):
    machine: str
    process: int
    began_ms: int


async def must_be_free(store: LogStore, name: str) -> int:
    """Return the version of the row that a host of this name may replace, which is 0 if there is none.

    Raises ``NameTakenError`` if another process has the name, and ``StoreError``.
    """
    found = await store.members()
    for each in hosts_in(found):
        if each.status.name == name and not each.is_lost and _may_live(each):
            raise NameTakenError(_taken(each))
    return next((each.heard_ms for each in found.every if each.name == HOST + name), 0)


def _may_live(host: Host) -> bool:
    said = host.said
    if said.machine != socket.gethostname():
        return True
    return said.process != os.getpid() and identify(said.process) is not None


def _taken(host: Host) -> str:
    said = host.said
    left_s = math.ceil((said.detection_ms - host.status.silent_ms) / 1_000)
    drains = ", and drains" if said.is_draining else ""
    return (
        f"another host has the name {host.status.name}: process {said.process} on {said.machine},"
        f" heard {host.status.silent_ms / 1_000:.0f} s ago{drains}. Give this host another name by --name."
        f" If that process has died, begin again in {left_s} s"
    )


class SharedName:
    """Notices that another process writes the row of this host, and says so once."""

    def __init__(self, name: str, operator: Notices) -> None:
        """Watch the row of a host of this name."""
        self._name: Final = name
        self._operator: Final = operator
        self._has_spoken = False
        self._alone = 0
        self.is_shared = False
        """Whether another process has written the row, between this one's latest words."""

    def look(self, own: HostSaid, before: str | None) -> str:
        """Compare what the row said before with the own words; return what to say of that, which is mostly empty.

        The first words may replace those of a dead process.
        """
        other = said_by(before or "") if self._has_spoken else None
        self._has_spoken = True
        if other is None or _process(other) == _process(own):
            self._alone += 1
            if self.is_shared and self._alone >= ALONE_AGAIN:
                self.is_shared = False
                self._operator.over(About.NAME, f"host {self._name}")
            return ""
        self._alone = 0
        if self.is_shared:
            return ""
        self.is_shared = True
        message = (
            f"is not alone: process {other.process} on {other.machine} has its name, too."
            " They take each other's work. End one of them, and begin it again with another --name"
        )
        self._operator.tell_while(About.NAME, f"host {self._name}", message)
        return f"the host {self._name} {message}"


def _process(said: HostSaid) -> _Process:
    return _Process(said.machine, said.process, said.began_ms)
