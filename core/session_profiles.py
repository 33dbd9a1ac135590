"""Profiles of the session: in one, errors of long ago are forgotten; in the other, writing a prompt may fail."""

from typing import Any, Never

from lifefold.core.kernel import Event, Machine, Step, does, replace, row
from lifefold.core.session import (
    Error,
    FatalError,
    PromptReady,
    Session,
    SessionExited,
    State,
    build_prompt,
    give_up,
    machine,
    threshold_reached,
)
from lifefold.effects import LogFatal


class WindowedSession(Session, frozen=True):
    """A session whose ``total_errors`` are those of the last ``total_errors_window_ms`` only (D22)."""

    at_ms: int = 0
    errors_at_ms: tuple[int, ...] = ()

    def recent(self) -> tuple[int, ...]:
        """Return when the errors within the window happened, one more at ``at_ms`` included."""
        since_ms = self.at_ms - self.limits.total_errors_window_ms
        return (*(at_ms for at_ms in self.errors_at_ms if at_ms > since_ms), self.at_ms)

    def counted(self) -> tuple[int, int]:
        """Return consecutive errors and those within the window, with one more."""
        return self.consecutive_errors + 1, len(self.recent())

    def after_error(self) -> "WindowedSession":
        """Return the record with one more error counted, and those outside the window forgotten."""
        consecutive, total = self.counted()
        return replace(self, consecutive_errors=consecutive, total_errors=total, errors_at_ms=self.recent())


windowed: Machine[Any] = machine.starting(WindowedSession(), "session-windowed")
"""The profile in which errors of long ago are forgotten (D22)."""


class PromptFailed(Event, frozen=True):
    """The prompt could not be written this time (profile ``prompt-failures``, D6)."""

    msg: str = ""


def count_prompt_failure(s: Session, _e: PromptFailed) -> Step[Session, Never]:
    """Count it as a session that failed while Spawning."""
    return Step(s.after_error())


def give_up_prompting(s: Session, e: PromptFailed) -> Step[Session, LogFatal]:
    """Give up as after a session that failed while Spawning."""
    return give_up(s, SessionExited(Error(e.msg)))


def prompt_threshold_reached(s: Session, e: PromptFailed) -> bool:
    """One more failure makes one of the counters reach its threshold."""
    return threshold_reached(s, SessionExited(Error(e.msg)))


prompt_failures = machine.with_rows(
    row(State.BUILDING_PROMPT, PromptFailed, State.STOPPED, give_up_prompting, when=prompt_threshold_reached),
    row(State.BUILDING_PROMPT, PromptFailed, State.COOLING_DOWN, count_prompt_failure),
    during={State.BUILDING_PROMPT: does(build_prompt, yields=FatalError, last=(PromptReady, PromptFailed))},
    name="session-prompt-failures",
)
"""The profile in which writing a prompt can fail and be tried again (D6)."""
