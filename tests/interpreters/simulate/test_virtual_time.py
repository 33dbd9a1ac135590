"""Virtual time: a cancelled sleeper comes to an end, shielded or not."""

from typing import Final

import anyio
import pytest

from lifefold.interpreters.simulate.virtual_time import VirtualClock

HANG_S: Final = 5


async def ends(clock: VirtualClock, *, is_asleep: bool) -> bool:
    """Wait, shielded, for a clock that is cancelled before or during the wait; tell whether the wait ends."""
    with clock.still():  # so no time passes of itself
        with anyio.move_on_after(HANG_S, shield=True) as bound:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(clock.run)
                tasks.start_soon(_finish, clock, bound, is_asleep)
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
    return not bound.cancel_called


async def _finish(clock: VirtualClock, bound: anyio.CancelScope, is_asleep: bool) -> None:  # noqa: FBT001
    try:
        if not is_asleep:
            await anyio.sleep_forever()
    finally:
        with anyio.move_on_after(HANG_S, shield=True) as mine:
            await clock.sleep_until(1_000)
        if mine.cancel_called:
            bound.cancel()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("is_asleep", [True, False], ids=["asleep", "not yet"])
def test_a_stopped_clock_keeps_no_task_waiting(backend: str, *, is_asleep: bool) -> None:
    """What ends a process is shielded; it must not hang for ever when all is cancelled from outside."""

    async def work() -> bool:
        return await ends(VirtualClock(0), is_asleep=is_asleep)

    assert anyio.run(work, backend=backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_virtual_clock_can_run_twice(backend: str) -> None:
    """Who waits for the next run of it waits for as long as he says."""

    async def work() -> int:
        clock = VirtualClock(0)
        await ends(clock, is_asleep=True)
        async with anyio.create_task_group() as tasks:
            await tasks.start(clock.run)
            await clock.sleep_until(1_000)
            tasks.cancel_scope.cancel()
        return clock.now_ms()

    assert anyio.run(work, backend=backend) == 1_000
