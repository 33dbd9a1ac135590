"""The time limit of a session, estimated from the durations of earlier sessions (decision E33).

The board remembers the durations of the latest successful sessions of each role, for agents that are ``adaptive``. A
claim of such an agent carries a time limit for its sessions. The formula in ``core.policy.adaptive_timeout`` computes
it from the role and the number of files of the task. Remembered durations can only lengthen the formula's plain value.
The limit is between 5 minutes and 2 hours, and is the same for all sessions of a claim.

Only a report of the current owner counts (E12), and only the duration of the session that completed the task. The
report counts before the work is verified: the verification does not change how long the session took.
"""

import msgspec

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.fleet.board.fleet_task import machine as of_tasks
from lifefold.core.kernel import Aggregate, Property, Transition, always, replace
from lifefold.core.lifecycles import task
from lifefold.core.policy.adaptive_timeout import LONGEST_MS, SHORTEST_MS, PastRun, Work, estimate

VIEW = "pace"

MOST_RUNS = 20
"""How many sessions of each role are remembered: old durations say little about current tasks."""


class PastSessions(msgspec.Struct, frozen=True):
    """The remembered sessions, oldest first. Each of them completed its task, by its owner's report."""

    runs: tuple[PastRun, ...] = ()

    def limit_ms(self, role: str, files: int) -> int:
        """Return the time limit of a session, for a task of this role and with this number of files."""
        return estimate(Work(role=role, owned_files=files), self.runs).timeout_ms


def fold(pace: PastSessions, transition: Transition) -> PastSessions:
    """Remember the session that completed a task; forget the oldest one of its role if there are too many."""
    event = transition.event
    if transition.machine != of_tasks.name or not isinstance(event, task.Completed) or event.took_ms <= 0:
        return pace
    role = transition.after.record.role
    alike = [place for place, each in enumerate(pace.runs) if each.role == role]
    oldest = alike[0] if len(alike) == MOST_RUNS else None
    kept = (each for place, each in enumerate(pace.runs) if place != oldest)
    return replace(pace, runs=(*kept, PastRun(role, "done", event.took_ms)))


def pace_of(board: Aggregate) -> PastSessions:
    """Return the sessions that the board remembers."""
    found: PastSessions = board.views[VIEW]
    return found


def limit_ms(board: Aggregate, record: FleetTask) -> int:
    """Return the time limit of the owner's sessions at a task, in milliseconds; 0 if the owner is not adaptive."""
    owner = board.entities.get(f"worker_slot:{record.owner}")
    is_adaptive = owner is not None and owner.record.adaptive
    return pace_of(board).limit_ms(record.role, len(record.files)) if is_adaptive else 0


def differs(worker: Aggregate) -> bool:
    """Tell whether the current claim has an adaptive time limit that its session does not have yet."""
    limit_of_claim_ms: int = worker.record("assignment").brief.timeout_ms
    return limit_of_claim_ms > 0 and worker.record("session").limits.session_timeout_ms != limit_of_claim_ms


def took_ms(brief: task.Brief, transition: Transition) -> int:
    """Return how long the session took that has just ended; 0 if its claim has no adaptive time limit."""
    if transition.before is None or not brief.timeout_ms:
        return 0
    return max(0, transition.at_ms - transition.before.entered_ms)


def is_within_bounds(board: Aggregate) -> bool:
    """Every time limit is between five minutes and two hours, and no remembered session shortens it."""
    pace = pace_of(board)
    limits = {role: pace.limit_ms(role, 0) for role in ("", *(each.role for each in pace.runs))}
    return all(
        SHORTEST_MS <= limit <= LONGEST_MS and limit >= PastSessions().limit_ms(role, 0)
        for role, limit in limits.items()
    )


def is_bounded(board: Aggregate) -> bool:
    """At most ``MOST_RUNS`` sessions of each role are remembered, each with a positive duration."""
    runs = pace_of(board).runs
    roles = [each.role for each in runs]
    return all(roles.count(role) <= MOST_RUNS for role in dict.fromkeys(roles)) and all(
        each.duration_ms > 0 for each in runs
    )


PROPERTIES: tuple[Property[Aggregate], ...] = (
    always("a session's time limit is between five minutes and two hours", is_within_bounds),
    always("only the latest sessions of each role are remembered", is_bounded),
)
