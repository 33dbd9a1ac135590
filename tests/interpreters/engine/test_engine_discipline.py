"""The engine equals the crash model of the checker: the same stages in the same order, and the same recovery."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

import kiln
from engine_harness import START_MS, Hands, MemoryLog, TappedStore, VirtualClock, never
from fleet_world import Fuse, World, live
from lifefold.core.fleet import system as fleet
from lifefold.core.kernel import alone
from lifefold.effects import Begin, CancelTimer, End, StartTimer, Tell
from lifefold.interpreters.check import SHIPPED, CrashBounds, Stage
from lifefold.interpreters.crash.runner_model import Runner
from lifefold.interpreters.engine import Decision, Engine, Ledger
from lifefold.interpreters.search.crash_model import CrashModel
from lifefold.interpreters.store import Batch, Entry

on_both_back_ends = pytest.mark.parametrize("backend", ["asyncio", "trio"])

OWN: Final = Begin | End | StartTimer | CancelTimer | Tell
"""The effects that the engine performs itself; they are not recorded."""


class Watch(World):
    """A fleet's world whose every entry and effect is seen on its way."""

    def __init__(self, log: MemoryLog) -> None:
        super().__init__()
        self.stages: defaultdict[tuple[str, int], list[Stage]] = defaultdict(list)
        self.unrecorded: dict[str, int] = {}
        self.late: list[Batch] = []
        self.store: Final = TappedStore(log.open())
        self.store.before, self.store.after = self._before, self._after

    async def _before(self, batch: Batch) -> None:
        for entry in batch.entries:
            self.stages[entry.stream, entry.version].append(Stage.DECIDE)
        if any(batch.performed.get(stream, 0) < version for stream, version in self.unrecorded.items()):
            self.late.append(batch)

    async def _after(self, batch: Batch) -> None:
        for entry in batch.entries:
            self.stages[entry.stream, entry.version].append(Stage.PERSIST)
        for stream, until in batch.performed.items():
            if self.unrecorded.get(stream, 0) <= until:
                self.unrecorded.pop(stream, None)
            for (name, version), stages in self.stages.items():
                if name == stream and version <= until and stages[-1] is Stage.PERFORM:
                    stages.append(Stage.RECORD)

    def do(self, *words: str) -> None:
        super().do(*words)
        if words[0] == "effect":
            stream, version = words[1], int(words[2])
            if self.stages[stream, version][-1] is not Stage.PERFORM:
                self.stages[stream, version].append(Stage.PERFORM)
            self.unrecorded[stream] = version


def fleet_at_work(backend: str) -> tuple[Watch, set[tuple[str, int]]]:
    """Let a fleet do its work under watch; return also the entries that ask for effects."""
    log = MemoryLog()
    watch = Watch(log)

    async def work() -> Sequence[Entry]:
        assert await live(watch.store, watch, Fuse(), VirtualClock(START_MS))
        return await log.open().read()

    decisions = Ledger(fleet).fold(anyio.run(work, backend=backend))
    asking = {
        (each.entry.stream, each.entry.version)
        for each in decisions
        if any(not isinstance(asked.effect, OWN) for asked in each.reaction.effects)
    }
    return watch, asking


@on_both_back_ends
def test_every_entry_goes_through_the_stages_in_the_order_that_is_checked(backend: str) -> None:
    """Of a whole fleet: decide, persist, perform, record, and what asks for nothing is decided and persisted."""
    watch, asking = fleet_at_work(backend)
    assert len(asking) > 10
    for entry, stages in watch.stages.items():
        assert tuple(stages) == (SHIPPED.order if entry in asking else SHIPPED.order[:2])


@on_both_back_ends
def test_what_is_performed_is_recorded_with_the_next_decision(backend: str) -> None:
    """No entry gets into the log ahead of the record of what was performed before it was decided."""
    watch, _ = fleet_at_work(backend)
    assert (SHIPPED.together, watch.late, watch.unrecorded) == (True, [], {})


SYSTEM, OPENING = alone(kiln.kiln)


class Walk:
    """One run of the model, and the log that the ledger writes meanwhile."""

    def __init__(self) -> None:
        bounds = CrashBounds(inputs=8, crashes=100, batch=3)
        self.runner: Final = Runner(SYSTEM, tuple(OPENING.items()), SHIPPED, bounds)
        self.sandbox: CrashModel = self.runner.initial()
        self.entries: list[Entry] = []
        self._unwritten: list[Entry] = []
        self._ledger = Ledger(SYSTEM)

    def go(self, choice: int) -> None:
        """Make the step of this number, if the model is not at its end, and let the ledger make it."""
        successors = list(self.runner.successors(self.sandbox))
        if not successors:
            return
        step, after, faults = successors[choice % len(successors)]
        assert set(faults) <= {"nothing is performed twice that is not idempotent"}
        if step.stage is Stage.DECIDE:
            envelope = self.runner.envelope(self.sandbox, step)
            decision = self._ledger.decide(self.runner.names[step.component], envelope)
            assert isinstance(decision, Decision)
            self._unwritten.append(decision.entry)
        elif step.stage is Stage.PERSIST:
            self.entries += self._unwritten
            self._unwritten = []
        elif step.stage is Stage.CRASH:
            self._unwritten, self._ledger = [], Ledger(SYSTEM)
            list(self._ledger.fold(self.entries))
        self.sandbox = after
        now = self.runner.states[0][after.volatile.now[0]]
        assert self._ledger.aggregates == ({"kiln": now} if now.version else {})

    @property
    def performed(self) -> dict[str, int]:
        """What is recorded as performed."""
        (until,) = self.sandbox.durable.recorded
        return {"kiln": until} if until else {}

    def comes_back(self) -> CrashModel:
        """Return where the next runner is when it has told every aggregate that it is there, and that is durable."""
        after = [(step.stage, sandbox) for step, sandbox, _ in self.runner.successors(self.sandbox)]
        sandbox = dict(after).get(Stage.CRASH, self.sandbox)
        for stage in (Stage.DECIDE, Stage.PERSIST):
            if stage is Stage.PERSIST or sandbox.volatile.pending:
                after = [(step.stage, to) for step, to, _ in self.runner.successors(sandbox)]
                sandbox = dict(after).get(stage, sandbox)
        return sandbox


async def perform(entries: list[Entry], performed: dict[str, int]) -> Hands:
    """Let a real engine come back to a log; return what it has been given to do."""
    store, hands = TappedStore(MemoryLog().open()), Hands()
    await store.append(Batch(entries, performed))
    engine = Engine(SYSTEM, store, hands.interpreter(), clock=VirtualClock(max(each.at_ms for each in entries)))
    await engine.load()
    engine.resume()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.run, never)
        for _ in range(100):
            await checkpoint()
        tasks.cancel_scope.cancel()
    return hands


@on_both_back_ends
@given(choices=st.lists(st.integers(0, 1_000), min_size=4, max_size=40))
def test_an_engine_that_comes_back_does_what_the_model_says(backend: str, choices: list[int]) -> None:
    """After any run: the same effects are performed again, in order; the same fires are resumed, or ended."""
    walk = Walk()
    for choice in choices:
        walk.go(choice)
    if not walk.entries:
        return
    hands = anyio.run(perform, walk.entries, walk.performed, backend=backend)
    sandbox, runner = walk.comes_back(), walk.runner
    waiting = [deed for flight in sandbox.volatile.flights for deed in runner.outcomes[flight.outcome].deeds]
    wanted = [(runner.effects[deed][3], ("kiln", *runner.effects[deed][1:3])) for deed in waiting]
    assert [(kiln.Announce(word), identity) for word, identity in hands.announced] == wanted
    fires = {("ended" if each.cleanup_only else "resume", each.generation) for each in hands.fires}
    assert fires == {(each.kind, each.of.generation) for each in sandbox.volatile.handlers if each.kind != "timer"}
