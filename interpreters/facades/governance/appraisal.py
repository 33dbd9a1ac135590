"""Document 004's judgements about agents: what a screen shows, how long a task may take, what an agent may do.

Times are in seconds here, as in the document. ``TypeError`` and ``ValueError`` are raised for what makes no sense.
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
"""The longest time that may be named: some three thousand years."""

PIDS: Final = range(2**31)
"""The numbers that a process can have."""

FILES_LIMIT: Final = 1_000_000
"""One more than the number of files that a task may own."""


class AgentStateThresholds(NamedTuple):
    """From when on silence is worth showing, in seconds; both are exceeded strictly (E29)."""

    stall_threshold_s: float = 300.0
    spawn_timeout_s: float = 60.0


class TimeoutEstimate(NamedTuple):
    """How long a task may take, in seconds, and how sure that is, from 0 to 1."""

    timeout_s: float
    confidence: float


def classify_agent_state(  # noqa: PLR0913 - the metadata of a session, each by its name
    status: str,
    *,
    pid: int | None = None,
    started_at: float | None = None,
    last_heartbeat: float | None = None,
    now: float | None = None,
    thresholds: AgentStateThresholds = AgentStateThresholds(),  # noqa: B008 - an immutable value
) -> AgentState:
    """Return the visual state of a session. Times are Unix, in seconds; ``now`` is the present if it is not given.

    ``status`` is an agent's word or a task's, in whatever case; one that is neither is UNKNOWN while there is a process
    (E30). ``pid`` is None for a session that has none. A session without ``started_at`` is taken to have started at its
    last heartbeat, or now if it has none: nothing shows that its launch is overdue.
    """
    now_ms = _ms("now", time.time() if now is None else now)
    heard_ms = None if last_heartbeat is None else _ms("last_heartbeat", last_heartbeat)
    process = None if pid is None else whole("pid", pid, PIDS)
    unknown_ms = now_ms if heard_ms is None else heard_ms
    started_ms = unknown_ms if started_at is None else _ms("started_at", started_at)
    seen = visual.Observation(text("status", status), started_ms, heard_ms, process)
    limits = visual.Thresholds(*map(_ms, AgentStateThresholds._fields, instance(AgentStateThresholds, thresholds)))
    return visual.classify(seen, now_ms, limits).state


def estimate_timeout(  # noqa: PLR0913, PLR0917 - what the formula takes, each by its name
    scope: str = "medium",
    complexity: str = "medium",
    model: str = "",
    role: str = "",
    owned_files: int = 0,
    history: Iterable[tuple[str, str, float]] = (),
) -> TimeoutEstimate:
    """Return how long a task may take (E33). ``history`` has the role, the status and the seconds of earlier runs.

    ``scope`` is small, medium, large or XL, ``complexity`` low, medium or high, in whatever case; ``ValueError`` is
    raised for any other. A model that the formula does not know has the factor 1.
    """
    past = [_past_run(f"history, run {place}", run) for place, run in enumerate(history, 1)]
    words = (text("scope", scope), text("complexity", complexity), text("model", model), text("role", role))
    work = adaptive_timeout.work(*words, whole("owned_files", owned_files, range(FILES_LIMIT)))
    found = adaptive_timeout.estimate(work, past)
    return TimeoutEstimate(found.timeout_ms / 1_000, found.confidence)


class GraduatedAccess:
    """The track records of all agents, by name (E34, E35). An agent that nobody knows begins at the lowest level."""

    def __init__(self, gates: Gates | None = None) -> None:
        """Take the least level of each transition that needs one, by (from, to); by default none does."""
        self._gates: Final = dict(gates or {})
        self._lock: Final = RLock()
        self._trust: Final[dict[str, Trust]] = {}

    def __repr__(self) -> str:
        """Say how many agents have a record, and how many transitions need trust."""
        return f"<GraduatedAccess: {len(self._trust)} agents, {len(self._gates)} gates>"

    def level(self, agent_id: str) -> AccessLevel:
        """Return how far an agent is trusted; whoever gives no name is not."""
        return self.trust(agent_id).level

    def trust(self, agent_id: str) -> Trust:
        """Return an agent's track record."""
        return self._trust.get(text("agent_id", agent_id), Trust())

    def capabilities(self, agent_id: str) -> Capabilities:
        """Return what an agent may touch."""
        return access.CAPABILITIES[self.level(agent_id)]

    def may(self, agent_id: str, from_status: str, to_status: str) -> bool:
        """Tell whether an agent may perform a transition."""
        return access.may(self.level(agent_id), from_status, to_status, self._gates)

    def record_success(self, agent_id: str) -> AccessLevel:
        """Record a success and return the level that follows."""
        return self._record(agent_id, access.succeeded)

    def record_failure(self, agent_id: str) -> AccessLevel:
        """Return the level, which a failure leaves as it is."""
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
    """Return a time in milliseconds. Raises ``TypeError`` or ``ValueError`` for what is no time."""
    if not isinstance(seconds, float | int) or isinstance(seconds, bool):
        raise TypeError(f"{name} must be a number of seconds, not {type(seconds).__name__}")
    if not abs(seconds) <= SECONDS_LIMIT:
        raise ValueError(f"{name} must be within {SECONDS_LIMIT} s, not {seconds}")
    return round(seconds * 1_000)
