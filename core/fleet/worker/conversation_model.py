"""The states, the events and the record of a conversation."""

from typing import Any, ClassVar, Final

from lifefold.core.kernel import Event, Record
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.session import Usage
from lifefold.core.lifecycles.task import KeptConversation

REF: Final = "conversation"


class State(AnyLifecycleState):
    """The three states of a conversation."""

    UNNAMED = "Unnamed"
    CHOSEN = "Chosen"
    BEGUN = "Begun"


class ClaimBegan(Event, frozen=True):
    """The worker begins with claim ``epoch`` of a task. ``kept`` is the conversation to resume, if there is one."""

    task: str = ""
    epoch: int = 0
    kept: KeptConversation | None = None

    @classmethod
    def examples(cls) -> tuple["ClaimBegan", ...]:
        """Return a claim without a conversation, and two with one that has cost something; a part may be unsaved."""
        kept = KeptConversation("ann", "C1", Usage(2), Usage(1))
        return cls("T1", 1), cls("T1", 2, KeptConversation("ann", "C1", Usage(2))), cls("T1", 2, kept)


class IdChosen(Event, frozen=True):
    """An identifier is chosen for the conversation that the next session begins."""

    opaque: ClassVar[tuple[str, ...]] = ("id",)

    id: str = "chosen"


class Began(Event, frozen=True):
    """The program names its conversation while its session runs. A repetition changes nothing."""

    id: str = "C1"

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Began", ...]:
        """Return the present name, and another one."""
        return cls(record.named or "C1"), cls("C2")


class SessionEnded(Event, frozen=True):
    """A session of the claim is over.

    ``conversation`` is the name that the program gave, or empty. ``is_total``: ``usage`` is the total of the whole
    conversation. ``is_lost``: the program could not find the conversation, or could not use the chosen identifier.
    ``before`` is the program's total when the session began, if it tells that. ``was_killed``: it could not save its
    total.
    """

    conversation: str = ""
    usage: Usage = Usage()
    is_total: bool = False
    is_lost: bool = False
    before: Usage | None = None
    was_killed: bool = False

    @classmethod
    def examples(cls) -> tuple["SessionEnded", ...]:
        """Return those of a conversation of this name."""
        return cls.examples_for(Conversation(named="C1"))

    @classmethod
    def examples_for(cls, record: Any) -> tuple["SessionEnded", ...]:
        """Return ends with a total, a smaller one, a cost of the session, another name, no word, and a loss.

        Three more totals tell what was before the session: less than was charged, or more. Two sessions are killed.
        """
        name = record.named or "C1"
        return (
            cls(name, Usage(4, 1, 1), is_total=True),
            cls(name, Usage(1), is_total=True),
            cls(name, Usage(1)),
            cls(name, Usage(1), was_killed=True),
            cls(name, Usage(3, 1, 1), is_total=True, before=Usage(1)),
            cls(name, Usage(3, 1, 1), is_total=True, before=Usage(1), was_killed=True),
            cls(name, Usage(5, 2, 1), is_total=True, before=Usage(4, 1, 1)),
            cls("C2", Usage(2), is_total=True),
            cls(),
            cls(is_lost=True),
        )


class Conversation(Record, frozen=True):
    """The conversation of claim ``epoch`` of ``task``, under the name that the program gave, or a ``chosen`` one.

    ``count`` is the number of identifiers that were chosen. ``charged`` is the sum of its charges, and ``unsaved`` the
    part of it that the program's totals leave out. ``has_lost``: the claim has lost a conversation. The program
    ``chooses``: it accepts an identifier. It ``resumes``: a later session can continue.
    """

    identifiers: ClassVar[tuple[str, ...]] = ("epoch", "count")
    opaque: ClassVar[tuple[str, ...]] = ("chosen",)

    state: State = State.UNNAMED
    chooses: bool = False
    resumes: bool = False
    task: str = ""
    epoch: int = 0
    named: str = ""
    chosen: str = ""
    count: int = 0
    charged: Usage = Usage()
    unsaved: Usage = Usage()
    has_lost: bool = False

    @property
    def id(self) -> str:
        """The identifier for the next session; empty if the program is to find its own."""
        return self.named or self.chosen

    @property
    def is_begun(self) -> bool:
        """Whether the program has named the conversation: a session resumes it."""
        return self.state is State.BEGUN
