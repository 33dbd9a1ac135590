"""The session machine of this project, driven by the tape of its peers, with the same observations."""

from benchmarks.peers.ledger import UNLIMITED
from benchmarks.peers.tape import SymbolicEvent
from lifefold.core.kernel import Event
from lifefold.core.lifecycles import session

OUTCOMES: dict[object, session.Success | session.Error | session.Timeout] = {
    "success": session.Success(),
    "error": session.Error("error"),
    "timeout": session.Timeout(),
}

EVENTS: dict[str, type[Event]] = {
    "worktree_ready": session.WorktreeReady,
    "prompt_ready": session.PromptReady,
    "session_started": session.SessionStarted,
    "session_exited": session.SessionExited,
    "urgent_message": session.UrgentMessage,
    "grace_exceeded": session.GraceExceeded,
    "backoff_elapsed": session.BackoffElapsed,
}

Making = tuple[type[Event], tuple[object, ...]]
"""The type and the fields of an event to be made."""


def makings(tape: list[SymbolicEvent]) -> list[Making]:
    """Return the type and the fields of each event of the tape."""
    return [(EVENTS[name], tuple(map(_field, args))) for name, *args in tape]


def _field(value: object) -> object:
    return OUTCOMES.get(value, value)


def events(tape: list[SymbolicEvent]) -> list[Event]:
    """Return the tape's events."""
    return [make(*fields) for make, fields in makings(tape)]


def make() -> session.Session:
    """Return the record of a new agent without a limit of total errors, as in the peers."""
    return session.Session(limits=session.Limits(max_total_errors=UNLIMITED))


def shown(record: session.Session) -> tuple[object, ...]:
    """Return the observation of the peers: state, both counters, session number, prompt, pause."""
    backoff_ms = session.backoff(record) if record.consecutive_errors else 0
    counters = (record.consecutive_errors, record.total_errors, record.session_seq, record.prompt)
    return (str(record.state), *counters, backoff_ms)
