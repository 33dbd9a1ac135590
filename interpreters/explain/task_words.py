"""The words of a task's states, alone and as a part of a sentence."""

from collections.abc import Mapping
from typing import Final

from lifefold.core.lifecycles.task import State

OF_TASKS: Final[Mapping[str, str]] = {
    State.OPEN: "not begun",
    State.PLANNED: "planned",
    State.CLAIMED: "running",
    State.IN_PROGRESS: "running",
    State.DONE: "done, not merged",
    State.PENDING_APPROVAL: "waiting for approval",
    State.FAILED: "failed",
    State.BLOCKED: "blocked",
    State.ORPHANED: "session died",
    State.WAITING_FOR_SUBTASKS: "waiting for its parts",
    State.CANCELLED: "cancelled",
    State.CLOSED: "closed",
}


def is_in(state: str, *, again: bool = False) -> str:
    """Return the state of a task as a part of a sentence: ``is running``, ``has failed``.

    ``again``: an open task was begun before.
    """
    if again and state == State.OPEN:
        return "is open again"
    return _IS_IN.get(state) or f"is {OF_TASKS[state]}"


_IS_IN: Final[Mapping[str, str]] = {State.FAILED: "has failed", State.ORPHANED: "has lost its session"}
"""The states whose words need another verb."""
