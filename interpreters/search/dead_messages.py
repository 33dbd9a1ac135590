"""Messages in vain: they have no recipient, or the recipient refuses them in every state.

Neither breaks a property. The kernel drops a message without a recipient, and a refused message counts as delivered.
But the rule that sends it has no effect.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from lifefold.core.kernel import Envelope, Reaction, Refusal
from lifefold.interpreters.search.rule_error import Place


class Kind(NamedTuple):
    """All messages of one event between two aggregates, by their names."""

    sender: str
    receiver: str
    event: str


class Vain(NamedTuple):
    """Messages in vain, the reason, and the states of the search that show it, nearest first."""

    kind: Kind
    why: str
    places: tuple[Place, ...]


class MessageFates:
    """Records the fate of messages."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._taken: Final[set[Kind]] = set()
        self._why: Final[dict[Kind, str]] = {}
        self._refused: Final[dict[Kind, list[Place]]] = {}
        self._unread: Final[dict[Kind, list[Place]]] = {}

    def send(self, sender: str, refusals: Iterable[Refusal], place: Place) -> None:
        """Record the messages of a step that the kernel has dropped."""
        for refusal in refusals:
            if refusal.kind == "unknown" and (named := _NO_RECEIVER.match(refusal.reason)):
                kind = Kind(sender, named[1], type(refusal.envelope.event).__name__)
                self._why.setdefault(kind, refusal.reason)
                self._unread.setdefault(kind, []).append(place)

    def deliver(self, receiver: str, sent_message: Envelope, came: Reaction, place: Place) -> None:
        """Record the outcome of a delivered message."""
        kind = Kind(sent_message.sender, receiver, type(sent_message.event).__name__)
        if came.changed or not came.refusals:
            self._taken.add(kind)
        elif kind not in self._taken:
            self._why.setdefault(kind, came.refusals[0].reason)
            self._refused.setdefault(kind, []).append(place)

    def in_vain(self, *, is_complete: bool) -> Iterator[Vain]:
        """Yield the messages without a recipient and, after a complete search, those that are always refused."""
        for kind, places in self._unread.items():
            yield Vain(kind, f"is not sent: {self._why[kind]}", tuple(places))
        for kind, places in self._refused.items():
            if is_complete and kind not in self._taken:
                yield Vain(kind, f"is refused whenever it comes: {self._why[kind]}", tuple(places))


_NO_RECEIVER: Final = re.compile(r"[^']*: no '(.*)' knows ")
"""The kernel's words for a message without a recipient (see ``reaction``); a refused dispatch has others."""
