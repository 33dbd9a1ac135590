"""What becomes of messages, as far as it is nothing: that nobody can read them, or that they are refused at all times.

Neither breaks a property. The kernel does not send what nobody could read, and what an entity refuses of a message is
taken all the same. But whoever wrote the rule that tells it has meant something by it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from lifefold.core.kernel import Envelope, Reaction, Refusal
from lifefold.interpreters.search.rule_error import Place


class Kind(NamedTuple):
    """All messages of one event from an aggregate to another one, each by its name."""

    sender: str
    receiver: str
    event: str


class Vain(NamedTuple):
    """Messages that are in vain: why, and at which places of a search that is seen; the first is the nearest."""

    kind: Kind
    why: str
    places: tuple[Place, ...]


class Post:
    """Takes note of what becomes of messages."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._taken: Final[set[Kind]] = set()
        self._why: Final[dict[Kind, str]] = {}
        self._refused: Final[dict[Kind, list[Place]]] = {}
        self._unread: Final[dict[Kind, list[Place]]] = {}

    def send(self, sender: str, refusals: Iterable[Refusal], place: Place) -> None:
        """Take note of what a step tells to nobody; the kernel has refused it."""
        for refusal in refusals:
            if refusal.kind == "unknown" and (told := _NOBODY.match(refusal.reason)):
                kind = Kind(sender, told[1], type(refusal.envelope.event).__name__)
                self._why.setdefault(kind, refusal.reason)
                self._unread.setdefault(kind, []).append(place)

    def deliver(self, receiver: str, sent_message: Envelope, came: Reaction, place: Place) -> None:
        """Take note of what comes of a message that arrives."""
        kind = Kind(sent_message.sender, receiver, type(sent_message.event).__name__)
        if came.changed or not came.refusals:
            self._taken.add(kind)
        elif kind not in self._taken:
            self._why.setdefault(kind, came.refusals[0].reason)
            self._refused.setdefault(kind, []).append(place)

    def in_vain(self, *, is_complete: bool) -> Iterator[Vain]:
        """Yield what nobody can read and, if everything was looked at, what is refused whenever it comes."""
        for kind, places in self._unread.items():
            yield Vain(kind, f"is not sent: {self._why[kind]}", tuple(places))
        for kind, places in self._refused.items():
            if is_complete and kind not in self._taken:
                yield Vain(kind, f"is refused whenever it comes: {self._why[kind]}", tuple(places))


_NOBODY: Final = re.compile(r"[^']*: no '(.*)' knows ")
"""How the kernel says that a message is for nobody (see ``reaction``); a dispatch it refuses in other words."""
