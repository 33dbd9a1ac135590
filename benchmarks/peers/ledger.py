"""The counters and actions of a session's table, beside its states: plain Python, the same for every peer."""

from collections import deque
from dataclasses import dataclass, field

UNLIMITED = 10**9
"""A threshold that no tape reaches, for measurements: ``total_errors`` is never reset."""

Effect = tuple[str, *tuple[object, ...]]


def recent_effects() -> deque[Effect]:
    """Return a log of the last few effects, of limited size."""
    return deque(maxlen=16)


@dataclass
class Ledger:
    """The extended state of one agent, and the actions on it. Each action takes the arguments of its event."""

    max_consecutive_errors: int = 5
    max_total_errors: int = UNLIMITED
    consecutive_errors: int = 0
    total_errors: int = 0
    session_seq: int = 0
    prompt: str = ""
    effects: deque[Effect] = field(default_factory=recent_effects)

    @property
    def backoff_ms(self) -> int:
        """The duration of CoolingDown."""
        return min(2_000 << min(self.consecutive_errors - 1, 5), 60_000) if self.consecutive_errors else 0

    def store_prompt(self, prompt: str) -> None:
        """Keep the prompt of the session that is about to be spawned."""
        self.prompt = prompt
        self.effects.append(("StorePrompt", prompt))

    def begin(self, session_seq: int) -> None:
        """Note which session runs; the errors in a row are over."""
        self.session_seq = session_seq
        self.consecutive_errors = 0

    def complete(self) -> None:
        """Forget the errors in a row."""
        self.consecutive_errors = 0

    def increment_session(self) -> None:
        """Count the completed session."""
        self.session_seq += 1
        self.effects.append(("IncrementSession",))

    def cancel_session(self) -> None:
        """Ask the session to end."""
        self.effects.append(("CancelSession",))

    def force_stop_session(self) -> None:
        """Kill the session."""
        self.effects.append(("ForceStopSession",))

    def log_fatal(self, message: str) -> None:
        """Report the fatal error."""
        self.effects.append(("LogFatal", message))

    def threshold_reached(self, _outcome: str) -> bool:
        """Tell whether one more error is one too many."""
        return (
            self.consecutive_errors + 1 >= self.max_consecutive_errors or self.total_errors + 1 >= self.max_total_errors
        )

    def count_error(self, _outcome: str) -> None:
        """Count a session that ended in an error or a timeout."""
        self.consecutive_errors += 1
        self.total_errors += 1

    def give_up(self, outcome: str) -> None:
        """Count the last error and report it."""
        self.count_error(outcome)
        self.log_fatal(f"too many errors, the last was {outcome}")
