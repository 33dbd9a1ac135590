"""Tasks that an engine uses again: each one calls the handler of an activity, and then waits for the next one.

A task of anyio costs more than most handlers of a quick activity do. So a task that is done waits for more work. It is
used again only if its work has left no trace in it: a context variable that a handler has set ends its task.
"""

from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Final, TypeAlias

import anyio
from anyio.abc import TaskGroup

IDLE_LIMIT: Final = 256
"""The largest number of tasks that wait for work."""

Work: TypeAlias = Callable[..., Coroutine[Any, Any, None]]


class _Idle:
    """A task that waits for work."""

    __slots__ = ("arrived", "given", "work")

    def __init__(self, arrived: anyio.Event) -> None:
        self.arrived: Final = arrived
        self.work: Work = _nothing
        self.given: tuple[Any, ...] = ()


class Workers:
    """The tasks of one task group. Make it inside of the event loop."""

    def __init__(self, tasks: TaskGroup) -> None:
        """Start without tasks. Cancelling the group ends those that wait."""
        self._tasks: Final = tasks
        self._context: Final = copy_context()
        self._idle: Final[list[_Idle]] = []
        self._new_event: Final = type(anyio.Event())
        """The class of the present backend, which need not be looked up for each event."""

    def start(self, work: Work, *given: Any) -> None:
        """Call a coroutine function in a task. Its context is that of the caller, as with ``start_soon``.

        Nothing of it may run if the group is cancelled at the same time. An error cancels the group.
        """
        if not _is_same(copy_context(), self._context):
            self._tasks.start_soon(work, *given)
        elif self._idle:
            idle = self._idle.pop()
            idle.work, idle.given = work, given
            idle.arrived.set()
        else:
            self._tasks.start_soon(self._run, work, given)

    async def _run(self, work: Work, given: tuple[Any, ...]) -> None:
        while True:
            await work(*given)
            if len(self._idle) >= IDLE_LIMIT or not _is_same(copy_context(), self._context):
                return
            work, given = _nothing, ()  # what is done must not be kept in memory
            idle = _Idle(self._new_event())
            self._idle.append(idle)
            await idle.arrived.wait()
            work, given = idle.work, idle.given
            del idle


async def _nothing() -> None:
    """Do nothing."""


def _is_same(one: Context, other: Context) -> bool:
    """Tell whether two contexts have equal values. Values that cannot be compared are not equal."""
    try:
        return one == other  # at once if nothing was set in either
    except Exception:  # noqa: BLE001 - whatever a comparison of a handler's values raises
        return False
