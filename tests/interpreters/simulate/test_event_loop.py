"""The stepped event loop: virtual time, an order of tasks from a seed, and an end with all cleanup code."""

from contextlib import suppress
from random import Random

import anyio
import pytest

from lifefold.interpreters.simulate import event_loop
from lifefold.interpreters.simulate.event_loop import SteppedLoop


class Driven:
    """A loop with its time."""

    def __init__(self, seed: int | None = None) -> None:
        self.now_ms = 0
        self.woken = 0
        draw = None if seed is None else Random(seed)  # noqa: S311 - to be repeatable is its point
        self.loop = SteppedLoop(lambda: self.now_ms, self._wake, draw)  # type: ignore[abstract] # it lacks sockets

    def _wake(self) -> None:
        self.woken += 1

    def rest(self) -> None:
        """Take steps until all tasks wait."""
        while self.loop.has_ready():
            self.loop.step()

    def finish(self) -> None:
        """Let time pass until no task waits for it."""
        self.rest()
        while (next_ms := self.loop.next_ms()) is not None:
            self.now_ms = next_ms
            self.rest()


def recorded(seed: int | None) -> list[tuple[int, int, int]]:
    """Return who took which step when: four tasks that sleep for different times."""
    driven = Driven(seed)
    steps: list[tuple[int, int, int]] = []

    async def work(number: int) -> None:
        for step in range(3):
            steps.append((driven.now_ms, number, step))
            await anyio.sleep(number * 0.01)

    async def all_of_them() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(work, number)

    task = driven.loop.create_task(all_of_them())
    driven.finish()
    assert task.result() is None
    return steps


def test_time_passes_only_when_all_tasks_wait() -> None:
    """Sleeping takes virtual time, to the millisecond, and in the order of the times."""
    steps = recorded(None)
    assert [now_ms for now_ms, number, _ in steps if number == 3] == [0, 30, 60]
    assert steps == sorted(steps, key=lambda step: step[0])


def test_a_seed_decides_on_the_order_of_tasks() -> None:
    """Without a seed it is the order of asyncio; the same seed gives the same order."""
    assert [number for _, number, step in recorded(None) if step == 0] == [0, 1, 2, 3]
    orders = [tuple(recorded(seed)) for seed in range(8)]
    assert orders == [tuple(recorded(seed)) for seed in range(8)]
    assert len({*orders}) > 4
    assert all(sorted(order) == sorted(orders[0]) for order in orders)


def test_a_driver_hears_of_what_becomes_ready_outside_of_a_step() -> None:
    """It must let the loop run then."""
    driven = Driven()

    async def wait(event: anyio.Event) -> None:
        await event.wait()

    events: list[anyio.Event] = []

    async def begin() -> None:
        events.append(anyio.Event())
        await wait(events[0])

    task = driven.loop.create_task(begin())
    driven.rest()
    before = driven.woken
    events[0].set()
    assert driven.woken == before + 1
    driven.rest()
    assert task.done()


@pytest.mark.parametrize("steps", range(6))
def test_at_the_end_each_task_cleans_up(steps: int) -> None:
    """At whatever step a driver stops: each block that was begun is left, also a shielded one, and no time passes."""
    driven = Driven()
    begun: list[str] = []
    left: list[str] = []

    async def work(name: str) -> None:
        begun.append(name)
        try:
            await anyio.sleep(5)
        finally:
            left.append(name)
            with anyio.CancelScope(shield=True):
                await anyio.sleep(5)

    async def all_of_them() -> None:
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b"):
                tasks.start_soon(work, name)

    task = driven.loop.create_task(all_of_them())
    for _ in range(steps):
        if driven.loop.has_ready():
            driven.loop.step()
    driven.loop.end()
    assert task.done()
    assert driven.loop.is_closed()
    assert sorted(left) == sorted(begun)
    assert driven.now_ms == 0
    assert not driven.loop.has_ready()


def test_a_task_that_goes_on_after_its_cancellation_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver must not wait for ever."""
    driven = Driven()
    ends = [False]

    async def deaf() -> None:
        while not ends[0]:
            with suppress(anyio.get_cancelled_exc_class()):
                await anyio.sleep(1)

    task = driven.loop.create_task(deaf())
    driven.rest()
    monkeypatch.setattr(event_loop, "ROUNDS_OF_END", 100)
    with pytest.raises(RuntimeError, match="although they are cancelled"):
        driven.loop.end()
    ends[0] = True
    driven.loop.end()
    assert task.done()
