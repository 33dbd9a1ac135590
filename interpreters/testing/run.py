"""A run of a system in a test: the present ``World``, and every input so far with its outcome.

There is no store and no interpreter: requested effects are kept in the trace, and the test gives their reports.
"""

from collections.abc import Iterable
from typing import Any, Final

from lifefold.core.kernel import Envelope, Input, Machine, Reaction, System, World, alone, replace
from lifefold.interpreters.called import must_be
from lifefold.interpreters.testing.trace import Taken, Trace

Opening = Iterable[tuple[str, Envelope]]
"""The first input of each aggregate, by its name."""


class OpeningRefusedError(ValueError):
    """A system refuses its opening; the message says why."""


class Run:
    """A running system. ``steps`` has all inputs so far, ``delivered`` the last message of each pair of aggregates."""

    def __init__(self, system: System, opening: Opening, now_ms: int = 0) -> None:
        """Let every aggregate accept its opening. Raises ``OpeningRefusedError``."""
        self.world = World(system, now_ms=now_ms)
        self.steps: Final[list[Taken]] = []
        self.delivered: Final[dict[tuple[str, str], Input]] = {}
        for name, envelope in opening:
            taken = self.take(Input(name, replace(envelope, at_ms=now_ms)))
            if not isinstance(taken.outcome, Reaction):
                message = f"{name} does not begin: {taken.outcome.reason}"
                raise OpeningRefusedError(message)

    def attempt(self, given: Input) -> Taken:
        """Return the outcome of an input. An error of its rules is raised with the trace as a note."""
        name, envelope = given
        try:
            return Taken(self.world.aggregate(name), envelope, self.world.outcome(given))
        except Exception as error:
            error.add_note(f"{name} was given {envelope.event!r} after\n{self.trace}")
            raise

    def take(self, given: Input) -> Taken:
        """Give an input to an aggregate."""
        return self.keep(self.attempt(given))

    def keep(self, taken: Taken) -> Taken:
        """Make its outcome the present state. A refused input is in the trace, and its time has passed."""
        self.steps.append(taken)
        if isinstance(taken.outcome, Reaction):
            self.world = self.world.after(Input(taken.aggregate, taken.envelope), taken.outcome)
        self.world = self.world.later(taken.envelope.at_ms)
        return taken

    def deliver(self, channel: tuple[str, str]) -> Taken:
        """Let the next message from one aggregate to another arrive."""
        message = self.delivered[channel] = self.world.next_messages()[channel]
        return self.take(message)

    def deliver_again(self, channel: tuple[str, str]) -> Taken:
        """Let the last message from one aggregate to another arrive a second time."""
        name, envelope = self.delivered[channel]
        return self.take(Input(name, replace(envelope, at_ms=self.world.now_ms)))

    @property
    def trace(self) -> Trace:
        """All inputs so far, and the messages in flight."""
        return Trace(tuple(self.steps), self.world.system_state().in_flight)


def run_of(of: Machine[Any] | System, opening: Opening | None, now_ms: int = 0) -> Run:
    """Begin a run of a machine by itself, or of a system. Raises ``TypeError`` for an opening of a machine."""
    must_be(of, (Machine, System), "a Machine, or a System with its opening=")
    if isinstance(of, System):
        if opening is None:
            message = f"a System begins with an opening=: pairs of an aggregate of {', '.join(of.aggregates)}, Envelope"
            raise TypeError(message)
        return Run(of, opening, now_ms)
    if opening is not None:
        message = "a Machine begins with its record, or that of machine.starting(record); opening= is for a System"
        raise TypeError(message)
    system, begins = alone(of)
    return Run(system, begins.items(), now_ms)
