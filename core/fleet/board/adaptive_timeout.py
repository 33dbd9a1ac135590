"""How long a session may take, by how long those before it took: what the board remembers of them (E33).

The board remembers how long the sessions took by which tasks were said to be done, the latest of each role, if their
agents are ``adaptive``. Whoever of these claims a task is told with it for how long a session of it may take: what the
formula in ``core.policy.adaptive_timeout`` says of a task of medium size with this role and so many files. What is
remembered can only lengthen that; so until enough is known, it is the formula's plain value. It is never less than 5
minutes and never more than 2 hours, and holds for the whole claim, however many sessions that has.

Only the present owner's word that its task is done counts (E12), and only what the session took that did it. It counts
when it is said, before anybody has verified the work: how long a session needs is not changed by what comes of it.
"""

import msgspec

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.board.fleet_task import machine as of_tasks
from lifefold.core.kernel import Aggregate, Property, Transition, always, replace
from lifefold.core.lifecycles import task
from lifefold.core.policy.adaptive_timeout import LONGEST_MS, SHORTEST_MS, PastRun, Work, estimate

VIEW = "pace"

MOST_RUNS = 20
"""How many sessions of each role are remembered: those of long ago say little of what tasks take now."""


class PastSessions(msgspec.Struct, frozen=True):
    """The sessions that are remembered, the oldest first: after each its owner said that the task was done."""

    runs: tuple[PastRun, ...] = ()

    def limit_ms(self, role: str, files: int) -> int:
        """Return for how long a session may take of a task with this role that changes so many files."""
        return estimate(Work(role=role, owned_files=files), self.runs).timeout_ms


def fold(pace: PastSessions, transition: Transition) -> PastSessions:
    """Remember the session by which a task is said to be done, and forget the oldest if its role has too many."""
    event = transition.event
    if transition.machine != of_tasks.name or not isinstance(event, task.Completed) or event.took_ms <= 0:
        return pace
    role = transition.after.record.role
    alike = [place for place, each in enumerate(pace.runs) if each.role == role]
    oldest = alike[0] if len(alike) == MOST_RUNS else None
    kept = (each for place, each in enumerate(pace.runs) if place != oldest)
    return replace(pace, runs=(*kept, PastRun(role, "done", event.took_ms)))


def pace_of(board: Aggregate) -> PastSessions:
    """Return what the board remembers."""
    found: PastSessions = board.views[VIEW]
    return found


def limit_ms(board: Aggregate, record: FleetTask) -> int:
    """Return for how long a session of a task may take in its owner's hands; 0 if that does not depend on others."""
    owner = board.entities.get(f"worker_slot:{record.owner}")
    is_adaptive = owner is not None and owner.record.adaptive
    return pace_of(board).limit_ms(record.role, len(record.files)) if is_adaptive else 0


def differs(worker: Aggregate) -> bool:
    """Tell whether a session of the claim in hand may take another time than the last one, by what others took."""
    said_ms: int = worker.record("assignment").brief.timeout_ms
    return said_ms > 0 and worker.record("session").limits.session_timeout_ms != said_ms


def took_ms(brief: task.Brief, transition: Transition) -> int:
    """Return how long a session took that has just ended; 0 where nobody wants to know."""
    if transition.before is None or not brief.timeout_ms:
        return 0
    return max(0, transition.at_ms - transition.before.entered_ms)


def is_within_bounds(board: Aggregate) -> bool:
    """A session has five minutes, and never more than two hours; what is remembered never shortens its time."""
    pace = pace_of(board)
    limits = {role: pace.limit_ms(role, 0) for role in ("", *(each.role for each in pace.runs))}
    return all(
        SHORTEST_MS <= limit <= LONGEST_MS and limit >= PastSessions().limit_ms(role, 0)
        for role, limit in limits.items()
    )


def is_bounded(board: Aggregate) -> bool:
    """Of no role more sessions are remembered than are to be, and none that took no time."""
    runs = pace_of(board).runs
    roles = [each.role for each in runs]
    return all(roles.count(role) <= MOST_RUNS for role in dict.fromkeys(roles)) and all(
        each.duration_ms > 0 for each in runs
    )


PROPERTIES: tuple[Property[Aggregate], ...] = (
    always("a session may take five minutes, and never more than two hours", is_within_bounds),
    always("of each role the latest sessions are remembered, and no more", is_bounded),
)
