"""The writer of a log: the only place that decides on inputs, appends their entries, and answers operator commands.

The engine of a runner uses it for every batch. A command that finds no runner at work uses it once (``command_queue``).
Both therefore give the same guarantees: one transaction has the entries of a batch and the answers of its commands. An
answer is durable if and only if its entry is. A store that another writer has opened since refuses the transaction.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from lifefold.core.kernel import (
    Aggregate,
    DecisionError,
    EntityQuarantined,
    Envelope,
    Refusal,
    UnreadableEntry,
    replace,
)
from lifefold.interpreters.engine.clock import Clock
from lifefold.interpreters.engine.inputs import Input
from lifefold.interpreters.engine.ledger import Decision, Ledger
from lifefold.interpreters.store import Batch, EventStore, Snapshot, SnapshotStore, StoredCommand

ACCEPTED: Final = "accepted"
REFUSED: Final = "refused: "

Accepted: TypeAlias = Callable[[Mapping[str, Aggregate]], str]
"""Returns the answer to an accepted operator command, for the aggregates after all inputs of its batch."""

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


class Decided(NamedTuple):
    """An input with its decision, which is durable."""

    given: Input
    decision: Decision | Refusal


class LogWriter:
    """Decides on inputs by the rules of a ledger, and writes what follows to its store.

    If a write fails, the ledger is ahead of the log, and both must be discarded.
    """

    def __init__(
        self, ledger: Ledger, store: EventStore, clock: Clock, *, accepted: Accepted = lambda _aggregates: ACCEPTED
    ) -> None:
        """Write to an open store; ``accepted`` makes the answer to an accepted operator command."""
        self._ledger: Final = ledger
        self._store: Final = store
        self._clock: Final = clock
        self._accepted: Final = accepted
        self._taken: set[int] = set()
        self._unreadable: dict[int, str] = {}

    @property
    def has_unreadable(self) -> bool:
        """Whether the next ``commit`` answers commands that cannot be decoded."""
        return bool(self._unreadable)

    async def commands(self) -> list[Input]:
        """Return the operator commands that have arrived in the store since the last call, in order.

        Their timestamp is the present time. A command that cannot be decoded is refused by the next ``commit``.
        """
        commands = await self._store.commands()
        # A command stays in the store until its decision is durable, so later queries return it again.
        arrived = [command for command in commands if command.id not in self._taken]
        self._taken = {command.id for command in commands}
        inputs = [given for command in arrived for given in self._read(command)]
        await self.know(inputs)
        return inputs

    async def know(self, inputs: Iterable[Input]) -> None:
        """Find out which keys of inputs the log has already; a ledger with a snapshot does not know older keys."""
        keys = [(given.aggregate, given.envelope.key) for given in inputs if given.envelope.key]
        if keys and isinstance(self._store, SnapshotStore):
            self._ledger.know(await self._store.known_keys(keys))

    def _read(self, command: StoredCommand) -> Iterator[Input]:
        try:
            envelope = self._ledger.codec.decode(command.stream, command.envelope)
        except UnreadableEntry as error:
            self._unreadable[command.id] = f"{REFUSED}{error}"
        else:
            yield Input(command.stream, replace(envelope, at_ms=self._clock.now_ms()), command.id)

    async def change_rules(self) -> None:
        """Record the version of the rules that decide from here on, if other rules decided the newest entry."""
        if self._ledger.is_at_seam:
            await self._store.append(Batch((self._ledger.change_rules(self._clock.now_ms()).entry,)))

    async def commit(
        self, inputs: Iterable[Input], performed: Mapping[str, int] = _NOTHING, snapshot: Snapshot | None = None
    ) -> list[Decided]:
        """Decide on each input after the one before it, and write all decisions in one durable transaction.

        ``performed`` has by aggregate the version up to which all effects are performed, ``snapshot`` the parts of a
        snapshot before these inputs. Nothing is written if there is nothing to write.
        """
        decided = [each for given in inputs for each in self._decisions(given)]
        entries = [decision.entry for _, decision in decided if isinstance(decision, Decision)]
        answers, self._unreadable = self._unreadable, {}
        answers |= {given.command: self._answer(decision) for given, decision in decided if given.command}
        if entries or answers or performed or snapshot is not None:
            await self._store.append(Batch(entries, performed, answers, snapshot))
        return decided

    def _decisions(self, given: Input) -> Iterator[Decided]:
        """Decide on an input. If a rule raises and no sender waits, quarantine the entity and decide again."""
        while True:
            try:
                decision = self._ledger.decide(given.aggregate, given.envelope)
            except DecisionError as failed:
                yield self._quarantine(given, failed)
            else:
                yield Decided(given, decision)
                return

    def _quarantine(self, given: Input, failed: DecisionError) -> Decided:
        """Quarantine an entity whose rules have raised. Raises ``DecisionError`` if that is refused."""
        envelope = Envelope(failed.entity, EntityQuarantined(str(failed)), given.envelope.at_ms, "engine")
        decision = self._ledger.decide(given.aggregate, envelope)
        if isinstance(decision, Refusal):
            raise failed
        return Decided(Input(given.aggregate, envelope), decision)

    def _answer(self, decision: Decision | Refusal) -> str:
        return (
            f"{REFUSED}{decision.reason}" if isinstance(decision, Refusal) else self._accepted(self._ledger.aggregates)
        )
