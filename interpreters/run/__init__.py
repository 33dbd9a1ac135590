"""Run a fleet: real processes, real worktrees, a durable log."""

from lifefold.interpreters.run.custom import Surroundings, UnusableInterpreterError
from lifefold.interpreters.run.folder import FleetFolder
from lifefold.interpreters.run.log_owner import OtherFleetError
from lifefold.interpreters.run.runner import Runner, Verdict

__all__ = ["FleetFolder", "OtherFleetError", "Runner", "Surroundings", "UnusableInterpreterError", "Verdict"]
