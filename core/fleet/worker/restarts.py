"""Restarts of an agent that has stopped by its errors: the rules of its worker. The board's are in ``dispatch``.

- Only errors that the session counts lead to a restart. An end by an operator is never undone. Neither is a fatal
  error: it says that no retry helps. It is to a session what an exit with ``{shutdown, Reason}`` is to a *transient*
  child of an OTP supervisor.
- A restarted agent has no errors. Its name, its operator messages and the numbers of its sessions stay.
- An agent that is told to stop while it is down is not restarted: a permit that arrives later fits no row.
"""

from collections.abc import Iterator
from typing import Final

from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, supervisor
from lifefold.core.kernel import Aggregate, Dispatch, Property, Transition, always, rule
from lifefold.core.lifecycles import session, session_profiles
from lifefold.effects import LogFatal, Tell


def comes_back(worker: Aggregate) -> bool:
    """Tell whether an agent may be restarted if it stops, or has stopped."""
    found = worker.entities.get(supervisor.REF)
    return found is not None and found.state not in supervisor.OVER


def on_agent_stopped(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Report a stop by errors to the supervisor, which may restart the agent; any other stop is final."""
    if comes_back(worker):
        wanted = not desired_state.is_to_end(worker.record("desired_state"))
        by_errors = wanted and isinstance(
            transition.event, session.SessionExited | session_profiles.PromptFailed | session_profiles.Stalled
        )
        said = [each.message for each in transition.effects if isinstance(each, LogFatal)]
        yield Dispatch(supervisor.REF, supervisor.AgentFailed(" ".join(said)) if by_errors else supervisor.Dismissed())


@rule(on=desired_state.machine, enters=desired_state.State.STOP)
def dismiss(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Do not restart an agent that is told to stop while it is down."""
    down = worker.record("session").state is session.State.STOPPED
    if down and comes_back(worker):
        yield Dispatch(supervisor.REF, supervisor.Dismissed())


def ask(worker: Aggregate, _transition: Transition) -> Iterator[Tell]:
    """Ask the board for a restart when the worker holds no task: the work of the session comes first."""
    found = worker.entities.get(supervisor.REF)
    asks = found is not None and found.state is supervisor.State.ASKING
    idle = worker.record("assignment").state is assignment.State.IDLE
    if asks and idle:
        yield Tell("board", f"worker_slot:{worker.key}", worker_slot.RestartWanted())


@rule(on=supervisor.machine, event=supervisor.RestartDue)
def restart_agent(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch | Tell]:
    """Restart the agent after its rest, and report it to the board."""
    yield Dispatch("session", session_profiles.Restarted())
    yield Tell("board", f"worker_slot:{worker.key}", worker_slot.RestartDone())


def is_up_until_stopped(worker: Aggregate) -> bool:
    """An agent is down for its supervisor exactly while its session has stopped."""
    found = worker.entities.get(supervisor.REF)
    stopped = worker.record("session").state is session.State.STOPPED
    return found is None or (found.state is not supervisor.State.UP) is stopped


def stopped_stays_so(worker: Aggregate) -> bool:
    """An agent that was told to stop is not brought back."""
    return worker.record("desired_state").state is not desired_state.State.STOP or not comes_back(worker)


OF_WORKERS: Final[tuple[Property[Aggregate], ...]] = (
    always("an agent is up exactly until it stops", is_up_until_stopped),
    always("an agent that was told to stop is not restarted", stopped_stays_so),
)
