"""A component: one aggregate of a searched system. Each of its reactions is computed once; states are numbers.

The reaction of an aggregate depends on the aggregate and its input only. So its states are numbered when they are
reached. A table has the steps of each state, and grows with the search.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Cause,
    Envelope,
    Reaction,
    Refusal,
    possible,
    react,
    replace,
    restarted,
)
from lifefold.interpreters.search.canonical import NOW_MS, Canonical
from lifefold.interpreters.search.determinism import Repeats
from lifefold.interpreters.search.exchange import Exchange, Label
from lifefold.interpreters.search.reactions import Reactions
from lifefold.interpreters.search.rule_error import ANSWERED, TAKEN, Place, RuleError
from lifefold.interpreters.search.state_numbers import Numbered


class LocalStep(NamedTuple):
    """A step of an aggregate: the number of its input, the next state, and its messages (``(channel, message)``)."""

    choice: int
    to: int
    label: int
    said: bool
    sent: tuple[tuple[int, int], ...]
    wrong: tuple[int, ...]


class Move(NamedTuple):
    """A step of the system: the aggregate, and the number of its input or the head of a channel."""

    component: int
    choice: int
    channel: int = -1


class Component:
    """One aggregate: its reached states and their steps."""

    def __init__(self, number: int, of: AggregateType, name: str, exchange: Exchange) -> None:
        self.number: Final = number
        self.of: Final = of
        self.name: Final = name
        self.cut = 0
        self.left_out: Final[dict[int, set[int]]] = {}
        """By state: the labels of the steps that lead out of the bounds."""
        self._exchange: Final = exchange
        self._choice = -1
        """The number of the input whose step is being computed."""
        self._numbered: Final = Numbered(Canonical(of, exchange.kept))
        self.states: Final = self._numbered.states
        self._reactions: Final = Reactions(of)
        self._repeats: Final = Repeats(of)
        self._steps: Final[list[tuple[LocalStep, ...] | None]] = []
        self._receptions: Final[dict[tuple[int, int, int], LocalStep]] = {}

    def number_of(self, aggregate: Aggregate) -> int:
        """Return the number of a state; a new state gets one and is judged."""
        number = self._numbered.add(aggregate)
        if number == len(self._steps):
            self._steps.append(None)
            self._exchange.judge.meet(self.number, number, self.of, self.states[number])
            self._exchange.coverage.meet(self.of, self.states[number])
        return number

    def known(self, aggregate: Aggregate) -> int:
        """Return the number of a state; -1 if it was not reached."""
        return self._numbered.find(aggregate)

    def steps(self, number: int) -> tuple[LocalStep, ...]:
        """Return the steps of a state on inputs other than messages."""
        known = self._steps[number]
        if known is None:
            with self._exchange.flawless(lambda: Place(self.number, number, self._choice)):
                known = self._steps[number] = tuple(self._spontaneous(number))
        return known

    def said_at(self, labels: frozenset[int]) -> list[int]:
        """Return the explored states in which an operator command with one of these labels is possible."""
        looked_at = ((number, steps) for number, steps in enumerate(self._steps) if steps is not None)
        return [number for number, steps in looked_at if any(each.said and each.label in labels for each in steps)]

    def received(self) -> dict[int, list[tuple[int, int]]]:
        """Return the messages that each state has received, each after its channel."""
        found: dict[int, list[tuple[int, int]]] = {}
        for number, channel, message in self._receptions:
            found.setdefault(number, []).append((channel, message))
        return found

    def reception(self, number: int, channel: int, message: int) -> LocalStep:
        """Return the step of a state on a message."""
        key = (number, channel, message)
        known = self._receptions.get(key)
        if known is None:
            with self._exchange.flawless(lambda: Place(self.number, number, -1, channel, message)):
                known = self._receptions[key] = self._take(number, channel, message)
        return known

    def _spontaneous(self, number: int) -> Iterator[LocalStep]:
        aggregate = self.states[number]
        self._choice = -1
        self._exchange.refused += self._reactions.inert(aggregate, Place(self.number, number))
        for choice, each in enumerate(possible(self.of, aggregate, NOW_MS)):
            self._choice = choice
            reaction = self._reactions(aggregate, each.envelope)
            self._repeats.see(aggregate, each.envelope, reaction, Place(self.number, number, choice))
            self._exchange.coverage.react(self.of, aggregate, each.envelope, reaction)
            if isinstance(reaction, Refusal):
                if reaction.kind == "circle":
                    raise RuleError(ANSWERED, Place(self.number, number, choice), reaction.reason)
                self._choice = -1
                continue
            given = each.envelope
            label = Label(self.name, each.cause, given.entity, _slot(given), None if given.slot == "" else given.event)
            if each.cause is Cause.COMMAND:
                label = Label(self.name, each.cause, given.entity, "", given.event)
            self._exchange.fates.send(self.name, reaction.refusals, Place(self.number, number, choice))
            step = self._step(aggregate, choice, label, reaction)
            if step is not None:
                yield step
            else:
                self.left_out.setdefault(number, set()).add(self._exchange.label(label))
            self._choice = -1

    def _take(self, number: int, channel: int, message: int) -> LocalStep:
        aggregate, sent_message = self.states[number], self._exchange.messages[message]
        place = Place(self.number, number, -1, channel, message)
        sender = self._exchange.sender(channel)
        envelope = Envelope(sent_message.entity, sent_message.event, NOW_MS, sender, "", "", 0, sender, 1)
        reaction = react(self.of, aggregate, envelope)
        if isinstance(reaction, Refusal):
            raise RuleError(TAKEN, place, f"is refused, and so would be delivered for ever: {reaction.reason}")
        self._repeats.see(aggregate, envelope, reaction, place)
        self._exchange.coverage.react(self.of, aggregate, envelope, reaction)
        self._exchange.fates.deliver(self.name, envelope, reaction, place)
        self._exchange.fates.send(self.name, reaction.refusals, place)
        self._exchange.refuse_again(self.of, reaction.aggregate, envelope, place)
        label = Label(self.name, Cause.MESSAGE, sender=sender)
        step = self._step(aggregate, 0, label, reaction)
        if step is None:
            raise RuleError(TAKEN, place, "and this is out of the bounds, so that it would stay under way: widen them")
        return step

    def _step(self, before: Aggregate, choice: int, label: Label, reaction: Reaction) -> LocalStep | None:
        """Return the step, unless it leads out of the bounds."""
        if not self._exchange.bounds.hold(self.of, reaction.aggregate):
            self.cut += 1
            return None
        sent = self._exchange.sent(self.number, reaction)
        to = self.number_of(reaction.aggregate)
        wrong = self._exchange.judge.step(self.of, reaction)
        said = label.cause is Cause.COMMAND
        again = tuple(restarted(before, reaction))
        label = replace(label, restarts=again) if again else label
        return LocalStep(choice, to, self._exchange.label(label), said, sent, wrong)


def _slot(envelope: Envelope) -> str:
    return envelope.slot or getattr(envelope.event, "slot", "")
