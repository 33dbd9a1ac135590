"""A service: one aggregate with a long-lived process, what triggers it, what waits to be run, and the run itself.

The life is document 002's ``process``, whose table is as it was. Its activities are served here: to *start* is to begin
to wait for triggers, to *serve* is to take what waits in its order and have it run, one at a time, to *drain* is to let
the run in flight come to its end. So every decision is a rule of ``rules``, and the interpreter does two things only:
it waits for triggers (``AwaitTrigger``), and it runs a command (``RunSession``).

Who is paused, or held by a runner that goes away, begins no other run; the one in flight ends by itself, and what comes
meanwhile waits. Who is to drain lets it end, too, and stops then. Who is to stop has it ended. A service that has come
down and will not come back is *gone*: what waits is given back, and the board hears why.
"""

from lifefold.core.fleet.service.model import KIND, PROCESS, has_failed, is_down, quiet, reason_of, settled
from lifefold.core.fleet.service.properties import OF_FLEETS, PROPERTIES
from lifefold.core.fleet.service.rules import aggregate

__all__ = [
    "KIND",
    "OF_FLEETS",
    "PROCESS",
    "PROPERTIES",
    "aggregate",
    "has_failed",
    "is_down",
    "quiet",
    "reason_of",
    "settled",
]
