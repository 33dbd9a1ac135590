"""A deterministic event loop of asyncio in virtual time, driven step by step from outside.

The driver owns the time and calls ``step``. A step runs one callback. So a driver can stop between any two steps, as a
crash does. The loop has no sockets, no threads and no signals: a program that asks for them gets
``NotImplementedError``.

A *round* has all callbacks that are ready when it begins, as in asyncio. With random numbers the steps of tasks in a
round come in any order, and some wait for the next round. Other callbacks keep their order, because libraries rely on
it. Tasks are hashed by their numbers, so that a set of tasks has the same order in every process.
"""

import asyncio
import heapq
from asyncio.events import _get_running_loop, _set_running_loop
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import Context, copy_context
from inspect import CORO_CREATED, getcoroutinestate, iscoroutine
from math import ceil, isinf
from random import Random
from typing import Any, Final, NamedTuple
from weakref import WeakSet

HELD: Final = 0.2
"""The rate at which a ready task waits for the next round."""

ROUNDS_OF_END: Final = 10_000
"""The most rounds that tasks may take when they are all cancelled."""


class NumberedTask(asyncio.Task[Any]):
    """A task with a number, which is also its hash."""

    def __init__(self, *given: Any, number: int, **named: Any) -> None:
        """Take what a task takes, and its number."""
        self.number: Final = number
        super().__init__(*given, **named)

    def __hash__(self) -> int:
        """Return its number."""
        return self.number


class _Ready(NamedTuple):
    """A callback that is ready, with the handle that can cancel it."""

    handle: asyncio.Handle
    callback: Callable[..., Any]
    given: tuple[Any, ...]
    context: Context

    @property
    def task(self) -> int | None:
        """The number of the task that it continues; None for another callback."""
        task = getattr(self.callback, "__self__", None)
        return task.number if isinstance(task, NumberedTask) else None


class SteppedLoop(asyncio.AbstractEventLoop):
    """An event loop that its driver steps."""

    def __init__(self, now_ms: Callable[[], int], woken: Callable[[], None], draw: Random | None = None) -> None:
        """Take the time. ``woken`` is called when a callback becomes ready outside of a step.

        Without random numbers, callbacks run in the order in which they became ready.
        """
        self._now_ms: Final = now_ms
        self._woken: Final = woken
        self._draw: Final = draw
        self._round: list[_Ready] = []
        self._next: list[_Ready] = []
        self._timers: Final[list[tuple[int, int, _Ready]]] = []
        self._numbers = 0
        self._tasks: Final[WeakSet[NumberedTask]] = WeakSet()
        self._is_stepping = False
        self._is_over = False
        self.errors: Final[list[dict[str, Any]]] = []
        """What tasks and callbacks have reported to the loop's exception handler."""

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now_ms() / 1_000

    def call_soon(  # type: ignore[override] # its arguments are typed as those of any callback
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback in the next round."""
        ready = self._ready(asyncio.Handle(callback, args, self, context), callback, args, context)
        if not self._is_over:
            self._next.append(ready)
            if not self._is_stepping:
                self._woken()
        return ready.handle

    def call_later(  # type: ignore[override] # as above
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback after so many seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override] # as above
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback at a time of this loop."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        if isinf(when):  # for ever
            return timer
        self._numbers += 1
        at_ms = ceil(round(when * 1_000, 3))  # whole milliseconds, in spite of the rounding of large floats
        heapq.heappush(self._timers, (at_ms, self._numbers, self._ready(timer, callback, args, context)))
        if not self._is_stepping:
            self._woken()
        return timer

    def _ready(
        self, handle: asyncio.Handle, callback: Callable[..., Any], given: tuple[Any, ...], context: Context | None
    ) -> _Ready:
        return _Ready(handle, callback, given, context or copy_context())

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled timer is left out when it is due."""

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, Any], **named: Any) -> NumberedTask:  # type: ignore[override]
        """Return a task with the next number."""
        self._numbers += 1
        task = NumberedTask(coro, loop=self, number=self._numbers, **named)
        self._tasks.add(task)
        return task

    def get_task_factory(self) -> None:
        """Return None: the tasks are the loop's own."""

    def get_debug(self) -> bool:
        """Return False."""
        return False

    def is_running(self) -> bool:
        """Tell whether a step is being taken."""
        return self._is_stepping

    def is_closed(self) -> bool:
        """Tell whether the loop was ended."""
        return self._is_over

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep what went wrong, for the driver."""
        if not self._is_over:
            self.errors.append(context)

    def has_ready(self) -> bool:
        """Tell whether there is a callback to run now."""
        now_ms = self._now_ms()
        while self._timers and self._timers[0][0] <= now_ms:
            self._next.append(heapq.heappop(self._timers)[2])
        return bool(self._round or self._next)

    def next_ms(self) -> int | None:
        """Return the time of the next timer; None if there is none."""
        while self._timers and self._timers[0][2].handle.cancelled():
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def step(self) -> None:
        """Run one callback."""
        if not self._round:
            self._begin_round()
        each = self._round.pop()
        if each.handle.cancelled():
            return
        # The same as ``_stepping``, without a generator for each of the many steps.
        before = _get_running_loop()
        _set_running_loop(self)
        self._is_stepping = True
        try:
            each.context.run(each.callback, *each.given)
        finally:
            self._is_stepping = False
            _set_running_loop(before)

    def _begin_round(self) -> None:
        """Order the ready callbacks; the next one comes last in the list."""
        ready, self._next = self._next, []
        if self._draw is not None and len(ready) > 1:
            tasks = sorted((each for each in ready if each.task is not None), key=lambda each: each.task or 0)
            self._draw.shuffle(tasks)
            held = [each for each in tasks[1:] if self._draw.random() < HELD]
            self._next = held
            ready = [each for each in ready if each.task is None] + [each for each in tasks if each not in held]
        self._round = ready[::-1]

    @contextmanager
    def _stepping(self) -> Generator[None]:
        before = _get_running_loop()
        _set_running_loop(self)
        self._is_stepping = True
        try:
            yield
        finally:
            self._is_stepping = False
            _set_running_loop(before)

    def end(self) -> None:
        """Cancel all tasks and run them to their ends, in no time. What they do there must have no effect outside.

        Raises ``RuntimeError`` if they do not end.
        """
        for _ in range(ROUNDS_OF_END):
            left = sorted((each for each in self._tasks if not each.done()), key=lambda each: each.number)
            if not left:
                self._is_over = True
                for waiting in (self._round, self._next, self._timers):
                    waiting.clear()
                return
            with self._stepping():
                for task in left:
                    # A task that has not begun takes its first step: it holds coroutines that no code would close.
                    coroutine = task.get_coro()
                    if not iscoroutine(coroutine) or getcoroutinestate(coroutine) != CORO_CREATED:
                        task.cancel()
            for _ in range(len(self._round) + len(self._next)):
                self.step()
        raise RuntimeError("some tasks go on although they are cancelled")
