"""Lifecycles of document 002's interface: its table by values, and one that has made some moves."""

from typing import Any, Final

from lifefold.interpreters.facades.process import ProcessLifecycle, ProcessState

EDGES: Final = {
    "created": ["starting", "stopped"],
    "starting": ["failed", "running", "stopping"],
    "running": ["awaiting", "failed", "stopping", "suspended"],
    "suspended": ["failed", "running", "stopping"],
    "awaiting": ["failed", "running", "stopping"],
    "stopping": ["failed", "stopped"],
    "stopped": ["starting"],
    "failed": ["starting"],
}
"""The document's table by values, each line in the order in which an error prints it."""

NOON_MS: Final = 1_767_268_800_000
"""2026-01-01 12:00:00 UTC."""


def at_noon() -> int:
    """Return a time that stands still."""
    return NOON_MS


def lifecycle(*targets: str, **given: Any) -> ProcessLifecycle:
    """Return a lifecycle that made these moves, at noon."""
    options: dict[str, Any] = {"clock": at_noon, **given}
    made = ProcessLifecycle(**options)
    for target in targets:
        made.move(ProcessState(target), reason=f"to {target}")
    return made
