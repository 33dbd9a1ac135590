"""The notice with which a run continues a log: adopted sessions, tasks in progress, and tasks to be continued."""

from collections import Counter
from collections.abc import Mapping

from lifefold.core.fleet import service
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session, task
from lifefold.interpreters.explain import status, task_status
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.process_evidence import look


def continuing(aggregates: Mapping[str, Aggregate], folder: FleetFolder) -> str:
    """Return the numbers of live sessions and of tasks, as a sentence.

    A task is in progress if a session has worked at it. A claim without a session has not begun.
    """
    adopted = [each for each in status.agents(aggregates) if _runs(each, folder)]
    at_work = {each.task for each in adopted}
    tasks = [each.state if each.id not in at_work else task.State.IN_PROGRESS for each in task_status.tasks(aggregates)]
    states = Counter(tasks)
    in_progress = states[task.State.IN_PROGRESS] + states[task.State.ORPHANED]
    text = f"continuing: {_many(len(adopted), 'session')} adopted, {_many(in_progress, 'task')} in progress"
    others = (
        (task.State.CLAIMED, "claimed and not begun"),
        (task.State.DONE, "to be verified or merged"),
        (task.State.PENDING_APPROVAL, "waiting for approval"),
    )
    return ", ".join((text, *(f"{states[state]} {words}" for state, words in others if states[state])))


def _runs(agent: status.AgentStatus, folder: FleetFolder) -> bool:
    lives = agent.processes > 0 if agent.kind == service.KIND else agent.state in session.SESSION_LIVES
    found = look(folder, agent) if lives else None
    return found is not None and found.alive


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
