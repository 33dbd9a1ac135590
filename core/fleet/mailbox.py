"""What people have to say to an agent: kept until a prompt takes it along (D14)."""

from typing import Any, Never

from lifefold.core.kernel import Event, Machine, Record, Step, replace, row
from lifefold.core.kernel import State as AnyLifecycleState

LETTERS_LIMIT = 100
"""How many letters wait at most; one more is refused, so that the sender knows."""


class State(AnyLifecycleState):
    """The three states of a mailbox."""

    EMPTY = "Empty"
    HOLDING = "Holding"
    CLOSED = "Closed"


class LetterArrived(Event, frozen=True):
    """Somebody wrote ``text``; ``urgent`` letters interrupt a running session."""

    text: str = ""
    urgent: bool = True


class LettersTaken(Event, frozen=True):
    """A prompt took the letters along."""


class MailboxClosed(Event, frozen=True):
    """The agent has stopped: nobody will read what comes now."""


class Mailbox(Record, frozen=True):
    """The letters that wait, oldest first."""

    state: State = State.EMPTY
    letters: tuple[str, ...] = ()


def has_room(m: Mailbox, _e: LetterArrived) -> bool:
    """There is room for one more."""
    return len(m.letters) < LETTERS_LIMIT


def keep(m: Mailbox, e: LetterArrived) -> Step[Mailbox, Never]:
    """Keep the letter."""
    return Step(replace(m, letters=(*m.letters, e.text)))


def empty(m: Mailbox, _e: Event) -> Step[Mailbox, Never]:
    """Forget the letters."""
    return Step(replace(m, letters=()))


machine: Machine[Any] = Machine(
    "mailbox",
    Mailbox(),
    about="what people have to say to an agent, kept until a prompt takes it along",
    rows=(
        row(State.EMPTY, LetterArrived, State.HOLDING, keep),
        row(State.HOLDING, LetterArrived, State.HOLDING, keep, when=has_room),
        row(State.HOLDING, LettersTaken, State.EMPTY, empty),
        row((State.EMPTY, State.HOLDING), MailboxClosed, State.CLOSED, empty),
    ),
    final={State.CLOSED},
)
