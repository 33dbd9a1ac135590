"""The conversation of an agent about its task: what its program remembers from one session to the next.

An agent program keeps a conversation under an identifier. Some programs accept an identifier that was *chosen*
beforehand; others name their own. A conversation has *begun* when the program has named it. The next session then
resumes it, if the program can. An identifier that no session has named is chosen once: the next session gets another
one, because the program may have taken the first.

*A conversation belongs to one claim at a time.* A new claim begins with the conversation that the board kept for the
task and this agent, or with none. A conversation that the program cannot find any more is *lost*.

``conversation_charges`` says what its sessions are charged.
"""

from hashlib import sha1
from typing import Any, Never

from lifefold.core.fleet.worker.conversation_charges import charge, goes_on, left_out
from lifefold.core.fleet.worker.conversation_model import (
    REF,
    Began,
    ClaimBegan,
    Conversation,
    IdChosen,
    SessionEnded,
    State,
)
from lifefold.core.fleet.worker.conversation_properties import PROPERTIES
from lifefold.core.kernel import STAY, Machine, Step, anywhere, replace, row
from lifefold.core.lifecycles.session import Usage
from lifefold.core.lifecycles.task import KeptConversation

__all__ = [
    "REF",
    "Began",
    "ClaimBegan",
    "Conversation",
    "IdChosen",
    "SessionEnded",
    "State",
    "charge",
    "identifier",
    "is_over",
    "machine",
    "may_resume",
    "take_up",
]  # fmt: skip


def identifier(token: str, task: str, epoch: int, agent: str, count: int) -> str:
    """Return the UUID (version 5, RFC 9562) of conversation number ``count`` of a claim; ``token`` is the claim's.

    The token is secret and belongs to one log. So no identifier can be guessed, and no two logs choose the same.
    """
    name = f"{task} {epoch} {agent} {count}".encode()
    digest = sha1(bytes.fromhex(token).ljust(16, b"\0") + name, usedforsecurity=False).digest()[:16]
    number = int.from_bytes(digest)
    number = number & ~(0xF000 << 64) | (5 << 76)
    number = number & ~(0xC000 << 48) | (0x8000 << 48)
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


# Guards


def may_resume(c: Conversation, e: ClaimBegan) -> bool:
    """There is a conversation to resume, and the program can."""
    return e.kept is not None and c.resumes


def accepts_a_choice(c: Conversation, _e: IdChosen) -> bool:
    """The program accepts an identifier."""
    return c.chooses


def is_over(c: Conversation, e: SessionEnded) -> bool:
    """The conversation is lost, or no later session can resume it."""
    return e.is_lost or not c.resumes


def is_named(_c: Conversation, e: SessionEnded) -> bool:
    """The program has named the conversation."""
    return bool(e.conversation)


# Actions


def take_up(c: Conversation, e: ClaimBegan) -> Step[Conversation, Never]:
    """Continue the conversation of an earlier claim, with what it was charged."""
    kept = e.kept or KeptConversation()
    return Step(replace(_fresh(c, e), named=kept.id, charged=kept.charged, unsaved=kept.unsaved))


def begin(c: Conversation, e: ClaimBegan) -> Step[Conversation, Never]:
    """Begin with no conversation."""
    return Step(_fresh(c, e))


def _fresh(c: Conversation, e: ClaimBegan) -> Conversation:
    claim = replace(c, task=e.task, epoch=e.epoch)
    return replace(claim, named="", chosen="", count=0, charged=Usage(), unsaved=Usage(), has_lost=False)


def choose(c: Conversation, e: IdChosen) -> Step[Conversation, Never]:
    """Keep the identifier."""
    return Step(replace(c, chosen=e.id, count=c.count + 1))


def name(c: Conversation, e: Began) -> Step[Conversation, Never]:
    """Keep the name. Under another name it is another conversation, which was charged nothing yet."""
    return Step(c if e.id == c.named else replace(c, named=e.id, chosen="", charged=Usage(), unsaved=Usage()))


def count(c: Conversation, e: SessionEnded) -> Step[Conversation, Never]:
    """Add the charge, to the conversation that the session was one of."""
    before = c.charged if goes_on(c, e.conversation) else Usage()
    charged = before.plus(charge(c, e))
    return Step(replace(c, named=e.conversation or c.named, chosen="", charged=charged, unsaved=left_out(c, e)))


def forget(c: Conversation, e: SessionEnded) -> Step[Conversation, Never]:
    """Forget the conversation: the next session begins another one."""
    has_lost = c.has_lost or e.is_lost
    return Step(replace(c, named="", chosen="", charged=Usage(), unsaved=Usage(), has_lost=has_lost))


machine: Machine[Any] = Machine(
    REF,
    Conversation(chooses=True, resumes=True),
    about="the conversation of an agent program: chosen, begun, resumed by the next session, and charged once",
    rows=(
        row(tuple(State), ClaimBegan, State.BEGUN, take_up, when=may_resume),
        row(tuple(State), ClaimBegan, State.UNNAMED, begin),
        row((State.UNNAMED, State.CHOSEN), IdChosen, State.CHOSEN, choose, when=accepts_a_choice),
        row(tuple(State), Began, State.BEGUN, name),
        row(tuple(State), SessionEnded, State.UNNAMED, forget, when=is_over),
        row((State.UNNAMED, State.CHOSEN), SessionEnded, State.BEGUN, count, when=is_named),
        row((State.UNNAMED, State.CHOSEN), SessionEnded, STAY),
        row(State.BEGUN, SessionEnded, STAY, count),
    ),
    properties=PROPERTIES,
    rests=anywhere,
)
