"""What a system's aggregates decide, computed once for each state and input, and numbered.

A runner that is searched (see ``runner``) meets the same aggregates at many moments. What they decide comes from
``react`` and from nowhere else; what may be decided on from ``possible``.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from lifefold.core.kernel import (
    Aggregate,
    Cause,
    Envelope,
    Phase,
    Reaction,
    Recovered,
    Refusal,
    System,
    encode,
    possible,
    react,
    replace,
)
from lifefold.effects import Begin, CancelTimer, Effect, End, StartTimer, Tell
from lifefold.interpreters.search.canonical import NOW_MS
from lifefold.interpreters.search.crash_model import Activity, Derived, Handler, Outcome
from lifefold.interpreters.search.product_system import Refused, Unaddressed


class Choice(NamedTuple):
    """An input that an aggregate accepts: from which handler it comes, if from any, and what comes of it."""

    number: int
    given: Envelope
    cause: Cause
    needs: Handler | None
    outcome: int


class Decisions:
    """The states, decisions, effects and messages of a system, each known by its number."""

    def __init__(self, system: System, opening: Sequence[tuple[str, Envelope]]) -> None:
        """Take the aggregates that there are, each with the input that opens it."""
        self.names: Final = tuple(name for name, _ in opening)
        self.effects: Final[list[tuple[int, int, int, Effect]]] = []
        """Every effect that was met: by whom, in which entry, at which place in it."""
        self.outcomes: Final[list[Outcome]] = []
        self.letters: Final[list[tuple[int, Tell]]] = []
        """Every message that was met, and who tells it."""
        self.states: Final[list[list[Aggregate]]] = [[] for _ in opening]
        self._opening: Final = tuple(envelope for _, envelope in opening)
        self._types: Final = tuple(system.type_of(name) for name in self.names)
        self._deeds: Final[dict[tuple[int, int, int, bytes], int]] = {}
        self._letter_numbers: Final[dict[tuple[int, bytes], int]] = {}
        self._numbers: Final[list[dict[Aggregate, int]]] = [{} for _ in opening]
        self._choices: Final[dict[tuple[int, int], tuple[Choice, ...]]] = {}
        self._greeted: Final[dict[tuple[int, int], int]] = {}
        self.recoveries: Final[set[int]] = set()
        """The decisions with which an aggregate is recovered."""
        self._received: Final[dict[tuple[int, int, int], int]] = {}
        self._timers: Final[dict[tuple[int, int], frozenset[Handler]]] = {}
        self._afoot: Final[dict[tuple[int, int], dict[Activity, Phase]]] = {}

    def empty(self) -> tuple[int, ...]:
        """Return the numbers of the aggregates before anything has happened to them."""
        return tuple(self.number(part, of.start(self.names[part])) for part, of in enumerate(self._types))

    def number(self, part: int, aggregate: Aggregate) -> int:
        """Return the number of a state."""
        number = self._numbers[part].setdefault(aggregate, len(self.states[part]))
        if number == len(self.states[part]):
            self.states[part].append(aggregate)
        return number

    def react(self, part: int, number: int, envelope: Envelope) -> Reaction | Refusal:
        """Let an aggregate decide, as the shipped rules do."""
        return react(self._types[part], self.states[part][number], envelope)

    def greet(self, part: int, number: int) -> int:
        """Return what an aggregate decides that is opened, or told that a runner is back."""
        known = self._greeted.get((part, number))
        if known is None:
            given = self.greeting(part, number)
            known = self._greeted[part, number] = self._taken(part, number, given)
            if isinstance(given.event, Recovered):
                self.recoveries.add(known)
        return known

    def greeting(self, part: int, number: int) -> Envelope:
        """Return what opens an aggregate, or tells it that a runner is back."""
        aggregate = self.states[part][number]
        if not aggregate.version:
            return replace(self._opening[part], at_ms=NOW_MS)
        return Envelope("", Recovered(0), _now_ms(aggregate), "engine")

    def accepted(self, part: int, number: int) -> tuple[Choice, ...]:
        """Return the inputs that an aggregate accepts, messages aside."""
        known = self._choices.get((part, number))
        if known is None:
            known = self._choices[part, number] = tuple(self._acceptable(part, number))
        return known

    def _acceptable(self, part: int, number: int) -> Iterator[Choice]:
        aggregate = self.states[part][number]
        for choice, each in enumerate(possible(self._types[part], aggregate, _now_ms(aggregate))):
            if each.cause is Cause.RECOVERY:
                continue
            came = self.react(part, number, each.envelope)
            if isinstance(came, Reaction):
                source = self._source(part, number, each.cause, each.envelope)
                yield Choice(choice, each.envelope, each.cause, source, self._outcome(part, came))

    def receive(self, part: int, number: int, letter: int) -> int:
        """Return what an aggregate decides on a message."""
        known = self._received.get((part, number, letter))
        if known is None:
            envelope = self.letter(part, number, letter)
            known = self._received[part, number, letter] = self._taken(part, number, envelope, letter)
        return known

    def letter(self, part: int, number: int, letter: int) -> Envelope:
        """Return a message as an aggregate gets it."""
        sender, tell = self.letters[letter]
        name, at_ms = self.names[sender], _now_ms(self.states[part][number])
        return Envelope(tell.entity, tell.event, at_ms, name, sender=name, ordinal=tell.ordinal)

    def _taken(self, part: int, number: int, envelope: Envelope, letter: int = -1) -> int:
        """Return the number of what comes of an input that must not be refused."""
        came = self.react(part, number, envelope)
        if isinstance(came, Reaction):
            return self._outcome(part, came, letter)
        raise Refused(self.names[part], came)

    def _outcome(self, part: int, came: Reaction, took: int = -1) -> int:
        """Return the number of a decision."""
        version = came.aggregate.version
        deeds: list[int] = []
        derived: list[tuple[str, Derived]] = []
        letters: list[int] = []
        for index, asked in enumerate(came.effects):
            match asked.effect:
                case Tell() as tell:
                    letters.append(self.post(part, tell))
                case Begin() | End() | StartTimer() | CancelTimer() as effect:
                    derived.append((asked.entity, effect))
                case effect:
                    deeds.append(self._deed(part, version, index, effect))
        to = self.number(part, came.aggregate)
        self.outcomes.append(Outcome(part, to, version, tuple(deeds), tuple(derived), tuple(letters), took))
        return len(self.outcomes) - 1

    def _deed(self, part: int, version: int, index: int, effect: Effect) -> int:
        number = self._deeds.setdefault((part, version, index, encode(effect)), len(self.effects))
        if number == len(self.effects):
            self.effects.append((part, version, index, effect))
        return number

    def post(self, sender: int, tell: Tell) -> int:
        """Return the number of a message. Raises ``Unaddressed`` if it is for nobody."""
        if tell.aggregate not in self.names:
            raise Unaddressed(self.names[sender], tell.aggregate, self.names)
        number = self._letter_numbers.setdefault((sender, encode(tell)), len(self.letters))
        if number == len(self.letters):
            self.letters.append((sender, tell))
        return number

    def going_on(self, part: int, number: int) -> dict[Activity, Phase]:
        """Return what an interpreter is to see to, and how far it is; timers wait."""
        known = self._afoot.get((part, number))
        if known is None:
            known = self._afoot[part, number] = {
                Activity(part, ref, each.slot, each.generation): Phase.WAITING if each.activity is None else each.phase
                for ref, entity in self.states[part][number].entities.items()
                for each in entity.running
                if (machine := self._types[part].machine_of(ref)) is not None and each.slot not in machine.served
            }
        return known

    def handlers(self, part: int, number: int) -> Iterator[Handler]:
        """Yield the handlers of a runner that has let go everything which goes on."""
        for of, phase in self.going_on(part, number).items():
            deadline_ms = self._deadline_ms(part, number, of)
            if deadline_ms is not None:
                yield Handler("timer", of, deadline_ms)
            elif phase is not Phase.WAITING:
                yield Handler("live" if phase is Phase.LIVE else "ended", of)

    def timers(self, part: int, number: int) -> frozenset[Handler]:
        """Return the timers that are to be set in a state."""
        known = self._timers.get((part, number))
        if known is None:
            timers = (each for each in self.handlers(part, number) if each.kind == "timer")
            known = self._timers[part, number] = frozenset(timers)
        return known

    def _deadline_ms(self, part: int, number: int, of: Activity) -> int | None:
        """Return when a timer elapses; None for what is no timer."""
        running = self.states[part][number].entities[of.ref].running
        return next((each.deadline_ms for each in running if each.slot == of.slot and each.activity is None), None)

    def _source(self, part: int, number: int, cause: Cause, given: Envelope) -> Handler | None:
        """Return the handler that an input comes from, if it comes from one."""
        kind = _FROM.get(cause)
        if kind is None:
            return None
        slot = given.slot or getattr(given.event, "slot", "")
        generation = given.generation if given.slot else getattr(given.event, "generation", 0)
        of = Activity(part, given.entity, slot, generation)
        deadline_ms = self._deadline_ms(part, number, of) if kind == "timer" else None
        return Handler(kind, of, deadline_ms or 0)


_FROM: Final[dict[Cause, Literal["live", "timer", "ended"]]] = {
    Cause.REPORT: "live",
    Cause.TIMER: "timer",
    Cause.CONFIRMATION: "ended",
}


def _now_ms(aggregate: Aggregate) -> int:
    """Return the time of the last thing that happened to an aggregate."""
    times = (max(each.entered_ms, getattr(each.record, "at_ms", 0)) for each in aggregate.entities.values())
    return max(times, default=NOW_MS)
