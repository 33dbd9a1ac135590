"""What a worker does with its conversation at the end of a session: a witness of what no state of it shows."""

import msgspec

from lifefold.core.fleet.worker import assignment, conversation
from lifefold.core.fleet.worker.conversation_model import Conversation, SessionEnded, State
from lifefold.core.kernel import Transition, replace
from lifefold.core.lifecycles import session
from lifefold.core.policy.ends import Trouble


class TalkConduct(msgspec.Struct, frozen=True):
    """What a worker has been through.

    ``known`` is its conversation, and ``untold`` what that one has not heard of the end of a session. The claim is to
    go on after a loss (``spared``), or its work is to fail (``failing``); it went the other way (``unfair``).
    """

    known: Conversation | None = None
    untold: SessionEnded | None = None
    spared: bool = False
    failing: bool = False
    unfair: bool = False


def overhear(now: TalkConduct, transition: Transition) -> TalkConduct:
    """Take in what has happened to a worker."""
    if transition.machine == conversation.machine.name:
        told = None if transition.event == now.untold else now.untold
        return replace(now, known=transition.after.record, untold=told)
    return now if now.known is None else _of_work(now, transition, now.known)


def _of_work(now: TalkConduct, transition: Transition, known: Conversation) -> TalkConduct:
    """Take in what has happened to the session, or to the work in hand."""
    match transition.event:
        case session.SessionExited():
            return _after(now, transition, transition.event, known)
        case assignment.WorkFailed() | assignment.SessionDied():
            return replace(now, failing=False, unfair=now.unfair or now.spared)
        case assignment.Dropped() | assignment.Recalled() | session.BackoffElapsed():
            return replace(now, failing=False, spared=False)
        case _:
            return now


def _after(now: TalkConduct, transition: Transition, exited: session.SessionExited, known: Conversation) -> TalkConduct:
    """Take in the end of a session. One that was interrupted, or that suspends itself, fails nothing."""
    is_lost = exited.diagnosis is not None and exited.diagnosis.trouble is Trouble.LOST
    told = exited.conversation, exited.usage, exited.is_total
    untold = SessionEnded(*told, is_lost, exited.before, exited.was_killed)
    errs = isinstance(exited.outcome, session.Error) and transition.entered is session.State.COOLING_DOWN
    ran = transition.before is not None and transition.before.state is session.State.RUNNING
    spared = errs and ran and is_lost and known.state is not State.UNNAMED and not known.has_lost
    return replace(now, untold=untold, spared=spared, failing=errs and ran and not spared)


def is_fair(now: TalkConduct) -> bool:
    """Tell whether the work of a session goes on after the first loss of its conversation, and after no other error."""
    return not now.unfair and not now.failing
