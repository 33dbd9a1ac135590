"""The pottery on Temporal: a brain and hosts in this process, on one log, and a server of its own."""

from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup
from temporalio.client import Client, WorkflowHandle

import kiln
from kiln import Announce, Fire, Heat, Kiln
from lifefold.core.kernel import Aggregate, AggregateType, Entity, Envelope, Event, encode
from lifefold.core.kernel.entity import Running
from lifefold.core.kernel.snapshot import must_recover
from lifefold.interpreters.engine import ActivityContext, EffectContext, Interpreter, Ledger
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.temporal import Brain, Cluster, Commits, Host, Performer, Times, connect
from lifefold.interpreters.temporal.host import KeepsRoom
from lifefold.interpreters.temporal.wire import State

FLEET: Final = "pottery"
LOOK_S: Final = 0.05
LONG_S: Final = 40.0
"""How long a test waits for what must happen."""


class ClusterHands:
    """Handlers that remember what they were asked. Fire number 1 burns until ``out``."""

    def __init__(self) -> None:
        self.announced: list[tuple[str, tuple[str, int, int]]] = []
        self.fires: list[ActivityContext] = []
        self.happened: list[str] = []
        self.out = anyio.Event()
        self.changed = anyio.Event()

    def happens(self, what: str) -> None:
        """Note an event, and wake those who wait for it."""
        self.happened.append(what)
        self.changed.set()
        self.changed = anyio.Event()

    async def announce(self, effect: Announce, context: EffectContext) -> None:
        self.announced.append((effect.word, context.identity))
        self.happens(f"announced {effect.word}")

    async def fire(self, activity: Fire, context: ActivityContext) -> None:
        """Burn until it is let go out, and then report one log and seven pots."""
        self.fires.append(context)
        how = "is cleaned up" if context.cleanup_only else "goes on" if context.resumed else "begins"
        self.happens(f"fire {activity.firing} {how}")
        if context.cleanup_only:
            return
        try:
            await self.out.wait()
            assert await context.report(kiln.Stoked())
            assert await context.report(kiln.Fired(7))
        finally:
            self.happens(f"fire {activity.firing} ends")

    def interpreter(self) -> Interpreter:
        """Return the handlers."""
        return Interpreter({Announce: self.announce}, {Fire: self.fire})

    async def until(self, what: str, count: int = 1) -> None:
        """Wait until something has happened that often."""
        with anyio.fail_after(LONG_S):
            while self.happened.count(what) < count:
                await self.changed.wait()


def is_warm(_of: AggregateType, each: Aggregate) -> bool:
    """Tell whether a kiln is not cold."""
    record: Kiln = each.record("kiln")
    return record.state is not Heat.COLD


class ClusterPottery:
    """A pottery with one log."""

    def __init__(self, client: Client, log: Path, times: Times, tasks: TaskGroup) -> None:
        self.cluster: Final = Cluster(client, FLEET, times)
        self.log: Final = log
        self.hands = ClusterHands()
        self.tasks: Final = tasks
        self.commits: Commits
        self.scopes: Final[dict[str, anyio.CancelScope]] = {}
        """The scopes of the hosts by name; cancelling one is the sudden end of its host."""
        self.stores: Final = ExitStack()
        self._store: SqliteStore | None = None
        self._brain: anyio.CancelScope | None = None
        self._ended = anyio.Event()

    async def begin_brain(self) -> None:
        """Start a brain; an earlier one has ended."""
        self._store = SqliteStore.open(self.log) if self.log.exists() else SqliteStore.create(self.log, {})
        self.commits = Commits(kiln.system, self._store)
        self._brain = anyio.CancelScope()
        await self.tasks.start(self._run_brain, Brain(self.cluster, self.commits), self._brain)

    async def _run_brain(
        self, brain: Brain, scope: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        self._ended = anyio.Event()
        with scope:
            await brain.run(task_status=task_status)
        self._ended.set()

    async def end_brain(self) -> None:
        """End the brain."""
        assert self._brain is not None
        assert self._store is not None
        self._brain.cancel()
        await self._ended.wait()
        self._store.close()

    async def begin_host(
        self,
        name: str = "one",
        hands: ClusterHands | None = None,
        *,
        capacity: int = 100,
        keeps_room: KeepsRoom = must_recover,
    ) -> Host:
        """Start a host."""
        reading = self.stores.enter_context(SqliteStore.peek(self.log))
        client = await connect(self.cluster.client.service_client.config.target_host)  # one worker for each queue
        cluster = Cluster(client, FLEET, self.cluster.times)
        performer = Performer(kiln.system, reading, (hands or self.hands).interpreter(), cluster)
        host = Host(cluster, performer, name, capacity=capacity, keeps_room=keeps_room)
        scope = self.scopes[name] = anyio.CancelScope()
        await self.tasks.start(self._run_host, host, scope)
        return host

    async def _run_host(self, host: Host, scope: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with scope:
            await host.run(task_status=task_status)

    def close(self) -> None:
        """Close the log."""
        self.stores.close()
        if self._store is not None:
            self._store.close()

    async def open(self, *kilns: str) -> None:
        """Open the tally and the kilns."""
        for name, envelope in kiln.opened(0, *kilns):
            await self.cluster.offer(name, envelope)

    async def say(self, event: Event, key: str = "", to: str = "kiln/a") -> None:
        """Let the potter do something."""
        await self.cluster.offer(to, Envelope(to.partition("/")[0], event, 0, "potter", key=key))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds of the state of the brain."""
        with anyio.fail_after(LONG_S):
            while not holds():
                await self.commits.changed.wait()

    def entity(self, name: str = "kiln/a") -> Entity[kiln.Kiln] | None:
        """Return a kiln, if it is there."""
        within = self.commits.aggregates.get(name)
        return None if within is None else within.entities.get("kiln")

    def state(self, name: str = "kiln/a") -> str:
        """Return the state of a kiln."""
        found = self.entity(name)
        return "" if found is None else str(found.state)

    @property
    def counted(self) -> tuple[int, ...]:
        """What the tally has counted."""
        within = self.commits.aggregates.get("tally")
        record: kiln.Tally = kiln.Tally() if within is None else within.record("tally")
        return record.counted

    async def leave_command(self, event: Event, to: str = "kiln/a") -> int:
        """Leave an operator command in the log."""
        with SqliteStore.peek(self.log) as store:
            return await store.submit(to, encode(Envelope(to.partition("/")[0], event, 0)))

    async def answers(self) -> list[str | None]:
        """Return the answers to the operator commands."""
        with SqliteStore.peek(self.log) as store:
            return [each.answer for each in await store.commands(unanswered=False)]

    async def kinds(self, stream: str) -> list[str]:
        """Return the names of the events in a stream of the log."""
        codec = self.commits.ledger.codec
        with SqliteStore.peek(self.log) as store:
            return [type(codec.decode(stream, each.envelope).event).__name__ for each in await store.read(stream)]

    def running(self, name: str = "kiln/a") -> tuple[Running, ...]:
        """Return what runs in a kiln."""
        found = self.entity(name)
        return () if found is None else found.running

    async def run_id(self, name: str = "kiln/a") -> str:
        """Return the identity of the present run of an aggregate's workflow; it changes when that continues as new."""
        return (await self.cluster.handle(name).describe()).run_id or ""

    async def child(self, name: str = "kiln/a") -> WorkflowHandle[object, object]:
        """Return the child workflow of the one activity of an aggregate."""
        state = await self.cluster.handle(name).query("state", result_type=State)
        (child,) = state.children
        return self.cluster.client.get_workflow_handle(child.id)

    async def until_lost(self, child: WorkflowHandle[object, object]) -> None:
        """Wait until the server has noticed that no host attends to an activity."""
        with anyio.fail_after(LONG_S):
            while (await child.describe()).raw_description.pending_activities:  # noqa: ASYNC110 - of a server
                await anyio.sleep(LOOK_S)

    async def verified(self) -> int:
        """Decide on the whole log again; return the number of its entries. No stream has a gap or a double."""
        with SqliteStore.peek(self.log) as store:
            ledger = Ledger(kiln.system, rules=rules_version(kiln.system))
            return sum(1 for _ in ledger.verify(await store.read()))


@asynccontextmanager
async def pottery_on(client: Client, folder: Path, times: Times | None = None) -> AsyncGenerator[ClusterPottery]:
    """Run a pottery with a brain and no host during the block."""
    tasks = anyio.create_task_group()
    pottery = ClusterPottery(client, folder / "pottery.db", times or Times(detection_ms=2_000), tasks)
    async with tasks:
        try:
            await pottery.begin_brain()
            yield pottery
        finally:
            tasks.cancel_scope.cancel()
    pottery.close()
