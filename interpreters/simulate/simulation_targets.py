"""What can be simulated by name: every shipped lifecycle and system, and whatever somebody else's module has.

The names are those of ``check``. The fleet has a plan of its own here, larger than what can be searched, and an
environment: sessions take minutes, a process that is asked to end does. ``fleet-20x200`` is one of twenty agents with
two hundred tasks, and so on; ``fleet-governed``, or ``fleet-governed-20x200``, one in which people have their say, and
``fleet-trusted`` the same where agents have to earn what they may do. In ``fleet-limited`` there are budgets, in
``fleet-renewed`` they are filled anew, in ``fleet-stalling`` sessions are watched, and fall silent, in
``fleet-restarts`` agents that stop by their errors are restarted, in ``fleet-orphans`` what dead sessions have left is
verified, too, in ``fleet-preempting`` tasks make room for those that come first, and in ``fleet-aborts`` tools, parts
and whole subtrees are aborted. In ``fleet-serving`` there are services beside them; ``fleet-mixed`` has all of that
at once.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from lifefold.core import fleet
from lifefold.core.fleet.service import trigger
from lifefold.core.fleet.worker import stall_detector
from lifefold.core.kernel import Aggregate, Entity, Machine, System, alone
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
from lifefold.interpreters.simulate.choices import Choices
from lifefold.interpreters.simulate.environment import Environment, Said
from lifefold.interpreters.simulate.fleet_plans import KINDS, MINUTE_MS, SECOND_MS, plan
from lifefold.interpreters.simulate.inputs import Opening
from lifefold.interpreters.targets import check_targets as checked
from lifefold.interpreters.targets.check_targets import UnusableTarget

__all__ = [
    "ALONE",
    "FLEET",
    "Target",
    "UnusableTarget",
    "fleet_of",
    "named",
    "plan",
    "target",
]

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

    Out of one silence in four it comes by itself after a step of the ladder; another one may follow. One that comes out
    of a nudge has answered it, and moves on or not.
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
            yield Said(silent_ms - before_ms, stall_detector.Silent(silent_ms))
        if steps:
            yield Said(SECOND_MS, stall_detector.Stirred())
        if steps == _NUDGE and steps < len(activity.steps_ms):
            answer_ms = activity.steps_ms[steps] - activity.steps_ms[steps - 1]
            hangs_on = choices.way(("hangs on", *name, place), 2, 0.5)
            yield Said(answer_ms, stall_detector.Silent(answer_ms) if hangs_on else stall_detector.Stirred(answer_ms))


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

_NUDGE: Final = 2
"""Which step of the ladder is the nudge, if there is one."""

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


def fleet_of(agents: int, tasks: int, name: str = "", *, kind: str = "") -> Target:
    """Return a fleet of so many agents with a plan of so many tasks, of this kind."""
    sizes = [(a, t) for a, t in _SIZES if a <= agents and t <= tasks and (a, t) != (agents, tasks)]
    smaller = tuple(f"fleet-{kind}{a}x{t}" for a, t in sizes)
    opening = tuple(fleet.opening(KINDS[kind](agents, tasks), 0))
    return Target(name or f"fleet-{kind}{agents}x{tasks}", fleet.system, opening, FLEET, smaller)


_SIZES: Final = ((1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (2, 3), (3, 3))
"""The sizes of fleets, agents and tasks, in which what was found in a larger one is looked for, first to last."""


def named(name: str) -> Target:
    """Return the target of a name, or of ``module:attribute``. Raises ``UnusableTarget``."""
    sized = re.fullmatch(rf"fleet-({'|'.join(KINDS)})(\d{{1,9}})x(\d{{1,9}})", name)
    if sized is not None:
        agents, tasks = int(sized[2]), int(sized[3])
        if not (1 <= agents <= MOST_AGENTS and 1 <= tasks <= MOST_TASKS):
            raise UnusableTarget(f"{name}: a fleet has 1 to {MOST_AGENTS} agents and 1 to {MOST_TASKS} tasks here")
        return fleet_of(agents, tasks, kind=sized[1])
    if name == "fleet":
        return fleet_of(3, 9, name)
    if f"{name.removeprefix('fleet-')}-" in KINDS:
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
