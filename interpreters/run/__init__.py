"""Run a fleet: real processes, real worktrees, a durable log."""

from lifefold.interpreters.run.folder import FleetFolder
from lifefold.interpreters.run.runner import OtherFleetError, Runner, Verdict

__all__ = ["FleetFolder", "OtherFleetError", "Runner", "Verdict"]
