"""The inbox of a service: operator messages and fired triggers, in the order of their arrival.

*A message is one run.* It waits behind earlier items and is taken once, whatever the result of its run. A message is
refused if the inbox is full or closed, so that the sender knows. When the service stops for good, messages that still
wait are given back, each with its text.

*A trigger waits once.* A trigger that fires again while it waits needs no second run. A trigger that fires during its
own run waits for another run, since the current one may have missed the change.
"""

from collections import Counter
from typing import Any, ClassVar, Final, Never

import msgspec

from lifefold.core.kernel import (
    STAY,
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
"""The most messages that wait; one more is refused, so that its sender knows."""

MESSAGES_BYTES: Final = 1_000_000
"""The most bytes (UTF-8) of all waiting messages together."""

FULL: Final = (
    f"the inbox is full: at most {MESSAGES_LIMIT} messages and {MESSAGES_BYTES} bytes wait; shorten the message, or"
    " send it again when some have run"
)
"""The reason of a refusal by a full inbox, for the sender."""

NO_MESSAGES: Final = "it takes no messages: none of its triggers is { queue = true }"
"""The reason of a refusal by a service without messages, for the sender."""


class State(AnyLifecycleState):
    """The two states of an inbox."""

    OPEN = "Open"
    CLOSED = "Closed"


class Item(msgspec.Struct, frozen=True):
    """An item to run: of the trigger ``source``, or a message if that is empty. ``text`` is the prompt of its run."""

    opaque: ClassVar[tuple[str, ...]] = ("text",)

    source: str = ""
    text: str = ""


class MessageArrived(Event, frozen=True):
    """An operator has sent ``text``."""

    opaque: ClassVar[tuple[str, ...]] = ("text",)

    text: str = "a"


class Fired(Event, frozen=True):
    """The trigger ``source`` has fired, with a ``text`` for its run."""

    opaque: ClassVar[tuple[str, ...]] = ("text",)

    source: str = "trigger:1"
    text: str = "it is time"


class Taken(Event, frozen=True):
    """The oldest waiting item is run."""


class Finished(Event, frozen=True):
    """The current run is over."""


class InboxClosed(Event, frozen=True):
    """The service has stopped for good: no later item will run."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = "it has stopped"


class Inbox(Record, frozen=True):
    """The waiting items, oldest first, and the running one. Without ``takes_messages`` there are only triggers."""

    state: State = State.OPEN
    items: tuple[Item, ...] = ()
    in_hand: Item | None = None
    takes_messages: bool = False

    @property
    def messages(self) -> tuple[str, ...]:
        """The waiting messages."""
        return tuple(each.text for each in self.items if not each.source)


def has_capacity(i: Inbox, e: MessageArrived) -> bool:
    """The service takes messages, and one more with this text is within both limits."""
    length = sum(len(text.encode(errors="surrogatepass")) for text in (*i.messages, e.text))
    return i.takes_messages and len(i.messages) < MESSAGES_LIMIT and length <= MESSAGES_BYTES


def waits_already(i: Inbox, e: Fired) -> bool:
    """The same trigger waits already."""
    return any(each.source == e.source for each in i.items)


def is_free(i: Inbox, _e: Taken) -> bool:
    """An item waits, and none is running."""
    return bool(i.items) and i.in_hand is None


def is_busy(i: Inbox, _e: Finished) -> bool:
    """An item is running."""
    return i.in_hand is not None


def is_idle(i: Inbox, _e: InboxClosed) -> bool:
    """No item is running."""
    return i.in_hand is None


def keep_message(i: Inbox, e: MessageArrived) -> Step[Inbox, Never]:
    """Append the message."""
    return Step(replace(i, items=(*i.items, Item(text=e.text))))


def keep_trigger(i: Inbox, e: Fired) -> Step[Inbox, Never]:
    """Append the trigger."""
    return Step(replace(i, items=(*i.items, Item(e.source, e.text))))


def take(i: Inbox, _e: Taken) -> Step[Inbox, Never]:
    """Take the oldest waiting item."""
    return Step(replace(i, items=i.items[1:], in_hand=next(iter(i.items), None)))


def finish(i: Inbox, _e: Finished) -> Step[Inbox, Never]:
    """Clear the item that has run."""
    return Step(replace(i, in_hand=None))


def give_back(i: Inbox, e: InboxClosed) -> Step[Inbox, LogFatal]:
    """Tell the operator of every message that will not run, with the reason; waiting triggers are dropped."""
    notices = tuple(LogFatal(f"message {text!r}{_times(n)} was not run: {e.reason}") for text, n in _counted(i))
    return Step(replace(i, items=()), notices)


def _counted(i: Inbox) -> tuple[tuple[str, int], ...]:
    """Return the texts of the waiting messages in order, each with its number of messages."""
    return tuple(Counter(i.messages).items())


def _times(number: int) -> str:
    return f" ({number} times)" if number > 1 else ""


def keeps_the_order(step: Transition) -> bool:
    """New items are appended, and the oldest item is taken first, one at a time."""
    was: Inbox = step.was
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
    """A closing inbox reports exactly the waiting messages, each with its number and the reason."""
    reported = [each.message for each in step.effects if isinstance(each, LogFatal)]
    if step.before is None or not isinstance(step.event, InboxClosed):
        return not reported
    waiting = _counted(step.before.record)
    return len(reported) == len(waiting) and all(
        f"{text!r}{_times(number)} was" in message and step.event.reason in message
        for (text, number), message in zip(waiting, reported, strict=True)
    )


def waits_once(i: Inbox) -> bool:
    """A trigger waits once, and at most ``MESSAGES_LIMIT`` messages wait."""
    sources = [each.source for each in i.items if each.source]
    return len(set(sources)) == len(sources) and len(i.messages) <= MESSAGES_LIMIT


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("waiting items run in order, one at a time, each once", keeps_the_order, on=Event),
    always_step("the operator is told of every message that will not run", gives_back_what_waits),
    always("a trigger waits once, and messages stay within their limit", lambda e: waits_once(e.record)),
    accepts("a waiting trigger can fire again", {State.OPEN: (Fired,)}),
    accepts(
        "a waiting item can be run", {State.OPEN: (Taken,)}, when=lambda e: e.record.items and not e.record.in_hand
    ),
    accepts("the end of a run is accepted", {State.OPEN: (Finished,)}, when=lambda e: e.record.in_hand is not None),
    accepts(
        "a message is accepted where the service takes messages",
        {State.OPEN: (MessageArrived,)},
        when=lambda e: e.record.takes_messages and len(e.record.messages) < MESSAGES_LIMIT,
    ),
    accepts(
        "an inbox can close whenever nothing runs",
        {State.OPEN: (InboxClosed,)},
        when=lambda e: e.record.in_hand is None,
    ),
)

machine: Machine[Any] = Machine(
    REF,
    Inbox(),
    about="the messages and triggers that wait for a run of a service, in their order",
    rows=(
        row(State.OPEN, MessageArrived, STAY, keep_message, when=has_capacity),
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
