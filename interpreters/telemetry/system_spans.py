"""The spans of any system: a trace for each entity, with its activities as children.

A life of an entity is a span. It begins with the entity and ends when its machine counts its record as settled and
nothing runs in it any more. An entity that goes on after that has a further life, linked to the one before. Transitions
are events of the life. An input from another aggregate links to the life that sent it. Timers are no spans.
"""

from collections.abc import Iterator
from typing import Final

from lifefold.core.kernel import ENGINE, Aggregate, Cause, Reaction, RunnerRecovered, System, cause_of
from lifefold.effects import Tell
from lifefold.interpreters.engine import Decision
from lifefold.interpreters.telemetry.identifiers import Place, span_of, trace_of
from lifefold.interpreters.telemetry.spans import Draft, Span, activities, moved, unfinished

Of = tuple[str, str]
"""An entity: its stream, and its name there."""


class SystemSpans:
    """Folds the decisions of a log into spans, each when it ends. ``log`` is the identity of the log."""

    def __init__(self, system: System, log: str) -> None:
        """Begin before the first entry."""
        self._system: Final = system
        self._log: Final = log
        self._aggregates: Final[dict[str, Aggregate]] = {}
        self._lives: Final[dict[Of, Draft]] = {}
        self._running: Final[dict[tuple[Of, str, int], Draft]] = {}
        self._latest: Final[dict[Of, Place]] = {}
        """The newest life of each entity."""
        self._sent: Final[dict[tuple[str, str, int], Place]] = {}
        """The life that has sent each message on its way."""
        self.last_ms = 0

    def take(self, decision: Decision) -> Iterator[Span]:
        """Take the next entry, and yield the spans that have ended with it."""
        stream, reaction, at_ms = decision.entry.stream, decision.reaction, decision.entry.at_ms
        self.last_ms = max(self.last_ms, at_ms)
        if stream == ENGINE:
            return
        before = self._aggregates.get(stream)
        self._aggregates[stream] = reaction.aggregate
        self._note_transitions(stream, reaction)
        self._note_cause(decision)
        for ref in reaction.changed:
            yield from self._changed(stream, ref, before, reaction, at_ms)
        for each in reaction.effects:
            if isinstance(each.effect, Tell) and (sender := self._latest.get((stream, each.entity))) is not None:
                self._sent[stream, each.effect.aggregate, each.effect.ordinal] = sender

    def rest(self) -> Iterator[Span]:
        """Yield the spans that have not ended, until the last entry."""
        yield from unfinished(self._running.values(), self.last_ms)
        yield from unfinished(self._lives.values(), self.last_ms)

    def _note_transitions(self, stream: str, reaction: Reaction) -> None:
        for step in reaction.transitions:
            of = (stream, step.entity)
            life = self._lives.get(of)
            if life is None:
                machine = self._system.type_of(stream).machine_of(step.entity)
                if of in self._latest and (machine is None or machine.settled(step.after.record)):
                    continue  # it is over, and stays over
                place = Place(trace_of(self._log, *of), span_of(self._log, stream, step.entity, "", step.after.version))
                name = step.machine if step.entity == step.machine else step.entity
                life = self._lives[of] = Draft(place, name, step.at_ms)
                life.attributes.update({"lifefold.aggregate": stream, "lifefold.machine": step.machine})
                life.link(self._latest.get(of), "earlier life")
                self._latest[of] = place
            life.attributes["lifefold.state"] = str(step.after.state)
            life.events.append(moved(stream, step))

    def _note_cause(self, decision: Decision) -> None:
        """Link a message to its sender, and note a recovery in everything that runs in its aggregate."""
        envelope, stream = decision.envelope, decision.entry.stream
        if cause_of(envelope) is Cause.MESSAGE:
            sender = self._sent.pop((envelope.sender, stream, envelope.ordinal), None)
            if (life := self._lives.get((stream, envelope.entity))) is not None:
                life.link(sender, "message")
        if isinstance(envelope.event, RunnerRecovered):
            for (of, _slot, _generation), draft in self._running.items():
                if of[0] == stream:
                    draft.note("RunnerRecovered", envelope.at_ms, {"lifefold.down_ms": envelope.event.down_ms})

    def _changed(
        self, stream: str, ref: str, before: Aggregate | None, reaction: Reaction, at_ms: int
    ) -> Iterator[Span]:
        """Begin and end the activities of a changed entity, and its life."""
        of, entity = (stream, ref), reaction.aggregate.entities[ref]
        was = activities(None if before is None else before.entities.get(ref))
        now = activities(entity)
        for key in (each for each in was if each not in now):
            if (draft := self._running.pop((of, *key), None)) is not None:
                yield draft.ended(at_ms)
        life = self._lives.get(of)
        for slot, generation in (each for each in now if each not in was):
            if life is not None:
                place = Place(life.place.trace, span_of(self._log, stream, ref, slot, generation))
                draft = self._running[of, slot, generation] = Draft(place, slot, at_ms, life.place.span)
                draft.attributes.update({"lifefold.aggregate": stream, "lifefold.entity": ref})
        machine = self._system.type_of(stream).machine_of(ref)
        if life is not None and machine is not None and not entity.running and machine.settled(entity.record):
            del self._lives[of]
            yield life.ended(at_ms)
