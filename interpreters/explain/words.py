"""The words of states on screens and in sentences. JSON and the transitions of a log have the documents' own names."""

from collections.abc import Mapping
from typing import Final

from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.explain.task_words import OF_TASKS

_OF_SESSIONS: Final[Mapping[str, str]] = {
    session.State.INITIALIZING: "preparing",
    session.State.BUILDING_PROMPT: "preparing",
    session.State.SPAWNING: "starting",
    session.State.RUNNING: "running",
    session.State.INTERRUPTING: "interrupting",
    session.State.SESSION_COMPLETE: "finishing",
    session.State.COOLING_DOWN: "cooling down",
    session.State.STOPPED: "stopped",
}

ASKING: Final = "asking"
"""The state of a running task whose agent waits for an operator's answer."""

INTERRUPTED: Final = "interrupted"
"""The state of a task that an agent has begun, and goes on with when it is resumed: no session works at it."""

_RESTS: Final = frozenset({"Pause", "Hold"})
"""The desired states in which an agent begins nothing."""


def of_task(state: str, *, retried: bool, attempts: int = 0) -> str:
    """Return the state of a task in words; ``retried``: the fleet itself will try it again.

    A task that is open after an attempt at it has begun before.
    """
    if retried:
        return "to be retried"
    return "open again" if state == State.OPEN and attempts else OF_TASKS[state]


def of_agent(state: str, task: str, desired: str = "") -> str:
    """Return the state of an agent in words; one that has no task, or rests with it, is idle. A service has its own."""
    words = _OF_SESSIONS.get(state, state)
    return "idle" if words == "preparing" and (not task or desired in _RESTS) else words


IDLE: Final = "Idle"
"""In a lane: an agent whose session is prepared, and that has no task."""


def of_lane(state: str) -> str:
    """Return the state of a task, a session or a service in words, without what is known beside it."""
    if state == IDLE:
        return "idle"
    return OF_TASKS.get(state) or _OF_SESSIONS.get(state, state)


def unwrapped(reason: str) -> str:
    """Return a reason in one line; the end of a session is told without the name of its kind around it."""
    return in_plain_words(" ".join(reason.split()))
