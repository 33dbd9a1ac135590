"""The decisions of a system's aggregates, computed once for each state and input, and numbered.

A crash search (see ``runner_model``) meets the same aggregates in many crash models. Decisions come from ``react``
alone, and their inputs from ``possible``.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from lifefold.core.kernel import (
    Aggregate,
    Cause,
    Envelope,
    Phase,
    Reaction,
    Refusal,
    RunnerRecovered,
    System,
    delivery,
    encode,
    possible,
    react,
    replace,
)
from lifefold.core.kernel.snapshot import must_recover
from lifefold.effects import Begin, CancelTimer, Effect, End, StartTimer, Tell
from lifefold.interpreters.search.canonical import NOW_MS
from lifefold.interpreters.search.crash_model import Activity, Derived, Handler, Outcome
from lifefold.interpreters.search.exchange import Refused, Unaddressed


class Choice(NamedTuple):
    """An input that an aggregate accepts: its handler, if it has one, and its outcome."""

    number: int
    given: Envelope
    cause: Cause
    needs: Handler | None
    outcome: int


class Decisions:
    """The states, decisions, effects and messages of a system, each with a number."""

    def __init__(self, system: System, opening: Sequence[tuple[str, Envelope]]) -> None:
        """Take the aggregates, each with its opening input."""
        self.names: Final = tuple(name for name, _ in opening)
        self.effects: Final[list[tuple[int, int, int, Effect]]] = []
        """Every effect so far: its aggregate, its entry, its index in the entry."""
        self.outcomes: Final[list[Outcome]] = []
        self.messages: Final[list[tuple[int, Tell]]] = []
        """Every message so far, with its sender."""
        self.states: Final[list[list[Aggregate]]] = [[] for _ in opening]
        self._opening: Final = tuple(envelope for _, envelope in opening)
        self._types: Final = tuple(system.type_of(name) for name in self.names)
        self._deeds: Final[dict[tuple[int, int, int, bytes], int]] = {}
        self._message_numbers: Final[dict[tuple[int, bytes], int]] = {}
        self._numbers: Final[list[dict[Aggregate, int]]] = [{} for _ in opening]
        self._choices: Final[dict[tuple[int, int], tuple[Choice, ...]]] = {}
        self._greeted: Final[dict[tuple[int, int], int]] = {}
        self.recoveries: Final[set[int]] = set()
        """The decisions on ``RunnerRecovered``."""
        self._received: Final[dict[tuple[int, int, int], int]] = {}
        self._timers: Final[dict[tuple[int, int], frozenset[Handler]]] = {}
        self._afoot: Final[dict[tuple[int, int], dict[Activity, Phase]]] = {}

    def empty(self) -> tuple[int, ...]:
        """Return the numbers of the aggregates before their openings."""
        return tuple(
            self.number(component, of.start(self.names[component])) for component, of in enumerate(self._types)
        )

    def number(self, component: int, aggregate: Aggregate) -> int:
        """Return the number of a state."""
        number = self._numbers[component].setdefault(aggregate, len(self.states[component]))
        if number == len(self.states[component]):
            self.states[component].append(aggregate)
        return number

    def react(self, component: int, number: int, envelope: Envelope) -> Reaction | Refusal:
        """Let an aggregate decide, as the shipped rules do."""
        return react(self._types[component], self.states[component][number], envelope)

    def greet(self, component: int, number: int) -> int:
        """Return the decision of an aggregate on its opening or on ``RunnerRecovered``."""
        known = self._greeted.get((component, number))
        if known is None:
            given = self.greeting(component, number)
            known = self._greeted[component, number] = self._taken(component, number, given)
            if isinstance(given.event, RunnerRecovered):
                self.recoveries.add(known)
        return known

    def is_greeted(self, component: int, number: int) -> bool:
        """Tell whether a new runner gives an aggregate an input: its opening, or ``RunnerRecovered`` if it is live."""
        aggregate = self.states[component][number]
        return not aggregate.version or must_recover(self._types[component], aggregate)

    def greeting(self, component: int, number: int) -> Envelope:
        """Return the opening of an aggregate, or ``RunnerRecovered``."""
        aggregate = self.states[component][number]
        if not aggregate.version:
            return replace(self._opening[component], at_ms=NOW_MS)
        return Envelope("", RunnerRecovered(0), _now_ms(aggregate), "engine")

    def accepted(self, component: int, number: int) -> tuple[Choice, ...]:
        """Return the inputs that an aggregate accepts, without messages."""
        known = self._choices.get((component, number))
        if known is None:
            known = self._choices[component, number] = tuple(self._acceptable(component, number))
        return known

    def _acceptable(self, component: int, number: int) -> Iterator[Choice]:
        aggregate = self.states[component][number]
        for choice, each in enumerate(possible(self._types[component], aggregate, _now_ms(aggregate))):
            if each.cause is Cause.RECOVERY:
                continue
            came = self.react(component, number, each.envelope)
            if isinstance(came, Reaction):
                source = self._source(component, number, each.cause, each.envelope)
                yield Choice(choice, each.envelope, each.cause, source, self._outcome(component, came))

    def receive(self, component: int, number: int, sent_message: int) -> int:
        """Return the decision of an aggregate on a message."""
        known = self._received.get((component, number, sent_message))
        if known is None:
            envelope = self.sent_message(component, number, sent_message)
            known = self._received[component, number, sent_message] = self._taken(
                component, number, envelope, sent_message
            )
        return known

    def sent_message(self, component: int, number: int, sent_message: int) -> Envelope:
        """Return a message as an aggregate gets it."""
        sender, tell = self.messages[sent_message]
        return delivery(self.names[sender], tell, _now_ms(self.states[component][number])).envelope

    def _taken(self, component: int, number: int, envelope: Envelope, sent_message: int = -1) -> int:
        """Return the number of the decision on an input that must not be refused."""
        came = self.react(component, number, envelope)
        if isinstance(came, Reaction):
            return self._outcome(component, came, sent_message)
        raise Refused(self.names[component], came)

    def _outcome(self, component: int, came: Reaction, took: int = -1) -> int:
        """Return the number of a decision."""
        version = came.aggregate.version
        deeds: list[int] = []
        derived: list[tuple[str, Derived]] = []
        messages: list[int] = []
        for index, asked in enumerate(came.effects):
            match asked.effect:
                case Tell() as tell:
                    messages.append(self.number_of_message(component, tell))
                case Begin() | End() | StartTimer() | CancelTimer() as effect:
                    derived.append((asked.entity, effect))
                case effect:
                    deeds.append(self._deed(component, version, index, effect))
        to = self.number(component, came.aggregate)
        self.outcomes.append(Outcome(component, to, version, tuple(deeds), tuple(derived), tuple(messages), took))
        return len(self.outcomes) - 1

    def _deed(self, component: int, version: int, index: int, effect: Effect) -> int:
        number = self._deeds.setdefault((component, version, index, encode(effect)), len(self.effects))
        if number == len(self.effects):
            self.effects.append((component, version, index, effect))
        return number

    def number_of_message(self, sender: int, tell: Tell) -> int:
        """Return the number of a message. Raises ``Unaddressed`` if it has no recipient."""
        if tell.aggregate not in self.names:
            raise Unaddressed(self.names[sender], tell.aggregate, self.names)
        number = self._message_numbers.setdefault((sender, encode(tell)), len(self.messages))
        if number == len(self.messages):
            self.messages.append((sender, tell))
        return number

    def going_on(self, component: int, number: int) -> dict[Activity, Phase]:
        """Return the running activities, with their progress; timers wait."""
        known = self._afoot.get((component, number))
        if known is None:
            known = self._afoot[component, number] = {
                Activity(component, ref, each.slot, each.generation): Phase.WAITING
                if each.activity is None
                else each.phase
                for ref, entity in self.states[component][number].entities.items()
                for each in entity.running
                if (machine := self._types[component].machine_of(ref)) is not None and each.slot not in machine.served
            }
        return known

    def handlers(self, component: int, number: int) -> Iterator[Handler]:
        """Yield the handlers of a runner that has started everything."""
        for of, phase in self.going_on(component, number).items():
            deadline_ms = self._deadline_ms(component, number, of)
            if deadline_ms is not None:
                yield Handler("timer", of, deadline_ms)
            elif phase is not Phase.WAITING:
                yield Handler("live" if phase is Phase.LIVE else "ended", of)

    def timers(self, component: int, number: int) -> frozenset[Handler]:
        """Return the timers that are to be set in a state."""
        known = self._timers.get((component, number))
        if known is None:
            timers = (each for each in self.handlers(component, number) if each.kind == "timer")
            known = self._timers[component, number] = frozenset(timers)
        return known

    def _deadline_ms(self, component: int, number: int, of: Activity) -> int | None:
        """Return the deadline of a timer; None for an activity."""
        running = self.states[component][number].entities[of.ref].running
        return next((each.deadline_ms for each in running if each.slot == of.slot and each.activity is None), None)

    def _source(self, component: int, number: int, cause: Cause, given: Envelope) -> Handler | None:
        """Return the handler that an input comes from, if it has one."""
        kind = _FROM.get(cause)
        if kind is None:
            return None
        slot = given.slot or getattr(given.event, "slot", "")
        generation = given.generation if given.slot else getattr(given.event, "generation", 0)
        of = Activity(component, given.entity, slot, generation)
        deadline_ms = self._deadline_ms(component, number, of) if kind == "timer" else None
        return Handler(kind, of, deadline_ms or 0)


_FROM: Final[dict[Cause, Literal["live", "timer", "ended"]]] = {
    Cause.REPORT: "live",
    Cause.TIMER: "timer",
    Cause.CONFIRMATION: "ended",
}


def _now_ms(aggregate: Aggregate) -> int:
    """Return the time of the last input of an aggregate."""
    times = (max(each.entered_ms, getattr(each.record, "at_ms", 0)) for each in aggregate.entities.values())
    return max(times, default=NOW_MS)
