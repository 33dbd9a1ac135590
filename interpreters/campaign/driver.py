"""The drivers of a simulation by name: its own runner, the real engine, a cluster."""

from collections.abc import Sequence
from enum import StrEnum

from lifefold.interpreters.simulate.faults import DEADLY, DEADLY_TO_ENGINE, OF_CLUSTER, OF_ENGINE, SHIPPED, Fault
from lifefold.interpreters.simulate.simulated_runner import RunnerType


class Driver(StrEnum):
    """What decides, persists and performs in a simulation."""

    OWN = "own"
    ENGINE = "engine"
    CLUSTER = "cluster"

    @property
    def faults(self) -> Sequence[Fault]:
        """The faults that it meets."""
        return {Driver.OWN: SHIPPED, Driver.ENGINE: OF_ENGINE, Driver.CLUSTER: OF_CLUSTER}[self]

    @property
    def deadly(self) -> Sequence[str]:
        """The faults that end it, each at a point of its work."""
        if self is Driver.ENGINE:
            return DEADLY_TO_ENGINE
        met = {each.name for each in self.faults}
        return tuple(name for name in DEADLY if name in met)

    @property
    def where(self) -> str:
        """A phrase for conclusions; empty for the simulation's own runner."""
        return {Driver.OWN: "", Driver.ENGINE: " on the real engine", Driver.CLUSTER: " on a cluster"}[self]

    def runner(self) -> RunnerType | None:
        """Return the runner that a simulation takes; None for its own."""
        if self is Driver.ENGINE:
            from lifefold.interpreters.simulate.engine_runner import EngineRunner  # noqa: PLC0415 - takes a while

            return EngineRunner
        if self is Driver.CLUSTER:
            from lifefold.interpreters.simulate.cluster_runner import ClusterRunner  # noqa: PLC0415 - as above

            return ClusterRunner
        return None

    def imported(self) -> str:
        """Return the line that imports the runner; empty for the simulation's own."""
        made = self.runner()
        name = getattr(made, "__name__", "")
        return f"from {made.__module__} import {name}" if made is not None else ""


def driver_of(runner: RunnerType | None) -> Driver:
    """Return the driver with this runner."""
    return next(each for each in Driver if each.runner() is runner)
