"""A system cut into its aggregates: each reaction is computed once, and everything else is numbers.

What an aggregate does depends on nothing but itself and what it is told. So its states are numbered as they are met,
and with each stands what may happen there and where it leads: a table that grows as far as the search gets. A state of
the whole system is a tuple of such numbers: one for each aggregate, one for what is under way between each two of them,
and, if people may say only so much, how much they have said.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Cause,
    Envelope,
    Event,
    Reaction,
    Refusal,
    Scene,
    System,
    possible,
    react,
    replace,
)
from lifefold.effects import Tell
from lifefold.interpreters.check.canonical import NOW_MS, Canonical, Unusable, blank, numbers
from lifefold.interpreters.check.coverage import Coverage
from lifefold.interpreters.check.flaw import ADDRESSED, ANSWERED, INERT, TAKEN, Flaw, Place, raised
from lifefold.interpreters.check.numbered import Numbered
from lifefold.interpreters.check.post import Post
from lifefold.interpreters.check.question import Bounds, Judge, PromiseError
from lifefold.interpreters.check.reactions import Reactions

if TYPE_CHECKING:
    from lifefold.interpreters.check.plain import PlainWorld

World = tuple[int, ...]


class Carried(Exception):
    """A serial leaves its aggregate in a message, so that it must not be renumbered there."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


class Label(msgspec.Struct, frozen=True):
    """What happens in a step, as far as fairness can tell it apart."""

    aggregate: str
    cause: Cause
    entity: str = ""
    slot: str = ""
    event: Event | None = None
    sender: str = ""


class LocalStep(NamedTuple):
    """An aggregate's step: by its how-manieth input, to which state, and what it tells (``(channel, message)``)."""

    choice: int
    to: int
    label: int
    said: bool
    told: tuple[tuple[int, int], ...]
    wrong: tuple[int, ...]


class Letter(NamedTuple):
    """A message as it is under way."""

    entity: str
    event: Event


def _letter(tell: Tell) -> Letter:
    return Letter(tell.entity, blank(tell.event))


class Move(NamedTuple):
    """A step of the whole system: the aggregate it happens in, and its how-manieth input, or the channel's head."""

    part: int
    choice: int
    channel: int = -1


class Part:
    """One aggregate: the states it was met in, and the steps they have."""

    def __init__(self, number: int, of: AggregateType, name: str, house: "House") -> None:
        self.number: Final = number
        self.of: Final = of
        self.name: Final = name
        self.cut = 0
        self.left_out: Final[dict[int, set[int]]] = {}
        """By state: the labels of the steps that lead from it out of the bounds."""
        self._house: Final = house
        self._choice = -1
        """At which input of a state its table is being made."""
        self._numbered: Final = Numbered(Canonical(of, house.kept))
        self.states: Final = self._numbered.states
        self._reactions: Final = Reactions(of)
        self._steps: Final[list[tuple[LocalStep, ...] | None]] = []
        self._receptions: Final[dict[tuple[int, int, int], LocalStep]] = {}

    def number_of(self, aggregate: Aggregate) -> int:
        """Return the number of a state; it gets one, and is judged, when it is met for the first time."""
        number = self._numbered.add(aggregate)
        if number == len(self._steps):
            self._steps.append(None)
            self._house.judge.meet(self.number, number, self.of, self.states[number])
            self._house.coverage.meet(self.of, self.states[number])
        return number

    def known(self, aggregate: Aggregate) -> int:
        """Return the number of a state; -1 if it was not met."""
        return self._numbered.find(aggregate)

    def steps(self, number: int) -> tuple[LocalStep, ...]:
        """Return the steps of a state that need no message."""
        known = self._steps[number]
        if known is None:
            with self._house.flawless(lambda: Place(self.number, number, self._choice)):
                known = self._steps[number] = tuple(self._spontaneous(number))
        return known

    def said_at(self, labels: frozenset[int]) -> list[int]:
        """Return the states, of those that were looked at, in which people can say something of these labels."""
        looked_at = ((number, steps) for number, steps in enumerate(self._steps) if steps is not None)
        return [number for number, steps in looked_at if any(each.said and each.label in labels for each in steps)]

    def received(self) -> dict[int, list[tuple[int, int]]]:
        """Return what each state was seen to take: messages, each after its channel."""
        found: dict[int, list[tuple[int, int]]] = {}
        for number, channel, message in self._receptions:
            found.setdefault(number, []).append((channel, message))
        return found

    def reception(self, number: int, channel: int, message: int) -> LocalStep:
        """Return the step in which a state takes a message."""
        key = (number, channel, message)
        known = self._receptions.get(key)
        if known is None:
            with self._house.flawless(lambda: Place(self.number, number, -1, channel, message)):
                known = self._receptions[key] = self._take(number, channel, message)
        return known

    def _spontaneous(self, number: int) -> Iterator[LocalStep]:
        aggregate = self.states[number]
        self._choice = -1
        self._house.refused += self._reactions.inert(aggregate, Place(self.number, number))
        for choice, each in enumerate(possible(self.of, aggregate, NOW_MS)):
            self._choice = choice
            reaction = self._reactions(aggregate, each.envelope)
            self._house.coverage.react(self.of, aggregate, each.envelope, reaction)
            if isinstance(reaction, Refusal):
                if reaction.kind == "circle":
                    raise Flaw(ANSWERED, Place(self.number, number, choice), reaction.reason)
                self._choice = -1
                continue
            given = each.envelope
            label = Label(self.name, each.cause, given.entity, _slot(given), None if given.slot == "" else given.event)
            if each.cause is Cause.COMMAND:
                label = Label(self.name, each.cause, given.entity, "", given.event)
            self._house.post.send(self.name, reaction.refusals, Place(self.number, number, choice))
            step = self._step(choice, label, reaction)
            if step is not None:
                yield step
            else:
                self.left_out.setdefault(number, set()).add(self._house.label(label))
            self._choice = -1

    def _take(self, number: int, channel: int, message: int) -> LocalStep:
        aggregate, letter = self.states[number], self._house.letters[message]
        place = Place(self.number, number, -1, channel, message)
        sender = self._house.sender(channel)
        envelope = Envelope(letter.entity, letter.event, NOW_MS, sender, "", "", 0, sender, 1)
        reaction = react(self.of, aggregate, envelope)
        if isinstance(reaction, Refusal):
            raise Flaw(TAKEN, place, f"is refused, and so would be delivered for ever: {reaction.reason}")
        self._house.coverage.react(self.of, aggregate, envelope, reaction)
        self._house.post.deliver(self.name, envelope, reaction, place)
        self._house.post.send(self.name, reaction.refusals, place)
        self._house.refuse_again(self.of, reaction.aggregate, envelope, place)
        label = Label(self.name, Cause.MESSAGE, sender=sender)
        step = self._step(0, label, reaction)
        if step is None:
            raise Flaw(TAKEN, place, "and this is out of the bounds, so that it would stay under way: widen them")
        return step

    def _step(self, choice: int, label: Label, reaction: Reaction) -> LocalStep | None:
        """Return the step, unless it leads out of the bounds."""
        if not self._house.bounds.hold(self.of, reaction.aggregate):
            self.cut += 1
            return None
        told = self._house.told(self.number, reaction)
        to = self.number_of(reaction.aggregate)
        wrong = self._house.judge.step(self.of, reaction)
        said = label.cause is Cause.COMMAND
        return LocalStep(choice, to, self._house.label(label), said, told, wrong)


def _slot(envelope: Envelope) -> str:
    return envelope.slot or getattr(envelope.event, "slot", "")


class House:
    """All parts of a system, and what they share: the messages, the channels, the labels."""

    def __init__(
        self,
        system: System,
        opening: Sequence[tuple[str, Envelope]],
        judge: Judge,
        bounds: Bounds,
        kept: frozenset[str] = frozenset(),
    ) -> None:
        """Take the aggregates, each with the input that opens it."""
        self.system: Final = system
        self.opening: Final = tuple(opening)
        self.judge: Final = judge
        self.bounds: Final = bounds
        self.kept: Final = kept
        self.coverage: Final = Coverage(system)
        self.post: Final = Post()
        self.letters: Final[list[Letter]] = []
        self.labels: Final[list[Label]] = []
        self.refused = 0
        self._initial: World | None = None
        self.wrong_at_birth: tuple[int, ...] = ()
        """The promises about steps that the opening breaks."""
        self._letter_numbers: Final[dict[Letter, int]] = {}
        self._label_numbers: Final[dict[Label, int]] = {}
        self.queues: Final[list[tuple[int, ...]]] = [()]
        self._queue_numbers: Final[dict[tuple[int, ...], int]] = {(): 0}
        names = [name for name, _ in opening]
        self.parts: Final = tuple(Part(number, system.type_of(name), name, self) for number, name in enumerate(names))
        self._places: Final = {name: number for number, name in enumerate(names)}
        self.channels: Final = tuple(
            (sender, receiver) for sender in range(len(names)) for receiver in range(len(names)) if sender != receiver
        )
        self._channel_numbers: Final = {pair: number for number, pair in enumerate(self.channels)}
        self.serials: Final = frozenset[str]().union(*(_serials(part.of) for part in self.parts)) - kept

    def initial(self) -> World:
        """Return the state in which every aggregate has taken the input that opens it. Raises ``Refused``, ``Flaw``."""
        if self._initial is None:
            self._initial = self._opened()
        return self._initial

    def _opened(self) -> World:
        world = [0] * self.width
        for part, (name, envelope) in zip(self.parts, self.opening, strict=True):
            with self.flawless(lambda: Place(part.number)):  # noqa: B023 - called before the next one
                reaction = react(part.of, part.of.start(name), replace(envelope, at_ms=NOW_MS))
                if isinstance(reaction, Refusal):
                    raise Refused(name, reaction)
                world[part.number] = part.number_of(reaction.aggregate)
                self.wrong_at_birth += self.judge.step(part.of, reaction)
                self.post.send(name, reaction.refusals, Place(part.number))
                self._send(world, self.told(part.number, reaction))
        return tuple(world)

    @contextmanager
    def flawless(self, place: Callable[[], Place]) -> Generator[None]:
        """Say of an error that the rules raise at which place it is. Raises ``Flaw``."""
        try:
            yield
        except (Carried, Flaw, MemoryError, Refused, Unusable):
            raise
        except Unaddressed as error:
            raise Flaw(ADDRESSED, place(), str(error)) from error
        except PromiseError as error:
            raise raised(error.why, place(), error.promised) from error
        except Exception as error:
            raise raised(error, place()) from error

    @property
    def width(self) -> int:
        """How many numbers a state of the system has."""
        return len(self.parts) + len(self.channels) + (self.bounds.commands is not None)

    def largest(self) -> list[int]:
        """Return, for each of them, the largest that there is so far."""
        said = [] if self.bounds.commands is None else [self.bounds.commands]
        return [*(len(part.states) for part in self.parts), *(len(self.queues) for _ in self.channels), *said]

    def sender(self, channel: int) -> str:
        """Return who sends on a channel."""
        return self.parts[self.channels[channel][0]].name

    def channel(self, sender: int, receiver: str) -> int:
        """Return the number of the channel from an aggregate to another one. Raises ``Unaddressed``."""
        place = self._places.get(receiver)
        if place is None or place == sender:
            raise Unaddressed(self.parts[sender].name, receiver, tuple(self._places))
        return self._channel_numbers[sender, place]

    def told(self, sender: int, reaction: Reaction) -> tuple[tuple[int, int], ...]:
        """Return the messages of a reaction, in order, each with its channel."""
        return tuple(self._post(sender, each.effect) for each in reaction.effects if isinstance(each.effect, Tell))

    def _post(self, sender: int, tell: Tell) -> tuple[int, int]:
        """Return a message's channel and number. Raises ``Carried`` if it carries a serial of its aggregate."""
        if self.serials:
            carried = frozenset(name for name, _ in numbers(tell.event, self.serials))
            if carried:
                raise Carried(carried)
        return self.channel(sender, tell.aggregate), self.letter(_letter(tell))

    def letter(self, letter: Letter) -> int:
        """Return a message's number."""
        number = self._letter_numbers.setdefault(letter, len(self.letters))
        if number == len(self.letters):
            self.letters.append(letter)
        return number

    def label(self, label: Label) -> int:
        """Return a label's number."""
        number = self._label_numbers.setdefault(label, len(self.labels))
        if number == len(self.labels):
            self.labels.append(label)
        return number

    def queue(self, messages: tuple[int, ...]) -> int:
        """Return the number of what is under way on a channel."""
        number = self._queue_numbers.setdefault(messages, len(self.queues))
        if number == len(self.queues):
            self.queues.append(messages)
        return number

    def refuse_again(self, of: AggregateType, aggregate: Aggregate, envelope: Envelope, place: Place) -> None:
        """See to it that a message that comes once more changes nothing. Raises ``Flaw``."""
        if not isinstance(react(of, aggregate, envelope), Refusal):
            raise Flaw(INERT, place, "is taken once more, although it was taken", (Cause.MESSAGE, envelope))
        self.refused += 1

    def successors(self, world: World) -> Iterator[tuple[Move, World, LocalStep]]:
        """Yield every step there is, in a fixed order."""
        parts = len(self.parts)
        spent = self.bounds.commands is not None and world[-1] >= self.bounds.commands
        for number, part in enumerate(self.parts):
            for step in part.steps(world[number]):
                if step.said and spent:
                    continue
                if step.told or (step.said and self.bounds.commands is not None):
                    after = list(world)
                    after[number] = step.to
                    self._send(after, step.told)
                    if step.said and self.bounds.commands is not None:
                        after[-1] += 1
                    yield Move(number, step.choice), tuple(after), step
                else:
                    yield Move(number, step.choice), (*world[:number], step.to, *world[number + 1 :]), step
        for channel, (_, receiver) in enumerate(self.channels):
            under_way = world[parts + channel]
            if under_way:
                messages = self.queues[under_way]
                step = self.parts[receiver].reception(world[receiver], channel, messages[0])
                after = list(world)
                after[receiver] = step.to
                after[parts + channel] = self.queue(messages[1:])
                self._send(after, step.told)
                yield Move(receiver, 0, channel), tuple(after), step

    def _send(self, world: list[int], told: tuple[tuple[int, int], ...]) -> None:
        for channel, message in told:
            place = len(self.parts) + channel
            world[place] = self.queue((*self.queues[world[place]], message))

    def form(self, plain: "PlainWorld") -> World:
        """Return the numbers of a state of which nothing was forgotten; of what was never met, -1."""
        locals_ = [part.known(aggregate) for part, aggregate in zip(self.parts, plain.aggregates, strict=True)]
        queues = [
            self._queue_numbers.get(tuple(self._letter_numbers.get(_letter(tell), -1) for tell in tells), -1)
            for tells in plain.under_way
        ]
        return (*locals_, *queues, *(() if self.bounds.commands is None else (plain.said,)))

    def is_at_the_bounds(self, world: World) -> bool:
        """Tell whether something could happen here that leads out of the bounds, or people could say too much."""
        if any(number in part.left_out for part, number in zip(self.parts, world, strict=False)):
            return True
        if self.bounds.commands is None or world[-1] < self.bounds.commands:
            return False
        return any(step.said for part, number in zip(self.parts, world, strict=False) for step in part.steps(number))

    def scene(self, world: World) -> Scene:
        """Return a state as properties of the system see it."""
        aggregates: Mapping[str, Any] = {
            part.name: part.states[number] for part, number in zip(self.parts, world, strict=False)
        }
        in_flight = tuple(
            (self.parts[sender].name, self.parts[receiver].name, letter.entity, letter.event)
            for channel, (sender, receiver) in enumerate(self.channels)
            for letter in (self.letters[message] for message in self.queues[world[len(self.parts) + channel]])
        )
        return Scene(aggregates, in_flight)


class Refused(ValueError):
    """An aggregate does not take what it has to."""

    def __init__(self, name: str, refusal: Refusal) -> None:
        super().__init__(f"{name} refuses {refusal.envelope.event!r}: {refusal.reason}")


class Unaddressed(ValueError):
    """A message is for somebody whom the opening does not have."""

    def __init__(self, sender: str, receiver: str, known: tuple[str, ...]) -> None:
        if sender == receiver:
            super().__init__(f"{sender} tells itself something; inside an aggregate a rule says Dispatch")
        else:
            super().__init__(f"{sender} tells {receiver!r} something; the aggregates are {', '.join(known)}")


def _serials(of: AggregateType) -> frozenset[str]:
    return frozenset(name for machine in of.machines.values() for name in machine.record.serials)
