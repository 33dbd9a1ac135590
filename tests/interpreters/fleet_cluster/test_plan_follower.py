"""A host works by the plan in force only: with another fleet file it takes no work, and begins nothing."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("temporalio", reason="needs the extra temporal")

from lifefold.interpreters.fleet_cluster.host import HostFolders
from lifefold.interpreters.fleet_cluster.plan_follower import AGAIN_S, PlanFollower
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner.blocked_merges import Waits
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.handlers import Handlers
from lifefold.interpreters.fleet_runner.hosts import BrainSaid, digest_of
from lifefold.interpreters.store import Members, SqliteStore
from lifefold.interpreters.temporal.wire import Attend, Place, Slot, Times
from small_fleet_file import SMALL_FLEET

pytestmark = pytest.mark.anyio

BOB = '[[agents]]\nname = "bob"\ncommand = ["true"]\n'
WORK = Attend("demo", "worker/ann", Slot("session", "RunSession", 1), Place(1, 0), "queue", Times())


class Following:
    """A host's fleet file, its handlers, and the log in which the brain says its plan."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "fleet.toml"
        self.file.write_text(SMALL_FLEET)
        self.store = SqliteStore.create(folder / "log.db", {})
        place = FleetFolder(folder / "log.db")
        workplace = HostFolders.open(place.worktrees)
        self.handlers = Handlers(load(self.file), place, workplace, run="run", waits=Waits())
        self.now_s = 0.0
        self.follower = PlanFollower(self.handlers, self.store, lambda: self.now_s)

    async def says(self, text: str, change: int = 1) -> None:
        """Let the brain say that the plan of a fleet file is in force."""
        other = self.file.with_name("brain.toml")
        other.write_text(text)
        said = BrainSaid("brain.example", 1, 1, digest_of(load(other).meaning), change)
        await self.store.say_as_writer(msgspec.json.encode(said).decode())


@pytest.fixture(name="host")
def _host(tmp_path: Path) -> Iterator[Following]:
    host = Following(tmp_path)
    yield host
    host.store.close()


async def test_a_host_without_word_of_a_brain_takes_work(host: Following) -> None:
    """Its fleet file was that of the brain when it began."""
    assert await host.follower.follow()
    await host.says(SMALL_FLEET)
    assert await host.follower.may_begin(WORK)
    assert host.follower.refusal == ""


async def test_a_host_with_another_fleet_file_waits_for_that_of_the_brain(host: Following) -> None:
    """Operators see why, and the host goes on by itself."""
    await host.says(SMALL_FLEET + BOB, change=3)
    assert not await host.follower.may_begin(WORK)
    assert "is not the fleet file with change 3 in force; copy that of the brain there" in host.follower.refusal
    (wait,) = host.handlers.operator.waits.present
    assert (wait.agent, "waits to begin its work" in wait.said) == ("ann", True)
    assert host.handlers.fleet.named("bob") is None
    host.file.write_text(SMALL_FLEET + BOB)
    host.now_s += AGAIN_S
    assert await host.follower.may_begin(WORK)
    assert host.handlers.fleet.named("bob") is not None
    assert host.handlers.operator.waits.present == ()
    assert host.handlers.notices[-1] == ("demo", "follows its fleet file: change 3 is in force")


async def test_all_work_that_waits_reads_the_fleet_file_once_in_a_second(
    host: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a host with many agents would do nothing else. A host that does not refuse asks for each activity."""
    looks: list[float] = []
    members = host.store.members

    async def counted() -> Members:
        looks.append(host.now_s)
        return await members()

    monkeypatch.setattr(host.store, "members", counted)
    await host.says(SMALL_FLEET)
    assert [await host.follower.may_begin(WORK) for _ in range(2)] == [True, True]
    assert looks == [0.0, 0.0]
    await host.says(SMALL_FLEET + BOB)
    for now_s in (1.0, 1.5, 2.0):
        host.now_s = now_s
        assert [await host.follower.may_begin(WORK) for _ in range(3)] == [False, False, False]
    assert looks == [0.0, 0.0, 1.0, 2.0]


async def test_an_unreadable_fleet_file_is_named(host: Following) -> None:
    """An editor may have written a half of it."""
    await host.says(SMALL_FLEET + BOB)
    host.file.write_text("[fleet")
    assert not await host.follower.follow()
    assert "its fleet file cannot be read: " in host.follower.refusal


async def test_the_word_of_an_earlier_brain_is_not_believed(host: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby of the database that is behind may still show it."""
    await host.says(SMALL_FLEET)
    earlier = await host.store.members()
    await host.says(SMALL_FLEET + BOB, change=2)
    now = await host.store.members()
    assert now.writer is not None
    shown = [now._replace(writer=now.writer._replace(epoch=now.writer.epoch + 1)), earlier]

    async def behind() -> Members:
        return shown[0]

    monkeypatch.setattr(host.store, "members", behind)
    assert not await host.follower.follow()
    del shown[0]
    assert not await host.follower.follow()
    host.store.close()
    monkeypatch.undo()
    with SqliteStore.open(host.store.path) as newest:
        word = (await newest.members()).writer
        assert word is not None
        await newest.say_as_writer(word.said)
        assert (await newest.members()).writer == word._replace(epoch=word.epoch + 1)


async def test_a_removed_agent_stays_known(host: Following) -> None:
    """It may have a session here."""
    host.file.write_text(SMALL_FLEET + BOB)
    await host.says(SMALL_FLEET + BOB)
    assert await host.follower.follow()
    host.file.write_text(SMALL_FLEET)
    await host.says(SMALL_FLEET, change=2)
    assert await host.follower.follow()
    assert host.handlers.fleet.named("bob") is not None
