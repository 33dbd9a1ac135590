"""A simulation's runner that is the shipped engine: the same object, on a stepped event loop in virtual time.

Nothing of the engine is written a second time here. This driver owns the event loop (``event_loop``), the clock
(``engine_clock``), the store (``faulty_store``) and the handlers (``engine_handlers``). A crash is possible between any
two steps of the loop. It discards the engine with all its tasks. Their cleanup code still runs, in no time, and has no
effect: the store is no longer theirs, and the processes no longer listen. The next engine gets the same shelf.

The log is verified entry by entry (``durable_log``), and the properties are checked at every durable state. When the
engine is idle, ``_must_have_taken_up`` compares what the log says with what the engine has in hand. The other
guarantees stand in ``witness``.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import ClassVar, Final

from lifefold.core.kernel import (
    ActivityEnded,
    Aggregate,
    Cause,
    Envelope,
    Input,
    Phase,
    Reaction,
    Refusal,
    System,
    TimerFired,
    World,
    replace,
)
from lifefold.interpreters.engine import Engine, snapshots
from lifefold.interpreters.engine.failures import is_failure
from lifefold.interpreters.search.crash_model import Fault
from lifefold.interpreters.simulate.durable_log import DurableLog
from lifefold.interpreters.simulate.engine_clock import EngineClock
from lifefold.interpreters.simulate.engine_handlers import Handlers, Processes, Work
from lifefold.interpreters.simulate.engine_life import EngineLife
from lifefold.interpreters.simulate.environment import Chance
from lifefold.interpreters.simulate.event_loop import SteppedLoop
from lifefold.interpreters.simulate.faults import OF_ENGINE
from lifefold.interpreters.simulate.faults import Fault as FaultKind
from lifefold.interpreters.simulate.faulty_store import FaultyStore
from lifefold.interpreters.simulate.inputs import Counts, Given, Opening, Watcher
from lifefold.interpreters.simulate.lives import Lives
from lifefold.interpreters.simulate.property_monitor import Violation
from lifefold.interpreters.simulate.scheduler import Agenda, Part
from lifefold.interpreters.simulate.witness import Guarantee, Witness
from lifefold.interpreters.store import Batch
from lifefold.interpreters.store.memory import Shelf

ORDERS: Final = 1 << 16
"""The number of different orders of the tasks of one engine."""

EVERY: Final = (snapshots.EVERY, 25, 3)
"""The numbers of entries after which the engines of a run take a snapshot."""

STEPS: Final = 1_000_000
"""The most steps of the event loop at one time."""


class EngineRunner(Lives):
    """Runs a system on the real engine, in virtual time; one engine after the other, on one log."""

    KINDS: ClassVar[tuple[FaultKind, ...]] = OF_ENGINE
    """The faults that it meets."""

    def __init__(  # noqa: PLR0913 - as the runner of a simulation, and the engine
        self,
        system: System,
        opening: Opening,
        chance: Chance,
        agenda: Agenda,
        watcher: Watcher,
        *,
        engine: type[Engine] = Engine,
        shelf: Shelf | None = None,
    ) -> None:
        """Take the parts of a run. ``engine`` is the engine to try, ``shelf`` an empty one that is to get its log."""
        super().__init__(agenda)
        self.system: Final = system
        self.opening: Opening = opening
        self.skew_ms = 0
        self.rests_within_ms: int = _REST_MS
        self.activities = Processes(self, system, agenda, chance)
        self._counts: Final = Counts()
        self._chance: Final = chance
        self._watcher: Final = watcher
        self._engine_type: Final = engine
        self._witness: Final = Witness(system.name)
        self._log: Final = DurableLog(system, self._witness, watcher, shelf)
        self._errors: Final[Counter[Work]] = Counter()
        self._unanswered: Final[dict[str, Input]] = {}
        """The inputs of callers of ``send`` without an answer, by their key."""
        self._submitted = 0
        self._late = 0
        self._broken: Violation | None = None
        self._refused_timers: Final[set[Part]] = set()
        self._steps = 0
        self._looks = 0
        self._due = 0, 0
        """The life whose event loop is to run now, and the time."""
        self._planned_ms = 0
        """The time at which the event loop is to run next, if it is in the future."""
        self._live: EngineLife | None = None

    @property
    def entries(self) -> list[Input]:
        """The accepted inputs, as the log has them."""
        return self._log.entries

    @property
    def world(self) -> World:
        """The world that the log folds to."""
        return self._log.world

    @property
    def counts(self) -> Counts:
        """The counts of all engines."""
        self._counts.transitions, self._counts.again = self._log.transitions, self._witness.again
        return self._counts

    @property
    def clock_ms(self) -> int:
        """The time by the engine's clock."""
        return self._agenda.now_ms + self.skew_ms if self._live is None else self._live.clock.now_ms()

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """The state in the log."""
        return self.world.aggregates

    # The life of an engine.

    def _begin(self) -> None:
        """Start an engine on the log."""
        self._steps = self._looks = 0
        self._refused_timers.clear()
        self._witness.begin_engine(self._log.shelf.performed)
        live = self._live = self._new_life()
        make, every = self._engine_type, EVERY[self._chance.choices.any_way(("entries of a snapshot",), len(EVERY))]
        live.start(
            lambda: make(
                self.system,
                live.store,
                live.handlers.interpreter(),
                clock=live.clock,
                observer=self._observe,
                snapshot_every=every,
            ),
            self._begun,
        )
        self._touch()

    def _new_life(self) -> EngineLife:
        """Return the parts of the next engine."""
        chance, life = self._chance, self.life
        handlers = Handlers(self.system, chance, self.activities, self._witness, self._errors, life, self._keep_broken)
        clock = EngineClock(lambda: self._agenda.now_ms, self.skew_ms)
        return EngineLife(
            # asyncio's base class refuses at run time what this loop lacks
            SteppedLoop(lambda: self._agenda.now_ms, self._wake, self._order()),  # type: ignore[abstract]
            clock,
            FaultyStore(self._log.shelf, chance, life, lambda batch: self._written(handlers, batch), clock.looked),
            handlers,
        )

    def _order(self) -> Random | None:
        """Return the random numbers for the order of the tasks of this engine; None for the order of asyncio."""
        if not self._chance.strikes("any order", self.life):
            return None
        return Random(self._chance.choices.any_way(("order", self.life), ORDERS))  # noqa: S311 - to be repeatable

    def _begun(self, engine: Engine) -> None:
        """Give an engine the openings that the log does not have, and the inputs without an answer."""
        for name, envelope in self.opening:
            if name not in self.aggregates:
                engine.offer(name, envelope)
        for key in list(self._unanswered):
            self._send(key)

    def _touch(self) -> None:
        """Let the engine go on now, and look for operator commands."""
        if self._live is not None:
            self._live.clock.stir()
        self._wake()

    def _wake(self) -> None:
        """Let the event loop run now."""
        if self._due != (self.life, self._agenda.now_ms):
            self._due = self.life, self._agenda.now_ms
            self._agenda.at(self._agenda.now_ms, self._pump, self.life)

    def _pump(self, life: int) -> None:
        """Run the event loop until all its tasks wait. Raises ``Violation``."""
        live, began = self._live, self._steps
        if life != self.life or live is None:
            return
        live.clock.wake()
        self._due = 0, 0
        while live.loop.has_ready():
            self._steps += 1
            if self._chance.strikes("killed between awaits", self._steps, self.life):
                self._die("killed between awaits")
                return
            live.loop.step()
            if self._broken is not None:
                raise self._broken
            if live.store.has_dropped:
                raise self._witness.broken(Guarantee.KEPT, "it was dropped")
            if live.store.dies_at:
                self._die(live.store.dies_at)
                return
            if self._steps - began > STEPS:
                raise self._witness.broken(Guarantee.RESTS, f"{STEPS:,} steps at one time")
        if live.main is not None and live.main.done():
            self._end(live, live.main.exception())
        else:
            self._wait(live)

    def _wait(self, live: EngineLife) -> None:
        """Wait for what comes next. The engine may be stopped here, or crash half-way to its next timer."""
        if live.is_at_work and not live.store.is_writing:
            self._must_have_taken_up(live)
        next_ms, now_ms = live.next_ms(), self._agenda.now_ms
        if next_ms is None or next_ms >= self._planned_ms > now_ms:
            return
        self._planned_ms = next_ms
        self._agenda.at(next_ms, self._pump, self.life)
        self._looks += 1
        if self._chance.strikes("stopped", self._looks, self.life):
            live.stop()
            self._touch()
        elif next_ms > now_ms + _LONG_MS and not self._chance.is_calm:
            self._agenda.at(now_ms + (next_ms - now_ms) // 2, self._may_die_waiting, self.life, self._looks)

    def _may_die_waiting(self, life: int, looks: int) -> None:
        if life == self.life and looks == self._looks and self._chance.strikes("killed when waiting", looks, life):
            self._die("killed when waiting")

    def _end(self, live: EngineLife, error: BaseException | None) -> None:
        """Let the engine be gone that has ended: it was stopped, or its store has failed. Raises ``Violation``."""
        if error is not None and (not isinstance(error, Exception) or is_failure(error)):
            raise self._witness.broken(Guarantee.RAISES, repr(error)) from error
        self._full_until_ms = self._agenda.now_ms + live.store.full_ms
        self._leave(live, "stopped" if error is None else "store refuses")

    def _die(self, point: str) -> None:
        assert self._live is not None  # noqa: S101 - it was up
        self._counts.crashes += 1
        self._leave(self._live, point)

    def _leave(self, live: EngineLife, point: str) -> None:
        """Discard the engine; another one starts after a while."""
        self._live = None
        self._planned_ms = 0
        self._go_down()
        self.activities.lose_listener()
        live.discard()
        span_ms = self._chance.environment.restart_ms
        self._start_in(self._chance.takes_ms(span_ms, "restart", self.life, point))

    def close(self) -> None:
        """Discard the engine at the end of the run."""
        if self._live is not None:
            self.activities.lose_listener()
            self._live.discard()

    # Inputs from outside.

    def submit(self, name: str, envelope: Envelope) -> None:
        """Give an operator command: to the engine's caller, or into the log for any engine.

        When everything is healed, a command that would be refused is not given.
        """
        if self._chance.is_calm and isinstance(self.world.outcome(Input(name, envelope)), Refusal):
            return
        self._submitted += 1
        given = self._log.given(name, Input(name, replace(envelope, at_ms=self.clock_ms)))
        if self.is_up and self._chance.choices.way(("by send", self._submitted), 2, 0.5):
            self._unanswered[given.envelope.key] = given
            self._send(given.envelope.key)
        else:
            self._log.leave(given)
            self._touch()

    def _send(self, key: str) -> None:
        if self._live is not None and self._live.engine is not None:
            _ = self._live.loop.create_task(self._answered(self._live, self._live.engine, key))

    async def _answered(self, live: EngineLife, engine: Engine, key: str) -> None:
        """Be a caller of ``send``. Without an answer, the same input is sent to the next engine."""
        name, envelope = self._unanswered[key]
        outcome = await engine.send(name, envelope)
        if not live.is_dead and not (isinstance(outcome, Refusal) and outcome.kind == "stopped"):
            del self._unanswered[key]
            self._check(lambda: self._witness.answered(name, key, outcome))

    def set_clock(self, by_ms: int) -> None:
        """Let the clock jump. An engine notices a jump ahead at once; a clock that is set back, the next engine."""
        self.skew_ms += by_ms
        if self._live is not None and by_ms > 0:
            self._live.clock.jump(by_ms)
            self._touch()

    def give(self, given: Sequence[Given]) -> None:
        """Pass reports of processes on to their handlers, and late ones to the engine."""
        for each in given:
            self._give(each)

    def _give(self, given: Given) -> None:
        name, envelope, live = given.aggregate, given.envelope, self._live
        if live is None:
            return
        if isinstance(envelope.event, ActivityEnded):
            live.handlers.confirm((name, envelope.entity, envelope.event.slot, envelope.event.generation))
        elif given.process is not None:
            live.handlers.hear((name, envelope.entity, envelope.slot, envelope.generation), given.place)
        elif live.engine is not None and not live.engine.has_ended:
            self._late += 1
            live.engine.report(name, replace(envelope, key=f"late {self._late}"))

    # What the engine has done.

    def _must_have_taken_up(self, live: EngineLife) -> None:
        """Compare the log with what an idle engine has in hand. Raises ``Violation``."""
        for sender, receiver, ordinal in self.world.in_flight:
            raise self._witness.broken(Guarantee.DELIVERED, f"{sender} to {receiver}, message {ordinal}")
        for name, entity, each in self._log.running():
            part = name, entity.ref, each.slot, each.generation
            where = f"{name}, {entity.ref}: {each.slot}"
            if each.activity is None:
                if each.deadline_ms <= live.clock.now_ms() and part not in self._refused_timers:
                    raise self._witness.broken(Fault.STRANDED, where)
            elif each.phase is not Phase.WAITING and not self._is_served(part) and not live.handlers.know(part):
                raise self._witness.broken(Guarantee.ATTENDED, f"{where}, {each.phase}")

    def _is_served(self, part: Part) -> bool:
        machine = self.system.type_of(part[0]).machine_of(part[1])
        return machine is not None and part[2] in machine.served

    def must_have_come_to_rest(self) -> None:
        """Raise ``Violation`` if an effect or a command is left, or if the log does not fold to the same state."""
        self._witness.must_have_performed()
        for key, (name, _) in self._unanswered.items():
            raise self._witness.broken(Guarantee.ANSWERED, f"{name}, {key}")
        self._log.must_fold()

    def _observe(self, name: str, outcome: Reaction | Refusal) -> None:
        """Count the outcome of an input."""
        self._counts.inputs += 1
        if isinstance(outcome, Refusal):
            self._counts.refused += 1
            event = outcome.envelope.event
            if isinstance(event, TimerFired):
                self._refused_timers.add((name, outcome.envelope.entity, event.slot, event.generation))
            self._watcher(name, outcome, outcome.envelope)

    def _written(self, handlers: Handlers, batch: Batch) -> None:
        """Check a durable batch, entry by entry."""
        if self._live is not None:
            self._live.clock.stir()
        self._check(lambda: self._log.take(batch, lambda given: self._follow(handlers, given)))

    def _follow(self, handlers: Handlers, given: Input) -> None:
        """Let a process know that its report is in the log, or check that nothing remains of it."""
        name, envelope = given
        if isinstance(envelope.event, ActivityEnded):
            part = name, envelope.entity, envelope.event.slot, envelope.event.generation
            self._witness.confirmed(part, runs=self.activities.has(part))
        part = name, envelope.entity, envelope.slot, envelope.generation
        if given.cause is not Cause.REPORT:
            return
        machine = self.system.type_of(name).machine_of(envelope.entity)
        is_last = machine is not None and type(envelope.event) in machine.last[envelope.slot]
        if is_last:  # of a late copy, too, and also if the handler of the report has left
            self.activities.finish(part)
        if envelope.key or part not in handlers.reporting:
            return
        process, place = handlers.reporting[part]
        process.heard = max(process.heard, place + 1)
        if not is_last and process.heard == len(process.said):
            self.activities.let_go(part)

    def _check(self, what: Callable[[], None]) -> None:
        """Keep a broken guarantee for ``_pump``: raised here, it would be an error of the engine's tasks."""
        try:
            what()
        except Violation as broken:
            self._keep_broken(broken)

    def _keep_broken(self, broken: Violation) -> None:
        self._broken = self._broken or broken


_REST_MS: Final = 600_000
"""The time until an engine without faults has performed all effects: longer than the pauses of failing handlers."""

_LONG_MS: Final = 1_000
"""The shortest wait in which an engine may crash."""
