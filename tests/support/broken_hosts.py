"""Hosts with one deliberate mistake each: a simulation of a cluster finds every one of them."""

from typing import Final

from lifefold.core.cluster.fencing import Fence, Fencing
from lifefold.interpreters.simulate.cluster_activities import HostedActivities
from lifefold.interpreters.simulate.cluster_hosts import Child, HostedProcess
from lifefold.interpreters.simulate.cluster_processes import DETECTION_MS


class LateFencing(Fencing, frozen=True):
    """The lease is longer than the detection time."""

    @property
    def lease_ms(self) -> int:
        """The time from the sending of a heartbeat to the fence."""
        return self.detection_ms * 13 // 10


class LeasesWithoutFence(HostedActivities):
    """No shim ends a session, whatever its host hears."""

    def _look_at_fence(self, process: HostedProcess) -> None:
        pass

    def _thaw(self, process: HostedProcess) -> None:
        self._must_be_alone(process)


class FencesAfterDetection(HostedActivities):
    """The fence is later than the loss of the host."""

    rule = LateFencing(DETECTION_MS)


class BeginsWithoutAsking(HostedActivities):
    """A host that goes on begins what it had got before, without a word of the server."""

    _asks_first = False


class StartsPastTheFence(HostedActivities):
    """A shim starts its session although the fence has passed."""

    def _may_not_start(self, until_ms: int) -> bool:
        return until_ms < 0


class KillsLateAfterAFreeze(HostedActivities):
    """The time between fence and kill begins when the machine goes on, and not at the fence."""

    def _killed_ms(self, fence: Fence) -> int:
        return max(fence.until_ms, self._now_ms) + self.rule.grace_ms


class BelievesLostHosts(HostedActivities):
    """The server takes the reports of a host that it has taken for lost."""

    def _is_refused(self, child: Child) -> bool:
        return child.number < 0


class ForgetsLostWork(HostedActivities):
    """Nothing follows from the loss of a host."""

    def _recover(self, name: str) -> None:
        pass


MISTAKES: Final = (
    LeasesWithoutFence,
    FencesAfterDetection,
    BeginsWithoutAsking,
    StartsPastTheFence,
    KillsLateAfterAFreeze,
    BelievesLostHosts,
    ForgetsLostWork,
)
"""All of them."""
