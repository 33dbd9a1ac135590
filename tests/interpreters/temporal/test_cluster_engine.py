"""The engine on Temporal, with a brain and hosts in this process, on a development server."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from kiln import Called, Lit, Smashed, Stoked
from lifefold.core.kernel import Envelope, replace
from lifefold.interpreters.temporal import Times
from lifefold.interpreters.temporal.brain import WORKFLOWS
from lifefold.interpreters.temporal.converter import CONVERTER
from lifefold.interpreters.temporal.wire import FENCED
from temporal_pottery import ClusterHands, ClusterPottery, is_warm, pottery_on
from temporal_server import dev_server

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def pottery(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[ClusterPottery]:
    times = Times(detection_ms=2_000, history_events=60 if "as_new" in request.node.name else 0)
    async with dev_server() as client, pottery_on(client, tmp_path, times) as pottery:
        yield pottery


async def test_an_activity_a_timer_and_messages(pottery: ClusterPottery) -> None:
    """A firing runs on a host, its reports are messages to the tally, and the timer cools the kiln down."""
    await pottery.begin_host()
    await pottery.open()
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    pottery.hands.out.set()
    await pottery.until(lambda: pottery.state() == "Cold" and pottery.counted == (0, 7))
    assert await pottery.verified() >= 8  # a timer of the cooling kiln may or may not come first
    await pottery.hands.until("announced lit 1")  # an effect waits for the activities of its entry
    assert [word for word, _ in pottery.hands.announced] == ["lit 1"]


async def test_a_repeated_input_with_a_key_is_taken_once(pottery: ClusterPottery) -> None:
    """A sender that does not know whether its input arrived may repeat it."""
    await pottery.begin_host()
    await pottery.open()
    for _ in range(3):
        await pottery.say(Called("once"), key="call")
    await pottery.say(Called("then"))
    await pottery.hands.until("announced then")
    assert [word for word, _ in pottery.hands.announced] == ["once", "then"]


async def test_an_operator_command_in_the_log_is_answered(pottery: ClusterPottery) -> None:
    """A command is stored in the log, decided by the workflow's commit, and answered in the same transaction."""
    await pottery.begin_host()
    await pottery.open()
    await pottery.leave_command(Called("stored"))
    await pottery.hands.until("announced stored")
    assert await pottery.answers() == ["accepted"]


async def test_an_end_reaches_the_handler_on_its_host(pottery: ClusterPottery) -> None:
    """Smashing a burning kiln cancels its handler, and the log confirms that nothing is left."""
    await pottery.begin_host()
    await pottery.open()
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    await pottery.say(Smashed())
    await pottery.hands.until("fire 1 ends")
    await pottery.until(lambda: pottery.running() == ())
    assert pottery.hands.fires[0].ending


async def test_another_brain_goes_on(pottery: ClusterPottery) -> None:
    """The activity is not disturbed by the end of a brain; its reports wait for the next one, and timers too."""
    await pottery.begin_host()
    await pottery.open()
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    await pottery.end_brain()
    pottery.hands.out.set()
    await pottery.begin_brain()
    assert await pottery.cluster.forget_brain(("kiln/a", "tally", "kiln/none")) >= 2
    await pottery.until(lambda: pottery.state() == "Cold" and pottery.counted == (0, 7))
    assert [each.resumed for each in pottery.hands.fires] == [False]
    assert await pottery.verified() >= 8  # a timer of the cooling kiln may or may not come first


async def test_a_lost_host_is_noticed_and_another_one_goes_on(pottery: ClusterPottery) -> None:
    """Without heartbeats the activity counts as lost. The kernel requests it again, and another host resumes it."""
    await pottery.begin_host("one")
    await pottery.open()
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    pottery.scopes["one"].cancel()
    await pottery.begin_host("two")
    await pottery.hands.until("fire 1 goes on")
    pottery.hands.out.set()
    await pottery.until(lambda: pottery.state() == "Cold" and pottery.counted == (0, 7))
    assert await pottery.verified() >= 9  # as above, with the recovery
    assert set(await pottery.kinds("kiln/a")) >= {"RunnerRecovered"}


async def test_a_workflow_continues_as_new_with_a_live_activity(pottery: ClusterPottery) -> None:
    """A long history is cut while a fire burns: the activity is not disturbed, and its end still reaches it."""
    await pottery.begin_host()
    await pottery.open()
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    first = await pottery.run_id()
    for number in range(20):
        await pottery.say(Called(f"call {number}"))
        await pottery.hands.until(f"announced call {number}")
    assert await pottery.run_id() != first
    await pottery.say(Smashed())
    await pottery.until(lambda: pottery.running() == () and pottery.state() == "Broken")
    assert pottery.hands.happened.count("fire 1 begins") == 1
    assert len(pottery.hands.fires) == 1
    assert len({identity for _, identity in pottery.hands.announced}) == len(pottery.hands.announced) == 21


async def test_an_end_wanted_while_no_host_is_there_is_confirmed_by_the_next_host(pottery: ClusterPottery) -> None:
    """The host is lost together with the wish to end: another host cleans up, and the log confirms the end."""
    await pottery.begin_host("one")
    await pottery.open()
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    pottery.scopes["one"].cancel()
    await pottery.say(Smashed())
    await pottery.until(lambda: pottery.state() == "Broken")
    await pottery.begin_host("two")
    await pottery.until(lambda: pottery.running() == ())
    assert pottery.hands.fires[-1].cleanup_only


async def test_a_report_of_a_host_that_has_lost_the_activity_is_refused(pottery: ClusterPottery) -> None:
    """The generation is the same at both hosts. The workflow knows which request is the present one."""
    await pottery.begin_host()
    await pottery.open()
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    report = Envelope("kiln", Stoked(), 0, "Fire", "late", slot="Fire", generation=2)
    assert await pottery.cluster.decide("kiln/a", report, "session:of:a:lost:host") == FENCED
    assert "Stoked" not in await pottery.kinds("kiln/a")
    present = replace(report, key="present")
    assert [await pottery.cluster.decide("kiln/a", present) for _ in range(2)] == ["", ""]
    assert (await pottery.kinds("kiln/a")).count("Stoked") == 1


async def test_a_loss_and_the_wish_to_end_at_the_same_time_are_both_told(pottery: ClusterPottery) -> None:
    """The child workflow learns of both in one step, as after a pause of the brain. It still reports to its parent."""
    await pottery.begin_host("one")
    await pottery.open()
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    child = await pottery.child()
    await pottery.end_brain()
    pottery.scopes["one"].cancel()
    await pottery.until_lost(child)
    await child.cancel()
    await pottery.begin_brain()
    await pottery.begin_host("two")
    await pottery.hands.until("fire 1 goes on")
    pottery.hands.out.set()
    await pottery.until(lambda: pottery.state() == "Cold" and pottery.counted == (0, 7))
    assert [each.resumed for each in pottery.hands.fires] == [False, True]


async def test_an_aggregate_that_returns_to_a_full_host_goes_to_another_one(pottery: ClusterPottery) -> None:
    """A settled aggregate gives its room back. Nothing begins at the full host, and nothing counts as lost."""
    elsewhere = ClusterHands()

    await pottery.begin_host("one", capacity=1, keeps_room=is_warm)
    await pottery.open("a", "b")
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    pottery.hands.out.set()
    await pottery.until(lambda: pottery.state() == "Cold" and pottery.counted == (0, 7))
    pottery.hands.out = anyio.Event()
    await pottery.say(Lit(), to="kiln/b")
    await pottery.hands.until("fire 1 begins", 2)
    await pottery.say(Lit())
    await pottery.until(lambda: pottery.state() == "Firing")
    await pottery.begin_host("two", elsewhere, capacity=1)
    await elsewhere.until("fire 2 begins")
    await elsewhere.until("announced lit 2")
    assert "announced lit 2" not in pottery.hands.happened
    assert [await pottery.cluster.is_at("kiln/a", each) for each in ("one", "two")] == [False, True]
    assert "fire 2 begins" not in pottery.hands.happened
    assert "RunnerRecovered" not in await pottery.kinds("kiln/a")
    elsewhere.out.set()
    await pottery.until(lambda: pottery.state() == "Cold" and pottery.counted == (0, 7, 0, 7))
    await pottery.cluster.handle("kiln/a").terminate("its brain has left")
    assert not await pottery.cluster.is_at("kiln/a", "two")


async def test_the_end_of_an_activity_needs_no_room(pottery: ClusterPottery) -> None:
    """Its host is lost, or it has waited for a room itself. The only host is full."""
    full = ClusterHands()
    await pottery.begin_host("full", full, capacity=1)
    await pottery.open("a", "b", "c")
    await pottery.say(Lit(), to="kiln/b")
    await full.until("fire 1 begins")
    await pottery.begin_host("lost", capacity=1)
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    await pottery.say(Lit(), to="kiln/c")
    await pottery.until(lambda: pottery.state("kiln/c") == "Firing")
    pottery.scopes["lost"].cancel()
    for name in ("kiln/a", "kiln/c"):
        await pottery.say(Smashed(), to=name)
    await pottery.until(lambda: all(pottery.state(name) == "Broken" for name in ("kiln/a", "kiln/c")))
    await pottery.until(lambda: pottery.running("kiln/a") == pottery.running("kiln/c") == ())
    assert pottery.state("kiln/b") == "Firing"
    assert [each.cleanup_only for each in full.fires] == [False, True, True]


async def test_a_second_restore_may_ask_for_an_activity_that_the_server_has_had(pottery: ClusterPottery) -> None:
    """It gives its versions another time, and so its requests have the names of workflows that have ended."""
    await pottery.open()
    await pottery.until(lambda: {"kiln/a", "tally"} <= pottery.commits.aggregates.keys())
    await pottery.end_brain()
    saved, names = pottery.log.read_bytes(), list[str]()
    for number in (1, 2):
        for each in ("kiln/a", "tally"):
            await pottery.cluster.handle(each).terminate("restored")
        pottery.log.write_bytes(saved)
        await pottery.begin_brain()
        await pottery.begin_host(f"of restore {number}")
        await pottery.cluster.look("tally")
        await pottery.say(Lit())
        await pottery.hands.until("fire 1 begins", number)
        child = await pottery.child()
        names.append(child.id)
        await pottery.end_brain()
        pottery.scopes[f"of restore {number}"].cancel()
        await pottery.hands.until("fire 1 ends", number)
        pottery.stores.close()
        await child.terminate("restored")
    assert names[0] == names[1]


async def test_a_recorded_history_replays(pottery: ClusterPottery) -> None:
    """The loop is deterministic: the server's record of a firing leads it to the same commands again.

    It does so in the sandbox of the SDK, which refuses clocks, files and random numbers. A brain runs without it.
    """
    await pottery.begin_host()
    await pottery.open()
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    pottery.hands.out.set()
    await pottery.until(lambda: pottery.state() == "Cold" and pottery.counted == (0, 7))
    histories = [await pottery.cluster.handle(name).fetch_history() for name in ("kiln/a", "tally")]
    restrictions = SandboxRestrictions.default.with_passthrough_modules("lifefold", "msgspec")
    runner = SandboxedWorkflowRunner(restrictions=restrictions)
    replayer = Replayer(workflows=list(WORKFLOWS), workflow_runner=runner, data_converter=CONVERTER)
    for history in histories:
        assert (await replayer.replay_workflow(history)).replay_failure is None
