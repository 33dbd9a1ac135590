"""One aggregate of the fleet, driven by hand: its inputs and its reactions."""

from typing import Any

from lifefold.core.fleet import system
from lifefold.core.kernel import (
    ActivityEnded,
    Aggregate,
    Entity,
    Envelope,
    Event,
    Opened,
    Phase,
    Reaction,
    Record,
    Refusal,
    RunnerRecovered,
    Running,
    TimerFired,
    react,
)
from lifefold.effects import Begin, Effect, Tell


class Hand:
    """Holds an aggregate and the reaction to the last input; every input must be accepted unless it is ``refuse``d."""

    def __init__(self, name: str, records: dict[str, Record]) -> None:
        """Open the aggregate at time 0. What its rules then ask for twice may be refused once."""
        self.of = system.type_of(name)
        self.now_ms = 0
        self.aggregate: Aggregate = self.of.start(name)
        self.reaction = Reaction(self.aggregate)
        self.heard: dict[str, int] = {}
        assert isinstance(self.offer(Envelope("", Opened(records), 0, "operator")), Reaction)

    def offer(self, envelope: Envelope) -> Reaction | Refusal:
        """Offer an envelope, and keep what the aggregate becomes."""
        answer = react(self.of, self.aggregate, envelope)
        if isinstance(answer, Reaction):
            self.aggregate, self.reaction = answer.aggregate, answer
        return answer

    def accept(self, envelope: Envelope) -> "Hand":
        """Offer an envelope that must be accepted, with everything that follows from it."""
        answer = self.offer(envelope)
        assert isinstance(answer, Reaction), answer.reason
        assert answer.refusals == ()
        return self

    def give(self, entity: str, event: Event, actor: str = "operator") -> "Hand":
        """Give an event from outside."""
        return self.accept(Envelope(entity, event, self.now_ms, actor))

    def must_refuse(self, entity: str, event: Event) -> Refusal:
        """Give an event that must be refused."""
        answer = self.offer(Envelope(entity, event, self.now_ms))
        assert isinstance(answer, Refusal)
        return answer

    def hear(self, sender: str, entity: str, event: Event) -> "Hand":
        """Give the next message of another aggregate; it must be taken."""
        return self.accept(self.message(sender, entity, event))

    def dismiss(self, sender: str, entity: str, event: Event) -> Refusal:
        """Give the next message of another aggregate; its entity must refuse it."""
        answer = self.offer(self.message(sender, entity, event))
        assert isinstance(answer, Reaction)
        (refusal,) = answer.refusals
        return refusal

    def message(self, sender: str, entity: str, event: Event) -> Envelope:
        """Return the next message of another aggregate."""
        self.heard[sender] = self.heard.get(sender, 0) + 1
        return Envelope(entity, event, self.now_ms, sender, sender=sender, ordinal=self.heard[sender])

    def report(self, entity: str, slot: str, event: Event) -> "Hand":
        """Give an event in the name of what goes on in a slot."""
        part = self.part(entity, slot)
        return self.accept(Envelope(entity, event, self.now_ms, "runner", slot=slot, generation=part.generation))

    def elapse(self, entity: str, slot: str) -> "Hand":
        """Let a timer reach its deadline."""
        timer = self.part(entity, slot)
        self.now_ms = timer.deadline_ms
        return self.give(entity, TimerFired(slot, timer.generation))

    def confirm(self, entity: str, slot: str) -> "Hand":
        """Confirm the end of what is ending in a slot."""
        return self.give(entity, ActivityEnded(slot, self.part(entity, slot, Phase.ENDING).generation))

    def crash(self, down_ms: int = 10) -> "Hand":
        """Let the runner go and come back."""
        self.now_ms += down_ms
        return self.give("", RunnerRecovered(down_ms))

    def part(self, entity: str, slot: str, phase: Phase = Phase.LIVE) -> Running:
        """Return what goes on in a slot; there must be something."""
        part = self.entity(entity).find(slot, phase)
        assert part is not None, f"{slot} is not {phase}: {self.entity(entity).running}"
        return part

    def entity(self, ref: str) -> Entity[Any]:
        """Return an entity."""
        return self.aggregate.entities[ref]

    def record(self, ref: str) -> Any:
        """Return an entity's record."""
        return self.aggregate.record(ref)

    def state(self, ref: str) -> str:
        """Return an entity's state as the documents spell it."""
        return self.entity(ref).state.value

    def told(self) -> list[tuple[str, str, Event]]:
        """Return the messages of the last reaction, in order: to which aggregate, to which entity, what."""
        return [(e.aggregate, e.entity, e.event) for e in self.effects(Tell) if isinstance(e, Tell)]

    def begun(self) -> list[str]:
        """Return the slots in which the last reaction began something."""
        return [e.slot for e in self.effects(Begin) if isinstance(e, Begin)]

    def effects(self, kind: type[Effect] = Effect) -> list[Effect]:
        """Return the effects of the last reaction, of one kind."""
        return [asked.effect for asked in self.reaction.effects if isinstance(asked.effect, kind)]
