"""An agent's states as numbers, and what it raises: the words that document 000 shares with its callers."""

from typing import Final

from lifefold.core.lifecycles.runtime import SEED, Numbering


class AgentState:
    """The states as document 000 numbers them (A19)."""

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
        """Return the name of a state, or ``UNKNOWN(n)`` for a number that is none's."""
        return _name(SEED, state)


class AgentError(Exception):
    """What an agent raises of its own: the call was refused, and nothing has changed."""


class StateTransitionError(AgentError):
    """The state does not allow the transition (A20).

    ``current_state`` and ``target_state`` are numbers, ``current_name`` and ``target_name`` their names, and
    ``allowed`` the names of the states that can be reached instead.
    """

    def __init__(
        self, current_state: int, target_state: int, allowed: tuple[str, ...] = (), numbering: Numbering = SEED
    ) -> None:
        """Take the two states as numbers of a numbering, and what would be possible."""
        super().__init__(current_state, target_state, allowed, numbering)
        self.current_state, self.target_state, self.allowed = current_state, target_state, allowed
        self.current_name, self.target_name = _name(numbering, current_state), _name(numbering, target_state)

    def __str__(self) -> str:
        """Say it as the document does."""
        return f"Invalid state transition: {self.current_name} -> {self.target_name}"


class HookError(AgentError):
    """A hook that stands before its transition failed, and so prevented it; the cause is its error (A14)."""

    def __init__(self, hook: str) -> None:
        """Take the hook's name."""
        super().__init__(hook)
        self.hook = hook

    def __str__(self) -> str:
        """Say which hook it was."""
        return f"{self.hook}() failed, so the state has not changed"


class AgentRetiredError(AgentError):
    """The agent was retired, perhaps for a ``reason``; it does nothing any more (A9)."""

    def __init__(self, agent_id: str, reason: str = "") -> None:
        """Take the agent's id, and what it was retired for."""
        super().__init__(agent_id, reason)
        self.agent_id, self.reason = agent_id, reason

    def __str__(self) -> str:
        """Say which agent, and why."""
        return f"agent {self.agent_id} was retired{f' ({self.reason})' if self.reason else ''}; make another one"


def _name(numbering: Numbering, number: int) -> str:
    state = numbering.state(number)
    return f"UNKNOWN({number})" if state is None else state.value
