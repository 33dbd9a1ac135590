"""Refinement: a recorded run must be a behaviour of the model that checks and simulations use.

A check proves something of the runs that its model has. The model is the kernel's ``World`` with the possible inputs of
``possible``. A real run outside of the model is not covered by any proof. So each entry of a log has to be a possible
step:

- The first input of an aggregate opens it.
- A message was sent, is still in flight, and is the next one of its channel.
- A report comes from a running activity of this generation. The model yields such an event in this state.
- A timer is pending and due. A confirmed end was requested.
- A command is one that operators may give to this machine. The model yields such an event in this state.
- A recovery is no longer than the time since the entry before it. A failed handler had something to do.
- The time never goes back, no version is missing, and the rules decide what the entry says.

The *values* of events are not compared: the model has a few examples of each event, and a real event has any value.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from lifefold.core.kernel import (
    Aggregate,
    Cause,
    Created,
    EntityQuarantined,
    EntityReleased,
    Envelope,
    HandlerFailed,
    Input,
    Opened,
    Outcomes,
    Reaction,
    Refusal,
    RunnerRecovered,
    System,
    UnreadableEntry,
    World,
    written,
)
from lifefold.core.kernel.entity import ENGINE
from lifefold.core.kernel.environment import possible_of
from lifefold.effects import Effect
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.store import Entry


class ForeignEntry(msgspec.Struct, frozen=True):
    """An entry that is no step of the model: its place in the log from 1, and the reason."""

    position: int
    aggregate: str
    entity: str
    event: str
    why: str

    def __str__(self) -> str:
        """Return it as one line."""
        of = " ".join(filter(None, (self.aggregate, self.entity)))
        return f"entry {self.position}, {of}: {self.event} is no behaviour of the model: {self.why}"


def is_behaviour(system: System, log: Iterable[Entry]) -> bool:
    """Tell whether each entry of a log is a step of the model of its system."""
    return foreign_entry(system, log) is None


def foreign_entry(system: System, log: Iterable[Entry], *, is_decided: bool = False) -> ForeignEntry | None:
    """Return the first entry of a log that is no step of the model of its system; None if there is none.

    ``is_decided``: the caller has compared each entry with the decision of the rules. Then the decisions are folded,
    which takes less time, and an entry that the rules decide otherwise is not found.

    >>> import anyio
    >>> from lifefold import Engine, Interpreter, MemoryStore, alone
    >>> from lifefold.core.fleet.board import intake
    >>> from lifefold.interpreters.testing.refinement import foreign_entry
    >>> system, opening = alone(intake.machine)
    >>> async def log():
    ...     store = MemoryStore()
    ...     engine = Engine(system, store, Interpreter())
    ...     engine.offer("intake", opening["intake"])
    ...     await engine.run(until=lambda engine: "intake" in engine.aggregates)
    ...     return await store.read()
    >>> foreign_entry(system, anyio.run(log)) is None
    True
    """
    model = _FoldedModel(system) if is_decided else _Model(system)
    for position, entry in enumerate(log, 1):
        envelope, why = model.take(entry)
        if why:
            event = "an unreadable event" if envelope is None else type(envelope.event).__name__
            return ForeignEntry(position, entry.stream, "" if envelope is None else envelope.entity, event, why)
    return None


class _Model:
    """The world that a log has led to so far."""

    def __init__(self, system: System) -> None:
        self._system: Final = system
        self._codec: Final = Ledger(system).codec
        self._world = World(system)
        self._effects: Final[dict[tuple[str, int, int], Effect]] = {}
        self._before_recovery_ms = 0
        self._recovers = False
        self._of_engine = 0
        """The number of entries about the log itself."""

    def take(self, entry: Entry) -> tuple[Envelope | None, str]:
        """Take a step, or return why the entry is none."""
        name = entry.stream
        try:
            envelope = self._codec.decode(name, entry.envelope)
        except UnreadableEntry as error:
            return None, str(error)
        if name == ENGINE:
            return envelope, self._about_the_log(entry, envelope)
        given = Input(name, envelope)
        before = self._world.aggregate(name)
        why = self._out_of_turn(entry, envelope, before.version + 1) or self._impossible(given)
        if why:
            return envelope, why
        outcome = self._outcome(given, before, entry)
        if isinstance(outcome, str):
            return envelope, outcome
        self._world = self._world.after(given, outcome)
        version = outcome.aggregate.version
        self._effects.update(((name, version, index), each.effect) for index, each in enumerate(outcome.effects))
        return envelope, ""

    def _outcome(self, given: Input, before: Aggregate, entry: Entry) -> Reaction | str:
        """Return what the rules decide, or why that is not the decision of the entry."""
        outcome = self._world.outcome(given)
        if isinstance(outcome, Refusal):
            return f"the rules refuse it: {outcome.reason}"
        return outcome if written(before, given.envelope, outcome) == entry.outcome else "the rules decide otherwise"

    def _about_the_log(self, entry: Entry, envelope: Envelope) -> str:
        """Take an entry about the log itself: it changes no aggregate."""
        why = self._out_of_turn(entry, envelope, self._of_engine + 1)
        self._of_engine = entry.version
        self._world = self._world.later(envelope.at_ms)
        return why

    def _out_of_turn(self, entry: Entry, envelope: Envelope, follows: int) -> str:
        if entry.version != follows:
            return f"its version is {entry.version}, and {follows} comes next"
        if envelope.at_ms < self._world.now_ms:
            return f"its time is {self._world.now_ms - envelope.at_ms} ms before that of the entry before it"
        return ""

    def _impossible(self, given: Input) -> str:
        """Return why the model does not have this input now; an empty text if it does."""
        name, envelope = given
        self._note_recovery(given)
        if given.cause is not Cause.MESSAGE and name not in self._world.aggregates:
            return "" if isinstance(envelope.event, Created | Opened) else f"{name} is not open yet"
        match given.cause:
            case Cause.MESSAGE:
                return self._not_sent(given)
            case Cause.RECOVERY:
                return self._too_long(envelope)
            case Cause.COMMAND if isinstance(envelope.event, Created | EntityQuarantined | EntityReleased):
                return ""  # the rules know whether the entity may be created, quarantined or released
            case Cause.COMMAND if isinstance(envelope.event, HandlerFailed):
                return self._nothing_to_handle(name, envelope, envelope.event)
            case _:
                return self._not_possible(given)

    def _note_recovery(self, given: Input) -> None:
        """Keep the time before a series of recoveries: all of them count from there."""
        recovers = given.cause is Cause.RECOVERY
        if recovers and not self._recovers:
            self._before_recovery_ms = self._world.now_ms
        self._recovers = recovers

    def _too_long(self, envelope: Envelope) -> str:
        event = envelope.event
        passed_ms = envelope.at_ms - self._before_recovery_ms
        is_right = isinstance(event, RunnerRecovered) and 0 <= event.down_ms <= passed_ms
        return "" if is_right else f"only {passed_ms} ms have passed since the entry before it"

    def _not_sent(self, given: Input) -> str:
        name, envelope = given
        tell = self._world.in_flight.get((envelope.sender, name, envelope.ordinal))
        if tell is None:
            return f"{envelope.sender} has sent no message {envelope.ordinal}, or it was received before"
        if (tell.entity, tell.event) != (envelope.entity, envelope.event):
            return f"message {envelope.ordinal} of {envelope.sender} is another one"
        first = self._world.next_messages()[envelope.sender, name]
        return "" if first.envelope.ordinal == envelope.ordinal else "an earlier message is still in flight"

    def _nothing_to_handle(self, name: str, envelope: Envelope, event: HandlerFailed) -> str:
        if event.slot:
            entity = self._world.aggregates[name].entities.get(envelope.entity)
            runs = entity is not None and any(
                (each.slot, each.generation) == (event.slot, event.generation) for each in entity.running
            )
            return "" if runs else f"{event.slot} of generation {event.generation} does not run"
        effect = self._effects.get((name, event.version, event.index))
        is_right = type(effect).__name__ == event.handler
        return "" if is_right else f"entry {event.version} requests no {event.handler} at {event.index}"

    def _not_possible(self, given: Input) -> str:
        name, envelope = given
        of, aggregate = self._system.type_of(name), self._world.aggregates[name]
        machine, entity = of.machine_of(envelope.entity), aggregate.entities.get(envelope.entity)
        if machine is None or entity is None:
            return f"there is no {envelope.entity!r}"
        every = possible_of(machine, entity, envelope.at_ms, of.commands.get(machine.name))
        if any(_is_such(each.envelope, given) for each in every if each.cause is given.cause):
            return ""
        return f"no such {given.cause} is possible in {entity.state}"


class _FoldedModel(_Model):
    """The same world, folded from decisions that are known to be those of the rules."""

    def __init__(self, system: System) -> None:
        super().__init__(system)
        self._outcomes: Final = Outcomes(self._codec)

    def _outcome(self, given: Input, before: Aggregate, entry: Entry) -> Reaction | str:
        try:
            return self._outcomes.applied(self._system.type_of(given.aggregate), before, given.envelope, entry.outcome)
        except UnreadableEntry as error:
            return str(error)


def _is_such(possible: Envelope, given: Input) -> bool:
    """Tell whether a possible input is of the same kind: its event has the same type, and the same source."""
    envelope = given.envelope
    if type(possible.event) is not type(envelope.event):
        return False
    if given.cause in {Cause.TIMER, Cause.CONFIRMATION}:
        return possible.event == envelope.event and possible.at_ms <= envelope.at_ms
    return (possible.slot, possible.generation) == (envelope.slot, envelope.generation)
