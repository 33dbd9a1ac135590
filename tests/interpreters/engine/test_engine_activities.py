"""Activities: a handler runs while its states last, and no other activity begins in its slot before it has ended."""

import anyio
import pytest

from engine_harness import START_MS, Pottery
from kiln import Announce, Called, Doused, Fire, Fired, Heat, Lit, Smashed, Stoked
from lifefold.core.kernel import ActivityEnded, Envelope, Phase
from lifefold.interpreters.engine import STOP, ActivityContext, Interpreter, UnfinishedActivityError
from lifefold.interpreters.store import Batch

pytestmark = pytest.mark.anyio


async def ended(pottery: Pottery) -> int:
    """Return how many ends of activities are in the log."""
    return sum(isinstance(event, ActivityEnded) for event in await pottery.events())


async def test_leaving_the_state_cancels_the_handler(pottery: Pottery) -> None:
    """Whichever row leaves it: the handler is cancelled, and its end is in the log."""
    async with pottery.running():
        for event in (Doused(), Smashed()):
            await pottery.take(Lit(), event)
        assert pottery.hands.happened == ["fire 1 begins", "fire 1 ends", "fire 2 begins", "fire 2 ends"]
        assert await ended(pottery) == 2
        assert pottery.entity.running == ()


async def test_an_end_is_confirmed_only_when_the_handler_has_returned(pottery: Pottery) -> None:
    """A handler may take its time to clean up; until it is gone the log does not say that it is."""
    async with pottery.running():
        await pottery.take(Lit())
        pottery.hands.swept = anyio.Event()
        await pottery.take(Doused(), Called("meanwhile"))
        assert await ended(pottery) == 0
        assert [part.phase for part in pottery.entity.running] == [Phase.ENDING]
        pottery.hands.swept.set()
        await pottery.quiet()
        assert await ended(pottery) == 1
        assert pottery.entity.running == ()


async def test_the_next_activity_in_a_slot_begins_only_after_that(pottery: Pottery) -> None:
    """The state is entered at once; its activity waits until nothing of the one before is left."""
    async with pottery.running():
        await pottery.take(Lit())
        pottery.hands.swept = anyio.Event()
        await pottery.take(Doused(), Lit())
        assert pottery.entity.state is Heat.FIRING
        assert pottery.hands.happened == ["fire 1 begins"]
        pottery.hands.swept.set()
        await pottery.quiet()
        assert pottery.hands.happened == ["fire 1 begins", "fire 1 ends", "fire 2 begins"]


async def test_of_many_that_wait_for_a_slot_only_the_last_begins(pottery: Pottery) -> None:
    """What was entered and left again meanwhile never began."""
    async with pottery.running():
        await pottery.take(Lit())
        pottery.hands.swept = anyio.Event()
        await pottery.take(Doused(), Lit(), Doused(), Lit(), Doused(), Lit())
        pottery.hands.swept.set()
        await pottery.quiet()
        assert pottery.hands.happened == ["fire 1 begins", "fire 1 ends", "fire 4 begins"]
        assert [part.phase for part in pottery.entity.running] == [Phase.LIVE]


async def test_a_handler_that_is_cancelled_before_it_runs_is_confirmed_too(pottery: Pottery) -> None:
    """Begin and end in one batch: the handler gets no further than its first checkpoint."""
    async with pottery.running() as engine:
        for event in (Lit(), Doused(), Lit(), Doused()):
            engine.offer("kiln/a", Envelope("kiln", event, START_MS, "potter"))
        await pottery.quiet()
        assert await ended(pottery) == 1
        assert pottery.hands.happened in ([], ["fire 1 begins", "fire 1 ends"])
        assert pottery.entity.running == ()


async def test_a_report_of_an_ended_activity_is_refused(pottery: Pottery) -> None:
    """From the moment its state was left, nothing that it says counts; also when the next one runs in its place."""
    async with pottery.running():
        await pottery.take(Lit())
        first = pottery.hands.fires[0]
        assert await first.report(Stoked())
        pottery.hands.swept = anyio.Event()
        await pottery.take(Doused())
        assert [await first.report(Stoked()), await first.report(Fired())] == [False, False]
        pottery.hands.swept.set()
        await pottery.take(Lit())
        second = pottery.hands.fires[1]
        assert second.generation > first.generation
        assert [await first.report(Stoked()), await first.report(Fired())] == [False, False]
        assert await second.report(Stoked())
        assert pottery.entity.record.stoked == 2


async def test_with_its_last_event_an_activity_is_over(pottery: Pottery) -> None:
    """Nothing has to be ended then: the handler is not cancelled, and may return when it likes."""
    async with pottery.running():
        await pottery.take(Lit())
        first = pottery.hands.fires[0]
        assert await first.report(Fired(2))
        await pottery.quiet()
        assert (pottery.entity.state, await ended(pottery)) == (Heat.COOLING, 0)
        assert pottery.hands.happened == ["fire 1 begins"]
        assert not await first.report(Fired(3))
        pottery.hands.out.set()
        await pottery.quiet()
        assert (pottery.hands.happened[-1], pottery.counted) == ("fire 1 ends", (2,))


async def test_a_handler_that_returns_without_its_last_event_is_an_error(pottery: Pottery) -> None:
    """It names aggregate, entity and activity, for the entity would wait for ever; and it may stop the engine."""

    async def forget(_activity: Fire, context: ActivityContext) -> None:
        assert await context.report(Stoked())

    forgetful = Interpreter(activities={Fire: forget}, on_error={Fire: STOP}).over(pottery.hands.interpreter())
    unfinished = pytest.RaisesExc(UnfinishedActivityError, match="^kiln/a, kiln: the handler of Fire returned")
    with pytest.RaisesGroup(unfinished, flatten_subgroups=True):
        async with pottery.running(interpreter=forgetful):
            await pottery.say(Lit())


async def test_a_handler_may_return_while_its_end_is_on_its_way(pottery: Pottery) -> None:
    """Between the decision and its being durable it is no error to be gone already; the end is confirmed."""
    held = anyio.Event()

    async def hold(_batch: Batch) -> None:
        await held.wait()

    async with pottery.running():
        await pottery.take(Lit())
        pottery.store.before = hold
        pottery.engine.offer("kiln/a", Envelope("kiln", Doused(), START_MS, "potter"))
        await pottery.quiet()
        pottery.hands.out.set()
        await pottery.quiet()
        assert pottery.hands.happened == ["fire 1 begins", "fire 1 ends"]
        held.set()
        await pottery.quiet()
        assert await ended(pottery) == 1
        assert len(pottery.hands.fires) == 1


async def test_a_last_word_while_being_cancelled_is_refused_and_the_end_is_confirmed(pottery: Pottery) -> None:
    """A handler that reports its end in spite of its cancellation gets an answer, and that is no."""
    answers: list[bool] = []

    async def insist(_activity: Fire, context: ActivityContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                answers.append(await context.report(Fired()))

    async with pottery.running(interpreter=Interpreter(activities={Fire: insist}).over(pottery.hands.interpreter())):
        await pottery.take(Lit(), Doused())
        assert (answers, await ended(pottery)) == ([False], 1)


async def test_activities_of_different_entities_do_not_wait_for_each_other(pottery: Pottery) -> None:
    """A slot is one entity's."""
    async with pottery.running("a", "b"):
        pottery.hands.swept = anyio.Event()
        await pottery.take(Lit(), Doused())
        await pottery.take(Lit(), to="kiln/b")
        assert [context.origin.within.name for context in pottery.hands.fires] == ["kiln/a", "kiln/b"]
        pottery.hands.swept.set()


async def test_an_occasion_says_where_an_activity_comes_from(pottery: Pottery) -> None:
    """The aggregate as it was right after, the entity, and the identity of the effect."""
    async with pottery.running():
        await pottery.take(Called("x"), Lit())
        (context,) = pottery.hands.fires
        assert context.origin.identity == ("kiln/a", 3, 1)
        assert (context.origin.ref, context.origin.entity.state) == ("kiln", Heat.FIRING)
        assert (context.generation, context.resumed, context.cleanup_only) == (3, False, False)
        assert pottery.hands.announced[-1] == ("lit 1", ("kiln/a", 3, 0))
        assert Announce("lit 1").word == pottery.hands.words[-1]
