"""The assessments of agents in document 004: visual states, adaptive timeouts of tasks, graduated access.

Times are in seconds here, as in the document. Invalid arguments raise ``TypeError`` or ``ValueError``.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from threading import RLock
from typing import Any, Final, NamedTuple, cast

from lifefold.core.policy import access, adaptive_timeout, visual
from lifefold.core.policy.access import AccessLevel, Capabilities, Gates, Trust
from lifefold.interpreters.facades.arguments import instance, text, whole

AgentState = visual.VisualState
"""The seven visual states, with their indicators and colours."""

SECONDS_LIMIT: Final = 10**11
"""The longest accepted time: about three thousand years."""

PIDS: Final = range(2**31)
"""The possible process ids."""

FILES_LIMIT: Final = 1_000_000
"""One more than the most files of a task."""


class AgentStateThresholds(NamedTuple):
    """The times of silence after which a stall or a late spawn is shown, in seconds, both exclusive (E29)."""

    stall_threshold_s: float = 300.0
    spawn_timeout_s: float = 60.0


class TimeoutEstimate(NamedTuple):
    """The timeout of a task, in seconds, and the confidence in it, from 0 to 1."""

    timeout_s: float
    confidence: float


def classify_agent_state(  # noqa: PLR0913 - the metadata of a session, by keyword
    status: str,
    *,
    pid: int | None = None,
    started_at: float | None = None,
    last_heartbeat: float | None = None,
    now: float | None = None,
    thresholds: AgentStateThresholds = AgentStateThresholds(),  # noqa: B008 - an immutable value
) -> AgentState:
    """Return the visual state of a session. Times are Unix, in seconds; ``now`` defaults to the present.

    ``status`` is a status of an agent or of a task, in any case. Any other status is UNKNOWN while there is a process
    (E30). ``pid`` is None for a session without a process. A session without ``started_at`` counts as started at its
    last heartbeat, or now if it has none, so its launch is never overdue.
    """
    now_ms = _ms("now", time.time() if now is None else now)
    heard_ms = None if last_heartbeat is None else _ms("last_heartbeat", last_heartbeat)
    process = None if pid is None else whole("pid", pid, PIDS)
    unknown_ms = now_ms if heard_ms is None else heard_ms
    started_ms = unknown_ms if started_at is None else _ms("started_at", started_at)
    seen = visual.Observation(text("status", status), started_ms, heard_ms, process)
    limits = visual.Thresholds(*map(_ms, AgentStateThresholds._fields, instance(AgentStateThresholds, thresholds)))
    return visual.classify(seen, now_ms, limits).state


def estimate_timeout(  # noqa: PLR0913, PLR0917 - the inputs of the formula
    scope: str = "medium",
    complexity: str = "medium",
    model: str = "",
    role: str = "",
    owned_files: int = 0,
    history: Iterable[tuple[str, str, float]] = (),
) -> TimeoutEstimate:
    """Return the timeout of a task (E33). ``history`` has the role, the status and the seconds of earlier runs.

    ``scope`` is small, medium, large or XL, ``complexity`` low, medium or high, in any case. Other values raise
    ``ValueError``. An unknown model has the factor 1.
    """
    past = [_past_run(f"history, run {place}", run) for place, run in enumerate(history, 1)]
    words = (text("scope", scope), text("complexity", complexity), text("model", model), text("role", role))
    work = adaptive_timeout.work(*words, whole("owned_files", owned_files, range(FILES_LIMIT)))
    found = adaptive_timeout.estimate(work, past)
    return TimeoutEstimate(found.timeout_ms / 1_000, found.confidence)


class GraduatedAccess:
    """The track records of all agents, by name (E34, E35). An unknown agent begins at the lowest level."""

    def __init__(self, gates: Gates | None = None) -> None:
        """Take the lowest sufficient level of each transition that needs one, by (from, to); by default none does."""
        self._gates: Final = dict(gates or {})
        self._lock: Final = RLock()
        self._trust: Final[dict[str, Trust]] = {}

    def __repr__(self) -> str:
        """Return the number of agents with a record, and of transitions that need trust."""
        return f"<GraduatedAccess: {len(self._trust)} agents, {len(self._gates)} gates>"

    def level(self, agent_id: str) -> AccessLevel:
        """Return an agent's access level; an empty name has the lowest."""
        return self.trust(agent_id).level

    def trust(self, agent_id: str) -> Trust:
        """Return an agent's track record."""
        return self._trust.get(text("agent_id", agent_id), Trust())

    def capabilities(self, agent_id: str) -> Capabilities:
        """Return an agent's capabilities."""
        return access.CAPABILITIES[self.level(agent_id)]

    def may(self, agent_id: str, from_status: str, to_status: str) -> bool:
        """Tell whether an agent may perform a transition."""
        return access.may(self.level(agent_id), from_status, to_status, self._gates)

    def record_success(self, agent_id: str) -> AccessLevel:
        """Record a success and return the level that follows."""
        return self._record(agent_id, access.succeeded)

    def record_failure(self, agent_id: str) -> AccessLevel:
        """Return the level, which a failure does not change."""
        return self.level(agent_id)

    def record_violation(self, agent_id: str) -> AccessLevel:
        """Record a violation and return the level that follows."""
        return self._record(agent_id, access.violated)

    def promote(self, agent_id: str) -> AccessLevel:
        """Promote by hand, which forgives all violations."""
        return self._record(agent_id, access.promoted)

    def demote(self, agent_id: str) -> AccessLevel:
        """Demote by hand."""
        return self._record(agent_id, access.demoted)

    def _record(self, agent_id: str, change: Callable[[Trust], Trust]) -> AccessLevel:
        with self._lock:
            name = text("agent_id", agent_id, empty=False)
            trust = self._trust[name] = change(self.trust(name))
            return trust.level


def _past_run(name: str, run: object) -> adaptive_timeout.PastRun:
    if not isinstance(run, tuple | list) or len(parts := cast("Sequence[Any]", run)) != len(_RUN):
        raise TypeError(f"{name} must be {', '.join(_RUN)}, not {run!r}")
    role, status, seconds = parts
    return adaptive_timeout.PastRun(
        text(f"{name}, role", role), text(f"{name}, status", status), _ms(f"{name}, seconds", seconds)
    )


_RUN: Final = ("role", "status", "seconds")


def _ms(name: str, seconds: object) -> int:
    """Return a time in milliseconds. Raises ``TypeError`` or ``ValueError``."""
    if not isinstance(seconds, float | int) or isinstance(seconds, bool):
        raise TypeError(f"{name} must be a number of seconds, not {type(seconds).__name__}")
    if not abs(seconds) <= SECONDS_LIMIT:
        raise ValueError(f"{name} must be within {SECONDS_LIMIT} s, not {seconds}")
    return round(seconds * 1_000)
