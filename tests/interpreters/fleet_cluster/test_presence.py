"""What a host says of itself, and when it is silent. The server is none here."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

pytest.importorskip("temporalio", reason="needs the extra temporal")

from temporalio.client import Client

from lifefold.interpreters.cli.commands import clustering
from lifefold.interpreters.fleet_cluster.host import FleetHost
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner.hosts import hosts_of
from lifefold.interpreters.fleet_runner.log_owner import NONE_BEFORE, written_of
from lifefold.interpreters.processes.session_process import SessionProcess
from lifefold.interpreters.store import SqliteStore, Unwritable
from lifefold.interpreters.temporal import Cluster, Times
from lifefold.interpreters.worktrees.workplace import FolderWorkplace
from small_fleet_file import SMALL_FLEET

pytestmark = pytest.mark.anyio


class Reached(Cluster):
    """A cluster whose server answers, or not."""

    answers = True

    def of_log(self, run: str) -> "Reached":
        """Return itself."""
        assert run
        return self

    async def is_reached(self, within_ms: int) -> bool:
        """Tell whether it answers."""
        assert within_ms
        return self.answers


@pytest.fixture(name="opened")
async def _opened(tmp_path: Path) -> AsyncIterator[tuple[FleetHost, Reached]]:
    (tmp_path / "fleet.toml").write_text(SMALL_FLEET)
    fleet = load(tmp_path / "fleet.toml")
    made = await written_of(fleet, FolderWorkplace(tmp_path), NONE_BEFORE)
    SqliteStore.create(tmp_path / "log.db", made).close()
    client = await Client.connect("127.0.0.1:1", lazy=True)
    cluster = Reached(client, "demo", Times(detection_ms=60_000))
    host = await FleetHost.open(fleet, tmp_path / "log.db", cluster, "one", pools={"large": 3, "small": 1}, capacity=2)
    yield host, cluster
    host.close()


async def test_a_host_says_its_room_its_obstacles_and_its_notices(
    opened: tuple[FleetHost, Reached], tmp_path: Path
) -> None:
    """A notice says in its own words what an operator has to do."""
    host, _ = opened
    host.handlers.operator.in_the_way("ann", "begin its work", "another file")
    await host.presence.say()
    with SqliteStore.peek(tmp_path / "log.db") as store:
        (found,) = await hosts_of(store)
        assert (found.status.name, found.status.state, found.status.room) == ("one", "at work", 2)
        assert [(each.name, each.room, each.used) for each in found.status.pools] == [("large", 3, 0), ("small", 1, 0)]
        assert [each.agent for each in found.said.waits] == ["ann"]
        assert [(each.number, each.agent) for each in found.said.news] == [(1, "ann")]
        host.drain()
        await host.presence.say()
        (found,) = await hosts_of(store)
        assert found.status.state == "draining"
        await host.presence.end()
        assert await hosts_of(store) == ()


async def test_a_host_that_drains_says_so_at_once(
    opened: tuple[FleetHost, Reached],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its sessions may take long. A second signal changes nothing, and nothing is printed again."""
    host, _ = opened
    started = SessionProcess(tmp_path, None, None)
    monkeypatch.setitem(host.handlers.sessions.live, "ann", (1, started))
    for _ in range(2):
        clustering.drain_aloud(host, 600.0)
    assert host.host.is_draining
    assert capsys.readouterr().out == (
        "the host one drains: it takes no more work, and lets 1 session end (at most 600 s)\n"
    )


async def test_a_host_without_its_server_is_silent(opened: tuple[FleetHost, Reached], tmp_path: Path) -> None:
    """It would count as one that takes work otherwise."""
    host, cluster = opened
    cluster.answers = False
    await host.presence.say()
    with SqliteStore.peek(tmp_path / "log.db") as store:
        assert await hosts_of(store) == ()


async def test_a_host_that_may_not_speak_says_so_once_and_works(
    opened: tuple[FleetHost, Reached], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a server a user may have the right to read only."""
    host, _ = opened
    told: list[str] = []
    host.presence.warn = told.append

    async def refused(_self: SqliteStore, _member: str, _said: str) -> None:
        raise Unwritable("this user may not do that")

    monkeypatch.setattr(SqliteStore, "say", refused)
    for _ in range(2):
        await host.presence.say()
    assert told == ["this host works, and no command shows it: this user may not do that"]
