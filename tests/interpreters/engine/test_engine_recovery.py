"""After a crash: activities and timers run again, and requested effects without a record are performed."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from engine_harness import START_MS, Pottery, never
from kiln import Announce, Called, Doused, Fire, Fired, Heat, Lit, Stoked
from lifefold.core.kernel import ActivityEnded, Envelope, Refusal, RunnerRecovered
from lifefold.interpreters.engine import ActivityContext, EffectContext, Interpreter
from lifefold.interpreters.store import Batch

pytestmark = pytest.mark.anyio


class Crashed(BaseException):
    """The runner is gone, here and now."""


async def crash(_batch: Batch) -> None:
    """Crash in the store."""
    raise Crashed


class Yard:
    """A handler whose fires outlive its runner: they burn in the yard until a later handler puts them out."""

    def __init__(self) -> None:
        self.burning: list[int] = []
        self.lit = 0
        self.called: list[str] = []
        self.gone = False

    async def fire(self, activity: Fire, context: ActivityContext) -> None:
        self.called.append("cleanup_only" if context.cleanup_only else "resumed" if context.resumed else "new")
        for _ in range(5):
            await checkpoint()  # it takes a while to look what is there
        if not context.resumed:
            self.burning.append(activity.firing)
            self.lit += 1
        if not context.cleanup_only:
            try:
                await anyio.sleep_forever()
            finally:
                self._put_out(activity.firing)
        self._put_out(activity.firing)

    def _put_out(self, firing: int) -> None:
        if not self.gone and firing in self.burning:
            self.burning.remove(firing)

    def over(self, pottery: Pottery) -> Interpreter:
        self.gone = False
        return Interpreter(activities={Fire: self.fire}).over(pottery.hands.interpreter())


async def test_what_should_be_going_on_is_begun_again(pottery: Pottery) -> None:
    """Resumed, under its old generation, so that what survived of it may report."""
    async with pottery.running():
        await pottery.take(Lit())
    async with pottery.running():
        first, second = pottery.hands.fires
        assert (first.resumed, second.resumed, second.cleanup_only) == (False, True, False)
        assert second.generation == first.generation
        assert await second.report(Fired(4))
        await pottery.quiet()
        assert (pottery.entity.state, pottery.counted) == (Heat.COOLING, (4,))


async def test_what_is_not_going_on_is_not_begun(pottery: Pottery) -> None:
    """Neither an activity that was over nor one that was ended comes back."""
    async with pottery.running("a", "b"):
        await pottery.take(Lit(), Doused())
        await pottery.take(Lit(), to="kiln/b")
        await pottery.hands.fires[1].report(Fired())
        await pottery.quiet()
    pottery.hands.fires.clear()
    async with pottery.running():
        assert pottery.hands.fires == []


async def test_an_effect_that_may_not_have_been_performed_is_performed_again(pottery: Pottery) -> None:
    """Under the same identity; one that is recorded as performed is not."""
    async with pottery.running():
        await pottery.take(Called("one"), Called("echo"))
        assert dict(await pottery.store.performed()) == {"kiln/a": 2}
        before = list(pottery.hands.announced)
    async with pottery.running():
        assert pottery.hands.announced == [*before, *before[1:]]
        assert [identity for _, identity in before] == [("kiln/a", 2, 0), ("kiln/a", 3, 0), ("kiln/a", 3, 1)]
        await pottery.take(Called("two"))
    pottery.hands.announced.clear()
    async with pottery.running():
        assert pottery.hands.words == ["two"]


async def test_an_effect_that_was_half_done_is_performed_again_as_a_whole(pottery: Pottery) -> None:
    """An entry counts as performed when all its effects are; order and identities stay."""
    calls: list[tuple[str, int]] = []

    async def announce(effect: Announce, context: EffectContext) -> None:
        calls.append((effect.word, context.index))
        if len(calls) == 2:
            raise Crashed

    dying = Interpreter({Announce: announce}).over(pottery.hands.interpreter())
    with pytest.RaisesGroup(Crashed, flatten_subgroups=True):
        async with pottery.running(interpreter=dying):
            await pottery.say(Called("echo"))
            await pottery.say(Called("later"))
    async with pottery.running(interpreter=dying):
        assert calls == [("echo", 0), ("echo", 1), ("echo", 0), ("echo", 1)]


async def test_an_entry_whose_effects_are_half_done_does_not_count_as_performed(pottery: Pottery) -> None:
    """Whatever is written meanwhile: the store learns of an entry when the last of its effects has been performed."""
    go_on = anyio.Event()

    async def announce(effect: Announce, context: EffectContext) -> None:
        if context.index == 1:
            await go_on.wait()
        await pottery.hands.announce(effect, context)

    async with pottery.running(
        "a", "b", interpreter=Interpreter({Announce: announce}).over(pottery.hands.interpreter())
    ):
        await pottery.take(Called("before"), Called("echo"))
        await pottery.say(Called("meanwhile"), "kiln/b")
        assert (await pottery.store.performed())["kiln/a"] == 2
        go_on.set()
        await pottery.quiet()
        await pottery.say(Called("later"), "kiln/b")
        assert (await pottery.store.performed())["kiln/a"] == 3


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_message_is_delivered_although_its_sender_crashed(pottery: Pottery, moment: str) -> None:
    """Once its transition is durable a message arrives exactly once; before that neither has happened."""
    with pytest.RaisesGroup(Crashed, flatten_subgroups=True):
        async with pottery.running():
            await pottery.take(Lit())
            await pottery.hands.fires[0].report(Stoked())
            await pottery.quiet()
            setattr(pottery.store, moment, crash)
            await pottery.hands.fires[0].report(Fired(3))
    pottery.seen.clear()
    for _ in range(2):
        async with pottery.running():
            assert pottery.counted == ((0, 3) if moment == "after" else (0,))
    assert not any(isinstance(outcome, Refusal) for _, outcome in pottery.seen)


async def test_messages_that_were_not_told_arrive_in_order_before_later_ones(pottery: Pottery) -> None:
    """The next runner tells what its predecessor could not, and only then what comes of new events."""

    async def stoke(_activity: Fire, context: ActivityContext) -> None:
        await context.report(Fired(9) if context.resumed else Stoked())
        await anyio.sleep_forever()

    stoking = Interpreter(activities={Fire: stoke}).over(pottery.hands.interpreter())
    with pytest.RaisesGroup(Crashed, flatten_subgroups=True):
        async with pottery.running(interpreter=stoking):

            async def crash_when_stoked(batch: Batch) -> None:
                if any(b"Stoked" in entry.envelope for entry in batch.entries):
                    raise Crashed

            pottery.store.after = crash_when_stoked
            await pottery.say(Lit())
    async with pottery.running(interpreter=stoking):
        assert pottery.counted == (0, 9)


async def test_what_a_crash_left_is_ended_before_its_end_is_confirmed(pottery: Pottery) -> None:
    """Asked to end before the crash: the handler is called with ``cleanup_only`` and ends it; then the next begins."""
    yard = Yard()
    with pytest.RaisesGroup(Crashed, flatten_subgroups=True):
        async with pottery.running(interpreter=yard.over(pottery)):
            await pottery.take(Lit())
            pottery.store.after = crash
            yard.gone = True
            await pottery.say(Doused())
    assert yard.burning == [1]
    async with pottery.running(interpreter=yard.over(pottery)):
        assert (yard.called, yard.burning) == (["new", "cleanup_only"], [])
        assert isinstance((await pottery.events())[-1], ActivityEnded)
        await pottery.take(Lit())
        assert (yard.called[-1], yard.burning) == ("new", [2])
        yard.gone = True


async def test_what_a_crash_left_is_ended_although_its_end_is_wanted_at_once(pottery: Pottery) -> None:
    """The end comes before the resumed handler can look: it is called again with ``cleanup_only``; no fire remains."""
    yard = Yard()
    async with pottery.running(interpreter=yard.over(pottery)):
        await pottery.take(Lit())
        yard.gone = True
    assert yard.burning == [1]
    engine = await pottery.prepare(yard.over(pottery))
    engine.offer("kiln/a", Envelope("kiln", Doused(), START_MS, "potter"))
    with anyio.fail_after(60):
        await engine.run(lambda engine: not engine.aggregates["kiln/a"].entities["kiln"].running)
    assert (yard.called, yard.burning) == (["new", "resumed", "cleanup_only"], [])


async def test_what_was_waiting_for_a_slot_begins_after_the_crash(pottery: Pottery) -> None:
    """An activity that waited for its predecessor's end begins when that is confirmed, by the next runner too."""
    yard = Yard()
    with pytest.RaisesGroup(Crashed, flatten_subgroups=True):
        async with pottery.running(interpreter=yard.over(pottery)) as engine:
            await pottery.take(Lit())
            pottery.store.after = crash
            yard.gone = True
            for event in (Doused(), Lit()):
                engine.offer("kiln/a", Envelope("kiln", event, START_MS, "potter"))
            await pottery.quiet()
    async with pottery.running(interpreter=yard.over(pottery)):
        assert (yard.called, yard.burning) == (["new", "cleanup_only", "new"], [2])
        yard.gone = True


async def test_an_activity_is_begun_once_although_it_begins_during_the_recovery(pottery: Pottery) -> None:
    """What an input begins that comes with the recovery is not begun a second time by it."""
    async with pottery.running():
        pass
    engine = await pottery.prepare()
    engine.offer("kiln/a", Envelope("kiln", Lit(), START_MS, "potter"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.run, never)
        await pottery.quiet()
        assert pottery.hands.happened == ["fire 1 begins"]
        tasks.cancel_scope.cancel()


async def test_every_runner_records_how_long_no_runner_was_there(pottery: Pottery) -> None:
    """Each aggregate gets one ``RunnerRecovered`` from each later runner, and none from the one that made it."""
    async with pottery.running():
        await pottery.take(Lit())
    pottery.clock.set(START_MS + 1_234)
    async with pottery.running():
        pass
    pottery.clock.set(START_MS)
    async with pottery.running():
        pass
    expected = [RunnerRecovered(1_234), RunnerRecovered(0)]
    for stream in ("kiln/a", "tally"):
        assert [event for event in await pottery.events(stream) if isinstance(event, RunnerRecovered)] == expected
    assert pottery.entity.state is Heat.FIRING
