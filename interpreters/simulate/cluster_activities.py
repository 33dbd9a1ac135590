"""The activities of a simulated cluster: each is attended by one host, and by another one when that is lost.

The server side does what ``interpreters.temporal`` does: a child for each request, a heartbeat time-out, reports that
name their child. The host side does what its ``Attendance`` does: a heartbeat is acknowledged before anything begins.
Heartbeats are drawn when they matter, which is when a host is interrupted: the last one that has arrived, and the last
one whose acknowledgement has come back.

Guarantees are checked whenever they could be broken.
"""

from collections import deque
from functools import partial
from typing import Final

from lifefold.core.cluster.fencing import Fence
from lifefold.core.kernel import ActivityEnded, Aggregate, Envelope, Phase, RequestedEffect
from lifefold.interpreters.simulate.cluster_hosts import Child, Condition, Host, HostedProcess
from lifefold.interpreters.simulate.cluster_processes import ClusterGuarantee, HostedProcesses, host_of
from lifefold.interpreters.simulate.inputs import Given
from lifefold.interpreters.simulate.scheduler import Part, Process

LAUNCH_MS: Final = (10, 2_000)
"""The time from an acknowledged heartbeat to the start of a process."""


class HostedActivities(HostedProcesses):
    """The activities of a system, on hosts."""

    # What the brain asks for.

    def begin(self, part: Part, aggregate: Aggregate) -> None:
        """Let a host attend to an activity, unless one does."""
        if part not in self._courses:
            self._courses[part] = self._course(part, aggregate)
            running = aggregate.entities[part[1]].find(part[2], generation=part[3])
            if running is not None and isinstance(running.activity, self._chance.environment.fenced):
                self._fenced.add(part)
        if part not in self._children:
            self._offer(part)

    def end(self, part: Part) -> None:
        """Let the host of an activity end it, and confirm its end."""
        self._heard.discard(part)
        child = self._children.get(part)
        if child is None:
            self._offer(part, is_ending=True)
        elif not child.is_ending:
            child.is_ending = True
            self._finish(child)
        self._perform(part[0])

    def hasten(self, name: str, asked: RequestedEffect) -> None:
        """Perform an effect after those before it, once the host of its aggregate attends to its activity."""
        if self._chance.environment.hastens.get(type(asked.effect)):
            self._pending.setdefault(name, deque()).append(asked)
            self._perform(name)

    def let_go(self, part: Part) -> None:
        """Forget an activity that has reported everything, if it is over, once its last report is answered."""
        self._told_all.append(part)

    def answered(self) -> None:
        """Forget the activities whose last report is answered now."""
        told, self._told_all[:] = list(self._told_all), []
        for part in told:
            name, ref, slot, generation = part
            if self._brain.aggregates[name].entities[ref].find(slot, generation=generation) is None:
                super().let_go(part)
                child = self._children.get(part)
                if child is not None and not child.is_ending:
                    self._finish_for_good(child)
                self._perform(name)

    def lose_listener(self) -> None:
        """Do nothing: inputs wait for the next brain."""

    # The server.

    def _offer(self, part: Part, *, is_ending: bool = False) -> None:
        self._numbers += 1
        self._children[part] = child = Child(part, self._numbers, self._now_ms, is_ending=is_ending)
        self._place(child)

    def _place(self, child: Child) -> None:
        """Offer a child to the host of its aggregate; one of the hosts takes the aggregate if it has none."""
        name, hosts = child.part[0], [each for each in self.weather.hosts if each.is_at_work]
        if name not in self._host_by_name and not hosts:
            self._unplaced.append(child)
            return
        if name not in self._host_by_name:
            self._host_by_name[name] = hosts[self._chance.choices.any_way(("which host", child.number), len(hosts))]
        child.host = self._host_by_name[name]
        self._after_travel("offer", child, self._arrive_at_host, child)

    def _arrive_at_host(self, child: Child) -> None:
        """Give a child to its host. A host that is away may have it, too, by a poll of before."""
        host = host_of(child)
        self.weather.may_interrupt(host, "offered", child.number)
        child.heard_ms = child.sent_ms = self._now_ms
        if host.has_daemon:
            host.attends.append(child)
            self._ask(child)
        else:
            child.is_left = True
        if not host.is_at_work:
            self._expect_loss(child, self._now_ms)

    def _expect_loss(self, child: Child, heard_ms: int) -> None:
        """Let the heartbeat time-out of a child run from its last heartbeat."""
        child.deadline_ms = heard_ms + self.rule.detection_ms
        self._at(child.part, child.deadline_ms - self._now_ms, self._may_be_lost, child, child.deadline_ms)

    def _may_be_lost(self, child: Child, deadline_ms: int) -> None:
        if not child.is_over and child.deadline_ms == deadline_ms:
            self.losses += 1
            self._close(child)
            self._detach(child)
            name = child.part[0]
            if self._host_by_name.get(name) is child.host:
                del self._host_by_name[name]
            if child.is_ending:
                self._offer(child.part, is_ending=True)
            else:
                self._recover(name)

    def _recover(self, name: str) -> None:
        self._brain.recover(name)

    def _close(self, child: Child) -> None:
        child.is_over = True
        if self._children.get(child.part) is child:
            del self._children[child.part]

    def _finish_for_good(self, child: Child) -> None:
        self._close(child)
        if child.process is not None:
            child.process.is_over = True
        if child.host is not None and child in child.host.attends:
            child.host.attends.remove(child)

    # A host attends to a child.

    def _ask(self, child: Child) -> None:
        """Send the first heartbeat: nothing begins before it is acknowledged."""
        host = host_of(child)
        if host.is_at_work and not child.is_acknowledged:
            child.sent_ms = self._now_ms
            self._after_travel("heartbeat", child, self._arrive_at_server, child, child.sent_ms)

    def _arrive_at_server(self, child: Child, sent_ms: int) -> None:
        if host_of(child).condition is not Condition.PARTED:
            child.heard_ms = self._now_ms
            if not child.is_over and not child.is_left and host_of(child).is_at_work:
                child.deadline_ms = None
            elif not child.is_over:
                self._expect_loss(child, child.heard_ms)
            self._after_travel("answer", child, self._answered, child, sent_ms, child.is_over)

    def _answered(self, child: Child, sent_ms: int, is_refused: bool) -> None:  # noqa: FBT001 - the answer
        host = host_of(child)
        self.weather.may_interrupt(host, "answered", child.number)
        if host.is_frozen:
            host.deferred.append(partial(self._answered, child, sent_ms, is_refused))
        elif host.is_at_work and not child.is_left and not child.is_acknowledged:
            child.is_acknowledged, child.until_ms = not is_refused, self._fence_ms(sent_ms)
            if not is_refused and not child.is_over and self._now_ms < child.until_ms:
                child.deadline_ms = None  # the next heartbeats arrive before the time-out
            if is_refused:
                self._leave(child)
            elif child.is_ending:
                self._finish(child)
            else:
                launch_ms = self._takes_ms(LAUNCH_MS, "launch", child.number)
                self._at(child.part, launch_ms, self._launch, child)

    def _launch(self, child: Child) -> None:
        """Start the process of a child, unless its fence has passed."""
        host, part = host_of(child), child.part
        self.weather.may_interrupt(host, "launching", child.number)
        if host.is_frozen:
            host.deferred.append(partial(self._launch, child))
            return
        if child.is_left or child.is_ending:
            return
        until_ms = self._fence_ms(self._now_ms) if child.deadline_ms is None else child.until_ms
        if part in self._fenced and self._may_not_start(until_ms):
            self._leave(child)
            return
        ends = tuple(self._machine_of(part).last[part[2]])
        fence = Fence(until_ms) if part in self._fenced else None
        child.process = process = HostedProcess(part, host, list(self._courses[part]), ends, fence)
        if fence is not None:
            if child.is_over:
                raise self._broken(ClusterGuarantee.FENCED, part)
            self._hosted.setdefault(part[:3], []).append(process)
            self._must_be_alone(process)
        if not child.is_over:
            self._processes[part] = process
            self._heard.add(part)
        self._continue(part, process)
        if not host.is_at_work:
            self._fence_off(process, until_ms)
        self._perform(part[0])

    def _may_not_start(self, until_ms: int) -> bool:
        return self._now_ms >= until_ms

    def _leave(self, child: Child) -> None:
        """Attend to a child no more. Its process has its fence."""
        child.is_left = True
        self._detach(child)
        if child in host_of(child).attends:
            host_of(child).attends.remove(child)
        if not child.is_over:
            self._expect_loss(child, self._now_ms)

    def _detach(self, child: Child) -> None:
        """Hear no more of the process of a child."""
        if child.process is not None and self._processes.get(child.part) is child.process:
            del self._processes[child.part]
            self._heard.discard(child.part)

    def _finish(self, child: Child) -> None:
        """End the activity of a child, and confirm the end, once its host attends to it."""
        if child.is_attended:
            took_ms = self._takes_ms(self._chance.environment.end_ms, "end", child.number)
            self._at(child.part, took_ms, self._finished, child)

    def _finished(self, child: Child) -> None:
        if not child.is_attended or self._is_refused(child):
            return  # the next request ends it, or the host does so when it goes on
        self._detach(child)
        self._finish_for_good(child)
        name, ref, slot, generation = child.part
        if any(each.runs and each.part == child.part for each in self._hosted.get(child.part[:3], ())):
            raise self._broken(ClusterGuarantee.REMAINS, child.part)
        ended = Envelope(ref, ActivityEnded(slot, generation), self._host_clock_ms(child), "engine")
        self._brain.give([Given(name, ended)])

    # A host is interrupted, and goes on.

    def _interrupted(self, host: Host) -> None:
        """Draw the last heartbeats before this moment: all that happens now follows from them."""
        for child in list(host.attends):
            if child.is_over or child.is_left:
                continue
            if child.deadline_ms is None:  # otherwise no heartbeat has come since an earlier interruption
                sent_ms, heard_ms = self._last_heartbeat(child)
                child.until_ms = max(child.until_ms, self._fence_ms(sent_ms))
                self._expect_loss(child, heard_ms)
            if child.process is not None:
                self._fence_off(child.process, child.until_ms)
            if not host.has_daemon:
                child.is_left = True
                self._heard.discard(child.part)
        if not host.has_daemon:
            host.attends.clear()
            host.deferred.clear()
        for process in self._processes_of(host):
            if host.condition is Condition.DIED or (not host.has_daemon and process.fence is None):
                process.is_over = True

    def _last_heartbeat(self, child: Child) -> tuple[int, int]:
        """Return when the last acknowledged heartbeat was sent, and when the last one arrived."""
        now_ms, number = self._now_ms, self._numbers
        if not child.is_acknowledged or now_ms - child.sent_ms <= self.rule.beat_ms:
            return child.sent_ms, child.heard_ms
        self._numbers += 1
        age_ms = self._chance.takes_ms((0, self.rule.beat_ms), "age of the heartbeat", child.number, number)
        if self._chance.strikes("lost heartbeat", child.number, number):
            age_ms += self.rule.beat_ms
        age_ms = min(age_ms, now_ms - child.sent_ms, self.rule.lease_ms - 1)
        heard_ms = now_ms - self._chance.choices.any_way(("heartbeat arrived", child.number, number), age_ms + 1)
        return now_ms - age_ms, max(heard_ms, child.heard_ms)

    def _returned(self, host: Host, before: Condition) -> None:
        """Let a host go on. Fences come first: the clock has passed, and the shims look at it."""
        if before is Condition.FROZEN:
            for process in self._processes_of(host):
                if process.fence is not None and process.lives:
                    self._thaw(process)
        deferred, host.deferred = host.deferred, []
        for each in deferred:
            each()
        for child in list(host.attends):
            if host.is_at_work:
                self._go_on(child)
        waiting, self._unplaced[:] = list(self._unplaced), []
        for child in waiting:
            self._place(child)

    def _go_on(self, child: Child) -> None:
        """Ask the server about a child. It is left if the server has ended it."""
        if child.is_left:
            return
        if not child.is_acknowledged:
            if self._asks_first:
                self._ask(child)
            else:
                child.is_acknowledged, child.until_ms = True, self._fence_ms(self._now_ms)
                self._launch(child)
            return
        if child.is_over:
            self._leave(child)
            return
        child.deadline_ms = None
        child.sent_ms = child.heard_ms = self._now_ms
        child.until_ms = self._fence_ms(self._now_ms)
        process = child.process
        if child.is_ending:
            self._finish(child)
        elif process is not None:
            if process.fence is not None:
                process.fence = process.fence.seen_at(self._now_ms).moved(child.until_ms)
            for place in range(process.heard, process.spoken):
                self._report_of(process, place)
            self._perform(child.part[0])

    _asks_first: bool = True
    """Whether a host asks the server before it begins what it got before it was away."""

    # Effects.

    def _perform(self, name: str) -> None:
        """Perform the effects of an aggregate that its host can perform now, in order."""
        pending = self._pending.get(name)
        while pending:
            meant = self._meant(name, pending[0])
            if not all(self._is_attended(part) for part in meant):
                return
            pending.popleft()
            for part in meant:
                self._end_soon(part, self._processes[part])

    def _end_soon(self, part: Part, process: Process) -> None:
        if process.spoken < len(process.said):
            process.heard = process.spoken = len(process.said) - 1
            self._numbers += 1
            after_ms = self._takes_ms(self._chance.environment.end_ms, "hastened", *part, self._numbers)
            self._at(part, after_ms, self._speak, part, process)

    def _meant(self, name: str, asked: RequestedEffect) -> list[Part]:
        """Return the running activities that an effect is about."""
        hastened = self._chance.environment.hastens[type(asked.effect)]
        entity = self._brain.aggregates[name].entities[asked.entity]
        running = [each for each in entity.running if isinstance(each.activity, hastened) and each.phase is Phase.LIVE]
        return [(name, asked.entity, each.slot, each.generation) for each in running]

    def _is_attended(self, part: Part) -> bool:
        child = self._children.get(part)
        return child is not None and child.is_attended and part in self._processes

    # Guarantees.

    def must_rest(self) -> None:
        """Check that nothing is left without a host, long after all was healed. Raises ``Violation``."""
        late_ms = self._now_ms - 2 * self.rule.detection_ms
        for name, entity, each in self._brain.world.running():
            part = name, entity.ref, each.slot, each.generation
            if each.activity is None or each.phase is Phase.WAITING or each.slot in self._machine_of(part).served:
                continue
            child = self._children.get(part)
            if child is None or (child.since_ms <= late_ms and not child.is_attended):
                raise self._broken(ClusterGuarantee.TAKEN_UP, part)
        attended = [each.process for each in self._children.values()]
        for process in (each for same in self._hosted.values() for each in same):
            if process.lives and process not in attended:
                raise self._broken(ClusterGuarantee.OVER, process.part)
