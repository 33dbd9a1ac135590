"""The words of states on screens and in sentences. JSON and the transitions of a log have the documents' own names."""

from collections.abc import Mapping
from typing import Final

from lifefold.core.lifecycles import session, turn
from lifefold.core.lifecycles.task import State
from lifefold.core.policy.visual import VisualState
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

_OF_TURNS: Final[Mapping[str, str]] = {
    turn.State.IDLE: "not begun",
    turn.State.CLAIMING: "taking its task",
    turn.State.SPAWNING: "starting",
    turn.State.RUNNING: "working",
    turn.State.TOOL_USE: "using a tool",
    turn.State.COMPACTING: "compacting its context",
    turn.State.VERIFYING: "being verified",
    turn.State.COMPLETING: "done",
    turn.State.FAILED: "failed",
    turn.State.REAPED: "over",
}

_OF_LOOKS: Final[Mapping[str, str]] = {
    VisualState.SPAWNING: "starting",
    VisualState.RUNNING: "running",
    VisualState.STALLED: "silent",
    VisualState.MERGING: "merging",
    VisualState.IDLE: "idle",
    VisualState.DEAD: "stopped",
    VisualState.UNKNOWN: "unknown",
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


def of_turn(state: str, doing: str = "", waits: str = "") -> str:
    """Return the phase of a turn in words, with the tools in use, or with what the session waits for."""
    if doing and state == turn.State.TOOL_USE and not waits:
        return f"using {doing}"
    return f"{_OF_TURNS[state]}, {waits}" if waits else _OF_TURNS[state]


def of_look(state: str) -> str:
    """Return the visual state of an agent in words."""
    return _OF_LOOKS[state]


def unwrapped(reason: str) -> str:
    """Return a reason in one line; the end of a session is told without the name of its kind around it."""
    return in_plain_words(" ".join(reason.split()))
