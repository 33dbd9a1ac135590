"""What can be simulated by name: every shipped lifecycle and system, and whatever somebody else's module has.

The names are those of ``check``. The fleet has a plan of its own here, larger than what can be searched, and an
environment: sessions take minutes, a process that is asked to end does. ``fleet-20x200`` is one of twenty agents with
two hundred tasks, and so on; ``fleet-governed``, or ``fleet-governed-20x200``, one in which people have their say, and
``fleet-trusted`` the same where agents have to earn what they may do. In ``fleet-limited`` there are budgets, in
``fleet-renewed`` they are filled anew, in ``fleet-stalling`` sessions are watched, and fall silent, in
``fleet-restarts`` agents that stop by their errors are begun anew, in ``fleet-orphans`` what dead sessions have left is
verified, too, in ``fleet-preempting`` tasks make room for those that come first, and in ``fleet-aborts`` tools, parts
and whole subtrees are aborted. In ``fleet-serving`` there are services beside them.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import cycle
from typing import Any, Final

import msgspec

from lifefold.core import fleet, process, session
from lifefold.core.budget.amounts import Amounts
from lifefold.core.fleet import pulse, trigger
from lifefold.core.kernel import Aggregate, Entity, Machine, System, alone
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.access import AccessLevel
from lifefold.core.policy.intensity import Intensity, Restart
from lifefold.core.task import OnDeath
from lifefold.effects import (
    Activity,
    AwaitTrigger,
    CancelSession,
    CheckOutWork,
    Every,
    InspectWork,
    MergeWork,
    ParkWork,
    PrepareWorktree,
    RunSession,
    VerifyWork,
    WatchOutput,
)
from lifefold.interpreters.check import targets as checked
from lifefold.interpreters.check.targets import UnusableTarget
from lifefold.interpreters.simulate.choices import Choices
from lifefold.interpreters.simulate.environment import Environment, Said
from lifefold.interpreters.simulate.inputs import Opening

__all__ = [
    "ALONE",
    "FLEET",
    "Target",
    "UnusableTarget",
    "fleet_of",
    "governed_plan",
    "named",
    "plan",
    "preempting_plan",
    "restarted_plan",
    "target",
    "trusted_plan",
]

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS

MOST_AGENTS: Final = 9_999
MOST_TASKS: Final = 99_999
"""How large a fleet may be."""


class Target(msgspec.Struct, frozen=True):
    """Something to simulate; ``smaller`` are those in which what is found here may be found, too, or their names."""

    name: str
    subject: Machine[Any] | System
    opening: Opening
    environment: Environment
    smaller: "tuple[str | Target, ...]" = ()

    @property
    def system(self) -> System:
        """The system that is simulated; of a machine, the one in which it is alone."""
        return alone(self.subject)[0] if isinstance(self.subject, Machine) else self.subject


def watched(aggregate: Aggregate, entity: Entity[Any], activity: Activity, choices: Choices) -> Iterator[Said]:
    """Yield what is said of a session that is watched: nothing if it moves; else that it falls silent, for how long.

    Out of one silence in four it comes by itself after a step of the ladder; another one may follow.
    """
    assert isinstance(activity, WatchOutput)  # noqa: S101 - it is the script of that
    running = entity.find(WatchOutput.__name__)
    assert running is not None  # noqa: S101 - as it begins now
    name = (aggregate.name, entity.ref, WatchOutput.__name__, running.generation)
    for place in range(_SILENCES):
        steps = choices.way(("falls silent", *name, place), len(activity.steps_ms) + 1, 0.4)
        moves_ms = choices.any_way(("moves", *name, place), 4) * 2 * MINUTE_MS
        for taken, silent_ms in enumerate(activity.steps_ms[:steps]):
            before_ms = activity.steps_ms[taken - 1] if taken else -moves_ms
            yield Said(silent_ms - before_ms, pulse.Silent(silent_ms))
        if steps:
            yield Said(SECOND_MS, pulse.Stirred())


def triggered(aggregate: Aggregate, entity: Entity[Any], activity: Activity, choices: Choices) -> Iterator[Said]:
    """Yield what is said of a trigger that is waited for: that it has come, again and again, sooner or later."""
    assert isinstance(activity, AwaitTrigger)  # noqa: S101 - it is the script of that
    running = entity.find(AwaitTrigger.__name__)
    assert running is not None  # noqa: S101 - as it begins now
    name = (aggregate.name, entity.ref, AwaitTrigger.__name__, running.generation)
    for place in range(_TRIGGERS):
        late = choices.any_way(("comes late", *name, place), 4)
        every_ms = activity.source.every_ms if isinstance(activity.source, Every) else MINUTE_MS
        yield Said(every_ms + late * 10 * SECOND_MS, trigger.Triggered())


_TRIGGERS: Final = 20
"""How often a trigger may come in a simulation, while its service is up."""

_SILENCES: Final = 3
"""How often a session may fall silent in a simulation."""


FLEET: Final = Environment(
    durations_ms={
        PrepareWorktree: (200, 5 * SECOND_MS),
        CheckOutWork: (100, 2 * SECOND_MS),
        RunSession: (2 * SECOND_MS, 20 * MINUTE_MS),
        InspectWork: (100, 2 * SECOND_MS),
        VerifyWork: (SECOND_MS, 5 * MINUTE_MS),
        ParkWork: (100, 5 * SECOND_MS),
        MergeWork: (100, 5 * SECOND_MS),
    },
    scripts={WatchOutput: watched, AwaitTrigger: triggered},
    hastens={CancelSession: (RunSession,)},
    people_ms=(5 * SECOND_MS, 30 * MINUTE_MS),
)
"""The world around a fleet: agents that take minutes, tests that take less, git that takes seconds."""


ALONE: Final = Environment(
    people_ms=(SECOND_MS, 10 * MINUTE_MS), parts=(64, 64, 16, 16, 4, 4, 1), rates={"people": 0.6}
)
"""The world around a machine by itself: most of what happens to it is said by people, and much of it soon."""


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

    There is one for all; every second agent has its own, and every second task. Every third task may be split.
    """
    of = plan(agents, tasks)
    hour_ms = 60 * MINUTE_MS
    own, none = fleet.Caps(time_ms=2 * hour_ms, sessions=4), fleet.Caps()
    return msgspec.structs.replace(
        of,
        name=f"limited-{agents}x{tasks}",
        agents=tuple(
            msgspec.structs.replace(each, caps=own if place % 2 else none) for place, each in enumerate(of.agents)
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
    ladders = cycle((pulse.Limits(nudge_ms=90 * SECOND_MS), pulse.Limits()))
    watched = tuple(msgspec.structs.replace(each, stall=stall) for each, stall in zip(of.agents, ladders, strict=False))
    return msgspec.structs.replace(of, name=f"stalling-{of.name}", agents=watched)


def restarted_plan(agents: int, tasks: int) -> fleet.Plan:
    """Return a plan whose agents may err once, and are begun anew twice in half an hour; all together as often as many.

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
        agents=tuple(msgspec.structs.replace(each, stall=pulse.Limits()) for each in of.agents),
        tasks=tuple(msgspec.structs.replace(each, **so) for each, so in zip(of.tasks, policies, strict=False)),
    )


_PLANS: Final = {
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
}
"""The kinds of fleets, by what their names have before the size."""


def fleet_of(agents: int, tasks: int, name: str = "", *, kind: str = "") -> Target:
    """Return a fleet of so many agents with a plan of so many tasks, of this kind."""
    sizes = [(a, t) for a, t in _SIZES if a <= agents and t <= tasks and (a, t) != (agents, tasks)]
    smaller = tuple(f"fleet-{kind}{a}x{t}" for a, t in sizes)
    opening = tuple(fleet.opening(_PLANS[kind](agents, tasks), 0))
    return Target(name or f"fleet-{kind}{agents}x{tasks}", fleet.system, opening, FLEET, smaller)


_SIZES: Final = ((1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (2, 3), (3, 3))
"""The sizes of fleets, agents and tasks, in which what was found in a larger one is looked for, first to last."""


def named(name: str) -> Target:
    """Return the target of a name, or of ``module:attribute``. Raises ``UnusableTarget``."""
    sized = re.fullmatch(rf"fleet-({'|'.join(_PLANS)})(\d{{1,9}})x(\d{{1,9}})", name)
    if sized is not None:
        agents, tasks = int(sized[2]), int(sized[3])
        if not (1 <= agents <= MOST_AGENTS and 1 <= tasks <= MOST_TASKS):
            raise UnusableTarget(f"{name}: a fleet has 1 to {MOST_AGENTS} agents and 1 to {MOST_TASKS} tasks here")
        return fleet_of(agents, tasks, kind=sized[1])
    if name == "fleet":
        return fleet_of(3, 9, name)
    if f"{name.removeprefix('fleet-')}-" in _PLANS:
        return fleet_of(3, 9, kind=f"{name.removeprefix('fleet-')}-")
    found = checked.named(name)
    return target(found.subject, tuple(found.opening), name=name)


def target(
    subject: Machine[Any] | System,
    opening: Opening = (),
    *,
    environment: Environment | None = None,
    name: str = "",
    smaller: Iterable[Target] = (),
) -> Target:
    """Return somebody's own machine, or system with its opening, as a target."""
    around = environment or (ALONE if isinstance(subject, Machine) else Environment())
    return Target(name or subject.name, subject, tuple(opening), around, tuple(smaller))
