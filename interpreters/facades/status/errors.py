"""What the runtime of document 001 raises, and nothing else but ``TypeError`` and ``ValueError`` for odd arguments."""

from lifefold.core.lifecycles.budget.account import Verdict
from lifefold.core.lifecycles.budget.lease import State as LeaseState
from lifefold.interpreters.facades.refusals import Refusal


class AgentError(Refusal):
    """Base of all of these. Nothing has changed when one is raised. ``agent_id`` says which agent it is about."""

    def __init__(self, agent_id: str, message: str) -> None:
        """Take the agent and what was wrong."""
        super().__init__(f"{agent_id}: {message}")
        self.agent_id = agent_id


class NotFound(AgentError):
    """There is no agent of this id (B5)."""


class AgentBusy(AgentError):
    """The agent has active tasks; ``drain`` or ``force`` stops it all the same (B2). ``tasks`` names them."""

    def __init__(self, agent_id: str, tasks: tuple[str, ...]) -> None:
        """Take the tasks that are active."""
        super().__init__(agent_id, f"still works on {', '.join(tasks)}; stop it with drain or with force")
        self.tasks = tasks


class AlreadyRunning(AgentError):
    """The agent runs, so it cannot be spawned or replaced (B9)."""


class NotRunning(AgentError):
    """The agent does not run, so it takes no tasks and spends nothing new (I2)."""


class AgentFailed(NotRunning):
    """The agent has failed for good: it can be replaced, not restarted (B8). ``reason``, ``exit_code`` say how."""

    def __init__(self, agent_id: str, reason: str, exit_code: int | None) -> None:
        """Take why and how it failed."""
        code = "" if exit_code is None else f", exit code {exit_code}"
        super().__init__(agent_id, f"failed ({reason}{code}); FAILED is final, replace() makes a new agent")
        self.reason, self.exit_code = reason, exit_code


class TaskRefused(AgentError):
    """The agent has a task of this name already, has none of it, or is to stop and takes none."""


class BudgetRefused(AgentError):
    """The reservation is not admitted. ``verdict`` says why; ``free_microusd`` is what could be reserved."""

    def __init__(self, agent_id: str, name: str, amount_microusd: int, verdict: Verdict, free_microusd: int) -> None:
        """Take the reservation and the answer of the gate."""
        super().__init__(
            agent_id, f"cannot reserve {amount_microusd} microusd as {name!r}: {verdict}; {free_microusd} are free"
        )
        self.verdict, self.free_microusd = verdict, free_microusd


class RefreshRefused(AgentError):
    """The agent's lease has not expired, or has nothing left. ``lease`` is its state, None if there is no lease."""

    def __init__(self, agent_id: str, lease: LeaseState | None) -> None:
        """Take how the lease stands."""
        rule = f"its lease is {lease}; only one that has expired, with something left, is refreshed"
        super().__init__(agent_id, "has no lease; a restart opens one" if lease is None else rule)
        self.lease = lease


class NotReserved(AgentError):
    """There is no open reservation of this name: it was never made, or is settled already."""


class StoreError(Refusal):
    """Base of what a state manager raises."""


class VersionConflict(StoreError):
    """Somebody else has saved this agent in the meantime: ``expected`` is not its version any more (B16)."""

    def __init__(self, agent_id: str, expected: int) -> None:
        """Take the agent, and the version that it should have had."""
        super().__init__(f"{agent_id} is not at version {expected} any more")
        self.agent_id, self.expected = agent_id, expected


class StoreUnavailable(StoreError):
    """The state could not be read or kept, so the transition has not happened (B11)."""


class UnreadableState(StoreError):
    """What is stored is not an agent's state."""
