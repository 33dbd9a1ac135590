"""The brain's side of a commit: decide on inputs, make them durable, and say what they want.

One process is the writer of the log, as a local runner is. It decides with the ledger and the writer of the engine. It
does not tell a first try of a commit from a repeated one. An input whose key is in the log is accepted already. A
message, a timer or an end that the log has is refused by the kernel. The answer has all that is wanted by the entries
after the one that the workflow knew. So a repeated try returns what the first one has written.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final

import anyio
import msgspec
from temporalio import activity

from lifefold.core.kernel import (
    Aggregate,
    Envelope,
    RunnerRecovered,
    System,
    TimerFired,
    UnreadableEntry,
    encode,
    replace,
)
from lifefold.core.kernel.snapshot import must_recover
from lifefold.core.kernel.world import delivery
from lifefold.effects import Begin, CancelTimer, End, StartTimer, Tell
from lifefold.interpreters.engine import Observer
from lifefold.interpreters.engine.clock import Clock, WallClock
from lifefold.interpreters.engine.failures import Failures, OnError
from lifefold.interpreters.engine.inputs import Input
from lifefold.interpreters.engine.ledger import Decision, Ledger, LogMismatchError
from lifefold.interpreters.engine.log_writer import ACCEPTED, Accepted, LogWriter
from lifefold.interpreters.engine.seam import Undone, must_suit
from lifefold.interpreters.engine.snapshots import SnapshotTaker, load
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import EventStore, Snapshot
from lifefold.interpreters.temporal.wire import (
    Commit,
    Committed,
    Opened,
    Opening,
    Place,
    Requested,
    Slot,
    Started,
    Stopped,
    TimerCancelled,
    TimerSet,
    Told,
    Wanted,
)

Pools = Callable[[str], str]
"""Returns the pool of an aggregate."""

DEFAULT_POOL: Final = "default"


Settle = Callable[[], Awaitable[None]]
"""Called after inputs are durable, and before their commits are answered."""


async def _settled() -> None:
    """Do nothing."""


class _Waiting(msgspec.Struct, eq=False):
    """A commit that waits for the writer."""

    request: Commit
    inputs: list[Input]
    answers: list[str]
    early: list[TimerSet]
    is_done: bool = False


class Commits:
    """Decides for all aggregates of one fleet, as the writer of its log."""

    def __init__(  # noqa: PLR0913 - the parts of a writer, each with its name
        self,
        system: System,
        store: EventStore,
        *,
        clock: Clock | None = None,
        pools: Pools = lambda _aggregate: DEFAULT_POOL,
        accepted: Accepted = lambda _aggregates: ACCEPTED,
        observer: Observer = lambda _aggregate, _outcome: None,
        settle: Settle = _settled,
        snapshot_every: int | None = None,
    ) -> None:
        """Write to an open store. ``accepted`` makes the answer to an accepted operator command.

        ``observer`` is called for each input once it is durable, or refused. ``settle`` is awaited then, before
        anything that follows from the inputs leaves this process. A snapshot is taken after ``snapshot_every`` entries.
        """
        self.ledger: Final = Ledger(system)
        self.clock: Final = clock or WallClock()
        self.changed = anyio.Event()
        """Set, and then replaced, after each commit."""
        self.broken: Exception | None = None
        """The error of the store after which this process decides nothing more."""
        self._observer: Final = observer
        self._store: Final = store
        self._pools: Final = pools
        self._writer: Final = LogWriter(self.ledger, store, self.clock, accepted=accepted)
        self._lock: Final = anyio.Lock()
        self._waiting: list[_Waiting] = []
        self.failures: Final = Failures(OnError())
        self._snapshots: Final = SnapshotTaker(self.ledger, store, snapshot_every)
        self._settle: Final = settle
        self._performed: Final[dict[str, int]] = {}
        self._requested: Final[dict[str, int]] = {}
        """The newest version of each aggregate that requests an effect."""
        self._older: Final[dict[str, int]] = {}
        """The versions of the aggregates of the snapshot, while it is unknown whether their workflows know them."""
        self._has_heard = False
        self._recent: Final[dict[str, deque[Decision]]] = {}
        self._owed: Final[dict[str, list[Wanted]]] = {}
        self._commands: Final[dict[str, list[Input]]] = {}

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """The present state of every aggregate."""
        return self.ledger.aggregates

    @property
    def has_heard(self) -> bool:
        """Whether all operator commands that were in the store at the beginning are decided on."""
        return self._has_heard and not self._commands

    def keep_notes(self, notes: Callable[[Aggregate], bytes]) -> None:
        """Keep with each snapshot of an aggregate what ``notes`` returns for it, as an engine does."""
        self._snapshots.notes = notes

    async def load(self) -> None:
        """Read the newest snapshot, and fold the entries after it.

        Raises ``LogMismatchError`` if these rules cannot go on with the log.
        """
        self.ledger.rules = rules_version(self.ledger.system)
        performed = self._performed
        performed.update(await self._store.performed())
        loaded = await load(self.ledger, self._store, sampled=True)
        self._snapshots.begin(loaded)
        self._older.update(loaded.versions)
        for stream, envelope in loaded.failures:
            self.failures.note(stream, envelope)
        undone = Undone(performed)
        for decision in self.ledger.fold(loaded.entries):
            undone.observe(decision)
            self._note(decision, is_known=decision.entry.version <= performed.get(decision.entry.stream, 0))
        # The snapshot has older messages, and knows which of them are accepted.
        undone.untold.clear()
        undone.untold.update(self._snapshots.untold)
        must_suit(self.ledger, undone)
        for (sender, _, _), tell in undone.untold.items():
            self._owed.setdefault(sender, []).append(_told(sender, tell, self.clock.now_ms()))
        for stream, _, context in undone.owed:
            self._owed.setdefault(stream, []).append(Requested(Place(context.version, context.index)))
        await self._writer.change_rules()

    @activity.defn(name="lifefold-open")
    async def open(self, opening: Opening) -> Opened:
        """Return what the log owes to an aggregate whose workflow begins, such as one of a log that was local."""
        name = opening.aggregate
        within, now_ms = self.aggregates.get(name), self.clock.now_ms()
        pool = self._pools(name)
        if within is None:
            return Opened(Committed(0), pool)
        recovery = ""
        if must_recover(self.ledger.system.type_of(name), within):
            down_ms = max(0, now_ms - self.ledger.last_ms)
            recovery = encode(Envelope("", RunnerRecovered(down_ms), now_ms, "engine")).decode()
        return Opened(Committed(within.version, tuple(self._owed.get(name, ()))), pool, recovery)

    @activity.defn(name="lifefold-commit")
    async def commit(self, request: Commit) -> Committed:
        """Decide on inputs, and on the operator commands of the aggregate; return once all entries are durable.

        Commits that wait at the same time are written in one transaction. A workflow that knows more entries than the
        log has is of another log: this process decides nothing more then.
        """
        await self._remember(request)
        waiting = self._read(request)
        self._waiting.append(waiting)
        with anyio.CancelScope(shield=True):  # a ledger ahead of its log must be discarded
            async with self._lock:
                if not waiting.is_done:
                    await self._write()
        return self._committed(waiting)

    async def finish(self) -> None:
        """Take a snapshot if one is due at the end of this process."""
        async with self._lock:
            if self.broken is None and self._snapshots.is_due_at_end:
                await self._writer.commit((), {}, self._snapshot())

    async def _remember(self, request: Commit) -> None:
        """Read the entries that the snapshot has and the workflow does not know: their answer may be lost."""
        name, version = request.aggregate, self._older.get(request.aggregate, 0)
        within = self.aggregates.get(name)
        if request.after > (0 if within is None else within.version):
            self.broken = LogMismatchError(
                f"{name}: its workflow on the server knows {request.after} entries, and the log has fewer: the workflow"
                " is of another log of this fleet; end that fleet with its own log first"
            )
            raise self.broken
        if request.after < version:
            older = [each for each in await self._store.read(name, request.after) if each.version <= version]
            if name in self._older:  # a repeated commit may have read them meanwhile
                effects = (self.ledger.effects_of(each) for each in reversed(older))
                self._recent.setdefault(name, deque()).extendleft(effects)
        self._older.pop(name, None)

    def _snapshot(self) -> Snapshot | None:
        return self._snapshots.taken(self._is_quiet, self.failures.of_running)

    def _is_quiet(self, aggregate: str) -> bool:
        """Tell whether all effects of an aggregate are performed, as far as its workflow has said."""
        return self._requested.get(aggregate, 0) <= self._performed.get(aggregate, 0)

    def tell_change(self) -> None:
        """Wake what waits for a change."""
        self.changed.set()
        self.changed = anyio.Event()

    def notice(self, commands: list[Input]) -> list[str]:
        """Keep operator commands for the next commits of their aggregates, and return these aggregates."""
        self._has_heard = True
        for given in commands:
            self._commands.setdefault(given.aggregate, []).append(given)
        return sorted(self._commands)

    async def arrived(self) -> list[Input]:
        """Return the operator commands that have arrived in the store since the last call."""
        async with self._lock:
            found = await self._writer.commands()
            if self._writer.has_unreadable:
                await self._writer.commit(())
            return found

    def _read(self, request: Commit) -> _Waiting:
        name, now_ms = request.aggregate, self.clock.now_ms()
        waiting = _Waiting(request, [], [], [])
        for due in request.due:
            if due.deadline_ms > now_ms:
                waiting.early.append(TimerSet(due.of, due.deadline_ms, due.deadline_ms - now_ms))
            else:
                fired = TimerFired(due.of.slot, due.of.generation)
                waiting.inputs.append(Input(name, Envelope(due.of.entity, fired, now_ms, "timer")))
        for text in request.inputs:
            waiting.answers.append("")
            try:
                envelope = self.ledger.codec.decode(name, text.encode())
            except UnreadableEntry as error:
                waiting.answers[-1] = str(error)
                continue
            waiting.inputs.append(_Offered(name, replace(envelope, at_ms=now_ms), index=len(waiting.answers) - 1))
        return waiting

    async def _write(self) -> None:
        """Write all commits that wait in one transaction."""
        if self.broken is not None:
            raise self.broken
        batch, self._waiting = self._waiting, []
        performed: dict[str, int] = {}
        try:
            await self._writer.know([each for waiting in batch for each in waiting.inputs])
            inputs: list[Input] = []
            for waiting in batch:
                name = waiting.request.aggregate
                performed[name] = waiting.request.performed
                inputs += [each for each in waiting.inputs if not self._is_taken(each)]
                inputs += self._commands.pop(name, [])
            news = {name: version for name, version in performed.items() if version}
            self._performed.update(news)
            snapshot = self._snapshot() if self._snapshots.is_due else None
            for given, decision in await self._writer.commit(inputs, news, snapshot):
                self._observer(given.aggregate, decision.reaction if isinstance(decision, Decision) else decision)
                if isinstance(decision, Decision):
                    self._note(decision)
                elif isinstance(given, _Offered):
                    given.reason = "" if self._is_taken(given) else decision.reason or decision.kind
            await self._settle()
        except Exception as error:
            self.broken = error
            raise
        for waiting in batch:
            waiting.is_done = True
            for each in waiting.inputs:
                if isinstance(each, _Offered):
                    waiting.answers[each.index] = each.reason
        self.tell_change()

    def _is_taken(self, given: Input) -> bool:
        return bool(given.envelope.key) and self.ledger.has_taken(given.aggregate, given.envelope.key)

    def _note(self, decision: Decision, *, is_known: bool = False) -> None:
        """Take a decision into account that is in the log; ``is_known``: its workflow knows it."""
        name = decision.entry.stream
        self.failures.note(name, decision.envelope)
        self._snapshots.note(decision)
        if any(not isinstance(each.effect, _ARRANGED) for each in decision.reaction.effects):
            self._requested[name] = decision.entry.version
        if not is_known:
            self._recent.setdefault(name, deque()).append(decision)

    def _committed(self, waiting: _Waiting) -> Committed:
        request = waiting.request
        recent, now_ms = self._recent.get(request.aggregate, deque()), self.clock.now_ms()
        while recent and recent[0].entry.version <= request.after:
            recent.popleft()  # the workflow knows it
        within = self.aggregates.get(request.aggregate)
        wanted = tuple(each for decision in recent for each in _wanted(decision, now_ms))
        version = 0 if within is None else within.version
        return Committed(version, wanted, tuple(waiting.answers), tuple(waiting.early))


class _Offered(Input, eq=False):
    """An input of a workflow, its position among the answers, and the reason of its refusal."""

    index: int = 0
    reason: str = ""


_ARRANGED: Final = (Tell, StartTimer, CancelTimer, Begin, End)
"""The effects that a workflow arranges; a host performs all others."""


def _wanted(decision: Decision, now_ms: int) -> Iterator[Wanted]:
    """Yield what an entry wants, in its order."""
    for index, requested in enumerate(decision.reaction.effects):
        ref, at = requested.entity, Place(decision.entry.version, index)
        match requested.effect:
            case Tell() as tell:
                yield _told(decision.entry.stream, tell, now_ms)
            case StartTimer(slot=slot, generation=generation, deadline_ms=deadline_ms):
                yield TimerSet(Slot(ref, slot, generation), deadline_ms, max(0, deadline_ms - now_ms))
            case CancelTimer(slot=slot, generation=generation):
                yield TimerCancelled(Slot(ref, slot, generation))
            case Begin(slot=slot, generation=generation):
                yield Started(Slot(ref, slot, generation), at)
            case End(slot=slot, generation=generation):
                yield Stopped(Slot(ref, slot, generation), at)
            case _:
                yield Requested(at)


def _told(sender: str, tell: Tell, now_ms: int) -> Told:
    receiver, envelope = delivery(sender, tell, now_ms)
    return Told(receiver, encode(envelope).decode())
