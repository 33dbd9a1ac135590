"""The cost of a session as the log has it."""

from typing import Final

from lifefold.core.lifecycles.session import Usage
from lifefold.interpreters.adapters import Cost
from lifefold.interpreters.adapters.hostile import MOST_TOKENS, MOST_USD

_MICROUSD: Final = 1_000_000


def as_usage(cost: Cost) -> Usage:
    """Return a cost as the log has it: cached input is input, and no number is larger than JSON readers accept."""
    tokens = cost.tokens
    read = tokens.input + tokens.cache_read + tokens.cache_write
    microusd = min(cost.microusd or 0, MOST_USD * _MICROUSD)
    return Usage(microusd, min(read, MOST_TOKENS), min(tokens.output, MOST_TOKENS))
