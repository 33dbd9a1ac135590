"""A witness of workers: dead and stalled sessions, and final errors, which no state shows."""

import msgspec

from lifefold.core.fleet.worker import assignment, desired_state, stall_detector, supervisor, turns
from lifefold.core.kernel import Transition, replace
from lifefold.core.lifecycles import session, session_profiles, task, turn


class Conduct(msgspec.Struct, frozen=True):
    """The past of a worker.

    - ``died``: its session has died. ``astray``: its work did not go on as the task says.
    - ``stalled``: its session was silent for too long. ``hasty``: it was ended without that.
    - ``ends``: the agent is to end. ``fell``: it has stopped by its errors.
    - ``mistaken``: it was wrongly held for an agent that restarts, or for one that does not.
    - ``recalled``: the claim that was recalled last, and the milliseconds until its session must end.
    - ``granted``: the number of the agent's restart.
    - ``closed``: its last claim has ended with merged or parked work. ``misjudged``: a turn has ended otherwise.
    """

    died: bool = False
    astray: bool = False
    stalled: bool = False
    hasty: bool = False
    ends: bool = False
    fell: bool = False
    mistaken: bool = False
    recalled: tuple[str, int, int] = ("", 0, 0)
    granted: int = 0
    closed: bool = False
    misjudged: bool = False


def observe(conduct: Conduct, transition: Transition) -> Conduct:
    """Take in what has happened to a worker."""
    if isinstance(transition.after.state, session.State):
        return _of_sessions(conduct, transition)
    if isinstance(transition.after.state, supervisor.State):
        return _of_supervision(conduct, transition)
    return _of_work(conduct, transition)


def _of_work(now: Conduct, transition: Transition) -> Conduct:
    """Take in a change of the assigned work, of the stall detector, or of the desired state."""
    if transition.machine == stall_detector.machine.name:
        return replace(now, stalled=transition.entered is stall_detector.State.STALLED)
    if transition.machine == turns.REF:
        failed, completed = (transition.entered is each for each in (turn.State.FAILED, turn.State.COMPLETING))
        return replace(now, misjudged=now.misjudged or (failed and now.closed) or (completed and not now.closed))
    if transition.machine == assignment.machine.name and transition.entered is assignment.State.IDLE:
        now = replace(now, closed=isinstance(transition.event, assignment.Merged | assignment.Parked))
    if transition.machine == desired_state.machine.name:
        return replace(now, ends=desired_state.is_to_end(transition.after.record))
    match transition.event:
        case assignment.WorkFailed() | assignment.SessionDied():
            now = replace(now, died=False, astray=now.astray or _is_astray(transition, died=now.died))
        case assignment.Dropped():
            now = replace(now, died=False)
        case assignment.Recalled(task=name, epoch=epoch, within_ms=within_ms):
            now = replace(now, recalled=(name, epoch, within_ms))
        case _:
            pass
    return now


def _of_supervision(now: Conduct, transition: Transition) -> Conduct:
    """Take in what has happened to an agent that is supervised."""
    match transition.event:
        case supervisor.AgentFailed() | supervisor.Dismissed():
            wrong = isinstance(transition.event, supervisor.AgentFailed) is not (now.fell and not now.ends)
            is_new = transition.before is not None and transition.before.state is supervisor.State.UP
            return replace(now, fell=False, mistaken=now.mistaken or (is_new and wrong))
        case supervisor.Granted(recent=recent):
            return replace(now, granted=recent)
        case _:
            return now


def _of_sessions(now: Conduct, transition: Transition) -> Conduct:
    """Take in what has happened to a session."""
    event = transition.event
    by_errors = isinstance(event, session.SessionExited | session_profiles.PromptFailed | session_profiles.Stalled)
    now = replace(now, fell=by_errors and transition.entered is session.State.STOPPED)
    ran = transition.before is not None and transition.before.state is session.State.RUNNING
    match event:
        case session.SessionExited(outcome=outcome):
            return replace(now, died=ran and isinstance(outcome, session.Error | session.Timeout))
        case session_profiles.Stalled():
            return replace(now, died=ran, hasty=now.hasty or not now.stalled)
        case _:
            return now


def _is_astray(transition: Transition, *, died: bool) -> bool:
    """Tell whether work has failed though its task says otherwise, or the other way round."""
    if transition.before is None:
        return False
    brief: task.Brief = transition.before.record.brief
    verifies = brief.orphaned is task.OnDeath.VERIFY and bool(brief.verify)
    wanted = died and (verifies or brief.orphaned is task.OnDeath.REQUEUE)
    return wanted is not isinstance(transition.event, assignment.SessionDied)
