"""Sessions that say they are done and have changed nothing: what the board hears of their tasks.

Without commands nothing tells whether a task is done but what was changed. So the place of a task without commands is
looked at when its session says it is done (``assignment.INSPECTING``), in a fleet with a repository, unless the task is
meant to change nothing (``on_nothing``). Files that a rule of git ignores are no work: they would not be merged.
"""

from collections.abc import Iterator
from typing import Final

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Transition
from lifefold.effects import Tell

MOST_HIDDEN: Final = 5
"""How many ignored files are named at most."""


def told(transition: Transition) -> Iterator[Tell]:
    """Yield what the board hears of a task whose session, which has not died, has changed nothing."""
    if transition.before is None or transition.entered is not assignment.State.IDLE:
        return
    was: assignment.Assignment = transition.before.record
    event = transition.event
    if isinstance(event, assignment.Inspected) and not was.is_orphan:
        to = f"task:{was.brief.task}"
        yield Tell("board", to, fleet_task.NothingDone(was.brief.epoch, reason_of(event.hidden)))


def reason_of(hidden: tuple[str, ...]) -> str:
    """Say that nothing was changed, and what is there besides that is ignored."""
    named = ", ".join(hidden[:MOST_HIDDEN]) + (" and more" if len(hidden) > MOST_HIDDEN else "")
    return f"nothing was changed{f'; git ignores what is there besides: {named}' if hidden else ''}"
