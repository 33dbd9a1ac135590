"""The name of a host, which one process at a time may have. The other process is only its row here."""

import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
import pytest
from anyio import to_thread

pytest.importorskip("temporalio", reason="needs the extra temporal")

from temporalio.client import Client

from lifefold.interpreters.cli import host_lines
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.cli.commands import clustering
from lifefold.interpreters.fleet_cluster import FleetHost, NameTakenError
from lifefold.interpreters.fleet_cluster.host_name import ALONE_AGAIN
from lifefold.interpreters.fleet_cluster.presence import Presence
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner.hosts import HOST, HostSaid, hosts_of
from lifefold.interpreters.fleet_runner.log_owner import NONE_BEFORE, written_of
from lifefold.interpreters.store import SqliteStore, Unwritable
from lifefold.interpreters.temporal import Cluster, Times
from lifefold.interpreters.worktrees.workplace import FolderWorkplace
from small_fleet_file import SMALL_FLEET

pytestmark = pytest.mark.anyio

OTHER: Final = HostSaid("m2.example", 812, 1, 3_600_000, room=1)
"""A process that is heard for an hour after its words."""

HERE: Final = socket.gethostname()


class Reached(Cluster):
    """A cluster whose server answers."""

    def of_log(self, run: str) -> "Reached":
        """Return itself."""
        assert run
        return self

    async def is_reached(self, within_ms: int) -> bool:
        """Answer."""
        return within_ms > 0


class Fleet:
    """A fleet whose brain has begun its log, and the rows of its hosts."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        (folder / "fleet.toml").write_text(SMALL_FLEET)
        self.file: Final = folder / "fleet.toml"
        self.fleet: Final = load(self.file)
        self.log: Final = folder / "log.db"
        self.cluster: Final = cluster

    async def open(self) -> FleetHost:
        """Open the host ``one``."""
        return await FleetHost.open(self.fleet, self.log, self.cluster, "one", pools={"default": 1})

    async def say(self, **more: Any) -> None:
        """Let another process speak as the host ``one``."""
        words = msgspec.json.encode(msgspec.structs.replace(OTHER, **more)).decode()
        with SqliteStore.peek(self.log) as store:
            await store.say(f"{HOST}one", words)

    async def processes(self) -> list[int]:
        """Return the process in the row of each host."""
        with SqliteStore.peek(self.log) as store:
            return [each.said.process for each in await hosts_of(store)]


@pytest.fixture(name="fleet")
async def _fleet(tmp_path: Path) -> Fleet:
    client = await Client.connect("127.0.0.1:1", lazy=True)
    fleet = Fleet(tmp_path, Reached(client, "demo", Times(detection_ms=3_600_000)))
    made = await written_of(fleet.fleet, FolderWorkplace(tmp_path), NONE_BEFORE)
    SqliteStore.create(fleet.log, made).close()
    return fleet


@pytest.fixture(name="host")
async def _host(fleet: Fleet) -> AsyncIterator[FleetHost]:
    host = await fleet.open()
    yield host
    host.close()


async def test_a_host_whose_name_another_machine_has_is_refused(fleet: Fleet) -> None:
    """The message says where the other one is, and what to do. Nothing is made."""
    await fleet.say()
    before = sorted(fleet.log.parent.rglob("*"))
    with pytest.raises(NameTakenError) as refused:
        await fleet.open()
    said = str(refused.value)
    assert said.startswith("another host has the name one: process 812 on m2.example, heard ")
    assert "Give this host another name by --name. If that process has died, begin again in 3" in said
    assert sorted(fleet.log.parent.rglob("*")) == before
    assert await fleet.processes() == [812]


async def test_the_command_of_a_host_whose_name_is_taken_is_refused(
    fleet: Fleet, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it says that it takes work, also if the other one begins at the same time."""

    async def connected(*_arguments: object) -> Cluster:
        return fleet.cluster

    async def in_between(_presence: object) -> None:
        raise NameTakenError("another host has the name one: it has begun at the same time")

    monkeypatch.setattr(clustering, "cluster_of", connected)
    words = ("host", str(fleet.file), "--server", "127.0.0.1:1", "--db", str(fleet.log), "--name", "one")
    with monkeypatch.context() as at_once:
        at_once.setattr(Presence, "begin", in_between)
        assert await to_thread.run_sync(main, words) == 2
    await fleet.say()
    assert await to_thread.run_sync(main, words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    first, second = said.err.splitlines()[0], said.err.splitlines()[-1]
    assert "it has begun at the same time" in first
    assert "process 812 on m2.example" in second


async def test_a_host_whose_name_a_live_process_here_has_is_refused(fleet: Fleet) -> None:
    """A host that drains still has its name."""
    await fleet.say(machine=HERE, process=os.getppid(), is_draining=True)
    with pytest.raises(NameTakenError, match=r"s ago, and drains\."):
        await fleet.open()


@pytest.mark.parametrize(
    "dead",
    [{"machine": HERE, "process": 2**22 + 1}, {"machine": HERE, "process": os.getpid()}, {"detection_ms": 0}],
    ids=["dead-here", "its-number-is-used-again", "lost"],
)
async def test_a_host_takes_the_name_of_a_dead_one_at_once(fleet: Fleet, dead: dict[str, Any]) -> None:
    """So a host that is killed begins again. One of another machine counts as dead when it is lost."""
    await fleet.say(**dead)
    host = await fleet.open()
    await host.presence.begin()
    host.close()
    assert await fleet.processes() == [os.getpid()]


async def test_one_of_two_hosts_that_begin_at_the_same_time_has_the_name(
    fleet: Fleet, host: FleetHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process writes its first words after this one has looked."""
    first_words = SqliteStore.say_instead

    async def late(store: SqliteStore, member: str, said: str, heard_ms: int) -> bool:
        await fleet.say()
        return await first_words(store, member, said, heard_ms)

    monkeypatch.setattr(SqliteStore, "say_instead", late)
    with pytest.raises(NameTakenError, match="process 812"):
        await host.presence.begin()
    assert await fleet.processes() == [812]


async def test_a_host_that_may_not_write_its_row_works(host: FleetHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, once."""
    told: list[str] = []
    host.presence.warn = told.append

    async def refused(*_arguments: object) -> bool:
        raise Unwritable("this user may not do that")

    monkeypatch.setattr(SqliteStore, "say_instead", refused)
    for _ in range(2):
        await host.presence.begin()
    assert told == ["this host works, and no command shows it: this user may not do that"]


async def test_a_host_says_once_that_another_process_writes_its_row(fleet: Fleet, host: FleetHost) -> None:
    """Such as one that was frozen for longer than the detection time. The notice ends when the other one has left."""
    told: list[str] = []
    host.presence.warn = told.append
    await host.presence.begin()
    await host.presence.say()
    for _ in range(3):
        await fleet.say()
        await host.presence.say()
    expected = (
        "is not alone: process 812 on m2.example has its name, too. They take each other's work."
        " End one of them, and begin it again with another --name"
    )
    assert told == [f"the host one {expected}"]
    assert host.handlers.notices == [("host one", expected)]
    with SqliteStore.peek(fleet.log) as store:
        assert [*host_lines.about_themselves(await hosts_of(store))] == [f"host one {expected}"]
        for _ in range(ALONE_AGAIN + 1):
            await host.presence.say()
        assert [*host_lines.about_themselves(await hosts_of(store))] == []
    await fleet.say()
    await host.presence.say()
    assert len(told) == 2


async def test_a_host_that_leaves_another_process_with_its_name_leaves_the_row(fleet: Fleet, host: FleetHost) -> None:
    """Its last words would hide that the other one takes work."""
    await host.presence.begin()
    await host.presence.say()
    await fleet.say()
    await host.presence.say()
    host.drain()
    await fleet.say()
    await host.presence.say()
    await host.presence.end()
    assert await fleet.processes() == [812]


async def test_the_first_words_of_a_host_may_replace_those_of_a_dead_one(fleet: Fleet, host: FleetHost) -> None:
    """A log that did not answer when the host began is no reason for a notice."""
    await fleet.say()
    with anyio.fail_after(60):
        await host.presence.say()
    assert host.handlers.notices == []
