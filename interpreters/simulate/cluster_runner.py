"""A simulation's runner that is a cluster: a brain that decides, a server that keeps what waits, and hosts that work.

The brain decides and persists as a local runner does. When it dies, nothing is lost but its time: inputs, timers and
messages wait at the server, and the next brain answers what was not answered. So no aggregate recovers. An aggregate
recovers when the server takes its host for lost.

The brain gives each entry its time. A timer of the server that is early by the brain's clock goes back.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

from lifefold.core.kernel import Envelope, Reaction, RunnerRecovered, System, TimerFired, replace
from lifefold.core.kernel.snapshot import must_recover
from lifefold.interpreters.simulate.cluster_activities import HostedActivities
from lifefold.interpreters.simulate.cluster_processes import ClusterGuarantee
from lifefold.interpreters.simulate.environment import Chance
from lifefold.interpreters.simulate.faults import OF_CLUSTER, Fault
from lifefold.interpreters.simulate.inputs import Decided, Given, Opening, Watcher
from lifefold.interpreters.simulate.property_monitor import Violation
from lifefold.interpreters.simulate.runner import Runner
from lifefold.interpreters.simulate.scheduler import Agenda, Part
from lifefold.interpreters.simulate.timers import Timers


class ServerTimers(Timers):
    """Durable sleeps at the server. They do not know the brain's clock, which may jump meanwhile."""

    def arrange(self) -> None:
        """Do nothing: the server's clock does not jump."""

    def _elapse(self, life: int, part: Part, deadline_ms: int) -> None:
        if life == self._runner.life and self.is_set(part, deadline_ms):
            self.cancel(part)
            name, ref, slot, generation = part
            fired = Envelope(ref, TimerFired(slot, generation), self._runner.clock_ms, "timer")
            self._runner.give([Given(name, fired)])


class ClusterRunner(Runner):
    """Runs a system on a cluster, in virtual time."""

    KINDS: ClassVar[tuple[Fault, ...]] = OF_CLUSTER
    """The faults that it meets."""

    def __init__(  # noqa: PLR0913 - as the runner of a simulation, and the hosts
        self,
        system: System,
        opening: Opening,
        chance: Chance,
        agenda: Agenda,
        watcher: Watcher,
        *,
        hosts: type[HostedActivities] = HostedActivities,
    ) -> None:
        """Take the system, the agenda, and the watcher of accepted inputs. ``hosts`` are the hosts to try."""
        super().__init__(system, opening, chance, agenda, watcher)
        self.rests_within_ms = 4 * hosts.rule.detection_ms
        self.activities = self._hosted = hosts(self, system, agenda, chance)
        self._unreleased: Final[list[Decided]] = []
        self._batch: Sequence[Given] = ()
        self._lives = 1
        self._is_away = False
        """Whether there is no brain. Inputs gather then, as during a slow write."""

    def _timers_on(self, agenda: Agenda) -> Timers:
        return ServerTimers(self, agenda)

    def _strikes(self, fault: str, *name: str | int) -> bool:
        return fault in self._chance.rates and super()._strikes(fault, *name)

    def recover(self, name: str) -> None:
        """Let an aggregate ask again for what it runs, because its host is lost."""
        if must_recover(self.system.type_of(name), self.aggregates[name]):
            down_ms = max(0, self.clock_ms - self.world.now_ms)
            self.give([Given(name, Envelope("", RunnerRecovered(down_ms), self.clock_ms, "engine"))])

    def die(self, point: str) -> None:
        """Lose the brain. The next one takes the inputs that were not answered."""
        self.counts.crashes += 1
        self._lives += 1
        self._is_away = self._is_writing = True
        restart_ms = self._takes_ms(self._chance.environment.restart_ms, "restart", self.counts.crashes, point)
        back_ms = max(self._full_until_ms, self._agenda.now_ms + restart_ms)
        self._agenda.at(back_ms, self._return, self._lives, self._agenda.now_ms)

    def _return(self, lives: int, since_ms: int) -> None:
        """Let the next brain go on, if it has not done so."""
        if self._is_away and lives == self._lives:
            self.recovery_ms.append(self._agenda.now_ms - since_ms)
            self._is_away = self._is_writing = False
            self._release_all()

    def come_back(self) -> None:
        """Let all hosts and the brain go on, in spite of any fault."""
        self._hosted.weather.heal()
        self._return(self._lives, self._agenda.now_ms)

    def _commit(self, batch: Sequence[Given]) -> None:
        self._batch = [given for each in batch if (given := self._timed(each)) is not None]
        if not self._batch:
            return
        super()._commit(self._batch)
        if self._is_away and self._batch:
            self._inbox.extendleft(reversed(self._batch))
            self._batch, self._present = (), self.world

    def _timed(self, given: Given) -> Given | None:
        """Give an input the brain's time; None for a timer that is early by it, which goes back."""
        name, envelope = given.aggregate, given.envelope
        if isinstance(envelope.event, TimerFired) and (aggregate := self.aggregates.get(name)) is not None:
            fired = envelope.event
            running = aggregate.entities[envelope.entity].find(fired.slot, generation=fired.generation)
            if running is not None and running.deadline_ms > self.clock_ms:
                self._give_back((name, envelope.entity, fired.slot, fired.generation), running.deadline_ms)
                return None
        return given._replace(envelope=replace(envelope, at_ms=self.clock_ms))

    def _give_back(self, timer: Part, deadline_ms: int) -> None:
        """Let the server wait for the rest of a timer's time."""
        self._timers.start(timer, deadline_ms)

    def _persist(self, decided: Sequence[Decided]) -> None:
        self._batch = ()
        for each in decided:
            self._take(each)
        self._unreleased.extend(decided)
        if self._strikes("killed when persisted", self._commits):
            self.die("killed when persisted")  # its answer is lost, and the next brain gives it again
        else:
            self._release_all()

    def _release_all(self) -> None:
        """Answer with all that the entries want, and go on."""
        unreleased = list(self._unreleased)
        self._unreleased.clear()
        for given, outcome, _ in unreleased:
            if isinstance(outcome, Reaction):
                self._release(given.aggregate, outcome)
        self._timers.arrange_overdue(is_back=False)
        self._hosted.answered()
        self._done.clear()
        self._go_on()

    def must_have_come_to_rest(self) -> None:
        """Check that all in the log is at work, and nothing else. Raises ``Violation``."""
        self._hosted.must_rest()
        for name, entity, each in self.world.running():
            timer = name, entity.ref, each.slot, each.generation
            if each.activity is None and not self._timers.is_set(timer, each.deadline_ms):
                raise Violation(self.system.name, ClusterGuarantee.TIMED, f"{name}, {entity.ref}: {each.slot}")
