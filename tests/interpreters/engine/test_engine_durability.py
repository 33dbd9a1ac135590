"""Decide, persist, perform: no effect is performed before its entry is durable, and no acknowledged input is lost."""

import anyio
import pytest

from engine_harness import START_MS, Pottery, VirtualClock, reason
from kiln import RESTING_MS, Announce, Called, Doused, Fire, Fired, Heat, Kiln, Lit, Smashed, Stoked, opened, system
from lifefold.core.kernel import Envelope, Event, Opened, Reaction, Refusal
from lifefold.interpreters.engine import STOP, ActivityContext, EffectContext, Engine, Interpreter
from lifefold.interpreters.store import Batch, Fenced, StoreError

pytestmark = pytest.mark.anyio


class Gate:
    """Holds batches back until it is opened."""

    def __init__(self) -> None:
        self.held: list[Batch] = []
        self._open = anyio.Event()

    async def __call__(self, batch: Batch) -> None:
        self.held.append(batch)
        await self._open.wait()

    def open(self) -> None:
        self._open.set()


@pytest.mark.parametrize("where", ["before", "after"])
async def test_effects_do_not_leave_before_their_batch_is_durable(pottery: Pottery, where: str) -> None:
    """Until the store acknowledges, no handler runs, no timer is set, and no observer or sender gets an answer."""
    answers: list[Reaction | Refusal] = []

    async def ask(engine: Engine, event: Event) -> None:
        answers.append(await engine.send("kiln/a", Envelope("kiln", event, START_MS)))

    async with pottery.running() as engine, anyio.create_task_group() as tasks:
        gate = Gate()
        setattr(pottery.store, where, gate)
        pottery.seen.clear()
        tasks.start_soon(ask, engine, Lit())
        await pottery.quiet()
        assert len(gate.held) == 1
        assert (pottery.hands.announced, pottery.hands.happened, answers, pottery.seen) == ([], [], [], [])
        gate.open()
        await pottery.quiet()
        assert (pottery.hands.words, pottery.hands.happened) == (["lit 1"], ["fire 1 begins"])
        assert (len(answers), len(pottery.seen)) == (1, 1)


@pytest.mark.parametrize("where", ["before", "after"])
async def test_messages_and_timers_do_not_leave_before_their_batch_is_durable(pottery: Pottery, where: str) -> None:
    """Nothing is told and no timer runs for a transition that the store has not acknowledged."""
    async with pottery.running(), anyio.create_task_group() as tasks:
        await pottery.take(Lit())
        gate = Gate()
        setattr(pottery.store, where, gate)
        tasks.start_soon(pottery.hands.fires[0].report, Fired(3))
        await pottery.quiet()
        timers = set(pottery.clock.awaited)
        assert (len(gate.held), pottery.counted) == (1, ())
        gate.open()
        await pottery.quiet()
        assert pottery.counted == (3,)
        assert set(pottery.clock.awaited) - timers == {START_MS + RESTING_MS}


async def test_inputs_that_come_while_a_batch_is_written_share_the_next_one(pottery: Pottery) -> None:
    """Group commit: however many inputs arrive meanwhile, they cost one transaction more, and keep their order."""
    async with pottery.running() as engine:
        gate = Gate()
        pottery.store.before = gate
        words = [f"word {number}" for number in range(41)]
        engine.offer("kiln/a", Envelope("kiln", Called(words[0]), START_MS))
        await pottery.quiet()
        for word in words[1:]:
            engine.offer("kiln/a", Envelope("kiln", Called(word), START_MS))
        gate.open()
        await pottery.quiet()
        assert [len(batch.entries) for batch in gate.held if batch.entries] == [1, 40]
        assert pottery.hands.words == words


async def test_what_was_done_is_recorded_with_the_next_batch(pottery: Pottery) -> None:
    """The store learns up to which entry all effects are performed, and an engine that ends tells it the last one."""
    async with pottery.running():
        await pottery.take(Called("one"), Called("echo"))
        await pottery.take(Smashed())
        assert dict(await pottery.store.performed())["kiln/a"] == 3
    engine = await pottery.prepare()
    engine.offer("kiln/b", Envelope("", Opened({"kiln": Kiln()}), START_MS))
    engine.offer("kiln/b", Envelope("kiln", Called(), START_MS))
    await engine.run(lambda _engine: True)
    assert dict(await pottery.store.performed())["kiln/b"] == 2


async def test_an_engine_that_ends_finishes_the_effects_that_are_due(pottery: Pottery) -> None:
    """``until`` is evaluated when no input is left; effects that were requested before are performed and recorded."""
    engine = await pottery.prepare()
    for name, envelope in opened(START_MS):
        engine.offer(name, envelope)
    engine.offer("kiln/a", Envelope("kiln", Called("echo"), START_MS))
    await engine.run(lambda engine: engine.aggregates["kiln/a"].version == 2)
    assert pottery.hands.words == ["echo", "echo"]
    assert dict(await pottery.store.performed()) == {"kiln/a": 2}


async def test_a_store_that_fails_stops_the_engine_before_any_effect(pottery: Pottery) -> None:
    """An engine whose batch was not written lets nothing of it leave, and its successor knows nothing of it."""

    async def fail(_batch: Batch) -> None:
        raise StoreError("the disk is full")

    with pytest.RaisesGroup(StoreError, flatten_subgroups=True):
        async with pottery.running() as engine:
            pottery.store.before = fail
            await engine.send("kiln/a", Envelope("kiln", Lit(), START_MS))
    assert (pottery.hands.announced, pottery.hands.happened) == ([], [])
    async with pottery.running():
        assert pottery.entity.state is Heat.COLD


async def test_an_engine_that_another_has_replaced_does_nothing_more(pottery: Pottery) -> None:
    """A fenced engine stops with the store's error, and nothing of what it decided leaves."""

    async def be_replaced(_batch: Batch) -> None:
        raise Fenced("a writer of epoch 2 has taken over")

    with pytest.RaisesGroup(Fenced, flatten_subgroups=True):
        async with pottery.running():
            pottery.store.before = be_replaced
            await pottery.say(Lit())
    assert pottery.hands.happened == []


async def test_a_handler_that_raises_stops_an_engine_that_is_to_stop_and_loses_nothing(pottery: Pottery) -> None:
    """Its error comes out of ``run``; everything acknowledged is in the log, and its effect is performed next time."""

    async def stumble(effect: Announce, _occasion: EffectContext) -> None:
        raise RuntimeError(effect.word)

    tripping = Interpreter({Announce: stumble}).over(pottery.hands.interpreter())
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="lit 1"), flatten_subgroups=True):
        async with pottery.running(interpreter=tripping, on_error=STOP) as engine:
            outcome = await engine.send("kiln/a", Envelope("kiln", Lit(), START_MS))
            assert isinstance(outcome, Reaction)
            await pottery.quiet()
    async with pottery.running():
        assert pottery.entity.state is Heat.FIRING
        assert pottery.hands.announced == [("lit 1", ("kiln/a", 2, 0))]


async def test_an_activity_that_raises_stops_an_engine_that_is_to_stop_and_loses_nothing(pottery: Pottery) -> None:
    """What it had reported is in the log, and it is begun again, resumed, by the next engine."""

    async def explode(_activity: Fire, context: ActivityContext) -> None:
        assert await context.report(Stoked())
        raise RuntimeError("boom")

    exploding = Interpreter(activities={Fire: explode}).over(pottery.hands.interpreter())
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="boom"), flatten_subgroups=True):
        async with pottery.running(interpreter=exploding, on_error=STOP):
            await pottery.say(Lit())
    async with pottery.running():
        assert pottery.entity.record.stoked == 1
        assert [context.resumed for context in pottery.hands.fires] == [True]


async def test_an_observer_sees_every_input_in_order_when_it_is_durable(pottery: Pottery) -> None:
    """Accepted or refused, each input is shown once, in the order of the log, and never before it is in the log."""
    in_log: list[int] = []

    async def count(batch: Batch) -> None:
        in_log.extend(entry.version for entry in batch.entries if entry.stream == "kiln/a")

    async with pottery.running() as engine:
        pottery.seen.clear()
        pottery.store.after = count
        for event in (Lit(), Called("x"), Lit(), Doused(), Fired(), Lit()):
            engine.offer("kiln/a", Envelope("kiln", event, START_MS))
        await pottery.quiet()
    kinds = [outcome.kind if isinstance(outcome, Refusal) else "" for name, outcome in pottery.seen if name == "kiln/a"]
    assert kinds == ["", "", "illegal", "", "unsolicited", "", ""]
    versions = [outcome.aggregate.version for _, outcome in pottery.seen if isinstance(outcome, Reaction)]
    assert versions == in_log == [2, 3, 4, 5, 6]


async def test_time_never_goes_backwards_in_the_log(pottery: Pottery) -> None:
    """A clock that is set back, or an input with an old time, does not make a later entry an earlier one."""
    async with pottery.running() as engine:
        await pottery.at(5_000)
        await pottery.take(Lit())
        await pottery.at(-5_000)
        await pottery.take(Called("x"))
        await engine.send("kiln/a", Envelope("kiln", Called("old"), 7))
        await pottery.hands.fires[0].report(Stoked())
    times = [entry.at_ms for entry in await pottery.entries()]
    assert times == sorted(times)
    assert times[-1] == START_MS + 5_000


async def test_time_goes_on_where_the_log_ends(pottery: Pottery) -> None:
    """A runner whose clock is behind the log's last entry starts at that entry's time."""
    async with pottery.running():
        await pottery.at(5_000)
        await pottery.take(Lit())
    async with pottery.running(clock=VirtualClock(START_MS)):
        assert [entry.at_ms for entry in await pottery.entries()][-1] == START_MS + 5_000


async def test_an_input_without_a_receiver_is_refused(pottery: Pottery) -> None:
    """An aggregate of an unknown kind, or an unknown entity, is a refusal to the sender and not the engine's end."""
    async with pottery.running() as engine:
        assert reason(await engine.send("oven/a", Envelope("oven", Lit(), START_MS))) == "unknown"
        assert reason(await engine.send("kiln/z", Envelope("kiln", Lit(), START_MS))) == "unknown"
        assert reason(await engine.send("kiln/a", Envelope("oven", Lit(), START_MS))) == "unknown"
        await pottery.take(Lit())


async def test_an_input_with_a_known_key_is_refused(pottery: Pottery) -> None:
    """A repeated delivery is recognised by its key, in one batch, later, and after a crash; other keys are taken."""

    def call(key: str) -> Envelope:
        return Envelope("kiln", Called(key), START_MS, key=key)

    async with pottery.running() as engine:
        engine.offer("kiln/a", call("k1"))
        engine.offer("kiln/a", call("k1"))
        assert isinstance(await engine.send("kiln/a", call("k2")), Reaction)
        assert reason(await engine.send("kiln/a", call("k1"))) == "duplicate"
    async with pottery.running() as engine:
        assert reason(await engine.send("kiln/a", call("k2"))) == "duplicate"
        assert isinstance(await engine.send("kiln/a", call("k3")), Reaction)
        await pottery.quiet()
    assert sorted(set(pottery.hands.words)) == ["k1", "k2", "k3"]


async def test_a_cancelled_engine_stops_at_once(pottery: Pottery) -> None:
    """Although a handler is just reporting its last event and its batch is being written."""
    reported: list[bool] = []

    async def burn(_activity: Fire, context: ActivityContext) -> None:
        await pottery.hands.out.wait()
        reported.append(await context.report(Fired()))

    burning = Interpreter(activities={Fire: burn}).over(pottery.hands.interpreter())
    with anyio.fail_after(60):
        async with pottery.running(interpreter=burning):
            await pottery.take(Lit())
            gate = Gate()
            pottery.store.before = gate
            pottery.hands.out.set()
            await pottery.quiet()
            assert len(gate.held) == 1
    assert True not in reported


async def test_an_engine_whose_other_part_fails_stops_although_a_last_event_is_on_its_way(pottery: Pottery) -> None:
    """A handler that waits for an answer that will not come does not keep a failed engine alive."""

    async def burn(_activity: Fire, context: ActivityContext) -> None:
        with anyio.CancelScope(shield=True):
            await pottery.hands.out.wait()
            await context.report(Fired())

    async def fail(_batch: Batch) -> None:
        raise StoreError("gone")

    burning = Interpreter(activities={Fire: burn}).over(pottery.hands.interpreter())
    with anyio.fail_after(60), pytest.RaisesGroup(StoreError, flatten_subgroups=True):
        async with pottery.running(interpreter=burning):
            await pottery.take(Lit())
            pottery.store.before = fail
            pottery.hands.out.set()
            await pottery.quiet()


async def test_loading_a_log_only_reads(pottery: Pottery) -> None:
    """Nothing is performed or written before ``resume`` and ``run``, although the state is all there."""
    async with pottery.running():
        await pottery.take(Lit())
    pottery.hands.announced.clear()
    before = await pottery.entries()
    engine = Engine(system, pottery.store, pottery.hands.interpreter(), clock=pottery.clock)
    await engine.load()
    await pottery.quiet()
    assert (pottery.hands.announced, await pottery.entries()) == ([], before)
    assert engine.aggregates["kiln/a"].record("kiln").state is Heat.FIRING


async def test_an_engine_can_be_woken_to_look_whether_it_is_done(pottery: Pottery) -> None:
    """``wake`` has ``until`` looked at although no input has come; ``spawn`` does something beside the work."""
    engine = await pottery.prepare()
    done: list[str] = []

    def is_done(_engine: Engine) -> bool:
        return bool(done)

    async def beside() -> None:
        await pottery.quiet()
        done.append("beside")
        engine.wake()

    async def start() -> None:
        await pottery.quiet()
        engine.spawn(beside)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.run, is_done)
            tasks.start_soon(start)
    assert done == ["beside"]
