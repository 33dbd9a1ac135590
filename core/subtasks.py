"""What other tasks mean for one: its subtasks, and those that it depends on. Pure questions about their states.

*Subtasks* are completed when every one is DONE or CLOSED; one that has failed or was cancelled blocks its parent at
once, with the reason (E7). The question is asked when a subtask changes, and also when the parent begins to wait: the
last child may have been faster (E8). It is asked again before a blocked parent goes on, so that what its children have
done meanwhile is not done twice (E10). A parent whose subtasks are not known yet waits for them: whoever splits a task
names its subtasks before it asks.

*A dependency* is satisfied by DONE or CLOSED; by CLOSED alone for who wants only what is verified and merged (E45).
"""

from collections.abc import Mapping

from lifefold.core.task import Blocked, State, SubtasksCompleted

COMPLETED = frozenset({State.DONE, State.CLOSED})
LOST = frozenset({State.FAILED, State.CANCELLED})


def verdict(children: Mapping[str, State]) -> SubtasksCompleted | Blocked | None:
    """Return what the states of its subtasks are to a parent that waits for them; None if it is to wait on.

    So it is for a parent of which no subtask is known.
    """
    lost = [f"{child} is {state}" for child, state in children.items() if state in LOST]
    if lost:
        return Blocked("; ".join(lost))
    completed = bool(children) and all(state in COMPLETED for state in children.values())
    return SubtasksCompleted() if completed else None


def satisfied(dependency: State, *, closed_only: bool = False) -> bool:
    """Tell whether a dependency in this state stands in nobody's way (E45)."""
    return dependency is State.CLOSED or (dependency is State.DONE and not closed_only)
