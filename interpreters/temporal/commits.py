"""The brain's side of a commit: decide on inputs, make them durable, and say what they want.

One process is the writer of the log, as a local runner is. It decides with the ledger and the writer of the engine. It
does not tell a first try of a commit from a repeated one. An input whose key is in the log is accepted already. A
message, a timer or an end that the log has is refused by the kernel. The answer has all that is wanted by the entries
after the one that the workflow knew. So a repeated try returns what the first one has written.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
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
from lifefold.interpreters.engine.inputs import Input
from lifefold.interpreters.engine.ledger import Decision, Ledger
from lifefold.interpreters.engine.log_writer import ACCEPTED, Accepted, LogWriter
from lifefold.interpreters.engine.seam import Undone, must_suit
from lifefold.interpreters.engine.snapshots import load
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import EventStore
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
    ) -> None:
        """Write to an open store. ``accepted`` makes the answer to an accepted operator command.

        ``observer`` is called for each input once it is durable, or refused.
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
        self._recent: Final[dict[str, deque[Decision]]] = {}
        self._owed: Final[dict[str, list[Wanted]]] = {}
        self._commands: Final[dict[str, list[Input]]] = {}

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """The present state of every aggregate."""
        return self.ledger.aggregates

    async def load(self) -> None:
        """Fold the log. Raises ``LogMismatchError`` if these rules cannot go on with it."""
        self.ledger.rules = rules_version(self.ledger.system)
        performed = await self._store.performed()
        loaded = await load(self.ledger, self._store, sampled=True)
        undone = Undone(performed)
        undone.untold.update(((sender, tell.aggregate, tell.ordinal), tell) for sender, tell in loaded.untold)
        for decision in self.ledger.fold(loaded.entries):
            undone.observe(decision)
            if decision.entry.version > performed.get(decision.entry.stream, 0):
                self._note(decision)
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

        Commits that wait at the same time are written in one transaction.
        """
        waiting = self._read(request)
        self._waiting.append(waiting)
        with anyio.CancelScope(shield=True):  # a ledger ahead of its log must be discarded
            async with self._lock:
                if not waiting.is_done:
                    await self._write()
        return self._committed(waiting)

    def tell_change(self) -> None:
        """Wake what waits for a change."""
        self.changed.set()
        self.changed = anyio.Event()

    def notice(self, commands: list[Input]) -> list[str]:
        """Keep operator commands for the next commits of their aggregates, and return these aggregates."""
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
            for given, decision in await self._writer.commit(inputs, news):
                self._observer(given.aggregate, decision.reaction if isinstance(decision, Decision) else decision)
                if isinstance(decision, Decision):
                    self._note(decision)
                elif isinstance(given, _Offered):
                    given.reason = "" if self._is_taken(given) else decision.reason or decision.kind
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

    def _note(self, decision: Decision) -> None:
        self._recent.setdefault(decision.entry.stream, deque()).append(decision)

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
