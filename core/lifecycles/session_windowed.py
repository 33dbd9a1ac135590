"""The profile of the session in which old errors are forgotten (D22)."""

from typing import Any, ClassVar

from lifefold.core.kernel import Event, Machine, Transition, always_step, replace
from lifefold.core.lifecycles.session import Session, machine


class WindowedSession(Session, frozen=True):
    """A session whose ``total_errors`` are those of the last ``total_errors_window_ms`` only (D22)."""

    timestamps: ClassVar[tuple[str, ...]] = ("at_ms", "errors_at_ms")

    at_ms: int = 0
    errors_at_ms: tuple[int, ...] = ()

    def pauses_ms(self) -> tuple[int, ...]:
        """Return no time, and half a window: after two of them, earlier errors are forgotten."""
        return 0, (self.limits.total_errors_window_ms + 1) // 2

    def horizon_ms(self) -> int:
        """Return the window: an error after a longer pause follows no remembered one."""
        return self.limits.total_errors_window_ms

    def recent(self) -> tuple[int, ...]:
        """Return the times of the errors within the window, one more at ``at_ms`` included."""
        since_ms = self.at_ms - self.limits.total_errors_window_ms
        return (*(at_ms for at_ms in self.errors_at_ms if at_ms > since_ms), self.at_ms)

    def counted(self) -> tuple[int, int]:
        """Return consecutive errors and those within the window, with one more."""
        return self.consecutive_errors + 1, len(self.recent())

    def after_error(self) -> "WindowedSession":
        """Return the record with one more error counted, and those outside the window forgotten."""
        consecutive, total = self.counted()
        return replace(self, consecutive_errors=consecutive, total_errors=total, errors_at_ms=self.recent())


def remembers_the_window(t: Transition) -> bool:
    """The total of errors has each error of the last window, with its time, and no older one."""
    was: WindowedSession = t.was
    now: WindowedSession = t.after.record
    if now.consecutive_errors <= was.consecutive_errors:
        return (now.errors_at_ms, now.total_errors) == (was.errors_at_ms, was.total_errors)
    since_ms = t.at_ms - was.limits.total_errors_window_ms
    recent = (*(at_ms for at_ms in was.errors_at_ms if at_ms > since_ms), t.at_ms)
    return (now.errors_at_ms, now.total_errors) == (recent, len(recent))


windowed: Machine[Any] = machine.starting(WindowedSession(), "session-windowed").with_properties(
    always_step("the errors of the last window count, and no older ones", remembers_the_window, on=Event)
)
"""The profile in which old errors are forgotten (D22)."""
