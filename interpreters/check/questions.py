"""How shipped lifecycles and systems are looked at: with which record or input each begins, and within which bounds.

So that the search has an end. What is not among them begins with its own initial record, within the usual bounds.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from lifefold.core import agent, fleet, process, runtime, session
from lifefold.core.budget import lease
from lifefold.core.budget.account import Account
from lifefold.core.budget.amounts import Resource
from lifefold.core.fleet import meter, purse
from lifefold.core.fleet.mailbox import Mailbox
from lifefold.core.kernel import Record
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.access import AccessLevel, Trust
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.core.policy.recovery import Retry
from lifefold.core.session_profiles import SupervisedSession, WindowedSession
from lifefold.core.task import OnDeath
from lifefold.effects import Every
from lifefold.interpreters.check.ground import CRASHES, CrashBounds
from lifefold.interpreters.check.opening import Opening
from lifefold.interpreters.check.question import Bounds


class Question(msgspec.Struct, frozen=True):
    """How a shipped target is looked at: a machine from ``record`` on, a system after ``opening``.

    ``promises`` are promises of a machine besides its own: where there are tuples of them, as module and name. ``of``
    is the lifecycle or system, if the question has a name of its own.
    """

    record: Record | None = None
    opening: Opening = ()
    bounds: Bounds = Bounds()
    promises: tuple[tuple[str, str], ...] = ()
    crashes: CrashBounds = CRASHES
    of: str = ""


def one_section(a: runtime.Runtime) -> bool:
    """Tell whether no more than one section is executed at a time, however often it was entered."""
    return len({each.key for each in a.preemption.sections}) <= 1


def little_money(x: lease.Lease) -> bool:
    """Tell whether a lease has been granted, and has overrun, no more than a few micro-dollars."""
    most_granted, most_overrun = 8, 100
    return x.account.cap <= most_granted and x.account.overrun <= most_overrun


def little_left(p: purse.Purse) -> bool:
    """Tell whether a purse has no more than a few sessions, and few more were spent."""
    most_granted, most_overrun = 4, 3
    return all(each.account.cap <= most_granted and each.account.overrun <= most_overrun for each in p.lines)


def little_spent(m: meter.Meter) -> bool:
    """Tell whether sessions have cost no more than a little since the board was told."""
    most = 6
    return max(m.spent.microusd, m.spent.time_ms) <= most


def few_retries(t: fleet.job.Job) -> bool:
    """Tell whether a task may be tried again no more than twice, and has no more than four parts."""
    most_retries, most_parts = 2, 4
    return t.max_retries <= most_retries and t.parts <= most_parts


def few_uses(p: fleet.permit.Permit) -> bool:
    """Tell whether a permit for a restart has come back no more than once."""
    return p.used <= 1 or p.state is not fleet.permit.State.FREE


def no_drain(i: fleet.intent.Intent) -> bool:
    """Tell whether an agent is to run, to pause, to hold or to stop, without draining and without being killed."""
    return not i.drains and not i.at_once


def no_kill(i: fleet.intent.Intent) -> bool:
    """Tell whether an agent may end what it has begun with grace."""
    return not i.at_once


def one_message(i: fleet.inbox.Inbox) -> bool:
    """Tell whether no more than one message waits for a service."""
    return len(i.messages) <= 1


def one_letter(box: Mailbox) -> bool:
    """Tell whether a mailbox has no more than one letter."""
    return len(box.letters) <= 1


def short_record(s: fleet.seat.Seat) -> bool:
    """Tell whether a seat has no more than eleven successes and one violation."""
    most_successes, most_violations = 11, 1
    trust = s.trust or Trust()
    return trust.successes <= most_successes and trust.violations <= most_violations


_ERRORS: Final = session.Limits(max_consecutive_errors=2, max_total_errors=3)
_WINDOW: Final = session.Limits(
    max_consecutive_errors=3,
    max_total_errors=3,
    total_errors_window_ms=2,
    backoff_base_ms=1,
    backoff_cap_ms=2,
    grace_ms=1,
)
_AGENT: Final = agent.Agent(
    limits=agent.Limits(
        spawn_timeout_ms=5,
        idle_ms=5,
        silence_ms=(1, 2, 3, 4),
        wall_clock_ms=6,
        fresh_ms=3,
        extension_ms=2,
        longest_ms=9,
    )
)
_LADDER: Final = fleet.pulse.Limits(warn_ms=2, nudge_ms=3, end_ms=4)
_RUNTIME: Final = runtime.Runtime(
    limits=runtime.Limits(
        init_timeout_ms=1,
        resource_timeout_ms=1,
        suspend_timeout_ms=1,
        shutdown_timeout_ms=1,
        recovery_timeout_ms=1,
        stuck_after_ms=1,
        preemption_timeout_ms=2,
        preemption_grace_ms=1,
        max_recoveries=1,
        retry=Retry(base_ms=1, cap_ms=1, jitter=0),
    )
)
_ONE_INPUT: Final = msgspec.structs.replace(CRASHES, inputs=1)
_NO_INPUT: Final = msgspec.structs.replace(CRASHES, inputs=0)
_ONE_INPUT_LARGE: Final = msgspec.structs.replace(_ONE_INPUT, states=1_000_000)
_PROCESS: Final = Question(
    process.Process(
        limits=process.Limits(
            restart_policy="always",
            max_restarts=1,
            max_consecutive_failures=2,
            idle_timeout_ms=1,
            max_lifetime_ms=1,
        )
    ),
    bounds=Bounds(compared=500),
    promises=tuple(("lifefold.core.process.promises", name) for name in ("COMING_BACK", "IDLING", "RECYCLING")),
    crashes=_ONE_INPUT,
)


def _fleet(agents: int, tasks: int, *, retries: int, errors: int = 2) -> Opening:
    """Return what opens a fleet of agents, who stop by so many errors, with tasks that are tried again so often."""
    limits = session.Limits(max_consecutive_errors=errors, max_total_errors=errors)
    plan = fleet.Plan(
        "small",
        tuple(fleet.AgentPlan(name, limits) for name in ("ann", "ben")[:agents]),
        tuple(fleet.TaskPlan(f"T{number}", "do it", max_retries=retries) for number in range(1, tasks + 1)),
    )
    return tuple(fleet.opening(plan, 0))


def _governed() -> Opening:
    """Return what opens a fleet of one agent whose plan a person approves, and whose work a person agrees to.

    Its first task may be split in two; the second waits for it.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    tasks = (
        fleet.TaskPlan("T1", "do it", max_retries=0, asks=True, most_subtasks=2),
        fleet.TaskPlan("T2", "do it", depends_on=("T1",), max_retries=0),
    )
    plan = fleet.Plan("governed", (fleet.AgentPlan("ann", limits),), tasks, approve_plan=True, watch=True)
    return tuple(fleet.opening(plan, 0))


def _renewed() -> purse.Purse:
    """Return a purse for two sessions an hour."""
    return purse.Purse(lines=(purse.Line(Resource.SESSIONS, 1, Account(cap=2)),), period_ms=3_600_000)


def _limited() -> Opening:
    """Return what opens a fleet of one agent, whose sessions are limited: of all, its own, and on its first task."""
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    plan = fleet.Plan(
        "limited",
        (fleet.AgentPlan("ann", limits, caps=fleet.Caps(sessions=3)),),
        (
            fleet.TaskPlan("T1", "do it", max_retries=1, caps=fleet.Caps(sessions=1)),
            fleet.TaskPlan("T2", "do it", max_retries=0),
        ),
        budget=fleet.Budget(fleet.Caps(sessions=2)),
    )
    return tuple(fleet.opening(plan, 0))


def _trusted() -> Opening:
    """Return what opens a fleet of one agent who is untrusted: its work is seen before it is merged.

    The second task takes more trust than it has before the first is closed.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    tasks = (
        fleet.TaskPlan("T1", "do it", max_retries=0),
        fleet.TaskPlan("T2", "do it", max_retries=0, trust=AccessLevel.PROBATIONARY),
    )
    gates = fleet.GatePlan(merge=AccessLevel.PROBATIONARY)
    plan = fleet.Plan("trusted", (fleet.AgentPlan("ann", limits),), tasks, gates=gates)
    return tuple(fleet.opening(plan, 0))


def _stalling() -> Opening:
    """Return what opens a fleet of one agent that is watched, and may err once, with one task."""
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    agent_plan = fleet.AgentPlan("ann", limits, stall=_LADDER)
    return tuple(
        fleet.opening(fleet.Plan("stalling", (agent_plan,), (fleet.TaskPlan("T1", "do it", max_retries=0),)), 0)
    )


def _serving() -> Opening:
    """Return what opens a fleet of one agent with one task, and one service, which is restarted once by itself.

    Its process fails when two runs in a row do.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    life = process.Limits(restart_policy="on_failure", max_restarts=1, max_consecutive_failures=2)
    plan = fleet.Plan(
        "serving",
        (fleet.AgentPlan("ann", limits),),
        (fleet.TaskPlan("T1", "do it", max_retries=0),),
        services=(fleet.ServicePlan("web", life, triggers=(Every(1),), takes_messages=True),),
    )
    return tuple(fleet.opening(plan, 0))


def _orphans() -> Opening:
    """Return what opens a fleet of one agent that may err once, and is watched, with a task that may be an orphan.

    What its dead sessions leave of it is verified, and it may be tried again once.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    it = fleet.TaskPlan("T1", "do it", verify=(("true",),), max_retries=1, orphaned=OnDeath.VERIFY)
    plan = fleet.Plan("orphans", (fleet.AgentPlan("ann", limits, stall=_LADDER),), (it,))
    return tuple(fleet.opening(plan, 0))


def _restarted() -> Opening:
    """Return what opens a fleet of one agent who may not err, and is restarted once within its window.

    Its only task may be tried again once; so it comes back to it, and may be quarantined by it.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    plan = fleet.Plan(
        "restarted",
        (fleet.AgentPlan("ann", limits, restart=Restart(max_restarts=1)),),
        (fleet.TaskPlan("T1", "do it", max_retries=1),),
        restarts=Intensity(max_restarts=2),
    )
    return tuple(fleet.opening(plan, 0))


def _aborts() -> Opening:
    """Return what opens a fleet of one agent, in which tools abort siblings, with one task that may be split.

    It may not err, and nothing is tried again.
    """
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    plan = fleet.Plan(
        "aborts",
        (fleet.AgentPlan("ann", limits),),
        (fleet.TaskPlan("T1", "do it", max_retries=0, most_subtasks=2),),
        aborts=AbortPolicy(tool_to_sibling=True),
    )
    return tuple(fleet.opening(plan, 0))


def _preempting() -> Opening:
    """Return what opens a fleet of one agent that makes room, with two tasks.

    The first to be done may fail once; when it has rested, the agent is at the other one, which comes later.
    """
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    tasks = (
        fleet.TaskPlan("T1", "do it", max_retries=0),
        fleet.TaskPlan("T2", "do it", max_retries=1, priority=1),
    )
    plan = fleet.Plan("preempting", (fleet.AgentPlan("ann", limits),), tasks, preemption=fleet.Preemption(1))
    return tuple(fleet.opening(plan, 0))


def _runtime(name: str) -> Question:
    return Question(_RUNTIME, bounds=Bounds(within={name: one_section}, compared=200), crashes=_ONE_INPUT)


QUESTIONS: Final[Mapping[str, Question]] = {
    "session-windowed": Question(WindowedSession(limits=_WINDOW), bounds=Bounds(compared=500), crashes=_ONE_INPUT),
    "session-prompt-failures": Question(session.Session(limits=_ERRORS)),
    "session-in-fleet": Question(session.Session(limits=_ERRORS)),
    "session-supervised": Question(SupervisedSession(limits=_ERRORS, supervised=True)),
    "process": _PROCESS,
    "process-promptise-1.5": _PROCESS,
    "runtime": _runtime("runtime"),
    "runtime-sw4rm-agentpy": _runtime("runtime-sw4rm-agentpy"),
    "runtime-graceful": _runtime("runtime-graceful"),
    "runtime-supervised": _runtime("runtime-supervised"),
    "runtime-watched": _runtime("runtime-watched"),
    "lease": Question(lease.Lease(holder="h", account=Account(cap=4)), bounds=Bounds(within={"lease": little_money})),
    "task-governed": Question(crashes=_ONE_INPUT),
    "task-in-fleet": Question(
        fleet.job.Job(
            max_retries=1,
            limit=1,
            asks=True,
            most_subtasks=4,
            merges=AccessLevel.ELEVATED,
            fate=fleet.job.Fate(AbortPolicy(tool_to_sibling=True)),
        ),
        bounds=Bounds(within={"task-in-fleet": few_retries}),
        crashes=_ONE_INPUT,
    ),
    "seat": Question(fleet.seat.Seat(trust=Trust()), bounds=Bounds(within={"seat": short_record})),
    "agent": Question(_AGENT),
    "pulse": Question(fleet.pulse.Pulse(limits=_LADDER)),
    "agent-supervised": Question(_AGENT),
    "permit": Question(bounds=Bounds(within={"permit": few_uses})),
    "fleet": Question(
        opening=_fleet(1, 1, retries=1),
        bounds=Bounds(within={"mailbox": one_letter, "intent": no_drain, "task": few_retries}, commands=5),
        crashes=_ONE_INPUT,
    ),
    "fleet-governed": Question(
        opening=_governed(),
        bounds=Bounds(within={"mailbox": one_letter, "intent": no_drain, "task": few_retries}, commands=3),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "fleet-restarts": Question(
        opening=_restarted(),
        bounds=Bounds(
            within={"mailbox": one_letter, "intent": no_drain, "task": few_retries, "permit": few_uses}, commands=2
        ),
        crashes=_ONE_INPUT,
        of="fleet",
    ),
    "fleet-preempting": Question(
        opening=_preempting(),
        bounds=Bounds(within={"mailbox": one_letter, "intent": no_drain, "task": few_retries}, commands=1),
        crashes=_ONE_INPUT,
        of="fleet",
    ),
    "fleet-aborts": Question(
        opening=_aborts(),
        bounds=Bounds(within={"mailbox": one_letter, "intent": no_drain, "task": few_retries}, commands=2),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "fleet-drained": Question(
        opening=_fleet(1, 1, retries=0),
        bounds=Bounds(within={"mailbox": one_letter, "task": few_retries}, commands=3),
        crashes=_ONE_INPUT,
        of="fleet",
    ),
    "fleet-limited": Question(
        opening=_limited(),
        bounds=Bounds(
            within={"mailbox": one_letter, "intent": no_drain, "task": few_retries, "purse": little_left}, commands=1
        ),
        crashes=_ONE_INPUT,
        of="fleet",
    ),
    "purse": Question(_renewed(), bounds=Bounds(within={"purse": little_left})),
    "meter": Question(meter.Meter(keeps_time=True), bounds=Bounds(within={"meter": little_spent})),
    "fleet-trusted": Question(
        opening=_trusted(),
        bounds=Bounds(within={"mailbox": one_letter, "intent": no_drain, "task": few_retries}, commands=2),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "fleet-stalling": Question(
        opening=_stalling(),
        bounds=Bounds(within={"mailbox": one_letter, "intent": no_drain, "task": few_retries}, commands=1),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "fleet-2x3": Question(
        opening=_fleet(2, 3, retries=0, errors=1),
        bounds=Bounds(within={"mailbox": one_letter, "intent": no_drain}, commands=1, states=20_000_000),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "fleet-serving": Question(
        opening=_serving(),
        bounds=Bounds(
            within={"mailbox": one_letter, "inbox": one_message, "intent": no_kill, "task": few_retries}, commands=1
        ),
        crashes=_NO_INPUT,
        of="fleet",
    ),
    "inbox": Question(fleet.inbox.Inbox(takes_messages=True), bounds=Bounds(within={"inbox": one_message})),
    "fleet-orphans": Question(
        opening=_orphans(),
        bounds=Bounds(within={"mailbox": one_letter, "intent": no_drain, "task": few_retries}, commands=2),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "fleet-2x2": Question(
        opening=_fleet(2, 2, retries=0),
        bounds=Bounds(within={"mailbox": one_letter, "intent": no_drain}, commands=1, states=20_000_000),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
}
"""Of the shipped targets, those that need more than their own initial record and the usual bounds.

Times and limits are near each other: only how they compare decides anything. Those that are ``of`` another one have
that one's rules, and are larger: they take minutes.
"""
