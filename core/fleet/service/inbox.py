"""What waits to be run by a service: messages from people, and triggers that have come, in their order.

*A message is one run.* It waits behind those before it, is taken once, and is not taken again, whatever becomes of its
run. One for which there is no room, or that comes when nobody will run it, is refused, so that the sender knows; those
that still wait when the service goes for good are given back, each with its text.

*A trigger waits once.* What comes again while it waits says nothing new: one run does for both. What comes while its
run is at work waits for another one, since that run may not have seen it.
"""

from collections import Counter
from typing import Any, ClassVar, Final, Never

import msgspec

from lifefold.core.kernel import (
    STAY,
    Entity,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    accepts,
    always,
    always_step,
    anywhere,
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.effects import LogFatal

REF: Final = "inbox"

MESSAGES_LIMIT: Final = 1_000
"""How many messages wait at most; one more is refused, so that the sender knows."""

MESSAGES_BYTES: Final = 1_000_000
"""How long they may be together, in bytes of UTF-8."""

FULL: Final = (
    f"no room: {MESSAGES_LIMIT} messages and {MESSAGES_BYTES} bytes wait at most; write it shorter, or send it again"
    " when some have been run"
)
"""What a refusal of a message means where messages are taken, for the sender."""

NO_MESSAGES: Final = "it takes no messages: none of its triggers is { queue = true }"
"""What a refusal means where none are, for the sender."""


class State(AnyLifecycleState):
    """The two states of an inbox."""

    OPEN = "Open"
    CLOSED = "Closed"


class Item(msgspec.Struct, frozen=True):
    """Something to run: of the trigger of this reference, or a message if there is none; and what the run is told."""

    opaque: ClassVar[tuple[str, ...]] = ("text",)

    source: str = ""
    text: str = ""


class MessageArrived(Event, frozen=True):
    """Somebody wrote ``text``."""

    opaque: ClassVar[tuple[str, ...]] = ("text",)

    text: str = "a"


class Fired(Event, frozen=True):
    """The trigger of this reference has come, with something to say."""

    opaque: ClassVar[tuple[str, ...]] = ("text",)

    source: str = "trigger:1"
    text: str = "it is time"


class Taken(Event, frozen=True):
    """What has waited longest is run."""


class Finished(Event, frozen=True):
    """What was run is over."""


class InboxClosed(Event, frozen=True):
    """The service has stopped for good: nobody will run what comes now."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = "it has stopped"


class Inbox(Record, frozen=True):
    """What waits, oldest first, and what is being run. Without ``takes_messages`` it has triggers alone."""

    state: State = State.OPEN
    items: tuple[Item, ...] = ()
    in_hand: Item | None = None
    takes_messages: bool = False

    @property
    def messages(self) -> tuple[str, ...]:
        """The messages that wait."""
        return tuple(each.text for each in self.items if not each.source)


def has_room(i: Inbox, e: MessageArrived) -> bool:
    """Messages are taken, and there is room for one more, and for its text."""
    length = sum(len(text.encode(errors="surrogatepass")) for text in (*i.messages, e.text))
    return i.takes_messages and len(i.messages) < MESSAGES_LIMIT and length <= MESSAGES_BYTES


def waits_already(i: Inbox, e: Fired) -> bool:
    """The same trigger waits, and says nothing new."""
    return any(each.source == e.source for each in i.items)


def is_free(i: Inbox, _e: Taken) -> bool:
    """Something waits, and nothing is being run."""
    return bool(i.items) and i.in_hand is None


def is_busy(i: Inbox, _e: Finished) -> bool:
    """Something is being run."""
    return i.in_hand is not None


def is_idle(i: Inbox, _e: InboxClosed) -> bool:
    """Nothing is being run."""
    return i.in_hand is None


def keep_message(i: Inbox, e: MessageArrived) -> Step[Inbox, Never]:
    """Keep the message behind what waits."""
    return Step(replace(i, items=(*i.items, Item(text=e.text))))


def keep_trigger(i: Inbox, e: Fired) -> Step[Inbox, Never]:
    """Keep the trigger behind what waits."""
    return Step(replace(i, items=(*i.items, Item(e.source, e.text))))


def take(i: Inbox, _e: Taken) -> Step[Inbox, Never]:
    """Take what has waited longest in hand."""
    return Step(replace(i, items=i.items[1:], in_hand=next(iter(i.items), None)))


def finish(i: Inbox, _e: Finished) -> Step[Inbox, Never]:
    """Have nothing in hand."""
    return Step(replace(i, in_hand=None))


def give_back(i: Inbox, e: InboxClosed) -> Step[Inbox, LogFatal]:
    """Tell people of every message that will not be run, and why; a trigger that waits is nobody's word."""
    told = tuple(LogFatal(f"message {text!r}{_times(n)} was not run: {e.reason}") for text, n in _counted(i))
    return Step(replace(i, items=()), told)


def _counted(i: Inbox) -> tuple[tuple[str, int], ...]:
    """Return the texts of the messages that wait, in their order, each with how many have it."""
    return tuple(Counter(i.messages).items())


def _times(number: int) -> str:
    return f" ({number} times)" if number > 1 else ""


def keeps_the_order(step: Transition) -> bool:
    """Say: what comes is kept behind what waits, and what has waited longest goes first, into the hand, alone."""
    if step.before is None:
        return True
    was: Inbox = step.before.record
    now: Inbox = step.after.record
    match step.event:
        case MessageArrived(text=text):
            return now == replace(was, items=(*was.items, Item(text=text)))
        case Fired(source=source, text=text):
            waits = any(each.source == source for each in was.items)
            return now == (was if waits else replace(was, items=(*was.items, Item(source, text))))
        case Taken():
            waited = bool(was.items) and was.in_hand is None
            return waited and now == replace(was, items=was.items[1:], in_hand=was.items[0])
        case Finished():
            return was.in_hand is not None and now == replace(was, in_hand=None)
        case _:
            return now == replace(was, state=State.CLOSED, items=()) and was.in_hand is None


def gives_back_what_waits(step: Transition) -> bool:
    """Say: of every message that waits when the inbox is closed people are told, how often and why; of no other."""
    told = [each.message for each in step.effects if isinstance(each, LogFatal)]
    if step.before is None or not isinstance(step.event, InboxClosed):
        return not told
    waiting = _counted(step.before.record)
    return len(told) == len(waiting) and all(
        f"{text!r}{_times(number)} was" in message and step.event.reason in message
        for (text, number), message in zip(waiting, told, strict=True)
    )


def has_nothing_in_hand(e: Entity[Inbox]) -> bool:
    """Say: nothing is being run."""
    return e.record.in_hand is None


def waits_once(i: Inbox) -> bool:
    """A trigger waits once, and no more messages wait than there is room for."""
    sources = [each.source for each in i.items if each.source]
    return len(set(sources)) == len(sources) and len(i.messages) <= MESSAGES_LIMIT


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("what waits is run in its order, one at a time, and each once", keeps_the_order),
    always_step("of every message that will not be run people are told", gives_back_what_waits),
    always("a trigger waits once, and messages have their room", lambda e: waits_once(e.record)),
    accepts("a trigger is heard also when it waits already", {State.OPEN: (Fired,)}),
    accepts("what waits can be run", {State.OPEN: (Taken,)}, when=lambda e: e.record.items and not e.record.in_hand),
    accepts("a run that is over is heard", {State.OPEN: (Finished,)}, when=lambda e: e.record.in_hand is not None),
    accepts(
        "a message is taken where messages are",
        {State.OPEN: (MessageArrived,)},
        when=lambda e: e.record.takes_messages and len(e.record.messages) < MESSAGES_LIMIT,
    ),
    accepts("nothing keeps a service from going but its run", {State.OPEN: (InboxClosed,)}, when=has_nothing_in_hand),
)

machine: Machine[Any] = Machine(
    REF,
    Inbox(),
    about="what waits to be run by a service: messages and triggers, in their order",
    rows=(
        row(State.OPEN, MessageArrived, STAY, keep_message, when=has_room),
        row(State.OPEN, Fired, STAY, when=waits_already),
        row(State.OPEN, Fired, STAY, keep_trigger),
        row(State.OPEN, Taken, STAY, take, when=is_free),
        row(State.OPEN, Finished, STAY, finish, when=is_busy),
        row(State.OPEN, InboxClosed, State.CLOSED, give_back, when=is_idle),
    ),
    final={State.CLOSED},
    properties=PROPERTIES,
    rests=anywhere,
)
