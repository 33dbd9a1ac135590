"""Document 004's judgements about agents: what a screen shows, how long a task may take, what an agent may do.

Times are in seconds here, as in the document. ``TypeError`` and ``ValueError`` are raised for what makes no sense.
"""

import time
from collections.abc import Callable, Iterable
from threading import RLock
from typing import Final, NamedTuple

from lifefold.core.policy import access, adaptive_timeout, visual
from lifefold.core.policy.access import AccessLevel, Capabilities, Gates, Trust
from lifefold.interpreters.handles.arguments import instance, text, whole

AgentState = visual.VisualState
"""The seven visual states, with their indicators and colours."""

SECONDS_LIMIT: Final = 10**11
"""The longest time that may be named: some three thousand years."""

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
    started_at: float = 0.0,
    last_heartbeat: float | None = None,
    now: float | None = None,
    thresholds: AgentStateThresholds = AgentStateThresholds(),  # noqa: B008 - an immutable value
) -> AgentState:
    """Return the visual state of a session. Times are Unix, in seconds; ``now`` is the present if it is not given."""
    heard_ms = None if last_heartbeat is None else _ms(last_heartbeat)
    seen = visual.Observation(text("status", status), _ms(started_at), heard_ms, pid)
    limits = visual.Thresholds(*map(_ms, instance(AgentStateThresholds, thresholds)))
    return visual.classify(seen, _ms(time.time() if now is None else now), limits).state


def estimate_timeout(  # noqa: PLR0913, PLR0917 - what the formula takes, each by its name
    scope: str = "medium",
    complexity: str = "medium",
    model: str = "",
    role: str = "",
    owned_files: int = 0,
    history: Iterable[tuple[str, str, float]] = (),
) -> TimeoutEstimate:
    """Return how long a task may take (E33). ``history`` has the role, the status and the seconds of earlier runs."""
    past = [adaptive_timeout.PastRun(role_was, status, _ms(seconds)) for role_was, status, seconds in history]
    words = (text("scope", scope), text("complexity", complexity), text("model", model), text("role", role))
    work = adaptive_timeout.Work(*words, whole("owned_files", owned_files, range(FILES_LIMIT)))
    found = adaptive_timeout.estimate(work, past)
    return TimeoutEstimate(found.timeout_ms / 1_000, found.confidence)


class GraduatedAccess:
    """The track records of all agents, by name (E34, E35). An agent that nobody knows begins at the lowest level."""

    def __init__(self, gates: Gates | None = None) -> None:
        """Take the least level of each transition that needs one, by (from, to); by default none does."""
        self._gates: Final = dict(gates or {})
        self._lock: Final = RLock()
        self._trust: Final[dict[str, Trust]] = {}

    def level(self, agent_id: str) -> AccessLevel:
        """Return how far an agent is trusted."""
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
            trust = self._trust[agent_id] = change(self.trust(agent_id))
            return trust.level


def _ms(seconds: object) -> int:
    """Return a time in milliseconds. Raises ``TypeError`` or ``ValueError`` for what is no time."""
    if not isinstance(seconds, float | int):
        raise TypeError(f"a time must be a number of seconds, not {type(seconds).__name__}")
    if not abs(seconds) <= SECONDS_LIMIT:
        raise ValueError(f"a time must be within {SECONDS_LIMIT} s, not {seconds}")
    return round(seconds * 1_000)
