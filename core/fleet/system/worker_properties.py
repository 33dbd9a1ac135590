"""Properties of a worker: it obeys, has a task for every session, and leaves nothing behind."""

from typing import Final

from lifefold.core.fleet.worker import (
    assignment,
    conversations,
    desired_state,
    orphans,
    output,
    question,
    quota,
    restarts,
    shutdown,
    stall_detector,
    steering,
    turns,
    usage,
)
from lifefold.core.fleet.worker.shutdown import is_ending, settled
from lifefold.core.kernel import (
    Aggregate,
    Property,
    Transition,
    always,
    always_step,
    leads_to,
    sometimes,
    strongly,
    weakly,
)
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.session_model import SUCCESS
from lifefold.effects import InspectWork, MergeWork, ParkWork, RunSession, VerifyWork


def desired_states_take_effect(worker: Aggregate) -> bool:
    """An agent that is to stop has stopped, and a session that is to hold is being interrupted."""
    agent_now = worker.entities["session"]
    match worker.record("desired_state").state:
        case desired_state.State.STOP:
            return agent_now.state is session.State.STOPPED
        case desired_state.State.PAUSE | desired_state.State.HOLD:
            goes_on = agent_now.state is session.State.SPAWNING and not agent_now.postponed
            return agent_now.state is not session.State.RUNNING and not goes_on
        case _:
            return True


_LEFT: Final = frozenset({assignment.State.IDLE, *assignment.ON_ITS_WAY})
"""The states of work that a stopped agent may still have."""


def sessions_have_a_task(worker: Aggregate) -> bool:
    """A session that is not being interrupted works at the task of its worker."""
    at_work = worker.record("session").state in {session.State.SPAWNING, session.State.RUNNING}
    recalled = bool(worker.entities["session"].postponed)
    return not at_work or recalled or worker.record("assignment").state is assignment.State.WORKING


def wants_work_after_cleanup(worker: Aggregate) -> bool:
    """No work is wanted, and no place is made for any, while something of the last one is being ended (D13)."""
    wants = worker.record("assignment").state in {assignment.State.WANTING, assignment.State.PREPARING}
    return not wants or not is_ending(worker)


def continues_after_verification(worker: Aggregate) -> bool:
    """Whose work is verified or merged does not begin another round meanwhile."""
    work: assignment.Assignment = worker.record("assignment")
    waits = {session.State.SESSION_COMPLETE, session.State.STOPPED}
    if work.brief.stage is not task.Stage.WORK or work.brief.orphaned is task.OnDeath.VERIFY:
        waits.add(session.State.BUILDING_PROMPT)
    if work.brief.orphaned is task.OnDeath.VERIFY:
        waits.add(session.State.COOLING_DOWN)
    return work.state not in assignment.ON_ITS_WAY or worker.record("session").state in waits


def paused_leaves_it_to_others(worker: Aggregate) -> bool:
    """A paused agent holds no task that it has not begun."""
    paused = worker.record("desired_state").state is desired_state.State.PAUSE
    return not paused or worker.record("assignment").state is not assignment.State.PREPARING


def completed_is_delivered(worker: Aggregate) -> bool:
    """The messages of a completed session are not delivered again (D14)."""
    completed = worker.record("session").state is session.State.SESSION_COMPLETE
    return not completed or not worker.record("mailbox").taken


def keeps_finished_work(step: Transition) -> bool:
    """Work that a session has completed is not given back before another session of the claim has begun.

    A budget that is used up and an account that rests allow no other session: then the work is verified as it is.
    """
    return not step.was.continues


def _is_stopped(worker: Aggregate) -> bool:
    return worker.record("session").state is session.State.STOPPED


def has_erred(s: session.Session) -> bool:
    """Tell whether an agent has as many errors in a row as it may have."""
    return s.consecutive_errors >= s.limits.max_consecutive_errors


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    *restarts.OF_WORKERS,
    *shutdown.PROPERTIES,
    always("stop and hold take effect at once", desired_states_take_effect),
    always(
        "a stopped agent has no work to do",
        lambda worker: not _is_stopped(worker) or worker.record("assignment").state in _LEFT,
    ),
    always("no session runs without a task", sessions_have_a_task),
    always("no task is requested while an activity is being ended", wants_work_after_cleanup),
    always("an agent goes on when its work is merged", continues_after_verification),
    always("a paused agent gives back a task that it has not begun", paused_leaves_it_to_others),
    always("a completed session has delivered its messages", completed_is_delivered),
    always_step(
        "finished work is not given back because a budget is used up or an account rests",
        keeps_finished_work,
        on=assignment.Dropped,
    ),
    *usage.PROPERTIES,
    *quota.PROPERTIES,
    *orphans.OF_WORKERS,
    *conversations.PROPERTIES,
    *steering.OF_WORKERS,
    always(
        "a session is watched exactly while it runs, if the fleet wants that", stall_detector.watches_running_sessions
    ),
    *output.OF_WORKERS,
    *turns.PROPERTIES,
    always("questions are asked in the session of their claim only", question.are_open_rightly),
    leads_to(
        "every stop or drain ends with nothing left, or with a hold, if activities end",
        lambda w: w.record("desired_state").state in {desired_state.State.STOP, desired_state.State.DRAIN},
        lambda w: settled(w) or w.record("desired_state").state is desired_state.State.HOLD,
        given=(*weakly(RunSession, InspectWork, VerifyWork, ParkWork, MergeWork), *strongly(SUCCESS)),
    ),
    leads_to(
        "a stopped agent leaves nothing behind, or restarts, if finished work is merged",
        _is_stopped,
        lambda w: settled(w) or not _is_stopped(w),
        given=weakly(InspectWork, VerifyWork, ParkWork, MergeWork),
    ),
    sometimes("an agent stops by its errors", lambda w: _is_stopped(w) and has_erred(w.record("session"))),
    sometimes("messages wait to be delivered", lambda w: w.record("mailbox").taken > 0),
)
