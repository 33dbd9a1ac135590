"""Timers: their deadlines are in the log, and the clock only determines when they fire."""

import time
from typing import Final

import anyio
import pytest

from engine_harness import START_MS, Pottery, VirtualClock, reason
from kiln import COOLING_MS, RESTING_MS, Called, Cooled, Doused, Fired, Heat, Lit, Rested
from lifefold.core.kernel import Envelope, Event, Reaction, Refusal, RunnerRecovered, TimerFired, encode
from lifefold.interpreters.engine import Clock, Engine, WallClock, clock

pytestmark = pytest.mark.anyio

HANG_S: Final = 120
"""Longer than anything here takes on any machine."""


async def cool(pottery: Pottery, to: str = "kiln/a") -> None:
    """Bring a kiln to where it cools down."""
    await pottery.take(Lit(), to=to)
    assert await pottery.hands.fires[-1].report(Fired())
    await pottery.quiet()


async def elapsed(pottery: Pottery, stream: str = "kiln/a") -> list[tuple[str, int]]:
    """Return the timers that have come, with the time of their entries since the start."""
    codec = pottery.engine.ledger.codec
    envelopes = [codec.decode(stream, entry.envelope) for entry in await pottery.entries(stream)]
    return [(each.event.slot, each.at_ms - START_MS) for each in envelopes if isinstance(each.event, TimerFired)]


async def test_a_timer_comes_at_its_deadline_and_not_before(pottery: Pottery) -> None:
    """One millisecond early nothing has happened."""
    async with pottery.running():
        await cool(pottery)
        for name, deadline_ms in (("Rested", RESTING_MS), ("Cooled", COOLING_MS)):
            await pottery.at(deadline_ms - 1)
            assert (name, deadline_ms) not in await elapsed(pottery)
            await pottery.at(deadline_ms)
            assert (await elapsed(pottery))[-1] == (name, deadline_ms)
        assert pottery.entity.state is Heat.COLD


async def test_timers_that_are_overdue_come_in_the_order_of_their_deadlines(pottery: Pottery) -> None:
    """A machine that slept catches up in order."""
    async with pottery.running("a", "b"):
        await cool(pottery)
        await pottery.at(100)
        await cool(pottery, "kiln/b")
        await pottery.at(10_000)
        assert await elapsed(pottery) == [("Rested", 10_000), ("Cooled", 10_000)]
        shown = [outcome for name, outcome in pottery.seen if name.startswith("kiln/")]
        came = [
            transition.event
            for outcome in shown
            if isinstance(outcome, Reaction)
            for transition in outcome.transitions
            if isinstance(transition.event, Rested | Cooled)
        ]
        assert came == [Rested(), Rested(), Cooled(), Cooled()]


async def test_timers_that_are_due_one_after_the_other_come_one_after_the_other(pottery: Pottery) -> None:
    """A timer that fires does not bring one along that is due a millisecond later: it would be refused, and lost."""
    async with pottery.running("a", "b"):
        await cool(pottery)
        await pottery.at(1)
        await cool(pottery, "kiln/b")
        await pottery.at(RESTING_MS)
        assert (await elapsed(pottery), await elapsed(pottery, "kiln/b")) == ([("Rested", RESTING_MS)], [])
        await pottery.at(RESTING_MS + 1)
        assert await elapsed(pottery, "kiln/b") == [("Rested", RESTING_MS + 1)]


async def test_a_timer_that_is_due_sooner_does_not_wait_for_an_earlier_one(pottery: Pottery) -> None:
    """Setting a timer while a later one is slept for wakes the sleeper."""
    async with pottery.running("a", "b"):
        await cool(pottery)
        await pottery.at(250)
        await cool(pottery, "kiln/b")
        await pottery.at(450)
        assert await elapsed(pottery, "kiln/b") == [("Rested", 450)]


async def test_a_timer_keeps_its_deadline_through_a_crash(pottery: Pottery) -> None:
    """The deadline is the time of its transition plus its duration; one that starts again starts at the recovery."""
    async with pottery.running():
        await cool(pottery)
        await pottery.at(100)
    pottery.clock.set(START_MS + 350)
    async with pottery.running():
        await pottery.at(COOLING_MS - 1)
        assert await elapsed(pottery) == []
        await pottery.at(COOLING_MS)
        assert await elapsed(pottery) == [("Cooled", COOLING_MS)]
    pottery.clock.set(START_MS + 1_000)
    async with pottery.running():
        pottery.hands.fires.clear()
        await cool(pottery)
    pottery.clock.set(START_MS + 1_150)
    async with pottery.running():
        await pottery.at(1_150 + RESTING_MS - 1)
        assert len(await elapsed(pottery)) == 1
        await pottery.at(1_150 + RESTING_MS)
        assert (await elapsed(pottery))[-1] == ("Rested", 1_150 + RESTING_MS)


async def test_a_timer_whose_deadline_passed_meanwhile_comes_at_once(pottery: Pottery) -> None:
    """After the recovery it is overdue, and is reported without any further waiting."""
    async with pottery.running():
        await cool(pottery)
    pottery.clock.set(START_MS + 60_000)
    async with pottery.running():
        assert await elapsed(pottery) == [("Cooled", 60_000)]
        assert [event for event in await pottery.events() if isinstance(event, RunnerRecovered)] == [
            RunnerRecovered(60_000)
        ]


async def test_a_timer_whose_state_was_left_does_not_come_and_would_be_inert(pottery: Pottery) -> None:
    """It is cancelled; if it comes all the same it is refused, and it does not cut a later one short."""
    async with pottery.running() as engine:
        await cool(pottery)
        await pottery.at(100)
        await pottery.take(Doused())
        await cool(pottery)
        pottery.seen.clear()
        await pottery.at(COOLING_MS)
        assert [outcome for _, outcome in pottery.seen if isinstance(outcome, Refusal)] == []
        late = Envelope("kiln", TimerFired("Cooled", 3), START_MS + COOLING_MS, "timer")
        assert reason(await engine.send("kiln/a", late)) == "stale"
        assert await elapsed(pottery) == [("Rested", COOLING_MS)]
        assert pottery.entity.state == Heat.COOLING
        await pottery.at(100 + COOLING_MS)
        assert pottery.entity.state == Heat.COLD


async def test_no_sender_can_make_a_timer_fire_early(pottery: Pottery) -> None:
    """A report of a timer before its deadline is refused, from any sender, and the timer still fires."""
    async with pottery.running() as engine:
        await cool(pottery)
        early = Envelope("kiln", TimerFired("Cooled", 3), START_MS + COOLING_MS - 1, "impatient")
        assert reason(await engine.send("kiln/a", early)) == "early"
        await pottery.at(COOLING_MS)
        assert pottery.entity.state is Heat.COLD


async def test_a_clock_that_is_set_back_delays_timers_and_fires_none(pottery: Pottery) -> None:
    """It is the clock that says when a deadline has come; going back only means waiting longer."""
    async with pottery.running():
        await cool(pottery)
        await pottery.at(-10_000)
        await pottery.at(RESTING_MS - 1)
        assert await elapsed(pottery) == []
        await pottery.at(RESTING_MS)
        assert await elapsed(pottery) == [("Rested", RESTING_MS)]


async def test_a_timer_that_comes_while_its_state_is_being_left_is_refused(pottery: Pottery) -> None:
    """Both are on their way in one batch: the first that was there is taken, the other is stale."""

    async def both(engine: Engine) -> list[Event]:
        pottery.clock.set(START_MS + COOLING_MS)
        engine.offer("kiln/a", Envelope("kiln", Doused(), START_MS, "potter"))
        await pottery.quiet()
        return [event for event in await pottery.events() if isinstance(event, TimerFired | Doused)]

    async with pottery.running() as engine:
        await cool(pottery)
        assert await both(engine) == [Doused()]


class Watch:
    """A fake of the machine's clocks and of sleeping: each nap takes as long as it says, and is written down."""

    def __init__(self, now_s: float) -> None:
        self.wall_s = now_s
        self.steady_s = 5.0
        self.naps: list[float] = []

    def time_ns(self) -> int:
        return round(self.wall_s * 1e9)

    def clock_gettime_ns(self, _clock: int) -> int:
        return round(self.steady_s * 1e9)

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.wall_s += seconds
        self.steady_s += seconds


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch(1_000.0)
    monkeypatch.setattr(time, "time_ns", watch.time_ns)
    monkeypatch.setattr(time, "clock_gettime_ns", watch.clock_gettime_ns)
    monkeypatch.setattr(anyio, "sleep", watch.sleep)
    return watch


async def test_the_wall_clock_sleeps_until_the_time_and_not_shorter(watch: Watch) -> None:
    """It looks again at least every second, so that a machine that was asleep is not late by more."""
    wall: Clock = WallClock()
    await wall.sleep_until(1_002_300)
    assert wall.now_ms() == 1_002_300
    assert max(watch.naps) <= clock.LONGEST_NAP_S
    assert sum(watch.naps) == pytest.approx(2.3)


async def test_the_wall_clock_does_not_sleep_for_what_is_over(watch: Watch) -> None:
    """A deadline in the past is there."""
    await WallClock().sleep_until(999_999)
    assert watch.naps == []


@pytest.mark.parametrize("set_by_s", [-3_600.0, 3_600.0])
async def test_setting_the_machine_s_clock_changes_no_duration(watch: Watch, set_by_s: float) -> None:
    """What was to happen in two seconds happens in two seconds, in whichever direction the clock was set."""
    wall = WallClock()
    deadline_ms = wall.now_ms() + 2_000
    watch.wall_s += set_by_s
    assert wall.now_ms() == deadline_ms - 2_000
    await wall.sleep_until(deadline_ms)
    assert sum(watch.naps) == pytest.approx(2.0)


async def test_the_wall_clock_goes_on_where_a_log_ends(watch: Watch) -> None:
    """If that is later than the machine's clock says; otherwise it is what the machine's clock says."""
    wall = WallClock()
    wall.not_before(999_000)
    assert wall.now_ms() == 1_000_000
    wall.not_before(4_600_000)
    assert wall.now_ms() == 4_600_000
    watch.steady_s += 1
    assert wall.now_ms() == 4_601_000


async def test_a_machine_whose_clock_is_set_back_still_hears_its_operators_and_its_timers(
    pottery: Pottery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the wall clock itself: an hour back, a command is answered and a timer comes, and not an hour later."""
    now_ns = time.time_ns
    with anyio.fail_after(HANG_S):
        async with pottery.running(clock=WallClock()):
            await cool(pottery)
            monkeypatch.setattr(time, "time_ns", lambda: now_ns() - 3_600 * 10**9)
            await pottery.store.submit("kiln/a", encode(Envelope("kiln", Called(), 0, "operator")))
            while pottery.entity.state is not Heat.COLD or await pottery.store.commands():
                await pottery.quiet()
    assert pottery.entity.state is Heat.COLD


async def test_the_virtual_clock_of_these_tests_never_comes_early() -> None:
    """It has the property of a clock: it returns at or after the time, however it was set meanwhile."""
    virtual: Clock = (fake := VirtualClock(100))
    woken: list[int] = []

    async def sleep() -> None:
        await virtual.sleep_until(200)
        woken.append(virtual.now_ms())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleep)
        for now_ms in (150, 50, 199, 205):
            await anyio.wait_all_tasks_blocked()
            assert woken == []
            fake.set(now_ms)
    assert woken == [205]
