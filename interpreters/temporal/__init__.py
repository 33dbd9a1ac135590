"""The engine on Temporal: one workflow for each aggregate, one log, and hosts that run sessions.

Install it with the extra ``temporal``. ``docs/cluster.md`` describes the parts and says what holds.
"""

from lifefold.interpreters.temporal.brain import Brain
from lifefold.interpreters.temporal.commits import Commits
from lifefold.interpreters.temporal.connection import Cluster, connect
from lifefold.interpreters.temporal.host import Host
from lifefold.interpreters.temporal.performer import Performer
from lifefold.interpreters.temporal.wire import Times

__all__ = ["Brain", "Cluster", "Commits", "Host", "Performer", "Times", "connect"]
