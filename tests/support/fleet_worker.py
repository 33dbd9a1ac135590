"""One worker of a fleet, driven by hand to the moment that a test is about."""

from collections.abc import Mapping

from aggregate_hand import Hand
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, output, stall_detector, turns
from lifefold.core.kernel import Reaction, Record
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.effects import Begin, RunSession

BRIEF = task.Brief("T1", 2, "do it", (("true",),), "")
NAME = "worker/ann"


def opened(limits: session.Limits | None = None) -> Hand:
    """Return a worker whose worktree is being made."""
    return Hand(
        NAME,
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session_profiles.SupervisedSession(name="ann", limits=limits or session.Limits()),
        },
    )


def following(
    *, guarded: bool = False, stall: bool = False, account: str = "", more: Mapping[str, Record] | None = None
) -> Hand:
    """Return a worker with turns, whose sessions are followed, that has asked for work; it has ``more`` entities."""
    watched = {stall_detector.REF: stall_detector.StallDetector()} if stall else {}
    of = Hand(
        NAME,
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(guarded=guarded),
            "session": session_profiles.SupervisedSession(name="ann", account=account),
            output.REF: output.Output(),
            turns.REF: turns.FleetTurn(agent="ann"),
            **watched,
            **(more or {}),
        },
    )
    return of.report("session", "PrepareWorktree", session.WorktreeReady())


def wanting() -> Hand:
    """Return a worker that has asked for work."""
    return opened().report("session", "PrepareWorktree", session.WorktreeReady())


def preparing() -> Hand:
    """Return a worker that was given a task."""
    return wanting().hear("board", "assignment", assignment.Assigned(BRIEF))


def spawning() -> Hand:
    """Return a worker whose session is being spawned."""
    return preparing().report("assignment", "CheckOutWork", assignment.CheckedOut())


def start(of: Hand) -> Hand:
    """Let the session start."""
    return of.report("session", "RunSession", session.SessionStarted(of.record("session").session_seq))


def exit_with(
    of: Hand, outcome: session.Success | session.Error | session.Timeout | session.Suspended | session.Limited
) -> Hand:
    """Let the session end."""
    return of.report("session", "RunSession", session.SessionExited(outcome))


def running() -> Hand:
    """Return a worker whose session runs."""
    return start(spawning())


def interrupting() -> Hand:
    """Return a worker whose session was asked to end."""
    return running().give("mailbox", mailbox.OperatorMessageArrived("look"))


def verifying() -> Hand:
    """Return a worker whose work is being verified."""
    return exit_with(running(), session.Success())


def merging() -> Hand:
    """Return a worker whose work is being merged."""
    return verifying().report("assignment", "VerifyWork", assignment.Verified())


def cooling() -> Hand:
    """Return a worker whose session failed."""
    return exit_with(running(), session.Error("exit status 1"))


def next_task(of: Hand) -> Hand:
    """Give the worker, which has asked for work, a task, and have its place made."""
    of.hear("board", "assignment", assignment.Assigned(BRIEF))
    return of.report("assignment", "CheckOutWork", assignment.CheckedOut())


def states(of: Hand) -> tuple[str, str]:
    """Return the states of session and assignment."""
    return of.state("session"), of.state("assignment")


def prompt_of(of: Hand) -> str:
    """Return the prompt of the session that the last reaction began."""
    (begin,) = [e for e in of.effects(Begin) if isinstance(e, Begin) and isinstance(e.activity, RunSession)]
    assert isinstance(begin.activity, RunSession)
    return begin.activity.prompt


def messages_in(prompt: str) -> list[str]:
    """Return the messages that a prompt has, in order."""
    _, _, messages = prompt.partition("\n\nYou have messages:\n")
    return [line.removeprefix("- ") for line in messages.splitlines()]


class MessageWatch:
    """Watches reactions: a prompt has all messages that were accepted, but for those a session succeeded with."""

    def __init__(self) -> None:
        """Watch from the beginning of a fleet on."""
        self.waiting: dict[str, list[str]] = {}
        self.followed = 0
        """The number of reactions."""

    def __call__(self, name: str, reaction: Reaction) -> None:
        """Follow one reaction of an aggregate, transition by transition."""
        self.followed += 1
        waiting = self.waiting.setdefault(name, [])
        for transition in reaction.transitions:
            match transition.event:
                case mailbox.OperatorMessageArrived(text=text):
                    waiting.append(text)
                case session.PromptReady(prompt=prompt):
                    assert messages_in(prompt) == waiting
                case _:
                    pass
            if transition.entered is session.State.SESSION_COMPLETE:
                had = messages_in(transition.after.record.prompt)
                assert waiting[: len(had)] == had
                del waiting[: len(had)]
