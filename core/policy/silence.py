"""Since when an agent is silent: the one baseline that everybody measures from (E31, E32)."""


def last_sign_ms(started_at_ms: int, heartbeat_at_ms: int | None) -> int:
    """Return when an agent was last heard of: its heartbeat, or its start if there was none since."""
    return started_at_ms if heartbeat_at_ms is None else max(started_at_ms, heartbeat_at_ms)
