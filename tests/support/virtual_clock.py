"""Time that goes on only when it is told to, for handles: a clock, and a ``sleep`` in seconds as the documents use."""


class VirtualClock:
    """Unix time in milliseconds, from 0."""

    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms

    def sleep(self, seconds: float) -> None:
        """Let this time pass."""
        self.now_ms += round(seconds * 1_000)
