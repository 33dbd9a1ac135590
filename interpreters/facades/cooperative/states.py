"""An agent's states as numbers, and its errors, as document 000 names them."""

from typing import Final

from lifefold.core.lifecycles.runtime import SEED, Numbering


class AgentState:
    """The numbers of the states in document 000 (A19)."""

    INITIALIZING: Final = 0
    RUNNABLE: Final = 1
    SCHEDULED: Final = 2
    RUNNING: Final = 3
    WAITING: Final = 4
    WAITING_RESOURCES: Final = 5
    SUSPENDED: Final = 6
    RESUMED: Final = 7
    COMPLETED: Final = 8
    FAILED: Final = 9
    SHUTTING_DOWN: Final = 10
    RECOVERING: Final = 11

    @staticmethod
    def name(state: int) -> str:
        """Return the name of a state, or ``UNKNOWN(n)`` for a number without a state."""
        return _name(SEED, state)


class AgentError(Exception):
    """Base of an agent's errors: the call was refused, and nothing has changed."""


class StateTransitionError(AgentError):
    """The state does not allow the transition (A20).

    ``current_state`` and ``target_state`` are numbers, ``current_name`` and ``target_name`` their names, and
    ``allowed`` the names of the states that can be reached instead.
    """

    def __init__(
        self, current_state: int, target_state: int, allowed: tuple[str, ...] = (), numbering: Numbering = SEED
    ) -> None:
        """Take the two states as numbers of a numbering, and the names of allowed states."""
        super().__init__(current_state, target_state, allowed, numbering)
        self.current_state, self.target_state, self.allowed = current_state, target_state, allowed
        self.current_name, self.target_name = _name(numbering, current_state), _name(numbering, target_state)

    def __str__(self) -> str:
        """Return the document's message."""
        return f"Invalid state transition: {self.current_name} -> {self.target_name}"


class HookError(AgentError):
    """A hook before a transition failed, and so prevented it; the cause is the hook's error (A14)."""

    def __init__(self, hook: str) -> None:
        """Take the hook's name."""
        super().__init__(hook)
        self.hook = hook

    def __str__(self) -> str:
        """Return a message that names the hook."""
        return f"{self.hook}() failed, so the state has not changed"


class AgentRetiredError(AgentError):
    """The agent was retired, with an optional ``reason``; it does nothing any more (A9)."""

    def __init__(self, agent_id: str, reason: str = "") -> None:
        """Take the agent's id, and the reason of its retirement."""
        super().__init__(agent_id, reason)
        self.agent_id, self.reason = agent_id, reason

    def __str__(self) -> str:
        """Return a message with the agent and the reason."""
        return f"agent {self.agent_id} was retired{f' ({self.reason})' if self.reason else ''}; make another one"


def _name(numbering: Numbering, number: int) -> str:
    state = numbering.state(number)
    return f"UNKNOWN({number})" if state is None else state.value
