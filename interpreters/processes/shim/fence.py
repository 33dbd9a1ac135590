"""The fence of a session: it moves to later times only, and never after it has passed.

The shim runs on the standard library alone. So this is the rule of ``lifefold.core.cluster.fencing`` a second time, and
a test compares both.
"""

PASSED = "its fence has passed: another host may have the session"
"""The message of a session that was not begun past its fence."""


class Fence:
    """The time after which another host may have the session; without one, ``until_boot_ms`` is None."""

    def __init__(self, until_boot_ms: int | None, grace_ms: int) -> None:
        self.until_boot_ms = until_boot_ms
        self.grace_ms = grace_ms
        self._has_passed = False

    @property
    def is_ahead(self) -> bool:
        """Whether there is a fence that has not passed."""
        return self.until_boot_ms is not None and not self._has_passed

    def move(self, until_boot_ms: int, grace_ms: int) -> None:
        """Move the fence, unless it has passed."""
        if not self._has_passed:
            self.until_boot_ms = max(self.until_boot_ms or 0, until_boot_ms)
            self.grace_ms = grace_ms

    def grace_left_ms(self, now_boot_ms: int) -> int:
        """Return how long a session past its fence may still live: nothing if its machine was frozen meanwhile."""
        return 0 if self.until_boot_ms is None else max(0, self.until_boot_ms + self.grace_ms - now_boot_ms)

    def passes(self, now_boot_ms: int) -> bool:
        """Tell, once, that the fence has passed."""
        if not self.is_ahead or self.until_boot_ms is None or now_boot_ms < self.until_boot_ms:
            return False
        self._has_passed = True
        return True
