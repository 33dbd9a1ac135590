"""The state of a run after its newest entry: that of ``recorded``'s worlds, changed in place.

A world is a value, so each one copies what it has of the one before it. An audit needs the newest state only.
"""

from typing import Final

from lifefold.core.kernel import ENGINE, Aggregate, SystemState
from lifefold.core.kernel.world import MessageId, sent_in
from lifefold.effects import Tell
from lifefold.interpreters.engine import Decision


class NewestState:
    """The aggregates after the newest entry, and the messages that no receiver has accepted yet."""

    def __init__(self) -> None:
        """Start before the first entry."""
        self._aggregates: Final[dict[str, Aggregate]] = {}
        self._in_flight: Final[dict[MessageId, Tell]] = {}
        self._state: SystemState | None = None

    @property
    def under_way(self) -> int:
        """The number of messages in flight."""
        return len(self._in_flight)

    def take(self, decision: Decision) -> None:
        """Go on to the state after an entry. One about the log itself changes nothing."""
        name, envelope, reaction = decision.entry.stream, decision.envelope, decision.reaction
        if name == ENGINE:
            return
        self._aggregates[name] = reaction.aggregate
        for tell in sent_in(reaction):
            self._in_flight[name, tell.aggregate, tell.ordinal] = tell
            self._state = None
        if envelope.sender and self._in_flight.pop((envelope.sender, name, envelope.ordinal), None) is not None:
            self._state = None

    def system_state(self) -> SystemState:
        """Return the system as its properties see it. It is right until the next entry."""
        if self._state is None:
            messages = (
                (sender, receiver, tell.entity, tell.event) for (sender, receiver, _), tell in self._in_flight.items()
            )
            self._state = SystemState(self._aggregates, tuple(messages))
        return self._state
