"""What a brain hears of its hosts: their notices once each, and which host comes, drains, is lost or leaves."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("temporalio", reason="needs the extra temporal")

from lifefold.interpreters.fleet_cluster.host_watch import FORGOTTEN_MS, SERVER_IS_AWAY, HostWatch
from lifefold.interpreters.fleet_runner.hosts import HOST, HostSaid, News
from lifefold.interpreters.fleet_runner.notices import Notice
from lifefold.interpreters.store import Member, Members, SqliteStore

NOW_MS = 1_000_000_000
SAID = HostSaid("machine", 7, 1, 10_000, room=4)

pytestmark = pytest.mark.anyio


def row(name: str, said: HostSaid = SAID, silent_ms: int = 0) -> Member:
    """Return the row of a host."""
    return Member(HOST + name, msgspec.json.encode(said).decode(), NOW_MS - silent_ms)


class Watched:
    """A watch, and what is new in it after each look."""

    def __init__(self, store: SqliteStore) -> None:
        self.watch = HostWatch(store)
        self._taken = 0

    def takes(self, *rows: Member) -> list[tuple[str, str]]:
        """Let the hosts say something, and return the new notices."""
        is_new = self.watch.take(Members(NOW_MS, rows))
        new, self._taken = self.watch.notices[self._taken :], len(self.watch.notices)
        assert is_new == bool(new)
        return new


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore.create(tmp_path / "log.db", {}) as store:
        yield store


def test_a_notice_of_a_host_is_told_once(store: SqliteStore) -> None:
    """A host repeats its notices. One that was started again counts from the beginning."""
    watched = Watched(store)
    first = msgspec.structs.replace(SAID, news=(News(1, "ann", "a file is open"),))
    assert watched.takes(row("one", first)) == [("ann", "a file is open (host one)")]
    both = msgspec.structs.replace(SAID, news=(*first.news, News(2, "bob", "waits")))
    assert watched.takes(row("one", both)) == [("bob", "waits (host one)")]
    assert watched.takes(row("one", both)) == []
    again = msgspec.structs.replace(first, began_ms=2)
    assert watched.takes(row("one", again)) == [("ann", "a file is open (host one)")]
    assert watched.takes(row("one", both)) == []  # two processes with one name speak by turns
    assert watched.takes(row("one", again)) == []


def test_the_life_of_a_host_is_told(store: SqliteStore) -> None:
    """Hosts that are at work when a brain begins are no news."""
    watched = Watched(store)
    draining = msgspec.structs.replace(SAID, is_draining=True)
    assert watched.takes(row("one")) == []
    assert watched.takes(row("one"), row("two")) == [("host two", "takes work")]
    busy = msgspec.structs.replace(SAID, agents=("ann", "bob"))
    assert watched.takes(row("one", busy, 10_000), row("two", draining)) == [
        ("host one", "is lost: it is silent for longer than 10 s; it had ann, bob"),
        ("host two", "drains: it takes no new work"),
    ]
    assert watched.takes(row("one")) == [("host one", "takes work"), ("host two", "has left")]


def test_a_notice_that_holds_is_one_of_a_host_that_is_heard(store: SqliteStore) -> None:
    """A lost host is itself a notice that holds."""
    watched = Watched(store)
    waits = msgspec.structs.replace(SAID, standing=(Notice("ann", "waits for a file", NOW_MS - 5),))
    watched.takes(row("one", waits), row("two", waits, 20_000))
    assert watched.watch.standing() == [
        Notice("host two", "is lost: it is silent for longer than 10 s", NOW_MS - 20_000),
        Notice("ann", "waits for a file (host one)", NOW_MS - 5),
    ]


async def test_a_brain_that_begins_tells_what_holds_and_forgets_hosts_of_long_ago(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old news of hosts at work was told by the brain before."""
    said = msgspec.structs.replace(
        SAID, news=(News(1, "ann", "old"),), standing=(Notice("bob", "waits for a file", 1),)
    )
    await store.say(f"{HOST}old", msgspec.json.encode(SAID).decode())
    found = Members(
        NOW_MS, (row("one", said), row("old", silent_ms=FORGOTTEN_MS), row("two", silent_ms=FORGOTTEN_MS - 1))
    )
    with monkeypatch.context() as patch:

        async def members() -> Members:
            return found

        patch.setattr(store, "members", members)
        watched = Watched(store)
        await watched.watch.begin()
    assert watched.watch.notices == [("bob", "waits for a file (host one)")]
    assert (await store.members()).every == ()


def test_a_server_that_is_away_is_told_once_and_its_return_too(store: SqliteStore) -> None:
    """The brain waits for it."""
    watch = HostWatch(store)
    for answers in (True, False, False, True):
        watch.hear_of_server(answers=answers)
    assert watch.notices == [("brain", SERVER_IS_AWAY), ("brain", "Temporal answers again")]


def test_a_host_that_takes_no_work_says_why_and_when_it_does_again(store: SqliteStore) -> None:
    """For example its fleet file is another one, or names a program that is not on its machine."""
    watched = Watched(store)
    refusing = msgspec.structs.replace(SAID, refuses="its fleet file cannot be read: claude is not there")
    why = "takes no work: its fleet file cannot be read: claude is not there"
    assert watched.takes(row("one", refusing)) == [("host one", why)]
    assert watched.takes(row("one", refusing)) == []
    assert watched.watch.standing() == [Notice("host one", why, NOW_MS)]
    assert watched.takes(row("one")) == [("host one", "takes work")]
    assert watched.watch.standing() == []
