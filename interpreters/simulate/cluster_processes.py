"""The processes of a simulated cluster, by the rules of shims and reports.

A process with a fence is over soon after it. A report names its child, and waits while no message passes.
The server refuses reports for a child that it has ended.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Final, Protocol

from lifefold.core.cluster.fencing import Fence, Fencing
from lifefold.core.kernel import Envelope, Event, RequestedEffect, System, World
from lifefold.interpreters.simulate.activities import Activities
from lifefold.interpreters.simulate.cluster_hosts import Child, Condition, Host, HostedProcess, Weather
from lifefold.interpreters.simulate.environment import LATE_MS, Chance, Range, Said
from lifefold.interpreters.simulate.inputs import Given, Taker
from lifefold.interpreters.simulate.property_monitor import Violation
from lifefold.interpreters.simulate.scheduler import Agenda, Part, Process

DETECTION_MS: Final = 30_000
"""The time without a heartbeat after which a host is lost: the one of a real cluster."""

TRAVEL_MS: Final = (1, 2_000)
"""The time of a message between a host and the server."""

HOSTS: Final = 3
"""The usual number of hosts."""


class ClusterGuarantee(StrEnum):
    """What a cluster guarantees besides the properties of a system."""

    ALONE = "no two processes of one activity run at a time"
    FENCED = "nothing begins past its fence"
    REMAINS = "nothing remains of an activity whose end is confirmed"
    REFUSED = "no report of a lost host is taken"
    TAKEN_UP = "every activity in the log is attended by a host at work, soon after all is healed"
    TIMED = "every timer in the log is set, and none fires early"
    OVER = "no process is left that no host attends"


class Recovering(Taker, Protocol):
    """The brain, as its hosts see it."""

    @property
    def world(self) -> World:
        """The world that the log folds to."""
        ...

    def recover(self, name: str) -> None:
        """Let an aggregate ask again for what it runs, because its host is lost."""


class HostedProcesses(Activities, ABC):
    """The processes of a system, on hosts. The class after it, of activities, decides which host has which."""

    rule: Fencing = Fencing(DETECTION_MS)
    host_count: int = HOSTS

    def __init__(self, runner: Recovering, system: System, agenda: Agenda, chance: Chance) -> None:
        """Take the brain, the system and the agenda."""
        super().__init__(runner, system, agenda, chance)
        self.refused = 0
        """The number of reports that were refused because their host is lost."""
        self.losses = 0
        """The number of times that the server took a host of an activity for lost."""
        self._brain: Final = runner
        self._children: Final[dict[Part, Child]] = {}
        self._host_by_name: Final[dict[str, Host]] = {}
        """The host of each aggregate."""
        self._unplaced: Final[list[Child]] = []
        self._courses: Final[dict[Part, list[Said]]] = {}
        self._fenced: Final[set[Part]] = set()
        self._hosted: Final[dict[tuple[str, str, str], list[HostedProcess]]] = {}
        """The processes with a fence, by what no two of them may run for at a time."""
        self._told_all: Final[list[Part]] = []
        self._pending: Final[dict[str, deque[RequestedEffect]]] = {}
        self._numbers = 0
        self.weather: Final = Weather(self.host_count, agenda, chance, self._interrupted, self._returned)

    def _fence_ms(self, sent_ms: int) -> int:
        """Return the fence after the acknowledgement, now, of a heartbeat that was sent then."""
        return self.rule.until_ms(sent_ms)

    @abstractmethod
    def _interrupted(self, host: Host) -> None:
        """Note that a host is interrupted."""

    @abstractmethod
    def _returned(self, host: Host, before: Condition) -> None:
        """Let a host go on after this condition."""

    def _is_refused(self, child: Child) -> bool:
        """Tell whether the server refuses what a host says for a child."""
        return child.is_over

    # Reports.

    def _speak(self, part: Part, process: Process) -> None:
        """Let a process report its next event. A frozen one does so when it goes on."""
        assert isinstance(process, HostedProcess)  # noqa: S101 - there are no others here
        if not process.lives or process.spoken == len(process.said):
            return
        if process.host.is_frozen:
            process.host.deferred.append(partial(self._speak, part, process))
            return
        place = process.spoken
        process.spoken += 1
        self._continue(part, process)
        self._report_of(process, place)

    def _report_of(self, process: HostedProcess, place: int) -> None:
        """Send a report to the server, if a host at work attends to the process; otherwise it waits."""
        child = self._child_of(process)
        if child is not None and child.is_attended:
            self.weather.may_interrupt(process.host, "reporting", child.number, place)
            self._after_travel("report", child, self._arrives, child, process, place)

    def _child_of(self, process: HostedProcess) -> Child | None:
        """Return the child for which a host attends to a process."""
        return next((each for each in process.host.attends if each.process is process), None)

    def _arrives(self, child: Child, process: HostedProcess, place: int) -> None:
        """Take a report, unless the server has ended the child or its end is wanted."""
        if self._is_refused(child):
            self.refused += 1
            return
        if child.is_over:
            raise self._broken(ClusterGuarantee.REFUSED, child.part)
        if child.is_ending or place < process.heard or not child.is_attended:
            return
        name, ref, slot, generation = child.part
        event, at_ms = process.said[place].event, self._host_clock_ms(child)
        envelope = Envelope(ref, event, at_ms, slot, slot=slot, generation=generation)
        self._brain.give([Given(name, envelope, process, place)])
        if self._chance.strikes("late report", *child.part, place, self.weather.nth("late report", *child.part, place)):
            after_ms = self._takes_ms(LATE_MS, "late report", *child.part, place, child.number)
            self._at(child.part, after_ms, self._repeat_for, child, envelope)

    def _repeat_for(self, child: Child, envelope: Envelope) -> None:
        if not child.is_over:
            self._brain.give([Given(child.part[0], envelope)])

    # Fences.

    def _fence_off(self, process: HostedProcess, until_ms: int) -> None:
        """Let a process run until its fence, unless its host hears of the server before."""
        if process.fence is not None:
            process.fence = process.fence.moved(until_ms)
            self._at(process.part, process.fence.until_ms - self._now_ms, self._look_at_fence, process)

    def _look_at_fence(self, process: HostedProcess) -> None:
        """Do what the shim does: end a process past its fence, and kill it when the time for that is over."""
        if process.fence is None or process.host.is_frozen or not process.lives:
            return
        attending = self._child_of(process)
        if attending is not None and attending.is_attended and attending.deadline_ms is None:
            return  # heartbeats move it on
        process.fence = process.fence.seen_at(self._now_ms)
        if process.fence.has_passed:
            kill_ms = self._killed_ms(process.fence)
            ends_ms = process.fence.until_ms + self._takes_ms((0, self.rule.grace_ms), "past its fence", *process.part)
            at_ms = max(min(ends_ms, kill_ms), self._now_ms)
            self._at(process.part, at_ms - self._now_ms, self._kill, process)

    def _killed_ms(self, fence: Fence) -> int:
        """Return when a process past its fence is killed: by the clock, not by the time that the shim had."""
        return self.rule.killed_ms(fence.until_ms)

    def _kill(self, process: HostedProcess) -> None:
        """End a process. Its host reports that, if it still attends to it."""
        if process.host.is_frozen:
            process.host.deferred.insert(0, partial(self._kill, process))
        elif process.lives:
            others = [each for kind in process.ends for each in self._examples(process.part, kind)]
            which = self._chance.choices.any_way(("killed with", *process.part, self._now_ms), len(others))
            process.said[process.spoken :] = [Said(0, others[-1 - which])]
            self._speak(process.part, process)

    def _thaw(self, process: HostedProcess) -> None:
        assert process.fence is not None  # noqa: S101 - as its caller has checked
        passed = process.fence.seen_at(self._now_ms)
        if passed.has_passed and self._now_ms >= self._killed_ms(passed):
            process.fence = passed
            self._kill(process)
        else:
            self._look_at_fence(process)
        if process.runs:
            self._must_be_alone(process)

    def _must_be_alone(self, process: HostedProcess) -> None:
        """Raise ``Violation`` if another process of the same agent or service runs."""
        same = self._hosted[process.part[:3]]
        same[:] = [each for each in same if each.lives]
        if any(each.runs for each in same if each is not process):
            raise self._broken(ClusterGuarantee.ALONE, process.part)

    def _broken(self, guarantee: ClusterGuarantee, part: Part) -> Violation:
        name, ref, slot, _ = part
        return Violation(self._system.name, guarantee, f"{name}, {ref}: {slot}")

    # Small parts.

    @property
    def _now_ms(self) -> int:
        return self._agenda.now_ms

    def _takes_ms(self, span_ms: Range, *name: str | int) -> int:
        return self._chance.takes_ms(span_ms, *name, self.weather.nth(*name))

    def _host_clock_ms(self, child: Child) -> int:
        return self._now_ms + host_of(child).skew_ms

    def _processes_of(self, host: Host) -> list[HostedProcess]:
        fenced = [each for same in self._hosted.values() for each in same if each.host is host]
        attended = [each.process for each in host.attends if each.process is not None and each.process.fence is None]
        return [*fenced, *attended]

    def _examples(self, part: Part, kind: type[Event]) -> list[Event]:
        entity = self._brain.aggregates[part[0]].entities[part[1]]
        return list(kind.examples_for(entity.record))

    def _after_travel(self, what: str, child: Child, then: Callable[..., None], *given: object) -> None:
        """Do something when a message has travelled."""
        self._numbers += 1
        travel_ms = self._chance.takes_ms(TRAVEL_MS, f"travel of {what}", child.number, self._numbers)
        self._at(child.part, travel_ms, then, *given)


def host_of(child: Child) -> Host:
    """Return the host that a child was offered to."""
    assert child.host is not None  # noqa: S101 - it was placed
    return child.host
