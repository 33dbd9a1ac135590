"""What can be simulated by name: every shipped lifecycle and system, and whatever somebody else's module has.

The names are those of ``check``. The fleet has a plan of its own here, larger than what can be searched, and an
environment: sessions take minutes, a process that is asked to end does. ``fleet-20x200`` is one of twenty agents with
two hundred tasks, and so on.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from lifefold.core import fleet
from lifefold.core.kernel import Machine, System, alone
from lifefold.effects import CancelSession, CheckOutWork, MergeWork, PrepareWorktree, RunSession, VerifyWork
from lifefold.interpreters.check import targets as checked
from lifefold.interpreters.check.targets import UnusableTarget
from lifefold.interpreters.simulate.environment import Environment
from lifefold.interpreters.simulate.inputs import Opening

__all__ = ["ALONE", "FLEET", "Target", "UnusableTarget", "fleet_of", "named", "plan", "target"]

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS


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


FLEET: Final = Environment(
    durations_ms={
        PrepareWorktree: (200, 5 * SECOND_MS),
        CheckOutWork: (100, 2 * SECOND_MS),
        RunSession: (2 * SECOND_MS, 20 * MINUTE_MS),
        VerifyWork: (SECOND_MS, 5 * MINUTE_MS),
        MergeWork: (100, 5 * SECOND_MS),
    },
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


def fleet_of(agents: int, tasks: int, name: str = "") -> Target:
    """Return a fleet of so many agents with a plan of so many tasks."""
    smaller = tuple(f"fleet-{a}x{t}" for a, t in _SIZES if a <= agents and t <= tasks and (a, t) != (agents, tasks))
    opening = tuple(fleet.opening(plan(agents, tasks), 0))
    return Target(name or f"fleet-{agents}x{tasks}", fleet.system, opening, FLEET, smaller)


_SIZES: Final = ((1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (2, 3), (3, 3))
"""The sizes of fleets, agents and tasks, in which what was found in a larger one is looked for, first to last."""


def named(name: str) -> Target:
    """Return the target of a name, or of ``module:attribute``. Raises ``UnusableTarget``."""
    sized = re.fullmatch(r"fleet-([1-9]\d{0,3})x([1-9]\d{0,4})", name)
    if sized is not None:
        return fleet_of(int(sized[1]), int(sized[2]))
    if name == "fleet":
        return fleet_of(3, 9, name)
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
