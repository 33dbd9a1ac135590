"""``simulate``: a whole system in virtual time, under faults that a seed draws, and then healed.

A run has two phases, as in TigerBeetle's simulator. In the first, the faults of the run may happen, and properties are
checked after every step. Then everything is healed. No more faults happen, and of the other inputs only those that a
property assumes (``given``). Every liveness property that is due must then hold within a bound.

The same seed makes the same run on every machine, byte for byte. Random numbers come from ``Choices`` alone and time
from the ``Agenda``, and no loop goes over a set in its own order.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec

from lifefold.core.kernel import (
    START_MS,
    AggregateType,
    Envelope,
    Event,
    Input,
    Machine,
    Pattern,
    Property,
    Reaction,
    Refusal,
    System,
    alone,
    encode,
)
from lifefold.core.kernel.shown import counted, shown
from lifefold.interpreters.search.coverage import Coverage
from lifefold.interpreters.search.used_parts import UsedParts
from lifefold.interpreters.simulate.choices import Choices, Name
from lifefold.interpreters.simulate.environment import Chance, Environment
from lifefold.interpreters.simulate.faults import SHIPPED, Fault, Faults
from lifefold.interpreters.simulate.inputs import Counts, Opening
from lifefold.interpreters.simulate.operators import HOUR_MS, Operators
from lifefold.interpreters.simulate.property_monitor import Debt, PropertyMonitor, Violation
from lifefold.interpreters.simulate.runner import Runner
from lifefold.interpreters.simulate.scheduler import Agenda
from lifefold.interpreters.simulate.simulated_runner import RunnerType

SECOND_MS: Final = 1_000
"""The first interval after which due properties are checked again."""

OWED: Final = 8
"""Of so many due properties, any may be the first to be settled after healing."""


def hours(count: float) -> int:
    """Return so many hours in milliseconds."""
    return int(count * HOUR_MS)


MonitorType: TypeAlias = Callable[[System, tuple[Property[Any], ...]], PropertyMonitor]
"""Makes the monitor of a run, from its system and additional properties."""


class Limits(msgspec.Struct, frozen=True):
    """The length of a run: ``until_ms`` under faults, and at most ``healing_ms`` for liveness properties.

    A run with more than ``inputs`` inputs ends with a finding: the system does not come to rest.
    """

    until_ms: int = 24 * HOUR_MS
    healing_ms: int = 30 * 24 * HOUR_MS
    inputs: int = 1_000_000


class Found(msgspec.Struct, frozen=True, rename={"prop": "property"}):
    """A broken property, and the time."""

    owner: str
    prop: str
    of: str
    at_ms: int


class Run(msgspec.Struct, frozen=True):
    """A run: its entries, its finding, and counts.

    ``deviations`` are the choices that were not orderly: with ``but=deviations`` instead of a seed it is the same run.
    """

    seed: int | None
    deviations: Mapping[Name, int]
    entries: tuple[Input, ...]
    found: Found | None
    counts: Counts
    struck: Mapping[str, int]
    used: UsedParts
    seen: frozenset[tuple[str, str]]
    state_ms: Mapping[tuple[str, str], int]
    """By machine and state: the time of all entities in it, in milliseconds."""
    recovery_ms: tuple[int, ...]
    until_ms: int
    """The end of the run, in virtual milliseconds from its beginning."""

    def __repr__(self) -> str:
        """Return its seed, its size and its finding."""
        found = "no property is broken" if self.found is None else f"broken: {self.found.owner}: {self.found.prop}"
        return shown(f"Run of seed {self.seed}: {counted(len(self.entries), 'input')}, {found}")

    @property
    def ok(self) -> bool:
        """Whether no property is broken."""
        return self.found is None

    def journal(self) -> bytes:
        """Return every accepted input, in order, a line each: the same for the same seed on every machine."""
        return b"".join(each.aggregate.encode() + b" " + encode(each.envelope) + b"\n" for each in self.entries)

    def digest(self) -> str:
        """Return the hash of the journal."""
        return hashlib.sha256(self.journal()).hexdigest()


def simulate(  # noqa: PLR0913 - what may be chosen, each with its name
    target: System | Machine[Any],
    *,
    opening: Opening = (),
    seed: int | None = None,
    but: Mapping[Name, int] | None = None,
    faults: Faults | None = None,
    environment: Environment | None = None,
    limits: Limits | None = None,
    properties: Iterable[Property[Any]] = (),
    runner: RunnerType | None = None,
    monitor: MonitorType = PropertyMonitor,
) -> Run:
    """Run a system, or a machine by itself, in virtual time.

    A system needs its ``opening``: the first input of each of its aggregates. With a ``seed``, ``faults`` happen at
    their rates; without one everything is orderly, ``but`` for these deviations. ``properties`` are additional
    properties: of the entity for a machine, of the ``SystemState`` for a system. ``runner`` is the runner to simulate:
    without one the simulation's own, ``engine_runner.EngineRunner`` for the real engine, and
    ``cluster_runner.ClusterRunner`` for a cluster. ``monitor`` makes the monitor of the properties, from the system and
    the additional ones: ``SparingMonitor`` finds the same with less work. Raises ``TypeError`` for a system without an
    opening.

    >>> from lifefold import simulate
    >>> from lifefold.core.lifecycles import session
    >>> run = simulate(session.machine, seed=7)
    >>> run.ok, len(run.entries) > 1
    (True, True)
    """
    if isinstance(target, Machine):
        more = tuple(properties)
        target, begins = alone(target.with_properties(*more) if more else target)
        opening, properties = tuple(begins.items()), ()
    if not opening:
        raise TypeError(f"{target.name}: a system needs opening=, pairs of an aggregate and its first input")
    choices, around, given = Choices(seed, but=but), environment or Environment(), faults or Faults()
    make: RunnerType = Runner if runner is None else runner
    rates = Faults({**around.rates, **given.rates}, given.swarm).of(choices, _kinds_of(make))
    return _Simulation(
        target,
        tuple(opening),
        monitor(target, tuple(properties)),
        Chance(around, choices, rates),
        limits or Limits(),
        make,
    ).run(seed)


def _kinds_of(make: RunnerType) -> Sequence[Fault]:
    """Return the faults that a runner meets."""
    kinds: Sequence[Fault] = getattr(make.func if isinstance(make, partial) else make, "KINDS", SHIPPED)
    return kinds


class _Simulation:
    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a run
        self,
        system: System,
        opening: Opening,
        monitor: PropertyMonitor,
        chance: Chance,
        limits: Limits,
        runner: RunnerType,
    ) -> None:
        self._system = system
        self._chance = chance
        self._limits = limits
        self._agenda = Agenda(START_MS)
        self._monitor = monitor
        self._coverage = Coverage(system)
        self._runner = runner(system, opening, chance, self._agenda, self._watch)
        self._operators = Operators(system, self._runner, self._agenda, chance)
        self._entered: dict[tuple[str, str], tuple[tuple[str, str], int]] = {}
        self._state_ms: Counter[tuple[str, str]] = Counter()

    def run(self, seed: int | None) -> Run:
        found: Found | None = None
        parts = self._chance.environment.parts
        part = parts[self._chance.choices.any_way(("part",), len(parts))]
        until_ms = START_MS + self._limits.until_ms // part
        try:
            self._monitor.begin({name: self._system.type_of(name) for name, _ in self._runner.opening})
            self._runner.start()
            self._operators.tick()
            self._let_pass(until_ms)
            self._agenda.now_ms = until_ms
            self._heal()
        except Violation as broken:
            found = Found(broken.owner, broken.prop, broken.of, self._agenda.now_ms - START_MS)
        finally:
            self._runner.close()
        for state, since_ms in self._entered.values():
            self._state_ms[state] += self._agenda.now_ms - since_ms
        return Run(
            seed=seed,
            deviations=dict(self._chance.choices.deviations),
            entries=tuple(self._runner.entries),
            found=found,
            counts=self._runner.counts,
            struck=dict(self._chance.struck),
            used=self._coverage.used,
            seen=frozenset(self._monitor.seen),
            state_ms=dict(self._state_ms),
            recovery_ms=tuple(self._runner.recovery_ms),
            until_ms=self._agenda.now_ms - START_MS,
        )

    def _let_pass(self, until_ms: int) -> None:
        """Run until then, or until nothing is left; then check the whole system. Raises ``Violation``."""
        agenda, runner, most = self._agenda, self._runner, self._limits.inputs
        while (next_ms := agenda.next_ms()) is not None and next_ms <= until_ms:
            agenda.step()
            if runner.counts.inputs > most:
                raise Violation(self._system.name, "comes to rest", f"more than {most:,} inputs")
        self._monitor.look_around(runner.world.system_state, len(runner.world.in_flight))

    def _watch(self, name: str, outcome: Reaction | Refusal, envelope: Envelope) -> None:
        """Check the outcome of an input. Raises ``Violation``."""
        of = self._system.type_of(name)
        self._coverage.react(of, self._runner.world.aggregate(name), envelope, outcome)
        if isinstance(outcome, Reaction):
            self._look(of, name, outcome)

    def _look(self, of: AggregateType, name: str, reaction: Reaction) -> None:
        self._coverage.meet_changed(of, reaction)
        for step in reaction.transitions:
            if step.entered is not None:
                self._enter((name, step.entity), (step.machine, str(step.entered)))
        world = self._runner.world
        self._monitor.look(of, reaction, world.system_state, len(world.in_flight))

    def _enter(self, entity: tuple[str, str], state: tuple[str, str]) -> None:
        now_ms = self._agenda.now_ms
        if entity in self._entered:
            before, since_ms = self._entered[entity]
            self._state_ms[before] += now_ms - since_ms
        self._entered[entity] = (state, now_ms)

    def _heal(self) -> None:
        """End all faults, and check that every due property comes to hold. Raises ``Violation``."""
        first = self._chance.choices.any_way(("owed first",), OWED)
        self._chance.calm()
        self._runner.set_clock(-self._runner.skew_ms)
        self._runner.come_back()
        self._monitor.look_around(self._runner.world.system_state, len(self._runner.world.in_flight))
        self._monitor.heal()
        while overdue := self._monitor.overdue():
            self._settle(overdue[first % len(overdue)])
        if self._runner.rests_within_ms:
            self._let_pass(self._agenda.now_ms + self._runner.rests_within_ms)
            self._runner.must_have_come_to_rest()

    def _settle(self, owed: Debt) -> None:
        """Check that a due property comes to hold, with only the inputs that it assumes. Raises ``Violation``."""
        until_ms = self._agenda.now_ms + self._limits.healing_ms
        relied_on = [each.of for each in self._monitor.relied_on(owed)]
        has_waited, patience_ms = False, SECOND_MS
        while owed in self._monitor.overdue():
            is_late = self._agenda.now_ms >= until_ms
            if not is_late:
                self._runner.activities.relieve(relied_on, partial(_is_of, relied_on))
            said = not is_late and self._plead(relied_on)
            is_idle = self._agenda.next_ms() is None and not said
            if is_late or (has_waited and is_idle):
                raise Violation(owed.owner, owed.prop, f"{owed.of}, when everything was healed")
            has_waited = is_idle
            then_ms = min(until_ms, max(self._agenda.next_ms() or 0, self._latest_ms()) + patience_ms)
            patience_ms = min(2 * patience_ms, HOUR_MS)
            self._let_pass(then_ms)
            self._agenda.now_ms = then_ms

    def _latest_ms(self) -> int:
        """Return the time, or that of the log if it is ahead: the clock may have been so."""
        entries = self._runner.entries
        return max(self._agenda.now_ms, entries[-1].envelope.at_ms if entries else 0)

    def _plead(self, relied_on: Sequence[object]) -> bool:
        """Give the inputs that a property assumes, where possible; tell whether there was one."""
        said = False
        kinds: set[object] = {each.event if isinstance(each, Pattern) else each for each in relied_on}
        for name in list(self._runner.aggregates):
            for envelope in self._operators.sayable_of(name, kinds):
                if _is_of(relied_on, envelope.event):
                    entries = len(self._runner.entries)
                    self._runner.submit(name, envelope)
                    said = said or len(self._runner.entries) > entries
        return said


def _is_of(kinds: Sequence[object], event: Event) -> bool:
    """Tell whether an event is one of these, or of these variants."""
    patterns: list[Pattern[Any]] = [each for each in kinds if isinstance(each, Pattern)]
    return type(event) in kinds or any(each.event is type(event) and each.test(event) for each in patterns)
