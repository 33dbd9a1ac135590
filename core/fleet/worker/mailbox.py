"""The operator messages of an agent: each is in every prompt until a session with it completes (D14).

A prompt is no delivery: its session may be interrupted, may fail or may never start, and the next session remembers
nothing of it. So a prompt *takes* all messages, and they stay in the mailbox. They are *delivered* when that session
completes. Later messages are for the next prompt, or *reach* the running session if it can be steered (``steering``).
A working agent gets each message at least once, and perhaps twice. When the agent stops for good, undelivered messages
stay in its *closed* mailbox, where operators see them.
"""

from typing import Any, Final, Never

from lifefold.core.kernel import (
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
    sometimes,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import exits_on

MESSAGES_LIMIT: Final = 100
"""The most messages of a mailbox; one more is refused, so that its sender knows."""

MESSAGES_BYTES: Final = 65_536
"""The most bytes (UTF-8) of all messages together: every prompt, and so the log, has all of them again."""

FULL: Final = (
    f"its mailbox is full: it keeps at most {MESSAGES_LIMIT} messages and {MESSAGES_BYTES} bytes until a session with"
    " them succeeds; shorten the message, or send it again later"
)
"""The reason of a refusal in Holding, with advice for the sender."""


class State(AnyLifecycleState):
    """The three states of a mailbox."""

    EMPTY = "Empty"
    HOLDING = "Holding"
    CLOSED = "Closed"


class OperatorMessageArrived(Event, frozen=True):
    """An operator has sent ``text``; an ``urgent`` message interrupts a running session."""

    text: str = ""
    urgent: bool = True

    @classmethod
    def examples(cls) -> tuple["OperatorMessageArrived", ...]:
        """Return one of each kind; their texts decide nothing."""
        return cls("a"), cls("a", urgent=False)


class MessagesTaken(Event, frozen=True):
    """A prompt takes all messages."""


class MessagesReached(Event, frozen=True):
    """The running session has taken the messages up to number ``count``, beside those of its prompt."""

    count: int = 1

    @classmethod
    def examples_for(cls, record: Any) -> tuple["MessagesReached", ...]:
        """Return the next message, one that is taken already, and one that is not there."""
        return cls(record.taken + 1), cls(record.taken), cls(len(record.messages) + 1)


class MessagesDelivered(Event, frozen=True):
    """The session with the last prompt has completed."""


class MailboxClosed(Event, frozen=True):
    """The agent has stopped for good: no session will get a later message."""


class Mailbox(Record, frozen=True):
    """The undelivered messages, oldest first; the last session has the first ``taken`` of them.

    A closed mailbox has the messages that no session will get; its ``taken`` is 0.
    """

    state: State = State.EMPTY
    messages: tuple[str, ...] = ()
    taken: int = 0


def has_capacity(m: Mailbox, e: OperatorMessageArrived) -> bool:
    """One more message with this text is within both limits."""
    length = sum(len(text.encode(errors="surrogatepass")) for text in (*m.messages, e.text))
    return len(m.messages) < MESSAGES_LIMIT and length <= MESSAGES_BYTES


def all_taken(m: Mailbox, _e: MessagesDelivered) -> bool:
    """No message has arrived since the prompt."""
    return m.taken == len(m.messages)


def is_reached(m: Mailbox, e: MessagesReached) -> bool:
    """The session has taken a message that it did not have, and that is kept."""
    return m.taken < e.count <= len(m.messages)


def keep(m: Mailbox, e: OperatorMessageArrived) -> Step[Mailbox, Never]:
    """Keep the message."""
    return Step(replace(m, messages=(*m.messages, e.text)))


def take(m: Mailbox, _e: MessagesTaken) -> Step[Mailbox, Never]:
    """Record that the prompt has all messages."""
    return Step(replace(m, taken=len(m.messages)))


def reach(m: Mailbox, e: MessagesReached) -> Step[Mailbox, Never]:
    """Record that the running session has the messages."""
    return Step(replace(m, taken=e.count))


def deliver(m: Mailbox, _e: MessagesDelivered) -> Step[Mailbox, Never]:
    """Remove the messages that the prompt had."""
    return Step(replace(m, messages=m.messages[m.taken :], taken=0))


def close(m: Mailbox, _e: MailboxClosed) -> Step[Mailbox, Never]:
    """Keep the undelivered messages, and forget the last prompt."""
    return Step(replace(m, taken=0))


def messages_end_by_delivery(step: Transition) -> bool:
    """Only the completion of a session with a message removes the message (D14)."""
    before, now = step.was, step.after.record
    delivered = before.taken if isinstance(step.event, MessagesDelivered) else 0
    return bool(now.messages[: len(before.messages) - delivered] == before.messages[delivered:])


def messages_are_all_kept(step: Transition) -> bool:
    """Messages are kept in order. A prompt takes all of them, a running session some; a delivery removes those."""
    was: Mailbox = step.was
    now: Mailbox = step.after.record
    match step.event:
        case OperatorMessageArrived(text=text):
            return now == replace(was, state=State.HOLDING, messages=(*was.messages, text))
        case MessagesTaken():
            return now == replace(was, taken=len(was.messages))
        case MessagesReached(count=count):
            return was.taken < count and now == replace(was, taken=count)
        case MessagesDelivered():
            left = was.messages[was.taken :]
            return now == Mailbox(State.HOLDING if left else State.EMPTY, left)
        case _:
            return now == Mailbox(State.CLOSED, was.messages)


def only_what_is_there_is_taken(m: Mailbox) -> bool:
    """A prompt takes only messages that are kept."""
    return m.taken <= len(m.messages)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always("a prompt takes only messages that are kept", lambda e: only_what_is_there_is_taken(e.record)),
    always_step("messages are kept in their order, and delivered together", messages_are_all_kept, on=Event),
    always_step(
        "a mailbox never holds more messages than its limit",
        lambda step: len(step.after.record.messages) <= MESSAGES_LIMIT,
    ),
    accepts(
        "kept messages can be taken by a prompt, and delivered", {State.HOLDING: (MessagesTaken, MessagesDelivered)}
    ),
    accepts(
        "a running session can take the next message that is kept",
        {State.HOLDING: (MessagesReached,)},
        when=lambda e: e.record.taken < len(e.record.messages),
    ),
    *exits_on(State.EMPTY, OperatorMessageArrived, MailboxClosed),
    *exits_on(State.HOLDING, MailboxClosed),
    sometimes("a mailbox is full", lambda e: len(e.record.messages) == MESSAGES_LIMIT),
    always_step("a message stays until a session with it completes", messages_end_by_delivery, on=Event),
)

machine: Machine[Any] = Machine(
    "mailbox",
    Mailbox(),
    about="operator messages for an agent: in every prompt until a session with them succeeds",
    rows=(
        row(State.EMPTY, OperatorMessageArrived, State.HOLDING, keep, when=has_capacity),
        row(State.HOLDING, OperatorMessageArrived, State.HOLDING, keep, when=has_capacity),
        row(State.HOLDING, MessagesTaken, State.HOLDING, take),
        row(State.HOLDING, MessagesReached, State.HOLDING, reach, when=is_reached),
        row(State.HOLDING, MessagesDelivered, State.EMPTY, deliver, when=all_taken),
        row(State.HOLDING, MessagesDelivered, State.HOLDING, deliver),
        row((State.EMPTY, State.HOLDING), MailboxClosed, State.CLOSED, close),
    ),
    final={State.CLOSED},
    properties=PROPERTIES,
    rests=anywhere,
)
