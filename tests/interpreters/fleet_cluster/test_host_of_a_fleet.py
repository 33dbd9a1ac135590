"""What a host of a fleet does beside its sessions: it keeps rooms for agents, and tells notifiers of blocked merges."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import anyio
import pytest

pytest.importorskip("temporalio", reason="needs the extra temporal")

from temporalio.client import Client

from lifefold.core.fleet import opening, service, system
from lifefold.core.fleet.board import notifier
from lifefold.core.fleet.service import invocation
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.kernel import Aggregate, Envelope, encode, replace
from lifefold.core.kernel.snapshot import must_recover
from lifefold.core.lifecycles import process, session
from lifefold.effects import AwaitTrigger, Notification, NotificationKind
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.engine.activities import Key
from lifefold.interpreters.engine.ledger import LogMismatchError
from lifefold.interpreters.fleet_cluster.blocked_merges import BlockedMerges
from lifefold.interpreters.fleet_cluster.host import HostFolders, keeps_room
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner.blocked_merges import Waits
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.handlers import Handlers
from lifefold.interpreters.store import SqliteStore, StoreError
from lifefold.interpreters.temporal import Cluster, Commits, Performer
from lifefold.interpreters.temporal.wire import Commit, Perform, Place
from small_fleet_file import SMALL_FLEET

pytestmark = pytest.mark.anyio

SOON_S: Final = 60.0

NOTIFY: Final = """
[[notify]]
on = "blocked merge"
run = ["true"]
[[notify]]
on = "closed"
run = ["true"]
"""
SERVICE: Final = """
[[agents]]
name = "cron"
kind = "service"
command = ["true"]
triggers = [{ every = "10m" }]
"""
BLOCKED: Final = Notification(NotificationKind.BLOCKED_MERGE, "the merge of t waits: a lock", "t", "ann")


class Deciding(Cluster):
    """A cluster whose workflows have their inputs decided by a brain in this process."""

    commits: Commits
    known = 0

    async def decide(self, aggregate: str, envelope: Envelope, child: str = "") -> str:
        """Decide on an input at once."""
        assert not child
        done = await self.commits.commit(Commit(aggregate, self.known, self.known, (encode(envelope).decode(),)))
        self.known = done.version
        return done.answers[0]


class Blocked:
    """The part of a host that tells of blocked merges, and the board of its fleet."""

    def __init__(self, folder: Path, text: str, client: Client) -> None:
        (folder / "fleet.toml").write_text(text)
        self.fleet: Final = load(folder / "fleet.toml")
        self.store: Final = SqliteStore.create(folder / "log.db", {})
        self.cluster: Final = Deciding(client, "demo")
        self.cluster.commits = self.commits = Commits(system, self.store)
        place = FleetFolder(folder / "log.db")
        handlers = Handlers(self.fleet, place, HostFolders.open(place.worktrees), run="run", waits=Waits())
        self.performer: Final = Performer(system, self.store, handlers.interpreter(), self.cluster)
        self.merges: Final = BlockedMerges(handlers, self.performer)

    async def begin(self) -> None:
        """Open the aggregates of the fleet."""
        await self.commits.load()
        for name, envelope in opening(self.fleet.plan, 0):
            await self.commits.commit(Commit(name, 0, 0, (encode(envelope).decode(),)))
        self.cluster.known = self.commits.aggregates["board"].version

    async def tell(self, key: str) -> None:
        """Let a merge wait, and return when all notifiers have heard of it that are to hear."""
        self.merges.tell(BLOCKED, key)
        await anyio.wait_all_tasks_blocked()
        while self.performer.is_reporting("board"):
            await self.performer.activities.changed.wait()

    def waiting(self, number: int = 1) -> tuple[Notification, ...]:
        """Return the notifications that wait at a notifier."""
        record: notifier.Notifier = self.commits.aggregates["board"].record(f"notifier:{number}")
        return record.waiting


@pytest.fixture(name="blocked")
async def _blocked(tmp_path: Path) -> AsyncIterator[Blocked]:
    blocked = Blocked(tmp_path, SMALL_FLEET + NOTIFY, await Client.connect("127.0.0.1:1", lazy=True))
    await blocked.begin()
    yield blocked
    blocked.store.close()


async def test_the_notifiers_that_listen_hear_of_a_blocked_merge_once(blocked: Blocked) -> None:
    """The merge is tried again and again. The next claim of the task is another one."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(blocked.performer.run)
        for key in ("t/1", "t/1", "t/2"):
            await blocked.tell(key)
        tasks.cancel_scope.cancel()
    assert blocked.waiting(1) == (BLOCKED, BLOCKED)
    assert blocked.waiting(2) == ()


@pytest.mark.parametrize("error", [StoreError("away"), LogMismatchError("damaged"), KeyError("board")])
async def test_a_host_that_cannot_read_the_board_goes_on(
    blocked: Blocked, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The next try of the merge tells the notifiers."""

    async def unreadable(_name: str) -> Aggregate:
        raise error

    async with anyio.create_task_group() as tasks:
        await tasks.start(blocked.performer.run)
        with monkeypatch.context() as away:
            away.setattr(blocked.performer.reader, "present", unreadable)
            await blocked.tell("t/1")
        assert blocked.waiting(1) == ()
        await blocked.tell("t/1")
        tasks.cancel_scope.cancel()
    assert blocked.waiting(1) == (BLOCKED,)


async def test_a_fleet_without_notifiers_reads_no_board(tmp_path: Path) -> None:
    """A try of a merge costs nothing more then."""
    blocked = Blocked(tmp_path, SMALL_FLEET, await Client.connect("127.0.0.1:1", lazy=True))
    blocked.merges.tell(BLOCKED, "t/1")  # which would need a performer at work otherwise
    assert blocked.performer.ledger.aggregates == {}
    blocked.store.close()


async def always() -> bool:
    """Tell that the host has the aggregate."""
    return True


def fleet_at_begin(folder: Path) -> Ledger:
    """Return a fleet with an agent and a service, which have just begun."""
    (folder / "fleet.toml").write_text(SMALL_FLEET + SERVICE)
    ledger = Ledger(system)
    for name, envelope in opening(load(folder / "fleet.toml").plan, 0):
        ledger.decide(name, envelope)
    return ledger


def with_record(of: Aggregate, ref: str, **changed: object) -> Aggregate:
    """Return an aggregate with another record of an entity."""
    entity = of.entities[ref]
    return replace(of, entities=of.entities.set(ref, replace(entity, record=replace(entity.record, **changed))))


@pytest.mark.parametrize("state", list(assignment.State))
def test_an_agent_keeps_its_room_while_it_holds_work_that_it_has_begun(tmp_path: Path, state: assignment.State) -> None:
    """Otherwise it is free, although its worker is never settled while the fleet goes on."""
    of = fleet_at_begin(tmp_path).aggregates["worker/ann"]
    now = with_record(of, "assignment", state=state)
    has_begun = state in {assignment.State.WORKING, *assignment.ON_ITS_WAY}
    assert keeps_room(system.type_of(of.name), now) is has_begun
    running = with_record(now, "session", state=session.State.RUNNING)
    assert keeps_room(system.type_of(of.name), running)
    assert must_recover(system.type_of(of.name), now)


def test_a_service_keeps_its_room_until_it_is_down_for_good(tmp_path: Path) -> None:
    """It may wait for its next run."""
    of = fleet_at_begin(tmp_path).aggregates["service/cron"]
    assert keeps_room(system.type_of(of.name), of)
    down = with_record(of, service.PROCESS, state=process.State.STOPPED)
    assert service.is_down(down)
    assert not keeps_room(system.type_of(of.name), down)


@pytest.mark.parametrize("desired", sorted(desired_state.RESTS))
def test_an_agent_that_rests_keeps_its_room_until_nothing_of_it_is_at_work(
    tmp_path: Path, desired: desired_state.State
) -> None:
    """An operator may pause it for days. Its session is interrupted first, and a merge on its way is finished."""
    of = fleet_at_begin(tmp_path).aggregates["worker/ann"]
    resting = with_record(of, "desired_state", state=desired)
    paused = with_record(resting, "assignment", state=assignment.State.WORKING)
    assert not keeps_room(system.type_of(of.name), paused)
    assert keeps_room(system.type_of(of.name), with_record(paused, "session", state=session.State.RUNNING))
    assert keeps_room(system.type_of(of.name), with_record(resting, "assignment", state=assignment.State.MERGING))


@pytest.mark.parametrize("desired", sorted(desired_state.RESTS))
def test_a_service_that_rests_keeps_its_room_until_its_run_has_ended(
    tmp_path: Path, desired: desired_state.State
) -> None:
    """A suspended service is not down."""
    of = fleet_at_begin(tmp_path).aggregates["service/cron"]
    resting = with_record(of, "desired_state", state=desired)
    assert not keeps_room(system.type_of(of.name), resting)
    running = with_record(resting, invocation.REF, state=invocation.State.RUNNING)
    assert keeps_room(system.type_of(of.name), running)


async def test_an_effect_of_a_service_does_not_wait_for_what_rules_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No host ever begins the activity ``ServeTriggers``. Each effect would wait for it for the detection time."""
    blocked = Blocked(tmp_path, SMALL_FLEET + SERVICE, await Client.connect("127.0.0.1:1", lazy=True))
    await blocked.begin()
    performer = blocked.performer

    def is_known(key: Key) -> bool:
        return key.slot == AwaitTrigger.__name__

    monkeypatch.setattr(performer.activities, "is_known", is_known)
    with anyio.fail_after(SOON_S):
        assert await performer.perform(Perform("service/cron", Place(1, 0)), 1_000 * 60 * 60, always)
    blocked.store.close()
