"""A fleet on Temporal: its brain, which decides, and its hosts, which run the sessions of its agents.

``docs/cluster.md`` says what holds, and what is not built.
"""

from lifefold.interpreters.fleet_cluster.brain import FleetBrain, UnfitFleetError, must_fit
from lifefold.interpreters.fleet_cluster.host import FleetHost
from lifefold.interpreters.fleet_cluster.host_name import NameTakenError
from lifefold.interpreters.fleet_cluster.standby import until_free

__all__ = ["FleetBrain", "FleetHost", "NameTakenError", "UnfitFleetError", "must_fit", "until_free"]
