"""The properties of a conversation: it is charged once, and kept until it is lost."""

from typing import Any, Final

from lifefold.core.fleet.worker.conversation_charges import each_of, less
from lifefold.core.fleet.worker.conversation_model import Began, ClaimBegan, Conversation, IdChosen, SessionEnded, State
from lifefold.core.kernel import Event, Property, Transition, accepts, always, always_step, sometimes
from lifefold.core.lifecycles.session import Usage


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
        return now.charged == each_of(max, usage, earlier.charged)
    before = each_of(min, before, usage)
    unprinted = less(before, less(earlier.charged, earlier.unsaved))
    return now.charged == earlier.charged.plus(less(usage, before)).plus(unprinted)


def knows_what_is_left_out(step: Transition) -> bool:
    """The totals leave out the killed sessions. All other charges are in the last total that has told its beginning."""
    event, now = step.event, step.after.record
    if step.before is None or not isinstance(event, SessionEnded) or not now.is_begun:
        return True
    was: Conversation = step.before.record
    earlier = was if now.named == was.named else Conversation()
    if event.is_total and event.before is not None:
        saved = each_of(min, event.before, event.usage) if event.was_killed else event.usage
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
    return not same or less(was.charged, now.charged) == Usage()


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
