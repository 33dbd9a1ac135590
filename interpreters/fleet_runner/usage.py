"""The cost of a session of a command, read from the end of its output by the adapter ``command``.

Only the agent knows the cost of its session, and prints it at its end.
"""

from typing import Final

from lifefold.core.lifecycles.session import Usage
from lifefold.interpreters.adapters import Cost, Now
from lifefold.interpreters.adapters.command import Command
from lifefold.interpreters.adapters.hostile import MOST_TOKENS, MOST_USD

TAIL_BYTES: Final = 1 << 20
"""The bytes at the end of the output that are read: more than the longest line of an agent with its cost."""

_COMMAND: Final = Command()
_NOW: Final = Now(0)
_MICROUSD: Final = 1_000_000


def usage_of(output: bytes) -> Usage:
    """Return the cost of a session, from the last ``TAIL_BYTES`` of its output; empty without one.

    Output of that length may begin within a line, so its first line is ignored.
    """
    lines, state = output[-TAIL_BYTES:].splitlines(), _COMMAND.initial
    for line in lines[1:] if len(output) >= TAIL_BYTES else lines:
        state, _ = _COMMAND.read(state, line, _NOW)
    return as_usage(state.total)


def as_usage(cost: Cost) -> Usage:
    """Return a cost as the log has it: cached input is input, and no number is larger than JSON readers accept."""
    tokens = cost.tokens
    read = tokens.input + tokens.cache_read + tokens.cache_write
    microusd = min(cost.microusd or 0, MOST_USD * _MICROUSD)
    return Usage(microusd, min(read, MOST_TOKENS), min(tokens.output, MOST_TOKENS))
