"""The fleets that are simulated by name: what a fleet may have is on in some of them, each by itself, or all of it."""

from collections.abc import Iterator
from itertools import cycle
from typing import Any, Final, TypeVar

import msgspec

from lifefold.core import fleet
from lifefold.core.fleet.worker import stall_detector
from lifefold.core.lifecycles import process, session
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.core.lifecycles.task import OnDeath
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.effects import Every

S = TypeVar("S", bound=msgspec.Struct)

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS


def plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan in which every third task waits for the two before it, and priorities differ."""
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
    """Return a plan that a person approves, whose tasks take roles, change the same files, need a word, and are split.

    Every second agent is a reviewer, and more tasks may come. What a task asks for goes round: a reviewer, a person's
    word before it is merged, to be split in two, nothing. Two neighbours change the same file, and every fifth task
    waits for the one before it.
    """
    of = plan(agents, tasks)
    roles = cycle((("reviewer",), ()))
    asked: Iterator[dict[str, Any]] = cycle(({"role": "reviewer"}, {"asks": True}, {"most_subtasks": 2}, {}))
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
    """Return a plan with budgets for sessions and for time, which are spent before all is done if much goes wrong.

    There is one for all; every second agent has its own, and every second task. Every third task may be split. No
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
    """Return a plan that people govern, in which every second task takes trust, which agents have to earn.

    Only one who is trusted has its work merged unseen; the last agent is so from the beginning.
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
    """Return such a plan whose budgets are filled anew after some hours."""
    of = limited_plan(agents, tasks)
    budget = msgspec.structs.replace(of.budget, period_ms=5 * 60 * MINUTE_MS)
    return msgspec.structs.replace(of, name=f"renewed-{agents}x{tasks}", budget=budget)


def stalling_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan for agents whose sessions are watched: some are interrupted when they are silent, some not."""
    of = plan(agents, tasks)
    ladders = cycle((stall_detector.Limits(nudge_ms=90 * SECOND_MS), stall_detector.Limits()))
    watched = tuple(msgspec.structs.replace(each, stall=stall) for each, stall in zip(of.agents, ladders, strict=False))
    return msgspec.structs.replace(of, name=f"stalling-{of.name}", agents=watched)


def restarted_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan whose agents may err once, and are restarted twice in half an hour; all together as often as many.

    Tasks are tried again often enough for all of that.
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
    """Return a plan in which tasks of four priorities make room for each other, and every second agent is a reviewer.

    What comes first comes late: it waits for others. Every fourth task is for a reviewer.
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


def aborts_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan in which most tasks may be split, and their parts again, and whoever aborts takes others along.

    Every second task has a person agree to it, and every third waits for the two before it.
    """
    of = plan(agents, tasks)
    return msgspec.structs.replace(
        of,
        name=f"aborts-{agents}x{tasks}",
        tasks=tuple(
            msgspec.structs.replace(each, most_subtasks=place % 4 * 2, asks=place % 2 == 0)
            for place, each in enumerate(of.tasks, 1)
        ),
        aborts=AbortPolicy(tool_to_sibling=True, sibling_to_session=tasks % 2 == 0),
    )


def serving_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan with as many services as agents: they come back, idle, and are renewed, or do not."""
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
    """Return such a plan whose tasks become orphans when sessions die, which are watched, too.

    Of three tasks what is left of two is verified, and a person has to agree to the second; the third is given back.
    """
    of = restarted_plan(agents, tasks)
    verified: dict[str, Any] = {"verify": (("make", "check"),), "orphaned": OnDeath.VERIFY}
    policies = cycle((verified, verified | {"asks": True}, {"orphaned": OnDeath.REQUEUE}))
    return msgspec.structs.replace(
        of,
        name=f"orphans-{agents}x{tasks}",
        agents=tuple(msgspec.structs.replace(each, stall=stall_detector.Limits()) for each in of.agents),
        tasks=tuple(msgspec.structs.replace(each, **so) for each, so in zip(of.tasks, policies, strict=False)),
    )


def mixed_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan with everything at once, where features meet; how long sessions may take others say, for some."""
    plain = plan(agents, tasks)
    of = plain
    for features in (
        *(governed_plan, trusted_plan, renewed_plan, stalling_plan, restarted_plan, orphans_plan),
        *(aborts_plan, serving_plan, preempting_plan),
    ):
        of = _with(of, features(agents, tasks), plain)
    adaptive = cycle((True, False))
    paced = tuple(msgspec.structs.replace(each, adaptive=so) for each, so in zip(of.agents, adaptive, strict=False))
    return msgspec.structs.replace(of, name=f"mixed-{agents}x{tasks}", agents=paced, approve_plan=False)


def _with(of: S, other: S, plain: S) -> S:
    """Return something with what another one has that a plain one has not; of what they consist of, one by one."""
    fields = ((each, getattr(of, each), getattr(other, each), getattr(plain, each)) for each in of.__struct_fields__)
    return msgspec.structs.replace(of, **{name: _merged(*values) for name, *values in fields})


def _merged(of: Any, other: Any, plain: Any) -> Any:
    """Return a value with what another one has that a plain one has not."""
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
    "restarts-": restarted_plan,
    "preempting-": preempting_plan,
    "aborts-": aborts_plan,
    "serving-": serving_plan,
    "orphans-": orphans_plan,
    "mixed-": mixed_plan,
}
"""The kinds of fleets, by what their names have before the size."""
