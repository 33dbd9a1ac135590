"""Run a fleet: real processes, real worktrees, a durable log."""

from lifefold.interpreters.fleet_runner.custom import RunContext, UnusableInterpreterError
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.log_owner import OtherFleetError
from lifefold.interpreters.fleet_runner.runner import Runner, Verdict

__all__ = ["FleetFolder", "OtherFleetError", "RunContext", "Runner", "UnusableInterpreterError", "Verdict"]
