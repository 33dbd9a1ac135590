"""A simulated runner: it decides, persists, performs and records as the engine does, and may crash at any point.

*Durable* is the log: the inputs, their fold, the messages without a receipt, and the effects without a record.
*Volatile* is the rest, and lost in a crash: decisions before they are persisted, messages in flight, timers, attended
activities. A new runner begins as the engine does. It gives every aggregate ``RunnerRecovered``, which sets the timers
and attends the running activities. It sends messages without a receipt again. Then it performs owed effects again.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from lifefold.core.kernel import (
    Aggregate,
    Envelope,
    Input,
    Reaction,
    RequestedEffect,
    RunnerRecovered,
    System,
    World,
    delivery,
    replace,
)
from lifefold.core.kernel.snapshot import must_recover
from lifefold.effects import Begin, CancelTimer, End, StartTimer, Tell
from lifefold.interpreters.search.crash_model import Fault
from lifefold.interpreters.search.rule_error import ADDRESSED, ANSWERED
from lifefold.interpreters.simulate.activities import Activities
from lifefold.interpreters.simulate.environment import LATE_MS, Chance, Range
from lifefold.interpreters.simulate.inputs import Counts, Decided, Given, Identity, Opening, Watcher
from lifefold.interpreters.simulate.lives import Lives
from lifefold.interpreters.simulate.property_monitor import Violation
from lifefold.interpreters.simulate.scheduler import Agenda
from lifefold.interpreters.simulate.timers import Timers


class Runner(Lives):
    """Runs a system on a log, in virtual time."""

    def __init__(self, system: System, opening: Opening, chance: Chance, agenda: Agenda, watcher: Watcher) -> None:
        """Take the system, the agenda, and the watcher of accepted inputs."""
        super().__init__(agenda)
        self.system: Final = system
        self.opening: Final = opening
        self.entries: Final[list[Input]] = []
        self.world = World(system)
        """The world that the log folds to. A message is in flight until its receiver has it in the log."""
        self.counts: Final = Counts()
        self.skew_ms = 0
        """The error of the runner's clock."""
        self.rests_within_ms: int = 0
        """0: what an engine has left to do is not checked here."""
        self._chance: Final = chance
        self._watcher: Final = watcher
        self._names: Final = frozenset(name for name, _ in opening)
        self._owed: Final[dict[Identity, RequestedEffect]] = {}
        self._again: list[tuple[Identity, RequestedEffect]] = []
        """The owed effects of this runner, until all running activities are attended."""
        self._done: Final[set[Identity]] = set()
        """The performed effects without a record."""
        self._commands: Final[dict[int, Given]] = {}
        """The operator commands that are not durable yet, by number."""
        self._submitted = 0
        self._commits = 0
        self._present = self.world
        """The world after all decisions, also those that are not durable yet."""
        self._inbox: Final[deque[Given]] = deque()
        self._is_writing = False
        self._arrivals: Final[dict[tuple[str, str], int]] = {}
        self._timers: Final = self._timers_on(agenda)
        self.activities: Activities = Activities(self, system, agenda, chance)

    def _timers_on(self, agenda: Agenda) -> Timers:
        """Return the timers of this runner."""
        return Timers(self, agenda)

    @property
    def clock_ms(self) -> int:
        """The time by the runner's clock."""
        return self._agenda.now_ms + self.skew_ms

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """The state in the log."""
        return self.world.aggregates

    def _begin(self) -> None:
        """Read the log, continue at its end, open the other aggregates."""
        self._present = self.world
        down_ms = max(0, self.clock_ms - self.world.now_ms)  # as the engine counts: since the last entry
        back = [
            Given(name, Envelope("", RunnerRecovered(down_ms), self.clock_ms, "engine"))
            for name, aggregate in self.aggregates.items()
            if must_recover(self.system.type_of(name), aggregate)
        ]
        new = [
            Given(name, replace(envelope, at_ms=self.clock_ms))
            for name, envelope in self.opening
            if name not in self.aggregates
        ]
        self._again, life = [*self._owed.items()], self.life
        for (sender, _, _), tell in self.world.in_flight.items():
            self._tell(sender, tell)
        if self._commands:
            self._agenda.at(self._agenda.now_ms, self._take_commands, life, [*self._commands.values()])
        self.give([*back, *new])
        if not back and life == self.life:  # no aggregate comes back, so no activity of an owed effect does
            self._perform_again()

    def _take_commands(self, life: int, commands: Sequence[Given]) -> None:
        """Accept operator commands from the time without a runner."""
        if life == self.life:
            self.give(commands)

    def submit(self, name: str, envelope: Envelope) -> None:
        """Give an operator command; without a runner, the next one gets it."""
        self._submitted += 1
        given = Given(name, replace(envelope, at_ms=self.clock_ms), command=self._submitted)
        self._commands[self._submitted] = given
        if self.is_up:
            self.give([given])

    def set_clock(self, by_ms: int) -> None:
        """Let the clock jump."""
        self.skew_ms += by_ms
        self._timers.arrange()

    def die(self, point: str) -> None:
        """Crash; another runner starts after a while."""
        self.counts.crashes += 1
        self._go_down()
        self._is_writing = False
        for volatile in (self._inbox, self._timers, self._done, self._arrivals):
            volatile.clear()
        self.activities.lose_listener()
        span_ms = self._chance.environment.restart_ms
        self._start_in(self._takes_ms(span_ms, "restart", self.counts.crashes, point))

    def _strikes(self, fault: str, *name: str | int) -> bool:
        return self._chance.strikes(fault, *name, self.life)

    def _takes_ms(self, span_ms: Range, *name: str | int) -> int:
        return self._chance.takes_ms(span_ms, *name, self.life)

    def give(self, given: Sequence[Given]) -> None:
        """Accept inputs: at once, or when the present write is durable."""
        if self._is_writing:
            self._inbox.extend(given)
        elif given:
            self._commit(given)

    def _commit(self, batch: Sequence[Given]) -> None:
        decided = [self._decide(each) for each in batch]
        self._commits += 1
        place = self._commits
        for fault in _BEFORE:
            if self._strikes(fault, place):
                if fault == "disk full":
                    self._full_until_ms = self._agenda.now_ms + self._takes_ms(_FULL_MS, fault, place)
                self.die(fault)
                return
        if self._strikes("slow store", place):
            self._is_writing = True
            span_ms = self._chance.environment.write_ms
            at_ms = self._agenda.now_ms + self._takes_ms(span_ms, "write", place)
            self._agenda.at(at_ms, self._written, self.life, decided)
        else:
            self._persist(decided)

    def _decide(self, given: Given) -> Decided:
        """Decide as the ledger does: time never goes backwards in a log, whatever the clock does."""
        name, envelope = given.aggregate, given.envelope
        if envelope.at_ms < self._present.now_ms:
            envelope = replace(envelope, at_ms=self._present.now_ms)
            given = given._replace(envelope=envelope)
        if name not in self._names:
            raise Violation(self.system.name, ADDRESSED, f"{envelope.actor}: sends to {name!r}, which does not exist")
        try:
            outcome = self._present.outcome(given.input)
        except Exception as error:
            raise Violation(self.system.name, ANSWERED, f"{name}: {type(error).__name__}: {error}") from error
        if isinstance(outcome, Reaction):
            self._present = self._present.after(given.input, outcome)
        return Decided(given, outcome, self._present)

    def _written(self, life: int, decided: Sequence[Decided]) -> None:
        if life == self.life:
            self._is_writing = False
            self._persist(decided)

    def _persist(self, decided: Sequence[Decided]) -> None:
        """Persist decisions, and the record of earlier effects; then perform their effects."""
        for identity in self._done:
            del self._owed[identity]
        self._done.clear()
        for each in decided:
            self._take(each)
        life = self.life
        if self._strikes("killed when persisted", self._commits):
            self.die("killed when persisted")
        for given, outcome, _ in decided:
            if life == self.life and isinstance(outcome, Reaction):
                self._release(given.aggregate, outcome)
        if life == self.life:
            is_back = isinstance(decided[0].given.envelope.event, RunnerRecovered)
            if is_back:
                self._must_have_set_timers()
            self._timers.arrange_overdue(is_back=is_back)
            self._go_on()
            if is_back and life == self.life:
                self._perform_again()

    def _must_have_set_timers(self) -> None:
        """Raise ``Violation`` unless every running timer of the log is set, at its deadline."""
        for name, entity, each in self.world.running():
            part = name, entity.ref, each.slot, each.generation
            if each.activity is None and not self._timers.is_set(part, each.deadline_ms):
                raise Violation(self.system.name, Fault.STRANDED, f"{name}, {entity.ref}: {each.slot}")

    def _perform_again(self) -> None:
        """Perform owed effects, now that the activities which they may concern are attended."""
        for identity, asked in self._again:
            self.counts.again += 1
            self._perform(identity, asked)
        self._again = []

    def _take(self, decided: Decided) -> None:
        given, outcome, self.world = decided
        self.counts.inputs += 1
        self._commands.pop(given.command, None)
        if given.process is not None:
            given.process.heard = max(given.process.heard, given.place + 1)
        if isinstance(outcome, Reaction):
            self._record(given, outcome)
        else:
            self.counts.refused += 1
            self._watcher(given.aggregate, outcome, outcome.envelope)

    def _go_on(self) -> None:
        """Accept the inputs that have gathered, unless this is the end."""
        if self._done and self._strikes("killed when performed", self._commits):
            self.die("killed when performed")
        elif self._inbox and not self._is_writing:
            batch = list(self._inbox)
            self._inbox.clear()
            self._commit(batch)
        elif not self._is_writing:
            self._wait()

    def _wait(self) -> None:
        """Wait for the next input; perhaps crash half-way to the next timer, if nothing has come until then."""
        next_ms = self._timers.next_ms()
        if next_ms is not None and next_ms > self.clock_ms and not self._chance.is_calm:
            half_ms = (next_ms - self.clock_ms) // 2
            self._agenda.at(self._agenda.now_ms + half_ms, self._may_die_waiting, self.life, self._commits)

    def _may_die_waiting(self, life: int, commits: int) -> None:
        if life == self.life and commits == self._commits and self._strikes(_WAITING, commits):
            self.die(_WAITING)

    def _record(self, given: Given, reaction: Reaction) -> None:
        name, envelope = given.aggregate, given.envelope
        self.entries.append(given.input)
        self.counts.transitions += len(reaction.transitions)
        version = reaction.aggregate.version
        for index, asked in enumerate(reaction.effects):
            if not isinstance(asked.effect, _NOT_OWED):
                self._owed[name, version, index] = asked
        if given.process is not None and given.process.heard == len(given.process.said):
            self.activities.let_go((name, envelope.entity, envelope.slot, envelope.generation))
        self._watcher(name, reaction, envelope)

    def _release(self, name: str, reaction: Reaction) -> None:
        version, life = reaction.aggregate.version, self.life
        for index, asked in enumerate(reaction.effects):
            if index and self._strikes("killed when performing", name, version, index):
                self.die("killed when performing")
            if life != self.life:
                return
            match asked.effect:
                case Tell() as tell:
                    self._tell(name, tell)
                case StartTimer(slot=slot, generation=generation, deadline_ms=deadline_ms):
                    self._timers.start((name, asked.entity, slot, generation), deadline_ms)
                case CancelTimer(slot=slot, generation=generation):
                    self._timers.cancel((name, asked.entity, slot, generation))
                case Begin(slot=slot, generation=generation):
                    self.activities.begin((name, asked.entity, slot, generation), reaction.aggregate)
                case End(slot=slot, generation=generation):
                    self.activities.end((name, asked.entity, slot, generation))
                case _:
                    self._perform((name, version, index), asked)

    def _tell(self, sender: str, tell: Tell) -> None:
        """Send a message: it arrives after those before it, and perhaps again."""
        receiver, ordinal = tell.aggregate, tell.ordinal
        name = (sender, receiver, ordinal)
        took_ms = self._takes_ms(self._chance.environment.message_ms, "message", *name)
        if self._strikes("late message", *name):
            took_ms += self._takes_ms(LATE_MS, "late", *name)
        at_ms = max(self._agenda.now_ms + took_ms, self._arrivals.get((sender, receiver), 0))
        self._arrivals[sender, receiver] = at_ms
        self._agenda.at(at_ms, self._arrive, self.life, sender, tell)
        if self._strikes("doubled message", *name):
            at_ms += self._takes_ms(LATE_MS, "double", *name)
            self._agenda.at(at_ms, self._arrive, self.life, sender, tell)

    def _arrive(self, life: int, sender: str, tell: Tell) -> None:
        if life == self.life:
            self.give([Given(*delivery(sender, tell, self.clock_ms))])

    def _perform(self, identity: Identity, asked: RequestedEffect) -> None:
        """Perform an effect; activities that it ends soon end soon."""
        self._done.add(identity)
        self.activities.hasten(identity[0], asked)

    def must_have_come_to_rest(self) -> None:
        """Check nothing: each step of this runner is checked when it is taken."""

    def close(self) -> None:
        """Do nothing: this runner has nothing to discard."""


_NOT_OWED: Final = (Begin, CancelTimer, End, StartTimer, Tell)
"""The effects that a runner requests or sends again after a crash, without a record of what was performed."""
_BEFORE: Final = ("killed when decided", "store refuses", "torn write", "disk full")
"""The faults that keep a decision from being durable."""
_WAITING: Final = "killed when waiting"
_FULL_MS: Final = (1_000, 3_600_000)
