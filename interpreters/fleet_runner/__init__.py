"""Run a fleet: real processes, real worktrees, a durable log.

The runner is loaded with its first use: most commands of the command line only read the files of a fleet.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from lifefold.interpreters.fleet_runner.custom import RunContext, UnusableInterpreterError
    from lifefold.interpreters.fleet_runner.folder import FleetFolder
    from lifefold.interpreters.fleet_runner.log_owner import OtherFleetError
    from lifefold.interpreters.fleet_runner.runner import Runner
    from lifefold.interpreters.fleet_runner.verdict import Verdict

__all__ = ["FleetFolder", "OtherFleetError", "RunContext", "Runner", "UnusableInterpreterError", "Verdict"]

_HOMES: Final = {
    "FleetFolder": "folder",
    "OtherFleetError": "log_owner",
    "RunContext": "custom",
    "Runner": "runner",
    "UnusableInterpreterError": "custom",
    "Verdict": "verdict",
}


def __getattr__(name: str) -> Any:
    """Return a public name. Raises ``AttributeError`` for another one."""
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
