"""What people have to say to an agent: repeated in every prompt until a session that was told succeeds (D14).

A prompt is no delivery. Its session may be interrupted, may fail, may never start, and the next one remembers nothing
of it. So a prompt *takes* all messages along, and they stay; they are *delivered* when that very session completes.
What comes meanwhile is for the next prompt. An agent may therefore be told something twice, and never not at all while
it works. What it has not been told when it stops for good stays in its *closed* mailbox, where people see it.
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
"""How many messages a mailbox keeps at most; one more is refused, so that the sender knows."""

MESSAGES_BYTES: Final = 65_536
"""How long they may be together, in bytes of UTF-8: all of them are in every prompt, and so in the log, again."""

FULL: Final = (
    f"its mailbox has no room: it keeps {MESSAGES_LIMIT} messages and {MESSAGES_BYTES} bytes at most, until a session that"
    " was told succeeds; write it shorter, or send it again then"
)
"""What a refusal while Holding means, and what to do, for the sender."""


class State(AnyLifecycleState):
    """The three states of a mailbox."""

    EMPTY = "Empty"
    HOLDING = "Holding"
    CLOSED = "Closed"


class OperatorMessageArrived(Event, frozen=True):
    """Somebody wrote ``text``; ``urgent`` messages interrupt a running session."""

    text: str = ""
    urgent: bool = True

    @classmethod
    def examples(cls) -> tuple["OperatorMessageArrived", ...]:
        """Return one of each kind; what they say decides nothing."""
        return cls("a"), cls("a", urgent=False)


class MessagesTaken(Event, frozen=True):
    """A prompt takes the messages along."""


class MessagesDelivered(Event, frozen=True):
    """The session with that prompt has completed."""


class MailboxClosed(Event, frozen=True):
    """The agent has stopped: nobody will read what comes now."""


class Mailbox(Record, frozen=True):
    """The messages that are not delivered, oldest first; the last prompt took along as many of them as ``taken``.

    In a closed mailbox they are those that nobody will read, and no prompt is of interest.
    """

    state: State = State.EMPTY
    messages: tuple[str, ...] = ()
    taken: int = 0


def has_room(m: Mailbox, e: OperatorMessageArrived) -> bool:
    """There is room for one more, and for its text."""
    length = sum(len(text.encode(errors="surrogatepass")) for text in (*m.messages, e.text))
    return len(m.messages) < MESSAGES_LIMIT and length <= MESSAGES_BYTES


def all_taken(m: Mailbox, _e: MessagesDelivered) -> bool:
    """No message came after the prompt."""
    return m.taken == len(m.messages)


def keep(m: Mailbox, e: OperatorMessageArrived) -> Step[Mailbox, Never]:
    """Keep the message."""
    return Step(replace(m, messages=(*m.messages, e.text)))


def take(m: Mailbox, _e: MessagesTaken) -> Step[Mailbox, Never]:
    """Remember which messages the prompt has: all there are."""
    return Step(replace(m, taken=len(m.messages)))


def deliver(m: Mailbox, _e: MessagesDelivered) -> Step[Mailbox, Never]:
    """Forget the messages that the prompt had."""
    return Step(replace(m, messages=m.messages[m.taken :], taken=0))


def close(m: Mailbox, _e: MailboxClosed) -> Step[Mailbox, Never]:
    """Keep what nobody has been told, and forget which of it the last prompt had."""
    return Step(replace(m, taken=0))


def messages_end_by_delivery(step: Transition) -> bool:
    """A message goes when a session that was told completes, and in no other way (D14)."""
    if step.before is None:
        return True
    before, now = step.before.record, step.after.record
    delivered = before.taken if isinstance(step.event, MessagesDelivered) else 0
    return bool(now.messages[: len(before.messages) - delivered] == before.messages[delivered:])


def messages_are_all_kept(step: Transition) -> bool:
    """A message is kept behind those before it; a prompt has all there are, and a delivery alone takes those away."""
    if step.before is None:
        return True
    was: Mailbox = step.before.record
    now: Mailbox = step.after.record
    match step.event:
        case OperatorMessageArrived(text=text):
            return now == replace(was, state=State.HOLDING, messages=(*was.messages, text))
        case MessagesTaken():
            return now == replace(was, taken=len(was.messages))
        case MessagesDelivered():
            left = was.messages[was.taken :]
            return now == Mailbox(State.HOLDING if left else State.EMPTY, left)
        case _:
            return now == Mailbox(State.CLOSED, was.messages)


def messages_have_room(step: Transition) -> bool:
    """No more messages are taken in than a mailbox keeps."""
    return len(step.after.record.messages) <= MESSAGES_LIMIT


def only_what_is_there_is_taken(m: Mailbox) -> bool:
    """No prompt had messages that are not kept."""
    return m.taken <= len(m.messages)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always("no prompt had messages that are not kept", lambda e: only_what_is_there_is_taken(e.record)),
    always_step("messages are kept in their order, and delivered together", messages_are_all_kept),
    always_step("no more messages are kept than there is room for", messages_have_room),
    accepts("messages that are kept can be read, and delivered", {State.HOLDING: (MessagesTaken, MessagesDelivered)}),
    *exits_on(State.EMPTY, OperatorMessageArrived, MailboxClosed),
    *exits_on(State.HOLDING, MailboxClosed),
    sometimes("a mailbox is full", lambda e: len(e.record.messages) == MESSAGES_LIMIT),
    always_step("a message stays until a session that was told completes", messages_end_by_delivery),
)

machine: Machine[Any] = Machine(
    "mailbox",
    Mailbox(),
    about="what people have to say to an agent, repeated until a session that was told succeeds",
    rows=(
        row(State.EMPTY, OperatorMessageArrived, State.HOLDING, keep, when=has_room),
        row(State.HOLDING, OperatorMessageArrived, State.HOLDING, keep, when=has_room),
        row(State.HOLDING, MessagesTaken, State.HOLDING, take),
        row(State.HOLDING, MessagesDelivered, State.EMPTY, deliver, when=all_taken),
        row(State.HOLDING, MessagesDelivered, State.HOLDING, deliver),
        row((State.EMPTY, State.HOLDING), MailboxClosed, State.CLOSED, close),
    ),
    final={State.CLOSED},
    properties=PROPERTIES,
    rests=anywhere,
)
