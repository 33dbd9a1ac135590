"""The facts that an adapter reads off the output of an agent: the same for every agent program.

A fact is something that the agent has printed. The consequences are decided by rules of the core. All texts are bounded
and have no control characters. Money is in millionths of a US dollar, time in milliseconds of the epoch.
"""

from enum import StrEnum
from typing import Final

import msgspec

from lifefold.core.fleet.worker import output
from lifefold.core.policy.outcomes import Outcome

TEXT_CHARS: Final = 2_000
"""The longest text of a fact."""

NAME_CHARS: Final = 200
"""The longest identifier or name of a fact."""


Work = output.Work
"""What an agent does for some time: it uses a tool, or shortens its own context."""

PHASES: Final = output.PHASES
"""The phase of document 004's turn while an agent does that work."""


class Tokens(msgspec.Struct, frozen=True):
    """Tokens by their price: each token counts in one field. ``output`` includes the tokens of reasoning."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    def plus(self, other: "Tokens") -> "Tokens":
        """Return the sum."""
        return Tokens(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
        )

    def minus(self, other: "Tokens") -> "Tokens":
        """Return the difference, none of it below zero."""
        return Tokens(
            max(0, self.input - other.input),
            max(0, self.cache_read - other.cache_read),
            max(0, self.cache_write - other.cache_write),
            max(0, self.output - other.output),
        )


class Cost(msgspec.Struct, frozen=True):
    """What was used: tokens and money; ``microusd`` is None if the agent names no money."""

    tokens: Tokens = Tokens()
    microusd: int | None = None

    def plus(self, other: "Cost") -> "Cost":
        """Return the sum; money that one side does not name counts as none."""
        named = [each for each in (self.microusd, other.microusd) if each is not None]
        return Cost(self.tokens.plus(other.tokens), sum(named) if named else None)


class ModelCost(msgspec.Struct, frozen=True):
    """The part of a cost that one model has."""

    model: str
    cost: Cost


class Counted(StrEnum):
    """What a total covers."""

    CONVERSATION = "conversation"
    """All sessions of the conversation, this one and the earlier ones: only the difference is new."""
    SESSION = "session"
    """This session alone."""


class ConversationBegan(msgspec.Struct, frozen=True, tag=True):
    """The agent names its conversation; a session that resumes one names it, too."""

    id: str


class WorkStarted(msgspec.Struct, frozen=True, tag=True):
    """The agent began some work; ``name`` is the tool's, ``subject`` what it is used on: a command, or a file."""

    work: Work
    id: str
    name: str = ""
    subject: str = ""


class WorkEnded(msgspec.Struct, frozen=True, tag=True):
    """The work with this ``id`` is over; ``ok`` is False if it failed or was refused."""

    work: Work
    id: str
    ok: bool = True


class PermissionWanted(msgspec.Struct, frozen=True, tag=True):
    """The agent asks for leave to use a tool, and waits for the answer."""

    id: str
    tool: str
    question: str = ""


class PermissionDenied(msgspec.Struct, frozen=True, tag=True):
    """The agent may not use a tool, and goes on without it."""

    id: str
    tool: str
    reason: str = ""


class Spent(msgspec.Struct, frozen=True, tag=True):
    """A new total. Later totals of the same conversation and coverage replace earlier ones and are never lower.

    ``before`` is the program's own total of the conversation when this session began; None if the program tells none.
    """

    conversation: str
    total: Cost
    counted: Counted
    models: tuple[ModelCost, ...] = ()
    before: Cost | None = None


class Limited(msgspec.Struct, frozen=True, tag=True):
    """The account may not be used before ``until_ms``; None if the agent does not tell the time.

    ``scope`` is the agent's name of the limit, such as ``five_hour``. The session may continue to wait: an adapter says
    nothing about that.
    """

    until_ms: int | None
    scope: str = ""
    reason: str = ""


class MessageTaken(msgspec.Struct, frozen=True, tag=True):
    """The session has given the agent operator message ``number``, and the agent has begun with it."""

    number: int


class Said(msgspec.Struct, frozen=True, tag=True):
    """A text of the agent for people."""

    text: str


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The session is over: the last fact. ``reason`` is a sentence for people, from where the agent put it.

    ``words`` are the last words of a program without a form of its own. They classify an end that has no outcome.
    """

    outcome: Outcome
    reason: str = ""
    words: str = ""

    @property
    def ok(self) -> bool:
        """Whether the agent has done its work, as it says."""
        return self.outcome is Outcome.SUCCESS


Fact = (
    ConversationBegan
    | WorkStarted
    | WorkEnded
    | PermissionWanted
    | PermissionDenied
    | Spent
    | Limited
    | MessageTaken
    | Said
    | Ended
)
"""Any fact."""
