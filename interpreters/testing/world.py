"""A system in a test: its aggregates, the messages in flight, and a virtual time.

Every input is decided by ``react``, as in the engine. There is no store and no interpreter: requested effects are kept
in the trace, and the test gives their reports.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from lifefold.core.kernel import (
    Aggregate,
    Envelope,
    Machine,
    Reaction,
    System,
    alone,
    possible,
    react,
    replace,
)
from lifefold.effects import Tell
from lifefold.interpreters.called import must_be
from lifefold.interpreters.testing.trace import Taken, Trace

Opening = Iterable[tuple[str, Envelope]]
"""The first input of each aggregate, by its name."""


class OpeningRefusedError(ValueError):
    """A system refuses its opening; the message says why."""


class World:
    """A running system. ``now_ms`` never goes back, ``steps`` has all inputs so far."""

    def __init__(self, system: System, opening: Opening, now_ms: int = 0) -> None:
        """Let every aggregate accept its opening. Raises ``OpeningRefusedError``."""
        self.system: Final = system
        self.aggregates: Final[dict[str, Aggregate]] = {}
        self.under_way: Final[dict[tuple[str, str], list[Tell]]] = {}
        self.delivered: Final[dict[tuple[str, str], Tell]] = {}
        self.steps: Final[list[Taken]] = []
        self.now_ms = now_ms
        for name, envelope in opening:
            taken = self.take(name, replace(envelope, at_ms=now_ms))
            if not isinstance(taken.outcome, Reaction):
                message = f"{name} does not begin: {taken.outcome.reason}"
                raise OpeningRefusedError(message)

    def attempt(self, name: str, envelope: Envelope) -> Taken:
        """Return the outcome of an input. An error of its rules is raised with the trace as a note."""
        of = self.system.type_of(name)
        before = self.aggregates.get(name) or of.start(name)
        try:
            return Taken(before, envelope, react(of, before, envelope))
        except Exception as error:
            error.add_note(f"{name} was given {envelope.event!r} after\n{self.trace}")
            raise

    def take(self, name: str, envelope: Envelope) -> Taken:
        """Give an input to an aggregate."""
        return self.keep(self.attempt(name, envelope))

    def keep(self, taken: Taken) -> Taken:
        """Make its outcome the present state."""
        self.steps.append(taken)
        self.aggregates[taken.aggregate] = taken.after
        self.now_ms = max(self.now_ms, taken.envelope.at_ms)
        for asked in taken.effects:
            if isinstance(tell := asked.effect, Tell):
                self.under_way.setdefault((taken.aggregate, tell.aggregate), []).append(tell)
        return taken

    def deliver(self, channel: tuple[str, str]) -> Taken:
        """Let the first message from one aggregate to another arrive."""
        tell = self.delivered[channel] = self.under_way[channel].pop(0)
        return self.take(channel[1], self.message(channel, tell))

    def message(self, channel: tuple[str, str], tell: Tell) -> Envelope:
        """Return a message as its receiver gets it."""
        sender = channel[0]
        return Envelope(tell.entity, tell.event, self.now_ms, sender, sender=sender, ordinal=tell.ordinal)

    @property
    def channels(self) -> list[tuple[str, str]]:
        """The pairs of aggregates with messages in flight."""
        return [channel for channel, messages in self.under_way.items() if messages]

    def possible(self, later_ms: int = 0) -> Iterator[tuple[str, Envelope]]:
        """Yield the possible inputs of each aggregate, this much later, without messages."""
        for name, aggregate in self.aggregates.items():
            for each in possible(self.system.type_of(name), aggregate, self.now_ms + later_ms):
                yield name, each.envelope

    @property
    def trace(self) -> Trace:
        """All inputs so far, and the messages in flight."""
        in_flight = tuple(
            (sender, receiver, tell.entity, tell.event)
            for (sender, receiver), messages in self.under_way.items()
            for tell in messages
        )
        return Trace(tuple(self.steps), in_flight)


def world_of(of: Machine[Any] | System, opening: Opening | None, now_ms: int = 0) -> World:
    """Return the world of a machine by itself, or of a system. Raises ``TypeError`` for an opening of a machine."""
    must_be(of, (Machine, System), "a Machine, or a System with its opening=")
    if isinstance(of, System):
        if opening is None:
            message = f"a System begins with an opening=: pairs of an aggregate of {', '.join(of.aggregates)}, Envelope"
            raise TypeError(message)
        return World(of, opening, now_ms)
    if opening is not None:
        message = "a Machine begins with its record, or that of machine.starting(record); opening= is for a System"
        raise TypeError(message)
    system, begins = alone(of)
    return World(system, begins.items(), now_ms)
