"""A harness for the engine: logs that outlive engines, a store with a tap, a clock that stands still, handlers."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol, TypeVar

import anyio
from anyio.lowlevel import checkpoint

import kiln
from kiln import Announce, Fire
from lifefold.core.kernel import Entity, Envelope, Event, Reaction, Refusal
from lifefold.interpreters.engine import ActivityContext, Clock, EffectContext, Engine, Interpreter, OnError
from lifefold.interpreters.store import Batch, Entry, MemoryStore, Resumption, Shelf, SqliteStore, StoredCommand

T = TypeVar("T")

CALM: Final = 100
"""How many turns of the event loop without any use of the store count as quiet."""

START_MS: Final = 1_000_000


class VirtualClock:
    """A clock that stands still until it is set, in either direction."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self._now_ms = now_ms
        self._moved = anyio.Event()
        self.awaited: list[int] = []

    def now_ms(self) -> int:
        return self._now_ms

    async def sleep_until(self, at_ms: int) -> None:
        await checkpoint()
        self.awaited.append(at_ms)
        try:
            while self._now_ms < at_ms:
                await self._moved.wait()
        finally:
            self.awaited.remove(at_ms)

    def set(self, now_ms: int) -> None:
        """Let it be another time."""
        self._now_ms = now_ms
        self._moved.set()
        self._moved = anyio.Event()

    def go_on(self) -> None:
        """Advance to the next time that a sleeper waits for."""
        self.set(max(self._now_ms, min(self.awaited, default=self._now_ms)))


class Log(Protocol):
    """A log that outlives its writers."""

    def open(self) -> MemoryStore | SqliteStore:
        """Open it for writing; the writer before is gone."""
        ...

    def close(self) -> None:
        """Let the last writer go."""
        ...


class MemoryLog:
    """A log on a shelf."""

    def __init__(self) -> None:
        self._shelf = Shelf()

    def open(self) -> MemoryStore | SqliteStore:
        return MemoryStore(self._shelf)

    def close(self) -> None:
        pass


class SqliteLog:
    """A log in a file."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._store: SqliteStore | None = None

    def open(self) -> MemoryStore | SqliteStore:
        self.close()
        known = self.path.exists()
        self._store = SqliteStore.open(self.path) if known else SqliteStore.create(self.path, {})
        return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


async def _nothing(_batch: Batch) -> None:
    pass


class TappedStore:
    """A store with a tap: what is put into ``before`` and ``after`` happens with each batch, there."""

    def __init__(self, inner: "MemoryStore | SqliteStore | TappedStore") -> None:
        self.inner: Final = inner
        self.busy = 0
        self.before: Callable[[Batch], Awaitable[None]] = _nothing
        self.after: Callable[[Batch], Awaitable[None]] = _nothing

    async def append(self, batch: Batch) -> None:
        await self.before(batch)
        await self._busy(self.inner.append(batch))
        await self.after(batch)

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        return await self._busy(self.inner.read(stream, after))

    async def performed(self) -> Mapping[str, int]:
        return await self._busy(self.inner.performed())

    async def resumed(self, form: str) -> Resumption:
        return await self._busy(self.inner.resumed(form))

    async def drop_snapshot(self) -> None:
        await self._busy(self.inner.drop_snapshot())

    async def known_keys(self, keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        return await self._busy(self.inner.known_keys(keys))

    async def submit(self, stream: str, envelope: bytes) -> int:
        return await self._busy(self.inner.submit(stream, envelope))

    async def commands(self, *, unanswered: bool = True) -> Sequence[StoredCommand]:
        return await self._busy(self.inner.commands(unanswered=unanswered))

    async def _busy(self, work: Awaitable[T]) -> T:
        self.busy += 1
        try:
            return await work
        finally:
            self.busy -= 1


class Hands:
    """Handlers that remember what they were asked. A fire burns until it is cancelled, or until it is let go out."""

    def __init__(self) -> None:
        self.announced: list[tuple[str, tuple[str, int, int]]] = []
        self.fires: list[ActivityContext] = []
        self.happened: list[str] = []
        self.out = anyio.Event()
        self.swept = anyio.Event()
        self.swept.set()

    async def announce(self, effect: Announce, context: EffectContext) -> None:
        await checkpoint()
        self.announced.append((effect.word, context.identity))

    async def fire(self, activity: Fire, context: ActivityContext) -> None:
        """Burn; and when that is over sweep, which takes until a test says so."""
        self.fires.append(context)
        self.happened.append(f"fire {activity.firing} begins")
        try:
            await self.out.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await self.swept.wait()
            self.happened.append(f"fire {activity.firing} ends")

    def interpreter(self) -> Interpreter:
        return Interpreter({Announce: self.announce}, {Fire: self.fire})

    @property
    def words(self) -> list[str]:
        """The words that were announced, in order."""
        return [word for word, _ in self.announced]


class Pottery:
    """The pottery on one log: engines one after the other, each with the same hands and the same clock."""

    def __init__(self, log: Log) -> None:
        self.log: Final = log
        self.clock = VirtualClock()
        self.hands = Hands()
        self.seen: list[tuple[str, Reaction | Refusal]] = []
        self.store: TappedStore
        self.engine: Engine

    async def prepare(
        self, interpreter: Interpreter | None = None, clock: Clock | None = None, *, on_error: OnError | None = None
    ) -> Engine:
        """Put an engine on the log, as a runner does that starts or starts again."""
        self.store = TappedStore(self.log.open())
        self.engine = Engine(
            kiln.system,
            self.store,
            interpreter or self.hands.interpreter(),
            clock=clock or self.clock,
            observer=lambda name, outcome: self.seen.append((name, outcome)),
            on_error=on_error or OnError(),
        )
        await self.engine.load()
        self.engine.resume()
        return self.engine

    @asynccontextmanager
    async def running(
        self,
        *kilns: str,
        interpreter: Interpreter | None = None,
        clock: Clock | None = None,
        on_error: OnError | None = None,
    ) -> AsyncGenerator[Engine]:
        """Run an engine beside the block, on a pottery that is opened if it is not open yet; leaving is a crash."""
        engine = await self.prepare(interpreter, clock, on_error=on_error)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.run, never)
            if not engine.aggregates:
                for name, envelope in kiln.opened(self.clock.now_ms(), *kilns):
                    await engine.send(name, envelope)
            await self.quiet()
            yield engine
            tasks.cancel_scope.cancel()

    async def quiet(self) -> None:
        """Return when nothing happens any more by itself."""
        calm = 0
        while calm < CALM:
            await checkpoint()
            calm = 0 if self.store.busy else calm + 1

    async def say(self, event: Event, to: str = "kiln/a") -> Reaction | Refusal:
        """Let the potter do something, and wait until what follows has happened."""
        ref = to.partition("/")[0]
        outcome = await self.engine.send(to, Envelope(ref, event, self.clock.now_ms(), "potter"))
        await self.quiet()
        return outcome

    async def take(self, *events: Event, to: str = "kiln/a") -> None:
        """Let the potter do several things; all must be possible."""
        for event in events:
            outcome = await self.say(event, to)
            assert isinstance(outcome, Reaction), outcome.reason

    async def at(self, after_ms: int) -> None:
        """Let it be that long after the start."""
        self.clock.set(START_MS + after_ms)
        await self.quiet()

    @property
    def entity(self) -> Entity[kiln.Kiln]:
        return self.engine.aggregates["kiln/a"].entities["kiln"]

    @property
    def counted(self) -> tuple[int, ...]:
        """What the tally has counted."""
        record: kiln.Tally = self.engine.aggregates["tally"].record("tally")
        return record.counted

    async def entries(self, stream: str | None = None) -> Sequence[Entry]:
        """Return what is in the log."""
        return await self.store.inner.read(stream)

    async def events(self, stream: str = "kiln/a") -> list[Event]:
        """Return the events in a stream of the log."""
        codec = self.engine.ledger.codec
        return [codec.decode(stream, entry.envelope).event for entry in await self.entries(stream)]


def never(_engine: Engine) -> bool:
    """Return what an engine runs until: nothing."""
    return False


def reason(outcome: Reaction | Refusal) -> str:
    """Return why an input was refused, by its kind; it must have been."""
    assert isinstance(outcome, Refusal), outcome
    return outcome.kind
