"""A worker: starting, working, idle, dead. The table is document 004's, six lines.

*The first heartbeat is what makes an agent work.* Until then it is only spawned; an agent that is warm but has no task
must pass WORKING to become IDLE (E22). Further heartbeats change nothing but ``heartbeat_at_ms``. A dead agent has no
heartbeat: what claims to be one is refused (E23).

*Silence is measured from the last sign of life*, which is the start for an agent that never gave one (E31, E32). Who
watches says ``Watched`` now and then. The answer is a ladder of steps, each taken once when its silence is reached
(``>=``) and all of them possible again after a heartbeat; and a limit to the time that one task may take, which is
extended while the agent is heard of. Both ask for effects and leave the state alone: an agent is dead when its process
has ended, and not because somebody has lost patience.

*The parent is set at spawn* (E38), and is what an abort is propagated along; see ``abort``.

``supervised`` is the profile that keeps time by itself: a launch that takes too long fails, and an idle agent is
recycled. Both ask for the end of the session (``AbortSession``), so that no process is left behind an agent that is
dead. It also takes ``Died`` in every state, over the edges that the document has.
"""

from typing import Any, ClassVar, Final, Never

import msgspec

from lifefold.core.kernel import (
    STAY,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    after,
    always,
    always_step,
    leads_to,
    replace,
    row,
    sometimes,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.policy.limits import at_least
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.core.policy.silence import last_sign_ms
from lifefold.effects import AbortSession, EscalateSilence, KillOverdue
from lifefold.effects.supervision import Tier


class State(AnyLifecycleState):
    """The four states of an agent."""

    STARTING = "starting"
    WORKING = "working"
    IDLE = "idle"
    DEAD = "dead"


class Heartbeat(Event, frozen=True):
    """The process is alive and says so."""


class _End(Event, frozen=True):
    """The agent is gone, and why."""

    reason: str = ""
    transition_reason: TransitionReason | None = None
    abort_reason: AbortReason | None = None


class SpawnFailed(_End, frozen=True):
    """The process could not be started, was refused by its provider, or ended at once."""


class Died(_End, frozen=True):
    """The process has ended: a crash, a kill, a timeout, a circuit breaker."""


class Recycled(_End, frozen=True):
    """The idle agent is not needed any more."""


class TaskFinished(Event, frozen=True):
    """The agent is done with its task and still there."""


class TaskAssigned(Event, frozen=True):
    """The idle agent gets a new task."""

    task: str = ""


class Watched(Event, frozen=True):
    """Somebody has looked at the clock."""


class SpawnOverdue(Event, frozen=True):
    """The launch takes too long (profile ``supervised``)."""

    @property
    def abort_reason(self) -> AbortReason:
        """Why the agent ends by this."""
        return AbortReason.TIMEOUT


LADDER: tuple[Tier, ...] = ("warn", "usr1", "term", "kill")


class Limits(msgspec.Struct, frozen=True):
    """What a fleet may set, in milliseconds. ``silence_ms`` are the four steps of the ladder, in order.

    A task may take ``wall_clock_ms``. If the agent was heard of less than ``fresh_ms`` ago then, ``extension_ms`` are
    added, up to ``longest_ms`` in all.
    """

    spawn_timeout_ms: int = 60_000
    idle_ms: int = 300_000
    silence_ms: tuple[int, int, int, int] = (60_000, 90_000, 120_000, 150_000)
    wall_clock_ms: int = 1_800_000
    fresh_ms: int = 120_000
    extension_ms: int = 600_000
    longest_ms: int = 5_400_000

    def __post_init__(self) -> None:
        """Refuse what could never work. Raises ``ValueError`` naming the field."""
        at_least(1, self, "spawn_timeout_ms", "idle_ms", "wall_clock_ms", "fresh_ms", "extension_ms", "longest_ms")
        if self.silence_ms[0] < 1 or list(self.silence_ms) != sorted(set(self.silence_ms)):
            message = f"silence_ms must be positive and grow from step to step, not {self.silence_ms}"
            raise ValueError(message)
        if self.longest_ms < self.wall_clock_ms:
            message = f"longest_ms must be at least wall_clock_ms, {self.wall_clock_ms}, not {self.longest_ms}"
            raise ValueError(message)


class Agent(Record, frozen=True):
    """A worker. ``heartbeat_at_ms`` is None before the first one; ``escalated`` counts the steps of the ladder taken.

    ``allowed_ms`` is how long the present task may take, extensions included, or 0 if it was not extended;
    ``overdue`` says that it has taken longer and that its end was asked for.
    """

    moments: ClassVar[tuple[str, ...]] = ("at_ms", "started_at_ms", "task_at_ms", "heartbeat_at_ms")

    state: State = State.STARTING
    id: str = ""
    parent: str = ""
    task: str = ""
    started_at_ms: int = 0
    task_at_ms: int = 0
    heartbeat_at_ms: int | None = None
    escalated: int = 0
    allowed_ms: int = 0
    overdue: bool = False
    reason: str = ""
    abort_reason: AbortReason | None = None
    limits: Limits = Limits()
    at_ms: int = 0

    def pauses_ms(self) -> tuple[int, ...]:
        """Return no time, the time to the first step of the ladder, and that which a task may take."""
        return 0, self.limits.silence_ms[0], self.limits.wall_clock_ms

    def horizon_ms(self) -> int:
        """Return how long a task may take at most, and an agent may be silent."""
        return max(self.limits.longest_ms, self.limits.silence_ms[-1], self.limits.fresh_ms)


def spawned(name: str, at_ms: int, *, parent: str = "", task: str = "", like: Agent | None = None) -> Agent:
    """Return a new agent, its parent and its baseline for every timeout set (E31, E38); all else as in ``like``."""
    born = like or Agent()
    return replace(born, id=name, parent=parent, task=task, started_at_ms=at_ms, task_at_ms=at_ms, at_ms=at_ms)


def silent_ms(a: Agent, now_ms: int) -> int:
    """Return for how long nothing was heard of an agent; from its start if there never was anything (E32)."""
    return now_ms - last_sign_ms(a.started_at_ms, a.heartbeat_at_ms)


# Actions


def hear(a: Agent, _e: Heartbeat) -> Step[Agent, Never]:
    """Note the sign of life; the ladder starts again."""
    return Step(replace(a, heartbeat_at_ms=a.at_ms, escalated=0))


def rest(a: Agent, _e: TaskFinished) -> Step[Agent, Never]:
    """Leave the agent without a task."""
    return Step(replace(a, task="", escalated=0, allowed_ms=0, overdue=False))


def assign(a: Agent, e: TaskAssigned) -> Step[Agent, Never]:
    """Give the agent a task. Being given one counts as a sign of life: it was idle on purpose."""
    return Step(replace(a, task=e.task, task_at_ms=a.at_ms, heartbeat_at_ms=a.at_ms))


def die(a: Agent, e: SpawnFailed | Died | Recycled) -> Step[Agent, Never]:
    """Keep why it ended."""
    return Step(replace(a, reason=e.reason, abort_reason=e.abort_reason))


def expire(a: Agent, e: SpawnOverdue) -> Step[Agent, AbortSession]:
    """Keep that the launch took too long, and end what was launched: it may be there and hang."""
    reason = f"not started within {a.limits.spawn_timeout_ms} ms"
    return Step(replace(a, reason=reason, abort_reason=e.abort_reason), (AbortSession(a.id, a.task),))


def recycle(a: Agent, e: Recycled) -> Step[Agent, AbortSession]:
    """Keep why the idle agent is not needed, and end its session."""
    reason = e.reason or f"idle for {a.limits.idle_ms} ms"
    return Step(replace(a, reason=reason, abort_reason=e.abort_reason), (AbortSession(a.id, a.task),))


def watch(a: Agent, _e: Watched) -> Step[Agent, EscalateSilence | KillOverdue]:
    """Take the steps that are due, and hold the task to its time."""
    silent = silent_ms(a, a.at_ms)
    due = max(a.escalated, sum(silent >= step_ms for step_ms in a.limits.silence_ms))
    steps = tuple(EscalateSilence(a.id, tier, silent) for tier in LADDER[a.escalated : due])
    held, kill = _hold_to_time(a, silent)
    return Step(replace(held, escalated=due), (*steps, *kill))


def _hold_to_time(a: Agent, silent: int) -> tuple[Agent, tuple[KillOverdue, ...]]:
    limits, worked_ms = a.limits, a.at_ms - a.task_at_ms
    allowed_ms = a.allowed_ms or limits.wall_clock_ms
    if worked_ms < allowed_ms or a.overdue:
        return a, ()
    if silent < limits.fresh_ms and worked_ms < limits.longest_ms:
        return replace(a, allowed_ms=min(allowed_ms + limits.extension_ms, limits.longest_ms)), ()
    return replace(a, overdue=True), (KillOverdue(a.id, worked_ms),)


# The table


def ends_with_a_reason_only_when_dead(a: Agent) -> bool:
    """Nobody has ended who is alive."""
    return a.state is State.DEAD or (a.abort_reason is None and not a.reason)


def is_idle_without_a_task(a: Agent) -> bool:
    """Who is idle has no task, and is not held to its time."""
    return a.state is not State.IDLE or not (a.task or a.overdue)


# What holds of every step


def is_silent_for_its_steps(step: Transition) -> bool:
    """Who watches takes exactly the steps of the ladder that are due and were not taken, in their order."""
    if step.before is None or not isinstance(step.event, Watched):
        return True
    a: Agent = step.after.record
    taken = [effect.tier for effect in step.effects if isinstance(effect, EscalateSilence)]
    reached = sum(silent_ms(a, a.at_ms) >= limit_ms for limit_ms in a.limits.silence_ms)
    return taken == list(LADDER[step.before.record.escalated : a.escalated]) and a.escalated >= reached


def only_life_resets_the_ladder(step: Transition) -> bool:
    """The ladder starts again for whoever was heard of or is done with its task, and for nobody else."""
    if isinstance(step.event, Heartbeat | TaskFinished):
        return bool(step.after.record.escalated == 0)
    return step.before is None or bool(step.after.record.escalated >= step.before.record.escalated)


def overdue_is_ended_once(step: Transition) -> bool:
    """The end of a task that takes too long is asked for when it becomes overdue, and once."""
    if step.before is None:
        return True
    became: bool = step.after.record.overdue and not step.before.record.overdue
    return sum(isinstance(effect, KillOverdue) for effect in step.effects) == became


def time_is_bounded(step: Transition) -> bool:
    """Whoever watches a task that takes longer than the longest time finds it overdue."""
    a: Agent = step.after.record
    over = isinstance(step.event, Watched) and a.at_ms - a.task_at_ms >= a.limits.longest_ms
    return not over or a.overdue


def is_allowed_within_limits(a: Agent) -> bool:
    """A task is given no more time than the longest."""
    return a.allowed_ms <= a.limits.longest_ms


def given_up_is_aborted(step: Transition) -> bool:
    """No process is left behind an agent that is given up: its session is ended (profile ``supervised``)."""
    given_up = step.entered is State.DEAD and isinstance(step.event, SpawnOverdue | Recycled)
    return not given_up or any(isinstance(effect, AbortSession) for effect in step.effects)


PROMISES: Final[tuple[Property[Any], ...]] = (
    always("no task is given more time than the longest", lambda e: is_allowed_within_limits(e.record)),
    always_step("of the ladder the steps are taken that are due, each once", is_silent_for_its_steps),
    always_step(
        "the ladder starts again with a sign of life or with the end of a task, and never else",
        only_life_resets_the_ladder,
    ),
    always_step("the end of an overdue task is asked for, once", overdue_is_ended_once),
    always_step("a task that takes longer than the longest time is overdue", time_is_bounded),
    sometimes("an agent dies", lambda e: e.state is State.DEAD),
    sometimes("an agent is idle", lambda e: e.state is State.IDLE),
    sometimes("the last step of the ladder is taken", lambda e: e.record.escalated == len(LADDER)),
    sometimes("a task is overdue", lambda e: e.record.overdue),
    sometimes("a task gets more time", lambda e: e.record.allowed_ms > e.record.limits.wall_clock_ms),
)

SUPERVISED_PROMISES: Final[tuple[Property[Any], ...]] = (
    always_step("whoever is given up has its session ended", given_up_is_aborted),
    leads_to(
        "whoever is launched works at last, or is dead",
        lambda e: e.state is State.STARTING,
        lambda e: e.state is not State.STARTING,
    ),
    leads_to(
        "whoever is idle is given work at last, or is dead",
        lambda e: e.state is State.IDLE,
        lambda e: e.state is not State.IDLE,
    ),
)


machine = Machine(
    "agent",
    Agent(),
    about="a worker: starting, working, idle, dead",
    rows=(
        row(State.STARTING, Heartbeat, State.WORKING, hear),
        row(State.STARTING, SpawnFailed, State.DEAD, die),
        row(State.WORKING, TaskFinished, State.IDLE, rest),
        row(State.WORKING, Died, State.DEAD, die),
        row(State.IDLE, TaskAssigned, State.WORKING, assign),
        row(State.IDLE, Recycled, State.DEAD, die),
        row((State.WORKING, State.IDLE), Heartbeat, STAY, hear),
        row(State.WORKING, Watched, STAY, watch),
    ),
    final={State.DEAD},
    invariants=(ends_with_a_reason_only_when_dead, is_idle_without_a_task),
    properties=PROMISES,
)


def spawn_timeout(a: Agent) -> int:
    """Return how long a launch may take, in milliseconds."""
    return a.limits.spawn_timeout_ms


def idle_timeout(a: Agent) -> int:
    """Return how long an agent may be idle, in milliseconds."""
    return a.limits.idle_ms


supervised = (
    machine.without_rows((State.IDLE, Recycled))
    .with_rows(
        row(State.STARTING, SpawnOverdue, State.DEAD, expire),
        row(State.IDLE, Recycled, State.DEAD, recycle),
        row((State.STARTING, State.IDLE), Died, State.DEAD, die),
        during={
            State.STARTING: after(spawn_timeout, SpawnOverdue),
            State.IDLE: after(idle_timeout, Recycled),
        },
        name="agent-supervised",
    )
    .promising(*SUPERVISED_PROMISES)
)
"""The profile that keeps time by itself, and in which a process may die in any state."""
