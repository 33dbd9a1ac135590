"""The log of simulated engines: folded entry by entry as it becomes durable, and compared with the rules.

Each input is decided again by the kernel's ``World``. The decision must be the written one. So the log is verified
while it is written. The world is the state of the system at each durable entry, also inside of a batch.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from lifefold.core.kernel import (
    Cause,
    Entity,
    EntityQuarantined,
    HandlerFailed,
    Input,
    Reaction,
    Refusal,
    Running,
    System,
    World,
    encode,
    replace,
    written,
)
from lifefold.interpreters.engine import ACCEPTED, Ledger
from lifefold.interpreters.simulate.inputs import Watcher
from lifefold.interpreters.simulate.witness import Guarantee, Witness
from lifefold.interpreters.store import Batch, Entry, StoredCommand
from lifefold.interpreters.store.memory import Shelf

Followed = Callable[[Input], None]
"""Called for each durable input, after it was folded."""


class DurableLog:
    """The shelf that all engines of a run write to, with the world that it folds to."""

    def __init__(self, system: System, witness: Witness, watcher: Watcher, shelf: Shelf | None = None) -> None:
        """Begin with an empty log, on this shelf."""
        self.shelf: Final = shelf or Shelf()
        self.world = World(system)
        self.entries: Final[list[Input]] = []
        self.transitions = 0
        self._system: Final = system
        self._codec: Final = Ledger(system).codec
        self._witness: Final = witness
        self._watcher: Final = watcher
        self._at_work: Final[dict[tuple[str, str], Entity[Any]]] = {}
        """The entities with running activities or pending timers, by aggregate and reference."""
        self._given: Final[dict[str, Input]] = {}
        """All operator commands, by their key."""

    def given(self, name: str, given: Input) -> Input:
        """Return an operator command with its key, under which it may appear in the log."""
        key = f"command {len(self._given) + 1}"
        keyed = self._given[key] = Input(name, replace(given.envelope, key=key))
        return keyed

    def leave(self, given: Input) -> None:
        """Leave an operator command in the log, for any engine."""
        number = len(self.shelf.commands) + 1
        self.shelf.commands[number] = StoredCommand(number, given.aggregate, encode(given.envelope))

    def take(self, batch: Batch, followed: Followed) -> None:
        """Fold a durable batch. Raises ``Violation`` where it breaks a guarantee or a property."""
        for entry in batch.entries:
            self._take(entry, followed)
        self._witness.recorded(batch.performed)
        for number, answer in batch.answers.items():
            command = self.shelf.commands[number]
            key = self._codec.decode(command.stream, command.envelope).key
            self._witness.told(command.stream, key, is_accepted=answer == ACCEPTED)

    def _take(self, entry: Entry, followed: Followed) -> None:
        name = entry.stream
        given = Input(name, self._codec.decode(name, entry.envelope))
        self._must_be_given(given)
        reaction = self._decided(given, entry)
        self.world = self.world.after(given, reaction)
        self._note_running(name, reaction)
        self.entries.append(given)
        self.transitions += len(reaction.transitions)
        self._witness.entry(name, entry.key, reaction)
        followed(given)
        self._watcher(name, reaction, given.envelope)

    def _note_running(self, name: str, reaction: Reaction) -> None:
        entities = reaction.aggregate.entities
        for ref in reaction.changed:
            if entities[ref].running:
                self._at_work[name, ref] = entities[ref]
            else:
                self._at_work.pop((name, ref), None)

    def running(self) -> Iterator[tuple[str, Entity[Any], Running]]:
        """Yield the same as ``World.running``, in another order, and without a look at all entities."""
        for (name, _), entity in self._at_work.items():
            for part in entity.running:
                yield name, entity, part

    def _decided(self, given: Input, entry: Entry) -> Reaction:
        """Decide on an input again. Raises ``Violation`` if the log has another decision."""
        before, outcome = self.world.aggregate(given.aggregate), self.world.outcome(given)
        if isinstance(outcome, Refusal) or written(before, given.envelope, outcome) != entry.outcome:
            raise self._witness.broken(Guarantee.RULED, f"{given.aggregate}, entry {entry.version}")
        return outcome

    def _must_be_given(self, given: Input) -> None:
        """Raise ``Violation`` for a command that no operator has given, and for a message that was not sent."""
        name, envelope = given
        if given.cause is Cause.MESSAGE:
            tell = self.world.in_flight.get((envelope.sender, name, envelope.ordinal))
            if tell is None or (tell.entity, tell.event) != (envelope.entity, envelope.event):
                raise self._witness.broken(Guarantee.GIVEN, f"{envelope.sender} to {name}, {envelope.event!r}")
        if given.cause is Cause.COMMAND and name in self.world.aggregates and not isinstance(envelope.event, _FAILED):
            known = self._given.get(envelope.key)
            if known is None or (known.aggregate, known.envelope.event) != (name, envelope.event):
                raise self._witness.broken(Guarantee.GIVEN, f"{name}, {envelope.event!r}")

    def must_fold(self) -> None:
        """Raise ``Violation`` if a command has no answer, or if the engine's own fold gives another state."""
        for command in self.shelf.commands.values():
            if command.answer is None:
                raise self._witness.broken(Guarantee.ANSWERED, f"{command.stream}, command {command.id}")
        ledger = Ledger(self._system, self._codec)
        for _ in ledger.fold(self.shelf.entries):
            pass
        if ledger.aggregates != self.world.aggregates:
            raise self._witness.broken(Guarantee.RULED, "the fold of the whole log")


_FAILED: Final = (HandlerFailed, EntityQuarantined)
"""The inputs of an engine whose handlers fail."""
