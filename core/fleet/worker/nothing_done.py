"""Sessions that report success and have changed nothing: the message to the board about their tasks.

A task without commands is judged by its changes alone. So its worktree is inspected when its session reports success
(``assignment.INSPECTING``). That needs a repository and does not apply to a task that is meant to change nothing
(``on_nothing``). Ignored files do not count as work, since git would not merge them.
"""

from collections.abc import Iterator
from typing import Final, cast

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate, Transition, rule
from lifefold.core.policy import ends
from lifefold.effects import Tell

MOST_HIDDEN: Final = 5
"""How many ignored files a message names at most."""


@rule(on=assignment.machine, event=assignment.Inspected, enters=assignment.State.IDLE)
def report_nothing_done(_worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Report to the board that a living session has changed nothing."""
    was: assignment.Assignment = transition.was
    if not was.is_orphan:
        inspected = cast("assignment.Inspected", transition.event)
        reason = reason_of(inspected.hidden, inspected.said)
        yield Tell("board", f"task:{was.brief.task}", fleet_task.NothingDone(was.brief.epoch, reason))


def reason_of(hidden: tuple[str, ...], said: str = "") -> str:
    """Return the reason: nothing was changed, with the agent's last words and the ignored files that are there."""
    trouble = f"; the agent's last words: {said}" if ends.telling(said) else ""
    named = ", ".join(hidden[:MOST_HIDDEN]) + (" and more" if len(hidden) > MOST_HIDDEN else "")
    return f"nothing was changed{trouble}{f'; git ignores what is there besides: {named}' if hidden else ''}"
