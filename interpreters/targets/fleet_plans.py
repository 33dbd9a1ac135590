"""The plans of the fleets that are simulated by name: each optional part in one of them, and all parts in another."""

from collections.abc import Iterator
from itertools import cycle
from typing import Any, Final, TypeVar

import msgspec

from lifefold.core import fleet
from lifefold.core.fleet.worker import question, stall_detector
from lifefold.core.lifecycles import process, session
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.task import OnDeath
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.core.policy.standing import StandingAnswer
from lifefold.effects import Every, NotificationKind

S = TypeVar("S", bound=msgspec.Struct)

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS


def plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan in which every third task depends on the two before it, and priorities differ."""
    return fleet.Plan(
        f"{agents}x{tasks}",
        tuple(fleet.AgentPlan(f"agent-{number}") for number in range(1, agents + 1)),
        tuple(
            fleet.TaskPlan(
                f"T{number}",
                f"do task {number}",
                depends_on=(f"T{number - 2}", f"T{number - 1}") if number % 3 == 0 else (),
                priority=1 + number % 2,
                max_retries=2,
            )
            for number in range(1, tasks + 1)
        ),
        approval_ms=60 * MINUTE_MS,
    )


def governed_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan with approvals, roles, conflicts of files, and tasks that are split.

    An operator approves the plan. Every second agent is a reviewer, and more tasks may come. The requirements of tasks
    alternate: a reviewer, an approval before the merge, a split in two, nothing. Two neighbours change the same file,
    and every fifth task depends on the one before it.
    """
    of = plan(agents, tasks)
    roles = cycle((("reviewer",), ()))
    asked: Iterator[dict[str, Any]] = cycle(({"role": "reviewer"}, {"needs_approval": True}, {"most_subtasks": 2}, {}))
    before = [(each.id,) if place in _EVERY_FIFTH else () for place, each in enumerate(of.tasks, 1)]
    return msgspec.structs.replace(
        of,
        name=f"governed-{agents}x{tasks}",
        agents=tuple(msgspec.structs.replace(each, roles=has) for each, has in zip(of.agents, roles, strict=False)),
        tasks=tuple(
            msgspec.structs.replace(each, depends_on=needed, files=(f"part-{place // 2}",), **asks)
            for place, (each, needed, asks) in enumerate(zip(of.tasks, [(), *before], asked, strict=False))
        ),
        approve_plan=True,
        watch=True,
    )


_EVERY_FIFTH: Final = range(4, 100_000, 5)


def limited_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan with budgets of sessions and time, which do not suffice if many faults happen.

    The fleet has one; every second agent and every second task have their own. Every third task may be split. No
    session takes longer than its share of the time.
    """
    of = plan(agents, tasks)
    hour_ms = 60 * MINUTE_MS
    own, none = fleet.Caps(time_ms=2 * hour_ms, sessions=4), fleet.Caps()
    ended = session.Limits(session_timeout_ms=hour_ms - session.Limits().grace_ms)
    return msgspec.structs.replace(
        of,
        name=f"limited-{agents}x{tasks}",
        agents=tuple(
            msgspec.structs.replace(each, caps=own if place % 2 else none, limits=ended)
            for place, each in enumerate(of.agents)
        ),
        tasks=tuple(
            msgspec.structs.replace(
                each, caps=fleet.Caps(sessions=2) if place % 2 else none, most_subtasks=0 if place % 3 else 2
            )
            for place, each in enumerate(of.tasks)
        ),
        budget=fleet.Budget(fleet.Caps(time_ms=tasks * hour_ms, sessions=2 * tasks), Amounts(0, 0, hour_ms, 1)),
    )


def trusted_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan with gates, in which every second task requires trust that agents must earn.

    Only the work of a trusted agent is merged without an approval; the last agent is trusted from the beginning.
    """
    of = governed_plan(agents, tasks)
    last = msgspec.structs.replace(of.agents[-1], trust=AccessLevel.TRUSTED)
    levels = cycle((AccessLevel.UNTRUSTED, AccessLevel.PROBATIONARY, AccessLevel.UNTRUSTED, AccessLevel.TRUSTED))
    return msgspec.structs.replace(
        of,
        name=f"trusted-{agents}x{tasks}",
        agents=(*of.agents[:-1], last),
        tasks=tuple(msgspec.structs.replace(each, trust=level) for each, level in zip(of.tasks, levels, strict=False)),
        gates=fleet.GatePlan(merge=AccessLevel.TRUSTED),
        approve_plan=False,
    )


def renewed_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return such a plan with budgets that are refilled after some hours."""
    of = limited_plan(agents, tasks)
    budget = msgspec.structs.replace(of.budget, period_ms=5 * 60 * MINUTE_MS)
    return msgspec.structs.replace(of, name=f"renewed-{agents}x{tasks}", budget=budget)


def stalling_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan with watched sessions: some are interrupted when they are silent, some not."""
    of = plan(agents, tasks)
    ladders = cycle((stall_detector.Limits(nudge_ms=90 * SECOND_MS), stall_detector.Limits()))
    watched = tuple(msgspec.structs.replace(each, stall=stall) for each, stall in zip(of.agents, ladders, strict=False))
    return msgspec.structs.replace(of, name=f"stalling-{of.name}", agents=watched)


def asking_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return such a plan whose sessions may ask operators; silence is a refusal after ten minutes."""
    of = stalling_plan(agents, tasks)
    terms = question.Terms(10 * MINUTE_MS, (StandingAnswer("Read", "a", allows=True),))
    return msgspec.structs.replace(of, name=f"asking-{agents}x{tasks}", questions=terms)


def turns_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan whose sessions are followed, so that each claim is a turn; every second task is verified."""
    of = plan(agents, tasks)
    checks = cycle(((("make", "check"),), ()))
    return msgspec.structs.replace(
        of,
        name=f"turns-{of.name}",
        agents=tuple(msgspec.structs.replace(each, follows=True) for each in of.agents),
        tasks=tuple(msgspec.structs.replace(each, verify=so) for each, so in zip(of.tasks, checks, strict=False)),
    )


def steering_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return such a plan in which the running sessions of every second agent take messages."""
    of = turns_plan(agents, tasks)
    steers = cycle((True, False))
    return msgspec.structs.replace(
        of,
        name=f"steering-{agents}x{tasks}",
        agents=tuple(msgspec.structs.replace(each, steers=so) for each, so in zip(of.agents, steers, strict=False)),
    )


def restarted_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan whose agents stop at the second error, and restart twice in half an hour; all together as often.

    Tasks have enough retries for all of that.
    """
    of, half_an_hour_ms = plan(agents, tasks), 30 * MINUTE_MS
    restart = Restart(max_restarts=2, window_ms=half_an_hour_ms)
    limits = session.Limits(max_consecutive_errors=2, max_total_errors=2)
    return msgspec.structs.replace(
        of,
        name=f"restarts-{agents}x{tasks}",
        agents=tuple(msgspec.structs.replace(each, limits=limits, restart=restart) for each in of.agents),
        tasks=tuple(msgspec.structs.replace(each, max_retries=9) for each in of.tasks),
        restarts=Intensity(max_restarts=1 + agents, window_ms=half_an_hour_ms),
    )


def preempting_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan in which tasks of four priorities preempt each other, and every second agent is a reviewer.

    Urgent tasks come late, because they depend on others. Every fourth task requires a reviewer.
    """
    of = plan(agents, tasks)
    roles = cycle((("reviewer",), ()))
    return msgspec.structs.replace(
        of,
        name=f"preempting-{agents}x{tasks}",
        agents=tuple(msgspec.structs.replace(each, roles=has) for each, has in zip(of.agents, roles, strict=False)),
        tasks=tuple(
            msgspec.structs.replace(
                each,
                priority=1 + (tasks - place) % 4,
                depends_on=(f"T{place - 1}",) if place % 2 == 0 else (),
                role="reviewer" if place % 4 == 0 else "",
            )
            for place, each in enumerate(of.tasks, 1)
        ),
        preemption=fleet.Preemption(MINUTE_MS),
    )


def quota_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan in which of every four agents two share an account, one has another one, and one has none."""
    of = plan(agents, tasks)
    owners = cycle(("left", "left", "right", ""))
    return msgspec.structs.replace(
        of,
        name=f"quota-{agents}x{tasks}",
        agents=tuple(msgspec.structs.replace(each, account=has) for each, has in zip(of.agents, owners, strict=False)),
    )


def aborts_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan in which most tasks may be split, also their parts, and aborts reach whole families.

    Every second task requires an approval, and every third depends on the two before it.
    """
    of = plan(agents, tasks)
    return msgspec.structs.replace(
        of,
        name=f"aborts-{agents}x{tasks}",
        tasks=tuple(
            msgspec.structs.replace(each, most_subtasks=place % 4 * 2, needs_approval=place % 2 == 0)
            for place, each in enumerate(of.tasks, 1)
        ),
        aborts=AbortPolicy(tool_to_sibling=True, sibling_to_session=tasks % 2 == 0),
    )


def serving_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan with as many services as agents: they restart, idle, are renewed, or do not."""
    of = plan(agents, tasks)
    lives = cycle(
        (
            process.Limits(restart_policy="on_failure", max_consecutive_failures=2, idle_timeout_ms=10 * MINUTE_MS),
            process.Limits(restart_policy="always", max_lifetime_ms=60 * MINUTE_MS, drain_timeout_ms=MINUTE_MS),
            process.Limits(),
        )
    )
    serve = tuple(
        fleet.ServicePlan(f"service-{n}", next(lives), triggers=(Every(n * 30 * SECOND_MS),), takes_messages=True)
        for n in range(1, agents + 1)
    )
    return msgspec.structs.replace(of, name=f"serving-{of.name}", services=serve)


def orphans_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return such a plan whose tasks become orphans when their watched sessions die.

    Of three orphaned tasks two are verified, the second with an approval; the third is given back.
    """
    of = restarted_plan(agents, tasks)
    verified: dict[str, Any] = {"verify": (("make", "check"),), "orphaned": OnDeath.VERIFY}
    policies = cycle((verified, verified | {"needs_approval": True}, {"orphaned": OnDeath.REQUEUE}))
    return msgspec.structs.replace(
        of,
        name=f"orphans-{agents}x{tasks}",
        agents=tuple(msgspec.structs.replace(each, stall=stall_detector.Limits()) for each in of.agents),
        tasks=tuple(msgspec.structs.replace(each, **so) for each, so in zip(of.tasks, policies, strict=False)),
    )


def talking_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan with money for all sessions, whose followed agents treat conversations in different ways.

    The programs of some name their conversations, others accept an identifier, one in three keeps none. Every second
    task begins a retry with another conversation.
    """
    of = plan(agents, tasks)
    ways = cycle((fleet.Talks(chooses=True, resumes=True), fleet.Talks(chooses=False, resumes=True), None))
    talking = tuple(
        msgspec.structs.replace(each, talks=talks, follows=True) for each, talks in zip(of.agents, ways, strict=False)
    )
    return msgspec.structs.replace(
        of,
        name=f"talking-{of.name}",
        agents=talking,
        tasks=tuple(msgspec.structs.replace(each, anew=bool(place % 2)) for place, each in enumerate(of.tasks)),
        budget=_with_money(fleet.Budget(), tasks),
    )


def _with_money(of: fleet.Budget, tasks: int) -> fleet.Budget:
    """Return a budget with money for so many tasks; each claim is given a little of it."""
    caps = msgspec.structs.replace(of.caps, microusd=1_000 * tasks)
    return msgspec.structs.replace(of, caps=caps, share=msgspec.structs.replace(of.share, microusd=10))


def mixed_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan with all parts at once, for their interactions; some sessions have adaptive timeouts."""
    plain = plan(agents, tasks)
    of = plain
    for features in (
        *(governed_plan, trusted_plan, renewed_plan, stalling_plan, restarted_plan, orphans_plan),
        *(aborts_plan, serving_plan, preempting_plan, quota_plan, turns_plan, asking_plan, talking_plan, notified_plan),
        steering_plan,
    ):
        of = _with(of, features(agents, tasks), plain)
    adaptive = cycle((True, False))
    paced = tuple(msgspec.structs.replace(each, adaptive=so) for each, so in zip(of.agents, adaptive, strict=False))
    budget = _with_money(renewed_plan(agents, tasks).budget, tasks)
    return msgspec.structs.replace(of, name=f"mixed-{agents}x{tasks}", agents=paced, approve_plan=False, budget=budget)


def telling_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan with much to tell, and two notifiers: of everything, and of closed tasks."""
    plain = plan(agents, tasks)
    of = plain
    for features in (asking_plan, governed_plan, limited_plan, quota_plan, serving_plan):
        of = _with(of, features(agents, tasks), plain)
    return msgspec.structs.replace(of, name=f"telling-{agents}x{tasks}", notify=notified_plan(agents, tasks).notify)


def notified_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan with two notifiers: of everything, and of closed tasks."""
    notify = (
        fleet.NotifierPlan("all", tuple(NotificationKind)),
        fleet.NotifierPlan("closed", (NotificationKind.CLOSED,), retries=1),
    )
    return msgspec.structs.replace(plan(agents, tasks), notify=notify)


def _with(of: S, other: S, plain: S) -> S:
    """Return a value with the changes that another one has against a plain one, field by field."""
    fields = ((each, getattr(of, each), getattr(other, each), getattr(plain, each)) for each in of.__struct_fields__)
    return msgspec.structs.replace(of, **{name: _merged(*values) for name, *values in fields})


def _merged(of: Any, other: Any, plain: Any) -> Any:
    """Return a value with the change that another one has against a plain one."""
    if other == plain:
        return of
    if isinstance(of, msgspec.Struct) and type(of) is type(other) is type(plain):
        return _with(of, other, plain)
    many: list[tuple[Any, ...]] = [each for each in (of, other, plain) if isinstance(each, tuple)]
    sizes = {len(each) for each in many}
    if len(many) < len((of, other, plain)) or len(sizes) != 1 or not isinstance(many[0][0], msgspec.Struct):
        return other
    return tuple(_with(*each) for each in zip(*many, strict=True))


KINDS: Final = {
    "": plan,
    "governed-": governed_plan,
    "trusted-": trusted_plan,
    "limited-": limited_plan,
    "renewed-": renewed_plan,
    "stalling-": stalling_plan,
    "asking-": asking_plan,
    "telling-": telling_plan,
    "turns-": turns_plan,
    "steering-": steering_plan,
    "restarts-": restarted_plan,
    "preempting-": preempting_plan,
    "quota-": quota_plan,
    "aborts-": aborts_plan,
    "serving-": serving_plan,
    "orphans-": orphans_plan,
    "talking-": talking_plan,
    "messages-": plan,
    "mixed-": mixed_plan,
}
"""The kinds of fleets, by the part of their names before the size."""
