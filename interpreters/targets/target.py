"""A target: what a check, a simulation, a view or a command line knows by a name."""

from typing import Any, Final

import msgspec

from lifefold.core.kernel import Machine, Record, System, World, alone
from lifefold.interpreters.search.configuration import Bounds
from lifefold.interpreters.search.crash_model import CRASHES, CrashBounds
from lifefold.interpreters.search.opening import Opening
from lifefold.interpreters.simulate.environment import Environment

SHIPPED: Final = "lifefold.interpreters.targets.catalogue"
"""The module with the shipped machines and systems by name."""


class UnusableTarget(ValueError):
    """The named target cannot be used; the message says why, and names the valid targets."""


class Target(msgspec.Struct, frozen=True):
    """A machine, or a system with its opening, with the configurations of its check and of its simulations.

    ``spelled`` is a Python expression for it, and ``needs`` its import: module and name. A target of a simulation only
    needs neither.
    """

    name: str
    subject: Machine[Any] | System
    opening: Opening = ()
    bounds: Bounds = Bounds()
    needs: tuple[str, str] = ("", "")
    spelled: str = ""
    record: Record | None = None
    """The initial record of a machine, if it is not the machine's own."""
    begin: World | None = None
    """The world in which a search begins instead of an opening, such as one folded from a log."""
    opened_there: bool = False
    """Whether ``spelled`` is a system together with its opening."""
    properties: tuple[tuple[str, str], ...] = ()
    """Additional properties, as module and name."""
    crashes: CrashBounds = CRASHES
    """The bounds of the crash search."""
    environment: Environment = Environment()
    """The environment of a simulation."""
    smaller: "tuple[str | Target, ...]" = ()
    """Targets, or their names, in which the findings of a simulation are shrunk."""

    @property
    def module(self) -> str:
        """The module of a user's target; empty for a shipped one."""
        return "" if self.needs[0] == SHIPPED else self.needs[0]

    @property
    def system(self) -> System:
        """The system; for a machine, the system of the machine alone."""
        return alone(self.subject)[0] if isinstance(self.subject, Machine) else self.subject
