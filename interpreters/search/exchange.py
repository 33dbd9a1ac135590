"""What the components of a searched system share: messages, channels and labels, each with its number.

A component gets the exchange, and the product system is one with its components. The exchange also has the records that
all of them fill: coverage, the fate of messages, the answers of properties.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Final, NamedTuple

import msgspec

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Cause,
    Envelope,
    Event,
    Reaction,
    Refusal,
    System,
    react,
)
from lifefold.effects import Tell
from lifefold.interpreters.search.canonical import Unusable, blank, numbers
from lifefold.interpreters.search.configuration import Bounds, Judge, PropertyError
from lifefold.interpreters.search.coverage import Coverage
from lifefold.interpreters.search.dead_messages import MessageFates
from lifefold.interpreters.search.rule_error import ADDRESSED, INERT, Place, RuleError, raised


class Carried(Exception):
    """An identifier leaves its aggregate in a message, so it must not be renumbered there."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


class Label(msgspec.Struct, frozen=True):
    """The input of a step, as far as fairness distinguishes it."""

    aggregate: str
    cause: Cause
    entity: str = ""
    slot: str = ""
    event: Event | None = None
    sender: str = ""
    restarts: tuple[tuple[str, str], ...] = ()
    """The timers that restart in the step: each with its entity and its slot."""


class FlightMessage(NamedTuple):
    """A message in flight."""

    entity: str
    event: Event


def message_of(tell: Tell) -> FlightMessage:
    """Return a message in flight, without the fields that have no meaning there."""
    return FlightMessage(tell.entity, blank(tell.event))


class Exchange:
    """The messages, channels and labels of the aggregates of a system, in the order of their ``names``."""

    def __init__(
        self, system: System, names: Iterable[str], judge: Judge, bounds: Bounds, kept: frozenset[str]
    ) -> None:
        """Begin without messages and labels; ``kept`` are the identifiers that are not renumbered."""
        self.system: Final = system
        self.names: Final = tuple(names)
        self.judge: Final = judge
        self.bounds: Final = bounds
        self.kept: Final = kept
        self.coverage: Final = Coverage(system)
        self.fates: Final = MessageFates()
        self.messages: Final[list[FlightMessage]] = []
        self.labels: Final[list[Label]] = []
        self.refused = 0
        self.restarting: Final[set[int]] = set()
        """The labels of the steps that restart a timer."""
        self._message_numbers: Final[dict[FlightMessage, int]] = {}
        self._label_numbers: Final[dict[Label, int]] = {}
        self._places: Final = {name: number for number, name in enumerate(self.names)}
        every = range(len(self.names))
        self.channels: Final = tuple((sender, to) for sender in every for to in every if sender != to)
        self._channel_numbers: Final = {pair: number for number, pair in enumerate(self.channels)}
        of_records = (_identifiers(system.type_of(name)) for name in self.names)
        self.identifiers: Final = frozenset[str]().union(*of_records) - kept

    @contextmanager
    def flawless(self, place: Callable[[], Place]) -> Generator[None]:
        """Turn an error of the rules into one with its place. Raises ``RuleError``."""
        try:
            yield
        except (Carried, RuleError, MemoryError, Refused, Unusable):
            raise
        except Unaddressed as error:
            raise RuleError(ADDRESSED, place(), str(error)) from error
        except PropertyError as error:
            raise raised(error.why, place(), error.declared) from error
        except Exception as error:
            raise raised(error, place()) from error

    def sender(self, channel: int) -> str:
        """Return the sender on a channel."""
        return self.names[self.channels[channel][0]]

    def channel(self, sender: int, receiver: str) -> int:
        """Return the number of the channel from an aggregate to another one. Raises ``Unaddressed``."""
        place = self._places.get(receiver)
        if place is None or place == sender:
            raise Unaddressed(self.names[sender], receiver, self.names)
        return self._channel_numbers[sender, place]

    def sent(self, sender: int, reaction: Reaction) -> tuple[tuple[int, int], ...]:
        """Return the messages of a reaction, in order, each with its channel."""
        return tuple(self.post(sender, each.effect) for each in reaction.effects if isinstance(each.effect, Tell))

    def post(self, sender: int, tell: Tell) -> tuple[int, int]:
        """Return a message's channel and number. Raises ``Carried`` if it carries an identifier of its aggregate."""
        if self.identifiers:
            carried = frozenset(name for name, _ in numbers(tell.event, self.identifiers))
            if carried:
                raise Carried(carried)
        return self.channel(sender, tell.aggregate), self.sent_message(message_of(tell))

    def sent_message(self, sent_message: FlightMessage) -> int:
        """Return a message's number."""
        number = self._message_numbers.setdefault(sent_message, len(self.messages))
        if number == len(self.messages):
            self.messages.append(sent_message)
        return number

    def label(self, label: Label) -> int:
        """Return a label's number."""
        number = self._label_numbers.setdefault(label, len(self.labels))
        if number == len(self.labels):
            self.labels.append(label)
            if label.restarts:
                self.restarting.add(number)
        return number

    def refuse_again(self, of: AggregateType, aggregate: Aggregate, envelope: Envelope, place: Place) -> None:
        """Check that a repeated message changes nothing. Raises ``RuleError``."""
        if not isinstance(react(of, aggregate, envelope), Refusal):
            raise RuleError(INERT, place, "is accepted a second time", (Cause.MESSAGE, envelope))
        self.refused += 1


class Refused(ValueError):
    """An aggregate refuses its opening or a message."""

    def __init__(self, name: str, refusal: Refusal) -> None:
        super().__init__(f"{name} refuses {refusal.envelope.event!r}: {refusal.reason}")


class Unaddressed(ValueError):
    """A message has a recipient that the opening does not have."""

    def __init__(self, sender: str, receiver: str, known: tuple[str, ...]) -> None:
        if sender == receiver:
            super().__init__(f"{sender} sends itself a message; inside an aggregate a rule uses Dispatch")
        else:
            super().__init__(f"{sender} sends {receiver!r} a message; the aggregates are {', '.join(known)}")


def _identifiers(of: AggregateType) -> frozenset[str]:
    return frozenset(name for machine in of.machines.values() for name in machine.record.identifiers)
