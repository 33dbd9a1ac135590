"""The errors of the runtime of document 001. It also raises ``TypeError`` and ``ValueError`` for invalid arguments."""

from lifefold.core.lifecycles.budget.account import Verdict
from lifefold.core.lifecycles.budget.lease import State as LeaseState
from lifefold.interpreters.facades.refusals import Refusal


class AgentError(Refusal):
    """Base of the errors about an agent, with its ``agent_id``. Nothing has changed when one is raised."""

    def __init__(self, agent_id: str, message: str) -> None:
        """Take the agent and the message."""
        super().__init__(f"{agent_id}: {message}")
        self.agent_id = agent_id


class NotFound(AgentError):
    """There is no agent of this id (B5)."""


class AgentBusy(AgentError):
    """The agent has active ``tasks``; ``drain`` or ``force`` stops it nevertheless (B2)."""

    def __init__(self, agent_id: str, tasks: tuple[str, ...]) -> None:
        """Take the active tasks."""
        super().__init__(agent_id, f"still works on {', '.join(tasks)}; stop it with drain or with force")
        self.tasks = tasks


class AlreadyRunning(AgentError):
    """The agent runs, so it cannot be spawned or replaced (B9)."""


class NotRunning(AgentError):
    """The agent does not run, so it accepts no tasks and reserves nothing (I2)."""


class AgentFailed(NotRunning):
    """The agent has failed for good, with ``reason`` and ``exit_code``: it can be replaced, not restarted (B8)."""

    def __init__(self, agent_id: str, reason: str, exit_code: int | None) -> None:
        """Take the reason and the exit code."""
        code = "" if exit_code is None else f", exit code {exit_code}"
        super().__init__(agent_id, f"failed ({reason}{code}); FAILED is final, replace() makes a new agent")
        self.reason, self.exit_code = reason, exit_code


class TaskRefused(AgentError):
    """The agent has a task with this name already, has none, or is draining and accepts none."""


class BudgetRefused(AgentError):
    """The reservation is refused. ``verdict`` has the reason, ``free_microusd`` the amount that could be reserved."""

    def __init__(self, agent_id: str, name: str, amount_microusd: int, verdict: Verdict, free_microusd: int) -> None:
        """Take the reservation and the verdict."""
        super().__init__(
            agent_id, f"cannot reserve {amount_microusd} microusd as {name!r}: {verdict}; {free_microusd} are free"
        )
        self.verdict, self.free_microusd = verdict, free_microusd


class RefreshRefused(AgentError):
    """The agent's lease has not expired, or has nothing left. ``lease`` is its state, None if there is no lease."""

    def __init__(self, agent_id: str, lease: LeaseState | None) -> None:
        """Take the state of the lease."""
        rule = f"its lease is {lease}; only one that has expired, with something left, is refreshed"
        super().__init__(agent_id, "has no lease; a restart opens one" if lease is None else rule)
        self.lease = lease


class NotReserved(AgentError):
    """There is no open reservation with this name: it was never made, or is settled already."""


class StoreError(Refusal):
    """Base of the errors of a state manager."""


class VersionConflict(StoreError):
    """Another call has saved this agent meanwhile: its version is not ``expected`` any more (B16)."""

    def __init__(self, agent_id: str, expected: int) -> None:
        """Take the agent, and the expected version."""
        super().__init__(f"{agent_id} is not at version {expected} any more")
        self.agent_id, self.expected = agent_id, expected


class StoreUnavailable(StoreError):
    """The state could not be read or saved, so the transition has not happened (B11)."""


class UnreadableState(StoreError):
    """The stored document is not an agent's state."""
