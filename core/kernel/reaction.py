"""Macrosteps: one input of an aggregate, with everything that follows from it.

``react`` runs one input from outside to completion, in a fixed order (a *macrostep*, as in SCXML). A transition is
shown to the rules that it triggers, in their declared order. All of them see the same aggregate. In it, the entity has
finished the event and the postponed events that followed from it; with ``Opened`` and ``RunnerRecovered`` all entities
have. No rule action has been done. Then the actions are done one by one, each with everything that follows from it
before the next one (depth first).

Rules are pure functions and do not fail. An event that its entity does not accept is a refusal, which is recorded and
changes nothing.

Messages are numbered for each pair of aggregates. The receiver takes each number once and in order, even if messages
are repeated or overtake each other. A message that its entity refuses is in the log, too.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import msgspec

from lifefold.core.kernel.advance import advance, create, quarantine, release
from lifefold.core.kernel.aggregate import Aggregate
from lifefold.core.kernel.blame import blamed, following
from lifefold.core.kernel.entity import (
    ActivityEnded,
    Created,
    Entity,
    EntityStep,
    Envelope,
    Opened,
    Refusal,
    RunnerRecovered,
    Transition,
)
from lifefold.core.kernel.failure import DecisionError, EntityQuarantined, EntityReleased, HandlerFailed
from lifefold.core.kernel.machine import Machine
from lifefold.core.kernel.persistent_map import PersistentMap
from lifefold.core.kernel.record import Event, Record, replace
from lifefold.core.kernel.rule import Dispatch, Rule, RuleAction
from lifefold.core.kernel.shown import counted, listed, shown
from lifefold.core.kernel.system import AggregateType, View
from lifefold.effects import Effect, Tell

MACROSTEP_LIMIT: Final = 100_000
"""How many transitions may follow from one input; more means that the rules run in a circle."""


class RequestedEffect(msgspec.Struct, frozen=True, gc=False):
    """An effect and the entity that requests it. Aggregate, version and position in the reaction identify it."""

    entity: str
    effect: Effect


class Reaction(msgspec.Struct, frozen=True, gc=False):
    """The outcome of one accepted input. ``changed`` names the changed entities in order.

    ``rules`` has the rules that asked for something, each once for every transition that it answered.
    """

    aggregate: Aggregate
    effects: tuple[RequestedEffect, ...] = ()
    transitions: tuple[Transition, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    changed: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()

    def __repr__(self) -> str:
        """Return its aggregate, its transitions, and the number of effects and refusals."""
        steps = listed(f"{each.entity} {type(each.event).__name__} → {each.after.state}" for each in self.transitions)
        more = [(len(self.effects), "effect"), (len(self.refusals), "refusal")]
        parts = [steps or "no transition", *(counted(count, noun) for count, noun in more if count)]
        return shown(f"Reaction of {self.aggregate.name!r}, version {self.aggregate.version}: {'; '.join(parts)}")

    @property
    def refused(self) -> Refusal | None:
        """The refusal, if nothing came of the input. A message is received even if its entity refuses it."""
        return self.refusals[0] if self.refusals and not self.transitions else None


def react(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Reaction | Refusal:
    """Take one input and everything that follows from it.

    A refusal changes nothing. A message that its entity refuses gives a reaction, since its number is used up. Errors
    of guards, actions and rules are raised.
    """
    try:
        return decide(of, aggregate, envelope)
    except DecisionError as failed:
        raise failed.error from None


def decide(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Reaction | Refusal:
    """Do the same as ``react``. An error is a ``DecisionError`` that names the entity, the row and the event."""
    if not envelope.sender:
        return _macrostep(of, aggregate, aggregate.received, envelope)
    expected = aggregate.received.get(envelope.sender, 0) + 1
    if envelope.ordinal != expected:
        kind = "duplicate" if envelope.ordinal < expected else "overtaking"
        return Refusal(envelope, kind, f"message {envelope.ordinal} of {envelope.sender}, expected {expected}")
    if not of.reads(envelope.entity, envelope.event):
        name = type(envelope.event).__name__
        return Refusal(envelope, "unknown", f"{aggregate.name} knows no {name} for {envelope.entity!r}")
    received = aggregate.received.set(envelope.sender, envelope.ordinal)
    reaction = _macrostep(of, aggregate, received, envelope)
    if isinstance(reaction, Refusal):
        heard = replace(aggregate, version=aggregate.version + 1, received=received)
        return Reaction(heard, refusals=(reaction,))
    return reaction


def _macrostep(
    of: AggregateType, aggregate: Aggregate, received: PersistentMap[int], envelope: Envelope
) -> Reaction | Refusal:
    """Run one input to completion. ``received`` are the messages received, with this input if it is one."""
    steps = _first(of, aggregate, envelope)
    if isinstance(steps, Refusal):
        return steps
    if type(envelope.event) in OF_FAILURES:
        aggregate = isolating(aggregate, envelope)
    run = _Run(of, aggregate, envelope.at_ms)
    run.accept(*steps)
    while run.queue:
        if len(run.transitions) > MACROSTEP_LIMIT:
            reason = f"{aggregate.name}: the rules run in a circle: {MACROSTEP_LIMIT} steps after {envelope.event!r}"
            return Refusal(envelope, "circle", reason)
        run.follow(*run.queue.pop())
    return run.reaction(received)


def _first(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Refusal | Sequence[EntityStep]:
    """Give an input to its entity, or to all of them. Return the steps of the entities."""
    special = _SPECIAL.get(type(envelope.event))
    if special is not None:
        return special(of, aggregate, envelope)
    machine = of.machine_of(envelope.entity)
    if machine is not None and not envelope.slot and type(envelope.event) in machine.reports:
        reason = f"{type(envelope.event).__name__} comes from an activity, not from {envelope.actor}"
        return Refusal(envelope, "unsolicited", reason)
    step = _deliver(machine, aggregate, envelope)
    return step if isinstance(step, Refusal) else (step,)


def isolating(aggregate: Aggregate, envelope: Envelope) -> Aggregate:
    """Return the aggregate with its quarantined entities after this input."""
    ref, quarantined = envelope.entity, aggregate.quarantined
    match envelope.event:
        case EntityQuarantined(reason=reason):
            return replace(aggregate, quarantined=quarantined.set(ref, reason))
        case EntityReleased():
            return replace(aggregate, quarantined=quarantined.discard(ref))
        case _:
            return aggregate


def _fail(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Refusal | list[EntityStep]:
    """Accept a failure, a quarantine or a release. A quarantined entity need not exist yet."""
    ref, event = envelope.entity, envelope.event
    machine, entity = of.machine_of(ref), aggregate.entities.get(ref)
    if machine is None:
        return Refusal(envelope, "unknown", f"{aggregate.name} has no machine for {ref!r}")
    if isinstance(event, HandlerFailed):
        return [] if entity is None else [EntityStep(entity)]
    is_quarantined = ref in aggregate.quarantined
    if is_quarantined is isinstance(event, EntityQuarantined):
        is_so = "is quarantined already" if is_quarantined else "is not quarantined"
        return Refusal(envelope, "illegal", f"{aggregate.name}: {ref!r} {is_so}")
    if entity is None:
        return []
    if is_quarantined:
        try:
            return [release(machine, entity, envelope.at_ms)]
        except Exception as error:
            raise blamed(machine, entity, envelope, error) from error
    return [quarantine(machine, entity)]


def _advanced(machine: Machine[Any], entity: Entity[Any], envelope: Envelope) -> EntityStep | Refusal:
    try:
        return advance(machine, entity, envelope)
    except Exception as error:
        raise blamed(machine, entity, envelope, error) from error


def _deliver(machine: Machine[Any] | None, aggregate: Aggregate, envelope: Envelope) -> EntityStep | Refusal:
    """Give an event to an entity, or create the entity. ``machine`` is the one of its reference, if it has one."""
    ref, event = envelope.entity, envelope.event
    if aggregate.quarantined and ref in aggregate.quarantined and not isinstance(event, ActivityEnded):
        return Refusal(envelope, "quarantined", f"{aggregate.name}: {ref!r}: {aggregate.quarantined[ref]}")
    entity = aggregate.entities.get(ref)
    if machine is not None and entity is not None:
        if isinstance(event, Created):
            return Refusal(envelope, "duplicate", f"{aggregate.name}: {ref!r} exists already")
        return _advanced(machine, entity, envelope)
    if machine is not None and isinstance(event, Created):
        return _begin(machine, ref, event.record, envelope)
    return Refusal(envelope, "unknown", f"{aggregate.name}: {ref!r} does not exist")


def _begin(machine: Machine[Any], ref: str, record: Record, envelope: Envelope) -> EntityStep | Refusal:
    if type(record) is machine.record:
        try:
            return create(machine, ref, record, envelope.at_ms, envelope.actor)
        except Exception as error:
            raise DecisionError(ref, f"{ref} begins in {record.state}", error) from error
    reason = f"{ref!r} begins with a {machine.record.__name__}, not with a {type(record).__name__}"
    return Refusal(envelope, "illegal", reason)


def _recover(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Refusal | list[EntityStep]:
    if envelope.entity:
        return _of_all(aggregate, envelope)
    done: list[EntityStep] = []
    # Nothing is running in an archived entity.
    for ref, entity in sorted(aggregate.entities.unarchived().items()):
        machine = of.machine_of(ref)
        if machine is not None and entity.running:
            taken = _advanced(machine, entity, envelope)
            done += [taken] if isinstance(taken, EntityStep) else []
    return done


def _open(of: AggregateType, aggregate: Aggregate, envelope: Envelope) -> Refusal | list[EntityStep]:
    if envelope.entity:
        return _of_all(aggregate, envelope)
    if aggregate.entities:
        return Refusal(envelope, "duplicate", f"{aggregate.name} is open already")
    born: list[EntityStep] = []
    for ref, record in cast("Opened", envelope.event).records.items():
        machine = of.machine_of(ref)
        if machine is None:
            return Refusal(envelope, "unknown", f"{aggregate.name} has no machine for {ref!r}")
        first = _begin(machine, ref, record, envelope)
        if isinstance(first, Refusal):
            return first
        born.append(first)
    return born


def _of_all(aggregate: Aggregate, envelope: Envelope) -> Refusal:
    reason = f"{type(envelope.event).__name__} is for all of {aggregate.name}, not for {envelope.entity!r}"
    return Refusal(envelope, "unknown", reason)


OF_FAILURES: Final[frozenset[type[Event]]] = frozenset({HandlerFailed, EntityQuarantined, EntityReleased})

_SPECIAL: Final[dict[type[Event], Callable[[AggregateType, Aggregate, Envelope], Refusal | list[EntityStep]]]] = {
    Opened: _open,
    RunnerRecovered: _recover,
    **dict.fromkeys(OF_FAILURES, _fail),
}
"""The kernel's inputs that are not given to one entity as they are."""


class _Run:
    """The inside of one macrostep: local to one call of ``react``.

    ``aggregate`` is the one that rules see. Its maps are drafts, which change during the macrostep and not after it.
    """

    __slots__ = (
        "aggregate", "at_ms", "before", "changed", "effects", "entities", "is_folded", "of", "queue", "refusals",
        "rules", "sent", "transitions", "views",
    )  # fmt: skip

    def __init__(self, of: AggregateType, aggregate: Aggregate, at_ms: int) -> None:
        self.of = of
        self.before = aggregate
        self.entities = aggregate.entities.draft()
        self.views = aggregate.views.draft() if of.views else aggregate.views
        self.sent = aggregate.sent
        self.aggregate = replace(aggregate, entities=self.entities, views=self.views)
        self.at_ms = at_ms
        self.changed: dict[str, None] = {}
        self.is_folded = False
        self.effects: list[RequestedEffect] = []
        self.transitions: list[Transition] = []
        self.refusals: list[Refusal] = []
        self.rules: list[Rule] = []
        self.queue: list[tuple[str, RuleAction]] = []

    def accept(self, *steps: EntityStep) -> None:
        """Make steps part of the aggregate, then queue what their transitions entail, the first thing on top."""
        for step in steps:
            ref = step.entity.ref
            self.entities.put(ref, step.entity)
            self.changed[ref] = None
            for name, view in self.of.views.items():
                self.fold(name, view, step.transitions)
            for effect in step.effects:
                if isinstance(effect, Tell):  # a message of an entity is sent like one of a rule
                    self.send(effect, ref)
                else:
                    self.effects.append(RequestedEffect(ref, effect))
            self.transitions += step.transitions
            self.refusals += step.refusals
        actions: list[tuple[str, RuleAction]] = []
        for step in steps:
            for transition in step.transitions:
                self.entail(transition, actions)
        self.queue += reversed(actions)

    def fold(self, name: str, view: View, transitions: tuple[Transition, ...]) -> None:
        """Fold transitions into a view. Raises ``DecisionError``."""
        for transition in transitions:
            before = self.views[name]
            try:
                now = view.fold(before, transition)
            except Exception as error:
                raise following(transition, f"view {name}", error) from error
            if now is not before:
                self.views.put(name, now)
                self.is_folded = True

    def entail(self, transition: Transition, actions: list[tuple[str, RuleAction]]) -> None:
        """Add what rules ask for after a transition, each with the rule's name. Raises ``DecisionError``."""
        aggregate, entities = self.aggregate, self.entities
        for each in self.of.triggered(transition):
            if (beside := each.beside) and beside not in entities:
                continue
            has_asked = False
            try:
                for action in each.follow(aggregate, transition):
                    actions.append((each.name, action))
                    has_asked = True
            except Exception as error:
                raise following(transition, f"rule {each.name}", error) from error
            if has_asked:
                self.rules.append(each)

    def follow(self, name: str, action: RuleAction) -> None:
        """Do what one rule asked for."""
        actor = f"rule:{name}"
        if isinstance(action, Tell):
            self.send(action, actor)
            return
        event = action.event if isinstance(action, Dispatch) else Created(action.record)
        ref = action.entity
        done = _deliver(self.of.machine_of(ref), self.aggregate, Envelope(ref, event, self.at_ms, actor))
        if isinstance(done, Refusal):
            self.refusals.append(done)
        else:
            self.accept(done)

    def send(self, tell: Tell, actor: str) -> None:
        """Number a message, if its receiver can read it; refuse it otherwise."""
        if not self.of.reaches(tell):
            reason = f"{self.of.kind}: no {tell.aggregate!r} knows {type(tell.event).__name__} for {tell.entity!r}"
            self.refusals.append(Refusal(Envelope(tell.entity, tell.event, self.at_ms, actor), "unknown", reason))
            return
        to = tell.aggregate
        ordinal = self.sent.get(to, 0) + 1
        self.sent = self.sent.set(to, ordinal)
        self.effects.append(RequestedEffect("", replace(tell, ordinal=ordinal)))

    def reaction(self, received: PersistentMap[int]) -> Reaction:
        """Return the outcome of the macrostep."""
        before = self.before
        # Unchanged maps stay the same objects: a search then compares and hashes them once.
        entities = self.entities if self.changed else before.entities
        views = self.views if self.is_folded else before.views
        version = before.version + 1
        now = Aggregate(before.name, version, entities, views, self.sent, received, before.quarantined)
        return Reaction(
            now,
            tuple(self.effects),
            tuple(self.transitions),
            tuple(self.refusals),
            tuple(self.changed),
            tuple(self.rules),
        )
