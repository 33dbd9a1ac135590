"""What was decided on an input, as bytes and back: an entry of a log keeps it, so a fold needs no rules.

``written`` keeps the parts of a reaction that the entry does not have otherwise. These are the transitions with the
changed fields of their entities, the effects, and the refusals. ``Outcomes.applied`` makes the reaction again from the
aggregate before it. No row and no rule is asked, so a log of other rules folds to what its own rules decided. Only
views are folded, since they are no decisions.

``verify`` of a log decides again and compares the bytes. So equal reactions must have equal bytes: a field counts as
changed if its value is another one, never if it is another object.
"""

from collections.abc import Container, Mapping, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple, cast

import msgspec

from lifefold.core.kernel.aggregate import Aggregate
from lifefold.core.kernel.codec import Codec, UnreadableEntry, encode
from lifefold.core.kernel.entity import Created, Entity, Envelope, Opened, Phase, Refusal, Running, Transition
from lifefold.core.kernel.persistent_map import PersistentMap
from lifefold.core.kernel.reaction import OF_FAILURES, Reaction, RequestedEffect, isolating
from lifefold.core.kernel.record import Event, replace
from lifefold.core.kernel.system import AggregateType
from lifefold.effects import Activity, Begin, Effect, Tell


class _Part(msgspec.Struct, omit_defaults=True):
    """A running activity or timer. ``begun`` is the position of the effect that began it and has its activity."""

    slot: str
    generation: int
    activity: Any = None
    deadline_ms: int = 0
    phase: Phase = Phase.LIVE
    begun: int | None = None


class _Change(msgspec.Struct, omit_defaults=True):
    """The changed parts of an entity. A part of ``running`` that stays is its position before."""

    record: dict[str, Any] | None = None
    version: int | None = None
    entered_ms: int | None = None
    running: list[Any] | None = None
    postponed: list[Any] | None = None


class _Step(msgspec.Struct, omit_defaults=True):
    """A transition. Without ``event`` it is the input's, without ``actor`` the input's actor.

    ``was`` is a change of its entity before it that was no transition.
    """

    entity: str
    change: _Change
    was: _Change | None = None
    event: Any = None
    actor: str | None = None
    effects: list[Any] = []


class _Outcome(msgspec.Struct, omit_defaults=True):
    """A reaction. ``changed`` has the entities that end in another way than their last step says, or had none."""

    steps: list[_Step] = []
    changed: list[tuple[str, _Change]] = []
    effects: list[tuple[str, Any]] = []
    refusals: list[tuple[str, str, Any]] = []
    rules: list[str] = []


_ABSENT: Final = msgspec.Raw(b"null")


class _ReadPart(msgspec.Struct):
    slot: str
    generation: int
    activity: msgspec.Raw = _ABSENT
    deadline_ms: int = 0
    phase: Phase = Phase.LIVE
    begun: int | None = None


class _ReadChange(msgspec.Struct):
    record: dict[str, msgspec.Raw] | None = None
    version: int | None = None
    entered_ms: int | None = None
    running: list[int | _ReadPart] | None = None
    postponed: list[msgspec.Raw] | None = None


class _ReadStep(msgspec.Struct):
    entity: str
    change: _ReadChange
    was: _ReadChange | None = None
    event: msgspec.Raw = _ABSENT
    actor: str | None = None
    effects: list[msgspec.Raw] = []


class _ReadOutcome(msgspec.Struct):
    steps: list[_ReadStep] = []
    changed: list[tuple[str, _ReadChange]] = []
    effects: list[tuple[str, msgspec.Raw]] = []
    refusals: list[tuple[str, str, msgspec.Raw]] = []
    rules: list[str] = []


def written(before: Aggregate, envelope: Envelope, reaction: Reaction) -> bytes:
    """Return a reaction as bytes, relative to the aggregate before it and to its input."""
    effects, at_end = reaction.effects, dict[str, Entity[Any]]()
    begun = {
        (each.entity, each.effect.slot, each.effect.generation): (index, each.effect.activity)
        for index, each in enumerate(effects)
        if type(each.effect) is Begin
    }
    steps: list[_Step] = []
    next_effect = 0
    for each in reaction.transitions:
        ref = each.after.ref
        base = each.before or Entity(ref, cast("Created", each.event).record)
        known = at_end.get(ref) or before.entities.get(ref)
        step = _Step(ref, _change(base, each.after, begun))
        if known is not None and known != base:
            step.was = _change(known, base, begun)
        if each.event != _given(envelope, ref):
            step.event = each.event
        if each.actor != envelope.actor:
            step.actor = each.actor
        if each.effects:
            step.effects, next_effect = _requested(ref, each.effects, effects, next_effect)
        steps.append(step)
        at_end[ref] = each.after
    now = reaction.aggregate.entities
    changed = [(ref, _change(at_end.get(ref) or before.entities[ref], now[ref], begun)) for ref in reaction.changed]
    if reaction.changed == tuple(at_end) and all(change == _NO_CHANGE for _, change in changed):
        changed = []
    refusals = [
        (each.kind, each.reason, None if each.envelope == envelope else each.envelope) for each in reaction.refusals
    ]
    rules = [f"{each.on}.{each.name}" for each in reaction.rules]
    return encode(_Outcome(steps, changed, [(each.entity, each.effect) for each in effects], refusals, rules))


_Begun = Mapping[tuple[str, str, int], tuple[int, Activity]]
"""The begun activities of a reaction by entity, slot and generation: the position of the effect, and the activity."""


def _requested(
    ref: str, effects: Sequence[Effect], among: Sequence[RequestedEffect], begin: int
) -> tuple[list[Any], int]:
    """Return the effects of a transition, and where the next one's begin.

    Each is its position among all, or itself if it is not there. A message has its number there only.
    """
    found: list[Any] = []
    for each in effects:
        for index in range(begin, len(among)):
            there = among[index]
            if (there.effect == each and there.entity == ref) or (
                type(each) is Tell and type(there.effect) is Tell and replace(there.effect, ordinal=0) == each
            ):
                found.append(index)
                begin = index + 1
                break
        else:
            found.append(each)
    return found, begin


def _change(before: Entity[Any], now: Entity[Any], begun: _Begun) -> _Change:
    """Return the parts of an entity that are others than before."""
    if now is before:
        return _NO_CHANGE
    made = _Change()
    if now.record is not before.record:
        old, new = before.record, now.record
        fields = {
            name: value
            for name in new.__struct_fields__
            if (value := getattr(new, name)) is not (was := getattr(old, name)) and value != was
        }
        made.record = fields or None
    if now.version != before.version:
        made.version = now.version
    if now.entered_ms != before.entered_ms:
        made.entered_ms = now.entered_ms
    if now.running is not before.running and now.running != before.running:
        made.running = [
            before.running.index(each) if each in before.running else _part(now.ref, each, begun)
            for each in now.running
        ]
    if now.postponed is not before.postponed and now.postponed != before.postponed:
        made.postponed = list(now.postponed)
    return made


def _part(ref: str, now: Running, begun: _Begun) -> _Part:
    """Return the fields of a running part."""
    index, activity = begun.get((ref, now.slot, now.generation), (None, None))
    if now.activity is not None and activity == now.activity:
        return _Part(now.slot, now.generation, None, now.deadline_ms, now.phase, index)
    return _Part(now.slot, now.generation, now.activity, now.deadline_ms, now.phase)


_NO_CHANGE: Final = _Change()


def _given(envelope: Envelope, ref: str) -> Event:
    """Return the event that an input gives to an entity: its own, or the creation with its record."""
    event = envelope.event
    if isinstance(event, Opened) and ref in event.records:
        return Created(event.records[ref])
    return event


class Outcomes:
    """Makes reactions again from their written form, for the system of a codec.

    >>> from lifefold.core.fleet.board import intake
    >>> from lifefold.core.kernel import AggregateType, Codec, Created, Envelope, System, react
    >>> board = AggregateType("board", machines=(intake.machine,))
    >>> first = Envelope("intake", Created(intake.Intake()), 1)
    >>> empty = board.start("board")
    >>> reaction = react(board, empty, first)
    >>> outcomes = Outcomes(Codec(System("fleet", board)))
    >>> outcomes.applied(board, empty, first, written(empty, first, reaction)) == reaction
    True
    """

    def __init__(self, codec: Codec) -> None:
        """Read with this codec."""
        self._codec: Final = codec
        self._decoder: Final = msgspec.json.Decoder(_ReadOutcome)

    def applied(
        self, of: AggregateType, before: Aggregate, envelope: Envelope, data: bytes, only: Container[str] | None = None
    ) -> Reaction:
        """Return the written reaction of an aggregate of a type to an input. Raises ``UnreadableEntry``.

        With ``only``, the aggregate before needs no other entities than these. The reaction then has their transitions
        and all effects, and the views stay as they are.
        """
        try:
            outcome = self._decoder.decode(data)
            if only is not None:
                outcome.steps = [each for each in outcome.steps if each.entity in only]
                outcome.changed = [each for each in outcome.changed if each[0] in only]
            return _Reader(of, self._codec, before, envelope, outcome, has_views=only is None).reaction()
        except (msgspec.DecodeError, UnicodeDecodeError, LookupError, RecursionError) as error:
            message = f"{before.name}: this program cannot read what was decided in the entry {data[:200]!r}: {error}"
            raise UnreadableEntry(message) from error


class _Reader(NamedTuple):
    """The inside of one call of ``applied``."""

    of: AggregateType
    codec: Codec
    before: Aggregate
    envelope: Envelope
    outcome: _ReadOutcome
    has_views: bool

    def reaction(self) -> Reaction:
        """Return the reaction."""
        outcome, kind = self.outcome, self.of.kind
        effects = tuple(RequestedEffect(ref, self.codec.effect(kind, ref, raw)) for ref, raw in outcome.effects)
        now: dict[str, Entity[Any]] = {}
        transitions = tuple(self.transition(each, effects, now) for each in outcome.steps)
        order = tuple(now)
        if outcome.changed:
            order = tuple(ref for ref, _ in outcome.changed)
            for ref, change in outcome.changed:
                now[ref] = self.changed(now.get(ref) or self.before.entities[ref], change, effects)
        return Reaction(
            self.aggregate({ref: now[ref] for ref in order}, transitions, effects),
            effects,
            transitions,
            tuple(self.refusal(*each) for each in outcome.refusals),
            order,
            tuple(each for each in map(self.of.rule, outcome.rules) if each is not None),
        )

    def aggregate(
        self,
        changed: Mapping[str, Entity[Any]],
        transitions: Sequence[Transition],
        effects: Sequence[RequestedEffect],
    ) -> Aggregate:
        """Return the aggregate after these changes, with the messages sent and received."""
        before, envelope = self.before, self.envelope
        entities, sent, received = before.entities, before.sent, before.received
        if changed:
            entities = entities.draft()
            for ref, entity in changed.items():
                entities.put(ref, entity)
        for each in effects:
            if isinstance(each.effect, Tell):
                sent = sent.set(each.effect.aggregate, each.effect.ordinal)
        if envelope.sender:
            received = received.set(envelope.sender, envelope.ordinal)
        is_of_failure = type(envelope.event) in OF_FAILURES
        quarantined = isolating(before, envelope).quarantined if is_of_failure else before.quarantined
        views = self.views(transitions) if self.has_views else before.views
        return Aggregate(before.name, before.version + 1, entities, views, sent, received, quarantined)

    def views(self, transitions: Sequence[Transition]) -> PersistentMap[Any]:
        """Return the views with transitions folded into them."""
        views = self.before.views
        for name, view in self.of.views.items():
            folded = reduce(view.fold, transitions, views[name])
            if folded is not views[name]:
                views = views.set(name, folded)
        return views

    def transition(
        self, step: _ReadStep, effects: Sequence[RequestedEffect], now: dict[str, Entity[Any]]
    ) -> Transition:
        """Return a transition, and note its entity."""
        ref = step.entity
        event = _given(self.envelope, ref) if step.event == _ABSENT else self.codec.event(self.of.kind, ref, step.event)
        before = now.get(ref) or self.before.entities.get(ref)
        if before is not None and step.was is not None:
            before = self.changed(before, step.was, effects)
        if before is None and not isinstance(event, Created):
            raise KeyError(ref)
        base = Entity(ref, cast("Created", event).record) if before is None else before
        after = now[ref] = self.changed(base, step.change, effects)
        actor = self.envelope.actor if step.actor is None else step.actor
        requested = tuple(self.requested(ref, raw, effects) for raw in step.effects)
        machine = ref.partition(":")[0]
        return Transition(machine, before, after, event, self.envelope.at_ms, actor, requested)

    def requested(self, ref: str, raw: msgspec.Raw, effects: Sequence[RequestedEffect]) -> Effect:
        """Return one effect of a transition."""
        data = bytes(raw)
        if data.startswith(b"{"):
            return self.codec.effect(self.of.kind, ref, raw)
        effect = effects[int(data)].effect
        return replace(effect, ordinal=0) if isinstance(effect, Tell) else effect

    def changed(self, entity: Entity[Any], change: _ReadChange, effects: Sequence[RequestedEffect]) -> Entity[Any]:
        """Return an entity with its changed parts."""
        record, running, postponed = entity.record, entity.running, entity.postponed
        if change.record is not None:
            record = self.codec.changed_record(self.of.kind, entity.ref, record, change.record)
        if change.running is not None:
            running = tuple(
                running[part] if isinstance(part, int) else self.part(entity.ref, part, effects)
                for part in change.running
            )
        if change.postponed is not None:
            postponed = tuple(self.codec.decode(self.before.name, raw, is_past=True) for raw in change.postponed)
        version = entity.version if change.version is None else change.version
        entered_ms = entity.entered_ms if change.entered_ms is None else change.entered_ms
        return Entity(entity.ref, record, version, entered_ms, running, postponed)

    def part(self, ref: str, part: _ReadPart, effects: Sequence[RequestedEffect]) -> Running:
        """Return a running part."""
        activity: Activity | None
        if part.begun is not None:
            begin = effects[part.begun].effect
            activity = begin.activity if isinstance(begin, Begin) else None
        else:
            activity = self.codec.activity(self.of.kind, ref, part.slot, part.activity)
        slot = self.codec.slot(self.of.kind, ref, part.slot)
        return Running(slot, part.generation, activity, part.deadline_ms, part.phase)

    def refusal(self, kind: str, reason: str, raw: msgspec.Raw) -> Refusal:
        """Return a refusal."""
        given = self.envelope if raw == _ABSENT else self.codec.decode(self.before.name, raw, is_past=True)
        return Refusal(given, kind, reason)
