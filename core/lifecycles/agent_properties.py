"""The properties of an agent: of its record, of every transition, and of its whole life."""

from typing import Any, Final

from lifefold.core.kernel import (
    Event,
    Property,
    Transition,
    accepts,
    always,
    always_step,
    eventually,
    leads_to,
    sometimes,
    weakly,
)
from lifefold.core.lifecycles.agent_model import (
    LADDER,
    Agent,
    Died,
    Heartbeat,
    Recycled,
    SpawnFailed,
    SpawnOverdue,
    State,
    TaskAssigned,
    TaskFinished,
    Watched,
    silent_ms,
)
from lifefold.core.lifecycles.property_forms import asks_once, exits_on, lasts_only, leads_where
from lifefold.effects import AbortSession, EscalateSilence, KillOverdue, StartTimer

# Properties of every agent


def ends_with_a_reason_only_when_dead(a: Agent) -> bool:
    """An agent that is alive has no reason of an end."""
    return a.state is State.DEAD or (a.abort_reason is None and not a.reason)


def is_idle_without_a_task(a: Agent) -> bool:
    """An idle agent has no task, and no time limit."""
    return a.state is not State.IDLE or not (a.task or a.overdue)


# Properties of every transition


def is_silent_for_its_steps(step: Transition) -> bool:
    """``Watched`` takes exactly the due steps of the ladder that were not taken, in their order."""
    a: Agent = step.after.record
    taken = [effect.tier for effect in step.effects if isinstance(effect, EscalateSilence)]
    reached = sum(silent_ms(a, a.at_ms) >= limit_ms for limit_ms in a.limits.silence_ms)
    return taken == list(LADDER[step.was.escalated : a.escalated]) and a.escalated >= reached


def only_life_resets_the_ladder(step: Transition) -> bool:
    """The ladder starts again with a sign of life or the end of a task, and with nothing else."""
    if isinstance(step.event, Heartbeat | TaskFinished):
        return bool(step.after.record.escalated == 0)
    return step.before is None or bool(step.after.record.escalated >= step.before.record.escalated)


def overdue_is_ended_once(step: Transition) -> bool:
    """The end of a task that takes too long is requested when it becomes overdue, and once."""
    became: bool = step.after.record.overdue and not step.was.overdue
    return sum(isinstance(effect, KillOverdue) for effect in step.effects) == became


def time_is_bounded(step: Transition) -> bool:
    """``Watched`` makes a task overdue that takes longer than the longest time."""
    a: Agent = step.after.record
    over = isinstance(step.event, Watched) and a.at_ms - a.task_at_ms >= a.limits.longest_ms
    return not over or a.overdue


def is_allowed_within_limits(a: Agent) -> bool:
    """No time limit of a task is longer than the longest time."""
    return a.allowed_ms <= a.limits.longest_ms


def given_up_is_aborted(step: Transition) -> bool:
    """An agent that is given up leaves no process behind: its session is ended (profile ``supervised``)."""
    given_up = step.entered is State.DEAD and isinstance(step.event, SpawnOverdue | Recycled)
    return not given_up or any(isinstance(effect, AbortSession) for effect in step.effects)


def dies_with_its_process(step: Transition) -> bool:
    """A working agent becomes dead by the end of its process only, not by silence and not by missing work."""
    worked = step.before is not None and step.before.state is State.WORKING
    return step.entered is not State.DEAD or not worked or isinstance(step.event, Died)


def dead_is_left_alone(step: Transition) -> bool:
    """Nothing is requested of a dead agent, and its state does not change."""
    dead = step.before is not None and step.before.state is State.DEAD
    return not dead or (step.entered is None and not step.effects)


def launch_has_its_time(step: Transition) -> bool:
    """A launch is given up after its time limit or on request, not before (profile ``supervised``)."""
    if step.before is None or step.actor != "timer":
        return True
    a: Agent = step.was
    return step.at_ms - step.before.entered_ms >= a.limits.spawn_timeout_ms


def is_held_to_its_time(step: Transition) -> bool:
    """A task at its time limit gets more time after a recent sign of life, and is overdue otherwise (E34)."""
    was: Agent = step.was
    now: Agent = step.after.record
    worked_ms, allowed_ms = step.at_ms - was.task_at_ms, was.allowed_ms or was.limits.wall_clock_ms
    if was.overdue or worked_ms < allowed_ms:
        return (now.overdue, now.allowed_ms) == (was.overdue, was.allowed_ms)
    if silent_ms(was, step.at_ms) < was.limits.fresh_ms and worked_ms < was.limits.longest_ms:
        longer_ms = min(allowed_ms + was.limits.extension_ms, was.limits.longest_ms)
        return (now.overdue, now.allowed_ms) == (False, longer_ms)
    return (now.overdue, now.allowed_ms) == (True, was.allowed_ms)


def life_is_noted(step: Transition) -> bool:
    """A sign of life is recorded when it comes, and the start of a task when it is assigned, as a sign of life."""
    a: Agent = step.after.record
    if isinstance(step.event, TaskAssigned):
        return a.task == step.event.task and a.task_at_ms == a.heartbeat_at_ms == step.at_ms
    return not isinstance(step.event, Heartbeat) or a.heartbeat_at_ms == step.at_ms


def rests_with_nothing(step: Transition) -> bool:
    """An agent that finishes a task has none, and no time of it counts for the next one."""
    a: Agent = step.after.record
    return (a.task, a.allowed_ms, a.overdue) == ("", 0, False)


def death_has_a_reason(step: Transition) -> bool:
    """An ended agent has the reported reason; an agent that is given up has the exceeded limit as its reason."""
    a: Agent = step.after.record
    match step.event:
        case SpawnOverdue():
            reason = f"not started within {a.limits.spawn_timeout_ms} ms"
        case Recycled(reason=given):
            reason = given or a.reason
        case SpawnFailed(reason=given) | Died(reason=given):
            reason = given
        case _:
            return True
    return (a.reason, a.abort_reason) == (reason, step.event.abort_reason)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always("no task is given more time than the longest", lambda e: is_allowed_within_limits(e.record)),
    always_step("of the ladder the steps are taken that are due, each once", is_silent_for_its_steps, on=Watched),
    always_step(
        "the ladder starts again with a sign of life or with the end of a task, and never else",
        only_life_resets_the_ladder,
    ),
    always_step("the end of an overdue task is requested, once", overdue_is_ended_once, on=Event),
    always_step("a task that takes longer than the longest time is overdue", time_is_bounded),
    always_step("a working agent dies by the end of its process only", dies_with_its_process),
    always_step("an agent that is reported dead is dead", lambda step: step.after.state is State.DEAD, on=Died),
    always_step("a sign of life is recorded when it comes", life_is_noted),
    always_step("no time of a finished task is left", rests_with_nothing, on=TaskFinished),
    always_step(
        "a task over its time gets more after a sign of life, and is overdue otherwise", is_held_to_its_time, on=Watched
    ),
    always_step("an ended agent has the reason of its end", death_has_a_reason),
    asks_once(),
    *exits_on(State.STARTING, Heartbeat),
    *exits_on(State.WORKING, TaskFinished),
    *exits_on(State.IDLE, TaskAssigned, Recycled),
    always_step("nothing happens to a dead agent", dead_is_left_alone),
    sometimes("an agent dies", lambda e: e.state is State.DEAD),
    sometimes("an agent is idle", lambda e: e.state is State.IDLE),
    sometimes("the last step of the ladder is taken", lambda e: e.record.escalated == len(LADDER)),
    sometimes("a task is overdue", lambda e: e.record.overdue),
    sometimes("a task gets more time", lambda e: e.record.allowed_ms > e.record.limits.wall_clock_ms),
)


def timers_match_limits(step: Transition) -> bool:
    """A launch, and an agent that becomes idle, start a timer as long as the limits (profile ``supervised``)."""
    limits = step.after.record.limits
    lasts_ms: dict[object, int] = {State.STARTING: limits.spawn_timeout_ms, State.IDLE: limits.idle_ms}
    started = [each.delay_ms for each in step.effects if isinstance(each, StartTimer)]
    return started == [lasts_ms[each] for each in (step.entered,) if each in lasts_ms]


def idle_is_given_up_for_its_limit(step: Transition) -> bool:
    """The reason of an agent that is given up for idleness names the idle time (profile ``supervised``)."""
    if not isinstance(step.event, Recycled) or step.event.reason:
        return True
    a: Agent = step.after.record
    return a.reason == f"idle for {a.limits.idle_ms} ms"


SUPERVISED_PROPERTIES: Final[tuple[Property[Any], ...]] = (
    accepts("a death is accepted in every state", {(State.STARTING, State.IDLE): (Died,)}),
    leads_where("an agent that is not launched in time is dead", {SpawnOverdue: (State.DEAD,)}),
    always_step("an agent that is given up has its session ended", given_up_is_aborted),
    always_step("the reason of an agent that is given up for idleness names the time", idle_is_given_up_for_its_limit),
    always_step("a launch is given up after its time limit, or on request", launch_has_its_time, on=SpawnOverdue),
    lasts_only("SpawnOverdue", State.STARTING),
    lasts_only("Recycled", State.IDLE),
    always_step("a launch, and an idle agent, has the time of its limits", timers_match_limits),
    eventually("a death is accepted in every state", lambda e: e.state is State.DEAD, given=weakly(Died)),
    leads_to(
        "a launched agent works in the end, or is dead",
        lambda e: e.state is State.STARTING,
        lambda e: e.state is not State.STARTING,
    ),
    leads_to(
        "an idle agent is assigned a task in the end, or is dead",
        lambda e: e.state is State.IDLE,
        lambda e: e.state is not State.IDLE,
    ),
)
