"""The fleet of a brain in this process, whose sessions run on hosts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lifefold.core.fleet import service
from lifefold.core.fleet.system import worker
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session
from lifefold.interpreters.cli.watched import quarantined_now
from lifefold.interpreters.engine import Observer
from lifefold.interpreters.explain.status import AgentStatus
from lifefold.interpreters.fleet_file import Fleet
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.hosts import Host
from lifefold.interpreters.fleet_runner.notices import Notice
from lifefold.interpreters.fleet_runner.refused_events import RefusedEvents

if TYPE_CHECKING:
    from lifefold.interpreters.fleet_cluster import FleetBrain


class OfBrain:
    """The fleet of a brain, with the notices of its hosts."""

    def __init__(self, brain: "FleetBrain") -> None:
        """Take the brain."""
        self._brain: Final = brain
        self.folder: Final[FleetFolder] = brain.folder
        self.observers: Final[list[Observer]] = brain.observers
        self.refused: Final[RefusedEvents] = brain.refused
        self.notices: Final[list[tuple[str, str]]] = brain.watch.notices

    @property
    def fleet(self) -> Fleet:
        """The fleet of the fleet file."""
        return self._brain.fleet

    @property
    def name(self) -> str:
        """The name of the fleet."""
        return self._brain.fleet.name

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """Its present state."""
        return self._brain.aggregates

    @property
    def leaving(self) -> int:
        """How often the brain was asked to leave."""
        return self._brain.leaving

    def now_ms(self) -> int:
        """Return the time of the brain."""
        return self._brain.now_ms()

    def live(self) -> tuple[int, int]:
        """Return the sessions of agents and the runs of services that live, by the log."""
        every = self.aggregates.values()
        sessions = [each for each in every if each.kind == worker.KIND]
        lives = sum(each.record("session").state in session.SESSION_LIVES for each in sessions)
        return lives, sum(each.kind == service.KIND and not service.quiet(each) for each in every)

    def pid(self, agent: AgentStatus) -> int | None:  # noqa: ARG002 - as the protocol has it
        """Return None: the processes are on other machines."""
        return None

    def standing(self) -> list[Notice]:
        """Return the quarantines, and the notices of hosts that hold."""
        return [*quarantined_now(self.aggregates, self.now_ms()), *self._brain.watch.standing()]

    def hosts(self) -> tuple[Host, ...]:
        """Return the hosts, as the brain has heard them last."""
        return self._brain.watch.hosts
