"""The hosts of a fleet as its brain sees them: how each is, what it tells, and which one is lost or comes back."""

import contextlib
from collections.abc import Iterator
from typing import Final

from lifefold.interpreters.fleet_runner.hosts import AT_WORK, DRAINING, HOST, LOST, Host, hosts_in
from lifefold.interpreters.fleet_runner.notices import Notice
from lifefold.interpreters.store import LogStore, Members, StoreError

FORGOTTEN_MS: Final = 86_400_000
"""The silence after which a brain that begins removes the row of a lost host."""

SERVER_IS_AWAY: Final = "the server of Temporal does not answer; sessions end at their fences unless it answers before"

REFUSES: Final = "takes no work: "

_ABOUT: Final = "host "
"""The begin of what a notice about a host is about; the name of an agent has no space."""


class HostWatch:
    """Reads what hosts say. ``notices`` has all that they tell, as agent and message, in its order."""

    def __init__(self, store: LogStore) -> None:
        """Begin without hosts."""
        self.hosts: tuple[Host, ...] = ()
        self.notices: Final[list[tuple[str, str]]] = []
        self._store: Final = store
        self._heard: Final[dict[tuple[str, int], int]] = {}
        """The number of the last notice that was taken, by host and begin of its process."""
        self._states: dict[str, str] | None = None
        self._answers = True

    async def begin(self) -> None:
        """Remove the rows of hosts that were lost long ago. Of old notices take only those that hold."""
        with contextlib.suppress(StoreError):
            found = await self._store.members()
            for each in found.every:
                if each.name.startswith(HOST) and found.now_ms - each.heard_ms >= FORGOTTEN_MS:
                    await self._store.dismiss(each.name)
            for host in hosts_in(found):
                self._take(host)
            self.hosts = hosts_in(found)
            self.notices.extend(
                (each.agent, each.message) for each in self.standing() if not each.agent.startswith(_ABOUT)
            )

    async def look(self) -> bool:
        """Read what the hosts say now; return whether there is a new notice."""
        with contextlib.suppress(StoreError):
            return self.take(await self._store.members())
        return False

    def take(self, found: Members) -> bool:
        """Take what the hosts say; return whether there is a new notice."""
        before = len(self.notices)
        self.hosts = hosts_in(found)
        self.notices.extend(self._changes())
        for host in self.hosts:
            self.notices.extend((agent, f"{message} (host {host.status.name})") for agent, message in self._take(host))
        return len(self.notices) > before

    def hear_of_server(self, *, answers: bool) -> None:
        """Add a notice when the server of Temporal answers no more, and when it answers again."""
        if answers != self._answers:
            self._answers = answers
            self.notices.append(("brain", "Temporal answers again" if answers else SERVER_IS_AWAY))

    def standing(self) -> list[Notice]:
        """Return the notices that hold: of hosts that are not lost, and one for each that is, or that takes no work."""
        lost = (
            Notice(f"{_ABOUT}{each.status.name}", _lost(each), each.status.heard_ms)
            for each in self.hosts
            if each.is_lost
        )
        refusing = (
            Notice(f"{_ABOUT}{each.status.name}", f"{REFUSES}{each.status.refuses}", each.status.heard_ms)
            for each in self.hosts
            if each.status.refuses and not each.is_lost
        )
        told = (
            Notice(notice.agent, f"{notice.message} (host {each.status.name})", notice.at_ms)
            for each in self.hosts
            if not each.is_lost
            for notice in each.said.standing
        )
        return sorted((*lost, *refusing, *told), key=lambda notice: notice.at_ms)

    def _take(self, host: Host) -> Iterator[tuple[str, str]]:
        """Yield the notices of a host that are new, as agent and message."""
        name, said = host.status.name, host.said
        last = self._heard.get((name, said.began_ms), 0)
        fresh = [each for each in said.news if each.number > last]
        self._heard[name, said.began_ms] = max([last, *(each.number for each in fresh)])
        return ((each.agent, each.message) for each in fresh)

    def _changes(self) -> Iterator[tuple[str, str]]:
        """Yield a notice for each host that comes, drains, is lost, or has left."""
        states = {each.status.name: _state(each) for each in self.hosts}
        before, self._states = self._states, states
        known = {each.status.name: each for each in self.hosts}
        for name in sorted(states.keys() | (before or {}).keys()):
            was, now = (before or {}).get(name, ""), states.get(name, "")
            if was == now or (before is None and now in {AT_WORK, DRAINING}):
                continue
            about = f"{_ABOUT}{name}"
            if now == LOST:
                yield about, _lost(known[name])
            elif now == DRAINING:
                yield about, "drains: it takes no new work"
            elif now == AT_WORK or not now:
                yield about, "takes work" if now else "has left"
            else:
                yield about, now


def _state(host: Host) -> str:
    """Return the state of a host; if it takes no work, why."""
    status = host.status
    return f"{REFUSES}{status.refuses}" if status.state == AT_WORK and status.refuses else status.state


def _lost(host: Host) -> str:
    """Return that a host is lost, in words."""
    had = f"; it had {', '.join(host.status.agents)}" if host.status.agents else ""
    return f"is lost: it is silent for longer than {host.said.detection_ms / 1_000:g} s{had}"
