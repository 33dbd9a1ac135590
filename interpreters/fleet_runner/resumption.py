"""The notice with which a run continues a log: adopted sessions, and tasks in progress."""

from collections import Counter
from collections.abc import Mapping

from lifefold.core.fleet import service
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session, task
from lifefold.interpreters.explain import status
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.process_evidence import look


def continuing(aggregates: Mapping[str, Aggregate], folder: FleetFolder) -> str:
    """Return the numbers of live sessions and of assigned tasks, as a sentence."""
    adopted = sum(_runs(each, folder) for each in status.agents(aggregates))
    states = Counter(each.state for each in status.tasks(aggregates))
    assigned = sum(states[each] for each in (task.State.CLAIMED, task.State.IN_PROGRESS, task.State.ORPHANED))
    done = states[task.State.DONE]
    text = f"continuing: {_many(adopted, 'session')} adopted, {_many(assigned, 'task')} in progress"
    waiting = states[task.State.PENDING_APPROVAL]
    text += f", {done} to be verified or merged" if done else ""
    return f"{text}, {waiting} waiting for approval" if waiting else text


def _runs(agent: status.AgentStatus, folder: FleetFolder) -> bool:
    lives = agent.processes > 0 if agent.kind == service.KIND else agent.state in session.SESSION_LIVES
    found = look(folder, agent) if lives else None
    return found is not None and found.alive


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
