"""The number by which chance can be repeated: of the test that runs now, or a new one."""

import secrets
from contextvars import ContextVar
from typing import Final

SEED_LIMIT: Final = 2**32
"""Seeds are below it: short enough to be typed."""

PRESENT: Final[ContextVar[int | None]] = ContextVar("lifefold_seed", default=None)
"""The seed of the test that runs now, set by the pytest plugin."""


def present_seed() -> int:
    """Return the seed of the test that runs now; outside of one, a number that nobody knows before."""
    present = PRESENT.get()
    return secrets.randbelow(SEED_LIMIT) if present is None else present
