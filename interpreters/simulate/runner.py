"""A runner in a simulation: decide, persist, perform, record, as the engine does it; and it may die at any point.

*Durable* is what is on record: the inputs, what they fold to, which messages were not taken yet, which effects are not
known to be performed. *Volatile* is everything else, and gone when the runner dies: what was decided and not persisted,
messages under way, timers, who is listened to. A new runner begins as the engine does: it tells every aggregate
``Recovered``, sends again what was not taken, performs again what may not have been done.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from lifefold.core.kernel import (
    Aggregate,
    Asked,
    Elapsed,
    Ended,
    Envelope,
    Event,
    Reaction,
    Recovered,
    Refusal,
    Scene,
    System,
    react,
    replace,
)
from lifefold.effects import Begin, CancelTimer, End, StartTimer, Tell
from lifefold.interpreters.check.flaw import ANSWERED
from lifefold.interpreters.simulate.environment import Chance, Said, Span
from lifefold.interpreters.simulate.inputs import Counts, Decided, Entry, Given, Identity, Opening, Watcher
from lifefold.interpreters.simulate.outside import Agenda, Part, Process, due, turn
from lifefold.interpreters.simulate.vigil import Violation


class Runner:
    """Runs a system on a log, in virtual time."""

    def __init__(self, system: System, opening: Opening, chance: Chance, agenda: Agenda, watcher: Watcher) -> None:
        """Take the system, the world, and who is told of every input that is taken."""
        self.system: Final = system
        self.opening: Final = opening
        self.entries: Final[list[Entry]] = []
        self.aggregates: Final[dict[str, Aggregate]] = {}
        self.untold: Final[dict[tuple[str, str, int], Tell]] = {}
        self.counts: Final = Counts()
        self.recovery_ms: Final[list[int]] = []
        """How long each time there was no runner."""
        self.skew_ms = 0
        """By how much the runner's clock is wrong."""
        self.is_up = False
        self._life = 0
        self._last_ms = 0
        self._down_since_ms = 0
        self._full_until_ms = 0
        self._chance: Final = chance
        self._agenda: Final = agenda
        self._watcher: Final = watcher
        self._types: Final = {name: system.type_of(name) for name, _ in opening}
        self._owed: Final[dict[Identity, Asked]] = {}
        self._done: Final[set[Identity]] = set()
        """What was performed and is not on record as such."""
        self._posts: Final[dict[int, Given]] = {}
        """What people have said that is not on record yet, by number."""
        self._posted = 0
        self._commits = 0
        self._present: dict[str, Aggregate] = {}
        self._inbox: Final[deque[Given]] = deque()
        self._is_writing = False
        self._timers: Final[dict[Part, int]] = {}
        self._overdue: Final[list[tuple[int, Part]]] = []
        """Timers that were due when they began: when, and which."""
        self._arrivals: Final[dict[tuple[str, str], int]] = {}
        self._heard: Final[set[Part]] = set()
        """What this runner listens to."""
        self._processes: Final[dict[Part, Process]] = {}

    @property
    def clock_ms(self) -> int:
        """What the runner takes for the time."""
        return self._agenda.now_ms + self.skew_ms

    def scene(self) -> Scene:
        """Return what is on record, as promises of the system see it."""
        under_way = ((sender, receiver, each.entity, each.event) for (sender, receiver, _), each in self.untold.items())
        return Scene(self.aggregates, tuple(under_way))

    def start(self) -> None:
        """Let there be a runner: read the log, go on where it ends, open what is not open."""
        if self.is_up:
            return
        if self._full_until_ms > self._agenda.now_ms:
            self._agenda.at(self._full_until_ms, self.start)
            return
        self._life += 1
        self.is_up = True
        if self._life > 1:
            self.recovery_ms.append(self._agenda.now_ms - self._down_since_ms)
        self._present = dict(self.aggregates)
        self._last_ms = self.entries[-1].envelope.at_ms if self.entries else 0
        down_ms = max(0, self.clock_ms - self._last_ms)  # as the engine knows it: since what is on record
        back = [Given(name, Envelope("", Recovered(down_ms), self.clock_ms, "engine")) for name in self.aggregates]
        new = [
            Given(name, replace(envelope, at_ms=self.clock_ms))
            for name, envelope in self.opening
            if name not in self.aggregates
        ]
        owed, life = [*self._owed.items()], self._life
        for (sender, _, _), tell in [*self.untold.items()]:
            self._tell(sender, tell)
        if self._posts:
            self._agenda.at(self._agenda.now_ms, self._take_posts, life, [*self._posts.values()])
        self._give([*back, *new])
        if life != self._life:
            return
        for identity, asked in owed:
            self.counts.again += 1
            self._perform(identity, asked)

    def _take_posts(self, life: int, posts: Sequence[Given]) -> None:
        """Take what people have said while there was no runner."""
        if life == self._life:
            self._give(posts)

    def post(self, name: str, envelope: Envelope) -> None:
        """Have somebody say something; if there is no runner, the next one hears it."""
        self._posted += 1
        given = self._posts[self._posted] = Given(name, replace(envelope, at_ms=self.clock_ms), None, self._posted)
        if self.is_up:
            self._give([given])

    def set_clock(self, by_ms: int) -> None:
        """Let the clock jump."""
        self.skew_ms += by_ms
        for part, deadline_ms in self._timers.items():
            self._arm(part, deadline_ms)

    def die(self, point: str) -> None:
        """End here; there is another runner after a while."""
        self.counts.crashes += 1
        self._life += 1
        self.is_up = self._is_writing = False
        self._down_since_ms = self._agenda.now_ms
        for volatile in (self._inbox, self._timers, self._overdue, self._heard, self._done, self._arrivals):
            volatile.clear()
        span_ms = self._chance.environment.restart_ms
        self._agenda.at(
            self._agenda.now_ms + self._takes_ms(span_ms, "restart", self.counts.crashes, point), self.start
        )

    def _strikes(self, fault: str, *name: str | int) -> bool:
        return self._chance.strikes(fault, *name, self._life)

    def _takes_ms(self, span_ms: Span, *name: str | int) -> int:
        return self._chance.takes_ms(span_ms, *name, self._life)

    def _give(self, given: Sequence[Given]) -> None:
        """Take inputs: at once, or when what is being written is on record."""
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
            self._agenda.at(at_ms, self._written, self._life, decided)
        else:
            self._persist(decided)

    def _decide(self, given: Given) -> Decided:
        """Decide as the ledger does: time never goes backwards in a log, whatever the clock does."""
        name, envelope = given.aggregate, given.envelope
        if envelope.at_ms < self._last_ms:
            envelope = replace(envelope, at_ms=self._last_ms)
            given = given._replace(envelope=envelope)
        of = self._types[name]
        try:
            outcome = react(of, self._present.get(name) or of.start(name), envelope)
        except Exception as error:
            raise Violation(self.system.name, ANSWERED, f"{name}: {type(error).__name__}: {error}") from error
        if isinstance(outcome, Reaction):
            self._last_ms = envelope.at_ms
            self._present[name] = outcome.aggregate
        return Decided(given, outcome)

    def _written(self, life: int, decided: Sequence[Decided]) -> None:
        if life == self._life:
            self._is_writing = False
            self._persist(decided)

    def _persist(self, decided: Sequence[Decided]) -> None:
        """Put decisions on record, and what was performed before them; then let them have their effects."""
        for identity in self._done:
            del self._owed[identity]
        self._done.clear()
        for given, outcome in decided:
            self._take(given, outcome)
        life = self._life
        if self._strikes("killed when persisted", self._commits):
            self.die("killed when persisted")
        for given, outcome in decided:
            if life == self._life and isinstance(outcome, Reaction):
                self._release(given.aggregate, outcome)
        if life == self._life:
            self._arrange_overdue(decided)
            self._go_on()

    def _take(self, given: Given, outcome: Reaction | Refusal) -> None:
        self.counts.inputs += 1
        self._posts.pop(given.post, None)
        if given.process is not None:
            given.process.heard += 1
        if isinstance(outcome, Reaction):
            self._record(given, outcome)
        else:
            self.counts.refused += 1
            self._watcher(given.aggregate, outcome, outcome.envelope)

    def _go_on(self) -> None:
        """Take the inputs that have gathered, unless this is the end."""
        if self._done and self._strikes("killed when performed", self._commits):
            self.die("killed when performed")
        elif self._inbox and not self._is_writing:
            batch = list(self._inbox)
            self._inbox.clear()
            self._commit(batch)

    def _record(self, given: Given, reaction: Reaction) -> None:
        name, envelope = given.aggregate, given.envelope
        self.entries.append(Entry(name, envelope))
        self.counts.transitions += len(reaction.transitions)
        self.aggregates[name] = reaction.aggregate
        version = reaction.aggregate.version
        for index, asked in enumerate(reaction.effects):
            effect = asked.effect
            if isinstance(effect, Tell):
                self.untold[name, effect.aggregate, effect.ordinal] = effect
            elif not isinstance(effect, _DERIVED):
                self._owed[name, version, index] = asked
        if envelope.sender:
            self.untold.pop((envelope.sender, name, envelope.ordinal), None)
        elif given.process is not None and given.process.heard == len(given.process.said):
            self._let_go((name, envelope.entity, envelope.slot, envelope.generation))
        self._watcher(name, reaction, envelope)

    def _release(self, name: str, reaction: Reaction) -> None:
        version, life = reaction.aggregate.version, self._life
        for index, asked in enumerate(reaction.effects):
            if index and self._strikes("killed when performing", name, version, index):
                self.die("killed when performing")
            if life != self._life:
                return
            match asked.effect:
                case Tell() as tell:
                    self._tell(name, tell)
                case StartTimer(slot=slot, generation=generation, deadline_ms=deadline_ms):
                    part = (name, asked.entity, slot, generation)
                    self._timers[part] = deadline_ms
                    if deadline_ms > self.clock_ms:
                        self._arm(part, deadline_ms)
                    else:
                        self._overdue.append((deadline_ms, part))
                case CancelTimer(slot=slot, generation=generation):
                    self._timers.pop((name, asked.entity, slot, generation), None)
                case Begin() as begin:
                    self._begin((name, asked.entity, begin.slot, begin.generation), reaction.aggregate)
                case End(slot=slot, generation=generation):
                    self._end((name, asked.entity, slot, generation))
                case _:
                    self._perform((name, version, index), asked)

    def _tell(self, sender: str, tell: Tell) -> None:
        """Send a message: it arrives after those before it, and maybe again."""
        receiver, ordinal = tell.aggregate, tell.ordinal
        name = (sender, receiver, ordinal)
        took_ms = self._takes_ms(self._chance.environment.message_ms, "message", *name)
        if self._strikes("late message", *name):
            took_ms += self._takes_ms(_LATE_MS, "late", *name)
        at_ms = max(self._agenda.now_ms + took_ms, self._arrivals.get((sender, receiver), 0))
        self._arrivals[sender, receiver] = at_ms
        self._agenda.at(at_ms, self._arrive, self._life, sender, tell)
        if self._strikes("doubled message", *name):
            at_ms += self._takes_ms(_LATE_MS, "double", *name)
            self._agenda.at(at_ms, self._arrive, self._life, sender, tell)

    def _arrive(self, life: int, sender: str, tell: Tell) -> None:
        if life == self._life:
            envelope = Envelope(tell.entity, tell.event, self.clock_ms, sender, sender=sender, ordinal=tell.ordinal)
            self._give([Given(tell.aggregate, envelope)])

    def _arm(self, part: Part, deadline_ms: int) -> None:
        self._agenda.at(deadline_ms - self.skew_ms, self._elapse, self._life, part, deadline_ms, order=due(part))

    def _arrange_overdue(self, decided: Sequence[Decided]) -> None:
        """Let timers that were due when they began elapse as soon as what was asked for with them is done.

        Those of a runner that is back wait for what is sent again, too, and for what that asks for.
        """
        if self._overdue:
            is_back = isinstance(decided[0].given.envelope.event, Recovered)
            how = self._put_off if is_back else self._elapse_overdue
            self._agenda.at(self._agenda.now_ms, how, self._life)

    def _put_off(self, life: int) -> None:
        self._agenda.at(self._agenda.now_ms, self._elapse_overdue, life)

    def _elapse_overdue(self, life: int) -> None:
        if life != self._life:
            return
        overdue = sorted(self._overdue)
        self._overdue.clear()
        for deadline_ms, part in overdue:
            self._elapse(life, part, deadline_ms)

    def _elapse(self, life: int, part: Part, deadline_ms: int) -> None:
        if life != self._life or self._timers.get(part) != deadline_ms or self.clock_ms < deadline_ms:
            return
        del self._timers[part]
        name, ref, slot, generation = part
        self._give([Given(name, Envelope(ref, Elapsed(slot, generation), self.clock_ms, "timer"))])

    def _begin(self, part: Part, aggregate: Aggregate) -> None:
        """Begin an activity, or listen again to one that an earlier runner has begun."""
        name, ref, slot, generation = part
        process = self._processes.get(part)
        self._heard.add(part)
        if process is None:
            machine = self._types[name].machine_of(ref)
            assert machine is not None  # noqa: S101 - it has begun there
            said = self._chance.course(machine, aggregate, aggregate.entities[ref], slot, generation)
            process = self._processes[part] = Process(said)
            self._continue(part, process)
            return
        for place in range(process.heard, process.spoken):
            self._agenda.at(self._agenda.now_ms, self._report, self._life, part, process, place, order=turn(part))

    def _let_go(self, part: Part) -> None:
        """Forget an activity that has said all and is over."""
        name, ref, slot, generation = part
        running = self.aggregates[name].entities[ref].find(slot)
        if running is None or running.generation != generation:
            self._processes.pop(part, None)
            self._heard.discard(part)

    def _continue(self, part: Part, process: Process) -> None:
        if process.spoken < len(process.said):
            after_ms = process.said[process.spoken].after_ms
            self._agenda.at(self._agenda.now_ms + after_ms, self._speak, part, process, order=turn(part))

    def _speak(self, part: Part, process: Process) -> None:
        """Let a process say the next thing, whether or not somebody listens."""
        if process.is_over or process.spoken == len(process.said):
            return
        place = process.spoken
        process.spoken += 1
        self._continue(part, process)  # before it is heard: what comes of that may hasten it
        if part in self._heard:
            self._report(self._life, part, process, place)

    def _report(self, life: int, part: Part, process: Process, place: int) -> None:
        if life != self._life or process.is_over:
            return
        name, ref, slot, generation = part
        envelope = Envelope(ref, process.said[place].event, self.clock_ms, slot, slot=slot, generation=generation)
        self._give([Given(name, envelope, process)])
        if self._strikes("late report", *part, place):
            after_ms = self._takes_ms(_LATE_MS, "late report", *part, place)
            self._agenda.at(self._agenda.now_ms + after_ms, self._repeat, name, envelope)

    def _repeat(self, name: str, envelope: Envelope) -> None:
        if self.is_up:
            self._give([Given(name, replace(envelope, at_ms=self.clock_ms))])

    def _end(self, part: Part) -> None:
        """End an activity, if it still goes on, and confirm that."""
        process = self._processes.pop(part, None)
        if process is not None:
            process.is_over = True
        self._heard.discard(part)
        after_ms = self._takes_ms(self._chance.environment.end_ms, "end", *part)
        self._agenda.at(self._agenda.now_ms + after_ms, self._confirm, self._life, part, order=turn(part))

    def _confirm(self, life: int, part: Part) -> None:
        if life == self._life:
            name, ref, slot, generation = part
            self._give([Given(name, Envelope(ref, Ended(slot, generation), self.clock_ms, "engine"))])

    def _perform(self, identity: Identity, asked: Asked) -> None:
        """Perform an effect; what it is to end soon ends soon."""
        self._done.add(identity)
        hastened = self._chance.environment.hastens.get(type(asked.effect), ())
        name = identity[0]
        if hastened:
            for part, process in list(self._processes.items()):
                if part[:2] == (name, asked.entity) and self._is_of(part, hastened):
                    self._hasten(part, process)

    def _is_of(self, part: Part, kinds: tuple[type[Any], ...]) -> bool:
        running = self.aggregates[part[0]].entities[part[1]].find(part[2])
        return running is not None and isinstance(running.activity, kinds)

    def _hasten(self, part: Part, process: Process) -> None:
        """Let a process come to its end at once, with the last thing that it would have said."""
        if not process.is_over and process.spoken < len(process.said):
            process.spoken = len(process.said) - 1
            process.heard = process.spoken
            after_ms = self._takes_ms(self._chance.environment.end_ms, "hastened", *part)
            self._agenda.at(self._agenda.now_ms + after_ms, self._speak, part, process, order=turn(part))

    def come_back(self) -> None:
        """Let there be a runner, if there is none, whatever keeps it."""
        self._full_until_ms = 0
        self._agenda.at(self._agenda.now_ms, self.start)

    def relieve(self, is_due: Callable[[Event], bool]) -> None:
        """Let every activity that has said all, and is not over, come to an end after all, maybe one that is due."""
        for part, process in self._processes.items():
            name, ref, slot, generation = part
            running = self.aggregates[name].entities[ref].find(slot)
            machine = self._types[name].machine_of(ref)
            is_live = running is not None and running.generation == generation and machine is not None
            if is_live and machine is not None and process.spoken == len(process.said) == process.heard:
                aggregate = self.aggregates[name]
                entity = aggregate.entities[ref]
                said = self._chance.course(machine, aggregate, entity, slot, generation)
                ends = [each for kind in machine.last[slot] for each in kind.examples_for(entity.record)]
                due_end = next((each for each in ends if is_due(each)), None)
                process.said += said if due_end is None else [*said[:-1], Said(1, due_end)]
                self._continue(part, process)


_DERIVED: Final = (Begin, CancelTimer, End, StartTimer)
_BEFORE: Final = ("killed when decided", "store refuses", "torn write", "disk full")
"""What keeps a decision from being on record."""
_FULL_MS: Final = (1_000, 3_600_000)
_LATE_MS: Final = (1_000, 600_000)
