"""What the sessions of a conversation are charged.

Some programs report the cost of a session, others the total of the conversation, with its earlier sessions.
``charged`` is the sum of what was charged for the conversation. A total adds only its difference to that sum. So the
sum of all charges is the last total, over sessions, claims and runners.

A killed program cannot save its total, so the later totals leave its session out. A program that tells its count
*before* the session shows that. ``unsaved`` is the part of ``charged`` that its totals leave out, and a total is
compared with the rest. A session that was ended gently is in the later totals, also with what it had not printed.
"""

from collections.abc import Callable

from msgspec.structs import astuple

from lifefold.core.fleet.worker.conversation_model import Conversation, SessionEnded
from lifefold.core.lifecycles.session import Usage


def charge(c: Conversation, e: SessionEnded) -> Usage:
    """Return what a session is charged: its cost, or the difference of a total to the earlier charges; never less.

    If the program tells its count ``before`` the session, the difference has all of the session itself. It also has the
    excess of that count over the charges in it, which earlier sessions have not printed.
    """
    if not e.is_total:
        return e.usage
    earlier = c if goes_on(c, e.conversation) else Conversation()
    if e.before is None:
        return less(e.usage, earlier.charged)
    return less(e.usage, each_of(min, e.before, less(earlier.charged, earlier.unsaved)))


def left_out(c: Conversation, e: SessionEnded) -> Usage:
    """Return the charges after a session that the program's totals leave out."""
    earlier = c if goes_on(c, e.conversation) else Conversation()
    if e.is_total and e.before is not None:
        saved = each_of(min, e.before, e.usage) if e.was_killed else e.usage
        return less(earlier.charged.plus(charge(c, e)), saved)
    return earlier.unsaved.plus(e.usage) if e.was_killed and not e.is_total else earlier.unsaved


def less(usage: Usage, other: Usage) -> Usage:
    """Return the difference, none of it below zero."""
    return each_of(lambda a, b: max(0, a - b), usage, other)


def each_of(of_two: Callable[[int, int], int], usage: Usage, other: Usage) -> Usage:
    """Return a usage with each figure made of the two figures."""
    return Usage(*map(of_two, astuple(usage), astuple(other)))


def goes_on(c: Conversation, name: str) -> bool:
    """Tell whether a session with this name was one of the present conversation; a silent one was."""
    return name in {"", c.named}
