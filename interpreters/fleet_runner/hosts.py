"""The brain and the hosts of a fleet on several machines, as each says it of itself, for commands and pages.

Each host replaces its words in a table beside the entries of the log (``lifefold.interpreters.store.members``). The
brain speaks in a table that only the writer of the log can write (``lifefold.interpreters.store.writer_word``). So a
command that reads the log knows the hosts, and needs no connection to Temporal. A host speaks only while the server of
Temporal and the log answer it. One that is silent for the detection time is lost.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

import msgspec

from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.fleet_runner.blocked_merges import Wait, read_waits
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.notices import Notice
from lifefold.interpreters.fleet_runner.process_evidence import Evidence, look
from lifefold.interpreters.store import LogStore, Members, StoreError

HOST: Final = "host/"
"""The begin of the name of the row of a host."""

AT_WORK: Final = "at work"
DRAINING: Final = "draining"
LOST: Final = "lost"
"""The states of a host. A draining host takes no new work, and lets its sessions end."""

Said = TypeVar("Said", bound=msgspec.Struct)


class BrainSaid(msgspec.Struct, frozen=True):
    """What a brain says of itself. ``plan`` is the digest of the plan in force, ``change`` the number of its change.

    ``began_ms`` is a time of the clock of its machine, in Unix milliseconds.
    """

    machine: str
    process: int
    began_ms: int
    plan: str
    change: int = 0


class Pool(msgspec.Struct, frozen=True):
    """A pool of a host: how many agents and services of it may work there at a time, and how many do."""

    name: str
    room: int
    used: int


class SessionThere(msgspec.Struct, frozen=True):
    """A session on a host: its process, and the time without output or heartbeat, in milliseconds."""

    agent: str
    pid: int
    silent_ms: int


class News(msgspec.Struct, frozen=True):
    """A notice of a host, with its number among those of this process."""

    number: int
    agent: str
    message: str


class HostSaid(msgspec.Struct, frozen=True):
    """What a host says of itself.

    ``room`` is the number of agents and services that may work there at a time, ``used`` the number of those
    that do. ``agents`` are the agents and services among them. ``waits`` are its obstacles, ``standing`` its notices
    that hold, ``news`` its latest notices. ``refuses`` says why it takes no work; it is empty if it does. ``began_ms``
    is a time of the clock of its machine.
    """

    machine: str
    process: int
    began_ms: int
    detection_ms: int
    room: int
    used: int = 0
    pools: tuple[Pool, ...] = ()
    agents: tuple[str, ...] = ()
    sessions: tuple[SessionThere, ...] = ()
    is_draining: bool = False
    refuses: str = ""
    waits: tuple[Wait, ...] = ()
    standing: tuple[Notice, ...] = ()
    news: tuple[News, ...] = ()


class HostStatus(msgspec.Struct, frozen=True):
    """A host, as operators see it. ``state`` is ``at work``, ``draining`` or ``lost``.

    ``room`` is the number of agents and services that may work there at a time, ``used`` the number of those
    that do. ``agents`` are the agents and services among them. ``pools`` has room and use of each pool. ``heard_ms`` is
    the time of its last word by the clock of the log's database, in Unix milliseconds. ``silent_ms`` is the time since
    then. ``since_ms`` is the begin of its process by its own clock. A lost host has what it had when it was last heard.
    ``refuses`` says why it takes no work; it is empty if it does.
    """

    name: str
    state: str
    machine: str
    process: int
    since_ms: int
    heard_ms: int
    silent_ms: int
    room: int
    used: int
    pools: tuple[Pool, ...]
    agents: tuple[str, ...]
    sessions: tuple[SessionThere, ...]
    refuses: str


class Host(NamedTuple):
    """A host: its status, and what it said last."""

    status: HostStatus
    said: HostSaid

    @property
    def is_lost(self) -> bool:
        """Whether the host is silent for the detection time, so that its work is done elsewhere."""
        return self.status.state == LOST


def hosts_in(found: Members) -> tuple[Host, ...]:
    """Return the hosts by name. A row of another version of this program is left out."""
    every = ((each, said_by(each.said)) for each in found.every if each.name.startswith(HOST))
    return tuple(
        Host(_status(each.name.removeprefix(HOST), said, each.heard_ms, found.now_ms), said)
        for each, said in every
        if said is not None
    )


def _status(name: str, said: HostSaid, heard_ms: int, now_ms: int) -> HostStatus:
    silent_ms = max(0, now_ms - heard_ms)
    return HostStatus(
        name=name,
        state=LOST if silent_ms >= said.detection_ms else DRAINING if said.is_draining else AT_WORK,
        machine=said.machine,
        process=said.process,
        since_ms=said.began_ms,
        heard_ms=heard_ms,
        silent_ms=silent_ms,
        room=said.room,
        used=said.used,
        pools=said.pools,
        agents=said.agents,
        sessions=said.sessions,
        refuses=said.refuses,
    )


def said_by(row: str) -> HostSaid | None:
    """Return what the row of a host says; None if it is of another version of this program."""
    return _read(row, HostSaid)


def brain_said(found: Members) -> BrainSaid | None:
    """Return what the brain says, which is the writer of the log; None without a brain."""
    return None if found.writer is None else _read(found.writer.said, BrainSaid)


async def hosts_of(store: LogStore) -> tuple[Host, ...]:
    """Return the hosts of the fleet of a log by name; none in the past, and if this user may not read them."""
    with contextlib.suppress(StoreError):
        return hosts_in(await store.members())
    return ()


def waits_of(folder: FleetFolder, hosts: Iterable[Host]) -> tuple[Wait, ...]:
    """Return what agents wait for: as a runner has written it down, and as hosts say it that are not lost."""
    return (*read_waits(folder.waits), *(wait for each in hosts if not each.is_lost for wait in each.said.waits))


def evidence_of(folder: FleetFolder, agent: AgentStatus, hosts: Iterable[Host]) -> Evidence | None:
    """Return the evidence of the process of an agent: what its host says, or what is found on this machine."""
    for status in (each.status for each in hosts if not each.is_lost):
        for there in status.sessions:
            if there.agent == agent.name:
                return Evidence(
                    there.pid, alive=True, observed_ms=status.heard_ms, silent_ms=there.silent_ms, host=status.name
                )
    return look(folder, agent)


@lru_cache(maxsize=4)
def digest_of(meaning: str) -> str:
    """Return a digest of the meaning of a fleet file, which the brain and its hosts compare."""
    same: Mapping[str, object] = json.loads(meaning)
    return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:16]


def _read(said: str, kind: type[Said]) -> Said | None:
    try:
        return msgspec.json.decode(said, type=kind)
    except (msgspec.DecodeError, UnicodeError):
        return None
