"""The command line with a fuse at each step of the engine, and before each git command."""

import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import fuse
from lifefold.interpreters.cli import app
from lifefold.interpreters.engine.effect_queue import EffectQueue
from lifefold.interpreters.engine.log_writer import LogWriter
from lifefold.interpreters.store import Batch, SqliteStore
from lifefold.interpreters.worktrees.git import Git

STEPS = ("decide", "persist", "persisted", "perform", "performed", "record", "recorded")
"""The named points of the engine: before and after each step."""

GIT = ("git begins", "git has ended")


def passing(owner: type, name: str, before: str) -> None:
    """Have a method pass a point."""
    method: Callable[..., Any] = getattr(owner, name)

    @wraps(method)
    def passed(*given: Any, **named: Any) -> Any:
        fuse.reach(before)
        return method(*given, **named)

    setattr(owner, name, passed)


def awaiting(owner: type, name: str, before: str, after: str) -> None:
    """Have a coroutine method pass points."""
    method: Callable[..., Awaitable[Any]] = getattr(owner, name)

    @wraps(method)
    async def passed(*given: Any, **named: Any) -> Any:
        fuse.reach(before)
        answer = await method(*given, **named)
        fuse.reach(after)
        return answer

    setattr(owner, name, passed)


def recording(owner: type) -> None:
    """Have the writing of batches pass the points of persisting, and those with performed versions of recording."""
    append: Callable[[Any, Batch], None] = getattr(owner, "_append")  # noqa: B009 - a private name

    def passed(store: Any, batch: Batch) -> None:
        for point, counts in (("persist", batch.entries), ("record", batch.performed)):
            if counts:
                fuse.reach(point)
        append(store, batch)
        for point, counts in (("persisted", batch.entries), ("recorded", batch.performed)):
            if counts:
                fuse.reach(point)

    setattr(owner, "_append", passed)  # noqa: B010 - a private name


if __name__ == "__main__":
    passing(LogWriter, "_decisions", "decide")
    awaiting(EffectQueue, "perform", "perform", "performed")
    awaiting(Git, "run", *GIT)
    recording(SqliteStore)
    sys.exit(app.main())
