"""The start of an agent's silence: the one baseline of all measurements (E31, E32)."""


def last_sign_ms(started_at_ms: int, heartbeat_at_ms: int | None) -> int:
    """Return the time of an agent's last sign: its heartbeat, or its start if there was none since."""
    return started_at_ms if heartbeat_at_ms is None else max(started_at_ms, heartbeat_at_ms)
