"""The conversation of an agent about its task: what its program remembers from one session to the next.

An agent program keeps a conversation under an identifier. Some programs accept an identifier that was *chosen*
beforehand; others name their own. A conversation has *begun* when the program has named it. The next session then
resumes it, if the program can. An identifier that no session has named is chosen once: the next session gets another
one, because the program may have taken the first.

*A conversation belongs to one claim at a time.* A new claim begins with the conversation that the board kept for the
task and this agent, or with none. A conversation that the program cannot find any more is *lost*.

*Costs.* Some programs report the cost of a session, others the total of the conversation, with its earlier sessions.
``charged`` is the sum of what was charged for the conversation. A total adds only its difference to that sum. So the
sum of all charges is the last total, over sessions, claims and runners.

A killed program cannot save its total, so the later totals leave its session out. A program that tells its count
*before* the session shows that. ``unsaved`` is the part of ``charged`` that its totals leave out, and a total is
compared with the rest. A session that was ended gently is in the later totals, also with what it had not printed.
"""

from collections.abc import Callable
from hashlib import sha1
from typing import Any, ClassVar, Final, Never

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
    sometimes,
)
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


def charge(c: Conversation, e: SessionEnded) -> Usage:
    """Return what a session is charged: its cost, or the difference of a total to the earlier charges; never less.

    If the program tells its count ``before`` the session, the difference has all of the session itself. It also has
    what that count exceeds the charges that it may contain: earlier sessions have not printed it.
    """
    if not e.is_total:
        return e.usage
    earlier = c if _goes_on(c, e.conversation) else Conversation()
    if e.before is None:
        return _less(e.usage, earlier.charged)
    return _less(e.usage, _each(min, e.before, _less(earlier.charged, earlier.unsaved)))


def _left_out(c: Conversation, e: SessionEnded) -> Usage:
    """Return the charges after a session that the program's totals leave out."""
    earlier = c if _goes_on(c, e.conversation) else Conversation()
    if e.is_total and e.before is not None:
        saved = _each(min, e.before, e.usage) if e.was_killed else e.usage
        return _less(earlier.charged.plus(charge(c, e)), saved)
    return earlier.unsaved.plus(e.usage) if e.was_killed and not e.is_total else earlier.unsaved


def _less(usage: Usage, other: Usage) -> Usage:
    """Return the difference, none of it below zero."""
    return _each(lambda a, b: max(0, a - b), usage, other)


def _each(of_two: Callable[[int, int], int], usage: Usage, other: Usage) -> Usage:
    return Usage(*(of_two(a, b) for a, b in zip(_figures(usage), _figures(other), strict=True)))


def _goes_on(c: Conversation, name: str) -> bool:
    """Tell whether a session with this name was one of the present conversation; a silent one was."""
    return name in {"", c.named}


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
    before = c.charged if _goes_on(c, e.conversation) else Usage()
    charged = before.plus(charge(c, e))
    return Step(replace(c, named=e.conversation or c.named, chosen="", charged=charged, unsaved=_left_out(c, e)))


def forget(c: Conversation, e: SessionEnded) -> Step[Conversation, Never]:
    """Forget the conversation: the next session begins another one."""
    has_lost = c.has_lost or e.is_lost
    return Step(replace(c, named="", chosen="", charged=Usage(), unsaved=Usage(), has_lost=has_lost))


# Properties


def is_consistent(c: Conversation) -> bool:
    """A conversation has begun exactly if it has a name, and only a begun one was charged anything."""
    has_its_id = (bool(c.named), bool(c.chosen)) == (c.state is State.BEGUN, c.state is State.CHOSEN)
    is_charged = c.is_begun or (c.charged, c.unsaved) == (Usage(), Usage())
    return has_its_id and is_charged and (c.chooses or not c.chosen)


def adds_up(step: Transition) -> bool:
    """The charges of a conversation are its last total, or the sum of the costs of its sessions.

    With a count before the session it is charged its own part, and what that count has beyond the earlier charges.
    """
    if step.before is None or not isinstance(step.event, SessionEnded) or not step.after.record.is_begun:
        return True
    was: Conversation = step.before.record
    now: Conversation = step.after.record
    earlier = was if now.named == was.named else Conversation()
    usage, before = step.event.usage, step.event.before
    if not step.event.is_total:
        return now.charged == earlier.charged.plus(usage)
    if before is None:
        return now.charged == _each(max, usage, earlier.charged)
    before = _each(min, before, usage)
    unprinted = _less(before, _less(earlier.charged, earlier.unsaved))
    return now.charged == earlier.charged.plus(_less(usage, before)).plus(unprinted)


def knows_what_is_left_out(step: Transition) -> bool:
    """The totals leave out the killed sessions. All other charges are in the last total that has told its beginning."""
    event, now = step.event, step.after.record
    if step.before is None or not isinstance(event, SessionEnded) or not now.is_begun:
        return True
    was: Conversation = step.before.record
    earlier = was if now.named == was.named else Conversation()
    if event.is_total and event.before is not None:
        saved = _each(min, event.before, event.usage) if event.was_killed else event.usage
        return bool(now.charged == now.unsaved.plus(saved))
    left_out = event.usage if event.was_killed and not event.is_total else Usage()
    return bool(now.unsaved == earlier.unsaved.plus(left_out))


def is_never_charged_again(step: Transition) -> bool:
    """What was charged for a conversation stays charged, over all sessions and claims that resume it."""
    was: Conversation = step.was
    now: Conversation = step.after.record
    if isinstance(step.event, ClaimBegan):
        kept = step.event.kept
        had = kept and (kept.id, kept.charged, kept.unsaved)
        return not now.is_begun or (now.named, now.charged, now.unsaved) == had
    same = now.is_begun and now.named == was.named
    return not same or all(a >= b for a, b in zip(_figures(now.charged), _figures(was.charged), strict=True))


def _figures(usage: Usage) -> tuple[int, int, int]:
    return usage.cost_microusd, usage.input_tokens, usage.output_tokens


def begins_with_what_was_kept(step: Transition) -> bool:
    """A claim resumes the conversation that was kept for it, if the program can, and begins no other."""
    if not isinstance(step.event, ClaimBegan):
        return True
    now: Conversation = step.after.record
    kept = step.event.kept if now.resumes else None
    fresh = (now.count, now.has_lost) == (0, False)
    return fresh and (now.task, now.epoch, now.named) == (
        step.event.task,
        step.event.epoch,
        "" if kept is None else kept.id,
    )


def is_kept_until_it_is_lost(step: Transition) -> bool:
    """A begun conversation goes on until it is lost, the program names another one, or no session can resume it."""
    if not step.was.is_begun or isinstance(step.event, ClaimBegan):
        return True
    now: Conversation = step.after.record
    if isinstance(step.event, SessionEnded) and (step.event.is_lost or not now.resumes):
        return not now.id and now.has_lost is (step.was.has_lost or step.event.is_lost)
    other = step.event.id if isinstance(step.event, Began) else getattr(step.event, "conversation", "")
    return bool(now.named == (other or step.was.named))


def is_chosen_once(step: Transition) -> bool:
    """Every chosen identifier has a number of its own, and is kept until the program names the conversation."""
    if isinstance(step.event, ClaimBegan):
        return True
    was: Conversation = step.was
    now: Conversation = step.after.record
    if isinstance(step.event, IdChosen):
        return (now.chosen, now.count) == (step.event.id, was.count + 1)
    return now.count == was.count and now.chosen in {"", was.chosen}


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always("a conversation has begun exactly if it has a name", lambda e: is_consistent(e.record)),
    always_step("the sum of the charges of a conversation is its last total", adds_up),
    always_step("the totals of a conversation leave out its killed sessions alone", knows_what_is_left_out),
    always_step("a resumed conversation is never charged twice", is_never_charged_again, on=Event),
    always_step("a claim resumes the conversation that was kept for it", begins_with_what_was_kept, on=Event),
    always_step("a conversation is kept until it is lost", is_kept_until_it_is_lost, on=Event),
    always_step("an identifier is chosen for one conversation", is_chosen_once, on=Event),
    accepts("a claim can begin, and a session can end, at any time", {tuple(State): (ClaimBegan, SessionEnded)}),
    accepts("a program can name its conversation at any time", {tuple(State): (Began,)}),
    sometimes("a claim has lost a conversation", lambda e: e.record.has_lost),
)

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
