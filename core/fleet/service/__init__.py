"""A service: one aggregate with a long-lived process, its triggers, its inbox and its runs.

The lifecycle is the ``process`` of document 002, with its table unchanged. Rules serve its activities: *start* begins
to watch the triggers, *serve* runs waiting items in order, one at a time, and *drain* lets the current run end. So
every decision is a rule of ``rules``. The interpreter only watches triggers (``AwaitTrigger``) and runs a command
(``RunSession``).

A paused or held service begins no run: the current one ends by itself, and later items wait. A draining service lets
its run end, and then stops. A stopped service has its run ended. A service that is down and is not restarted is *gone*:
waiting messages are given back, and the board gets the reason.
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
