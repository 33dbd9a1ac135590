"""The hosts of a fleet, from what each has said of itself."""

import os
from pathlib import Path

import msgspec
import pytest

from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.fleet_runner.blocked_merges import Wait, Waits
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.hosts import (
    HOST,
    BrainSaid,
    HostSaid,
    Pool,
    SessionThere,
    brain_said,
    digest_of,
    evidence_of,
    hosts_in,
    hosts_of,
    waits_of,
)
from lifefold.interpreters.store import Member, Members, SqliteStore, Unwritable, WriterWord

NOW_MS = 1_000_000

pytestmark = pytest.mark.anyio


def host(name: str, silent_ms: int = 0, **more: object) -> Member:
    """Return the row of a host with a detection time of ten seconds."""
    said = msgspec.structs.replace(HostSaid("machine", 7, 1, 10_000, room=4), **more)
    return Member(HOST + name, msgspec.json.encode(said).decode(), NOW_MS - silent_ms)


def test_a_host_is_lost_after_the_detection_time_of_silence() -> None:
    """It keeps what it had, so that an operator sees what is done elsewhere."""
    rows = (
        host("a", 9_999, agents=("ann",), used=1),
        host("b", 10_000, agents=("bob",), used=1),
        host("c", is_draining=True),
        host("d", 10_000, is_draining=True),
    )
    found = [each.status for each in hosts_in(Members(NOW_MS, rows))]
    assert [(each.name, each.state) for each in found] == [
        ("a", "at work"),
        ("b", "lost"),
        ("c", "draining"),
        ("d", "lost"),
    ]
    assert (found[1].agents, found[1].silent_ms, found[1].heard_ms) == (("bob",), 10_000, NOW_MS - 10_000)


def test_room_and_use_are_those_of_each_pool() -> None:
    """A board takes room, too, and is no agent."""
    pools = (Pool("large", 2, 1), Pool("small", 2, 1))
    (found,) = hosts_in(Members(NOW_MS, (host("a", pools=pools, used=2, agents=("ann",)),)))
    assert (found.status.room, found.status.used, found.status.pools) == (4, 2, pools)


def test_a_row_that_cannot_be_read_is_left_out() -> None:
    """Hosts of another version may speak otherwise."""
    found = Members(NOW_MS, (Member(f"{HOST}a", "{", NOW_MS), Member(f"{HOST}b", '{"machine": 1}', NOW_MS)))
    assert hosts_in(found) == ()


def test_the_brain_is_the_writer_of_the_log() -> None:
    """A row that any process of the cluster can write is not believed."""
    word = msgspec.json.encode(BrainSaid("m", 1, 2, "digest", 3)).decode()
    assert brain_said(Members(NOW_MS, (Member("brain", word, NOW_MS),))) is None
    said = brain_said(Members(NOW_MS, (), WriterWord(7, word)))
    assert said is not None
    assert (said.plan, said.change) == ("digest", 3)
    assert brain_said(Members(NOW_MS, (), WriterWord(7, "{"))) is None


def test_what_agents_wait_for_is_said_by_runners_and_by_hosts(tmp_path: Path) -> None:
    """A lost host waits for nothing any more."""
    folder = FleetFolder(tmp_path / "fleet.db")
    folder.make()
    Waits(folder.waits).seen("ann", "merge T1", "waits to merge T1: a file")
    waits = (Wait("bob", "waits to begin its work: a file", 1, 2),)
    found = hosts_in(Members(NOW_MS, (host("a", waits=waits), host("b", 10_000, waits=waits))))
    assert [each.agent for each in waits_of(folder, found)] == ["ann", "bob"]


def test_the_process_of_an_agent_is_that_which_its_host_says(tmp_path: Path) -> None:
    """The files of its session are on another machine. A lost host is no evidence."""
    folder = FleetFolder(tmp_path / "fleet.db")
    agent = AgentStatus("ann", "Run", "Running", 0, "T1", "Working", 0, 1, 0, 0, 0, 1, None, "")
    sessions = (SessionThere("bob", 1, 2), SessionThere("ann", os.getpid(), 500))
    found = evidence_of(folder, agent, hosts_in(Members(NOW_MS, (host("a", 100, sessions=sessions),))))
    assert found is not None
    assert (found.host, found.pid, found.alive, found.silent_ms) == ("a", os.getpid(), True, 500)
    assert found.observed_ms == NOW_MS - 100
    assert evidence_of(folder, agent, hosts_in(Members(NOW_MS, (host("a", 10_000, sessions=sessions),)))) is None


async def test_a_log_whose_hosts_may_not_be_read_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of a server may have rights for older tables only; all else is shown."""
    with SqliteStore.create(tmp_path / "log.db", {}) as store:

        async def refused() -> Members:
            raise Unwritable("this user may not do that")

        monkeypatch.setattr(store, "members", refused)
        assert await hosts_of(store) == ()


def test_the_digest_of_a_plan_does_not_depend_on_its_order() -> None:
    """A fleet file may name its tables in another order."""
    assert digest_of('{"a": 1, "b": {"c": 2}}') == digest_of('{"b":{"c":2},"a":1}')
    assert digest_of('{"a": 1}') != digest_of('{"a": 2}')
