"""The seed of random choices: that of the running test, or a new one."""

import secrets
from contextvars import ContextVar
from typing import Final

SEED_LIMIT: Final = 2**32
"""The bound of seeds: short enough to be typed."""

PRESENT: Final[ContextVar[int | None]] = ContextVar("lifefold_seed", default=None)
"""The seed of the running test, set by the pytest plugin."""


def present_seed() -> int:
    """Return the seed of the running test; outside of a test, a random one."""
    present = PRESENT.get()
    return secrets.randbelow(SEED_LIMIT) if present is None else present
