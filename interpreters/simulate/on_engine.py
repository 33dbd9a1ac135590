"""The same system on the real engine, with simulated processes in virtual time.

``enact`` runs an ``Engine`` on a store, with handlers that act the processes of a simulation. An activity of the same
entity and generation makes the same reports at the same times, because its choices have the same names. So the
deviations of a run of ``simulate`` give the same run here, event for event, if they are ``ENACTABLE``. ``prompt``
makes an environment in which messages take no time, as in the engine.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import anyio
import msgspec

from lifefold.core.kernel import START_MS, Cause, Input, Machine, System, alone, replace
from lifefold.interpreters.engine import Decision, Engine, Interpreter, Ledger
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.simulate.actors import Actors
from lifefold.interpreters.simulate.choices import Choices, Name
from lifefold.interpreters.simulate.environment import Chance, Environment
from lifefold.interpreters.simulate.faults import NAMES, Faults
from lifefold.interpreters.simulate.inputs import Opening
from lifefold.interpreters.simulate.scheduler import WAITED, Order
from lifefold.interpreters.simulate.virtual_time import Attended, VirtualClock
from lifefold.interpreters.store import Batch, EventStore, MemoryStore
from lifefold.interpreters.store import Entry as Written

_CAN_BE: Final = ("fails", "exits early", "hangs", "floods", "slow", "operators")
ENACTABLE: Final = Faults(dict.fromkeys((name for name in NAMES if name not in _CAN_BE), 0.0))
"""The faults that the engine can be given, at their usual rates: those of activities and operators."""


class Death(NamedTuple):
    """An engine crashes with the first batch that brings the log to so many entries: before or after its write."""

    entries: int
    is_written: bool = True

    @property
    def point(self) -> str:
        """The same fault of a simulation."""
        return "killed when persisted" if self.is_written else "killed when decided"


_LAST: Final[Order] = (9,)


def prompt(environment: Environment) -> Environment:
    """Return an environment in which messages take no time, as in the engine."""
    return msgspec.structs.replace(environment, message_ms=(0, 0))


def operator_inputs(entries: Iterable[Input]) -> list[Input]:
    """Return the accepted operator commands; the first entry of an aggregate is its opening."""
    known: set[str] = set()
    said: list[Input] = []
    for each in entries:
        if each.aggregate in known and each.cause is Cause.COMMAND:
            said.append(each)
        known.add(each.aggregate)
    return said


def log_of(target: System | Machine[Any], entries: Iterable[Input]) -> list[Written]:
    """Return the log that an engine writes for inputs, with the digests of their outcomes.

    Raises ``ValueError`` if one is refused.
    """
    system = _system(target)
    ledger = Ledger(system, rules=rules_version(system))
    decided = [ledger.decide(*each) for each in entries]
    written = [each.entry for each in decided if isinstance(each, Decision)]
    if len(written) < len(decided):
        raise ValueError("some of these inputs are refused by these rules, in this order")
    return written


def _system(target: System | Machine[Any]) -> System:
    return alone(target)[0] if isinstance(target, Machine) else target


def same(interpreter: Interpreter) -> Interpreter:
    """Return the handlers as they are."""
    return interpreter


class Enacted(msgspec.Struct, frozen=True):
    """The result of engines: their log, its inputs, and the number of engines.

    ``commits`` are the numbers of entries after each batch: an engine accepts simultaneous inputs together.
    """

    log: Sequence[Written]
    entries: tuple[Input, ...]
    commits: tuple[int, ...]
    lives: int


async def enact(  # noqa: PLR0913 - what may be chosen, each with its name
    target: System | Machine[Any],
    *,
    until_ms: int,
    opening: Opening = (),
    seed: int | None = None,
    but: Mapping[Name, int] | None = None,
    faults: Faults | None = None,
    environment: Environment | None = None,
    operators: Iterable[Input] = (),
    store: EventStore | None = None,
    dies: Iterable[Death] = (),
    altered: Callable[[Interpreter], Interpreter] = same,
) -> Enacted:
    """Run an engine for so many virtual milliseconds, on simulated processes.

    Their conduct is drawn from ``seed``; without one it is orderly, ``but`` for the deviations of a run of
    ``simulate``. ``operators`` has the operator commands with their times. The engine ``dies`` so often, and starts
    again on the same store. ``altered`` may replace handlers by your own, ``over`` those of the simulated processes.
    They use the clock of ``Actors``, and not anyio.

    Raises ``ValueError`` if an engine that was to crash has not: there were never so many entries.
    """
    if isinstance(target, Machine):
        target, begins = alone(target)
        opening = tuple(begins.items())
    choices = Choices(seed, but=but)
    chance = Chance(environment or Environment(), choices, (faults or ENACTABLE).of(choices))
    actors = Actors(target, chance, VirtualClock(START_MS))
    stage = _Stage(target, tuple(opening), actors, altered(actors.interpreter()), store or MemoryStore())
    stage.plan(operators, dies)
    while not await stage.play(START_MS + until_ms):
        pass
    stage.must_have_died(until_ms)
    ledger = Ledger(target)
    log = await stage.store.read()
    entries = tuple(Input(each.entry.stream, each.envelope) for each in ledger.fold(log))
    return Enacted(log, entries, tuple(stage.commits), stage.lives)


class _Died(Exception):
    """The engine is gone."""


class _Stage:
    """Engines, one after the other, on one store, with the same actors."""

    def __init__(
        self, system: System, opening: Opening, actors: Actors, interpreter: Interpreter, store: EventStore
    ) -> None:
        self.store: Final = store
        self.lives = 0
        self._system: Final = system
        self._opening: Final = opening
        self._actors: Final = actors
        self._clock: Final = actors.clock
        self._interpreter: Final = interpreter
        self._operators: list[Input] = []
        self._deaths: list[Death] = []
        self.commits: Final[list[int]] = []
        self._is_over = False

    def plan(self, operators: Iterable[Input], deaths: Iterable[Death]) -> None:
        """Take the operator commands and the crashes; both are kept with the next one last."""
        self._operators = sorted(operators, key=lambda each: each.envelope.at_ms)[::-1]
        self._deaths = sorted(deaths, reverse=True)

    def must_have_died(self, until_ms: int) -> None:
        """Raise ``ValueError`` if a crash has not come."""
        if self._deaths:
            places = ", ".join(str(each.entries) for each in reversed(self._deaths))
            entries = self.commits[-1] if self.commits else 0
            raise ValueError(f"no engine has died at {places} entries: there were {entries}, as of {until_ms} ms")

    async def play(self, until_ms: int) -> bool:
        """Let an engine run; tell whether it has come to the end without a crash."""
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._clock.run)
            if self.lives:
                await self._actors.pause(self.lives)
            self._is_over = self._clock.now_ms() > until_ms
            if not self._is_over:
                await self._live(until_ms)
            tasks.cancel_scope.cancel()
        return self._is_over

    async def _live(self, until_ms: int) -> None:
        """Let an engine run until then, or until it crashes."""
        self.lives += 1
        async with anyio.create_task_group() as tasks:
            engine = Engine(self._system, _Mortal(self, self._clock), self._interpreter, clock=self._clock)
            await engine.load()
            engine.resume()
            for name, envelope in self._opening:
                if name not in engine.aggregates:
                    engine.offer(name, replace(envelope, at_ms=self._clock.now_ms()))
            while self.lives > 1 and self._operators and self._operators[-1].envelope.at_ms <= self._clock.now_ms():
                engine.offer(*self._operators.pop())
            tasks.start_soon(self._say, engine)
            tasks.start_soon(self._finish, engine, until_ms)
            try:
                await engine.run(lambda _: self._is_over)
            except* _Died:
                pass
            tasks.cancel_scope.cancel()

    async def _finish(self, engine: Engine, until_ms: int) -> None:
        await self._clock.sleep_until(until_ms, _LAST)
        self._is_over = True
        engine.wake()

    async def _say(self, engine: Engine) -> None:
        """Give the operator commands."""
        while self._operators:
            name, envelope = self._operators[-1]
            await self._clock.sleep_until(envelope.at_ms, WAITED)
            self._operators.pop()
            engine.offer(name, replace(envelope, at_ms=self._clock.now_ms()))

    async def write(self, batch: Batch) -> None:
        """Write a batch. Raises ``_Died``."""
        entries = len(batch.entries) + (self.commits[-1] if self.commits else 0)
        death = self._deaths[-1] if batch.entries and self._deaths and entries >= self._deaths[-1].entries else None
        if death is None or death.is_written:
            await self.store.append(batch)
            if batch.entries:
                self.commits.append(entries)
        if death is not None:
            self._deaths.pop()
            codec, heard = Ledger(self._system).codec, batch.entries if death.is_written else ()
            self._actors.lose_engine(
                death.point, [Input(each.stream, codec.decode(each.stream, each.envelope)) for each in heard]
            )
            raise _Died


class _Mortal(Attended):
    """The store of a stage, with which its engine may crash."""

    def __init__(self, stage: _Stage, clock: VirtualClock) -> None:
        super().__init__(stage.store, clock)
        self._stage: Final = stage

    async def write(self, batch: Batch) -> None:
        await self._stage.write(batch)
