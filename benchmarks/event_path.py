"""The functions that one event passes: ``python -m benchmarks.event_path`` prints them as a call tree.

The event is ``SessionExited(Success)`` in a running fleet of one agent, with the engine and the SQLite store. The path
begins with the interpreter's report and ends when the event's entry is committed. Functions of ``core``, ``effects``
and ``interpreters`` count, each once. A comprehension or a lambda belongs to the function around it. The event is the
one of the third task, so that reducers are compiled and rules are indexed.
"""

import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import anyio

from benchmarks.pure_world import outcome, plan
from lifefold.core.fleet import opening, system
from lifefold.core.kernel import Aggregate
from lifefold.core.lifecycles import session, task
from lifefold.effects import Activity, Effect
from lifefold.interpreters.engine import ActivityContext, EffectContext, Engine, Interpreter
from lifefold.interpreters.missing import wanted
from lifefold.interpreters.store import Batch, Entry, SqliteStore, StoredCommand

TASKS: Final = 3
COUNTED: Final = ("core", "effects", "interpreters")
_ROOT: Final = Path(__file__).parents[1]


class Function(NamedTuple):
    """A function by its file, from the folder of the project, and its qualified name."""

    file: str
    name: str


class EventPath:
    """The functions called while it is ``open``, in the order of their first calls, each with its first caller."""

    def __init__(self) -> None:
        """Begin closed."""
        self.callers: Final[dict[Function, Function | None]] = {}
        self.is_open = False
        self._known: Final[dict[Any, Function | None]] = {}

    @property
    def functions(self) -> list[Function]:
        """The functions."""
        return list(self.callers)

    @property
    def files(self) -> set[str]:
        """The files of the functions."""
        return {each.file for each in self.callers}

    def note(self, frame: FrameType, what: str, _argument: Any) -> None:
        """Take note of a call: a profile function of ``sys.setprofile``."""
        if self.is_open and what == "call" and (called := self._function(frame)) not in self.callers and called:
            self.callers[called] = self._caller(frame, called)

    def _caller(self, frame: FrameType, called: Function) -> Function | None:
        while (before := frame.f_back) is not None:
            found = self._function(frame := before)
            if found is not None and found != called:
                return found
        return None

    def _function(self, frame: FrameType) -> Function | None:
        code = frame.f_code
        if code not in self._known:
            self._known[code] = _named(code.co_filename, code.co_qualname)
        return self._known[code]

    def tree(self) -> Iterator[str]:
        """Yield the functions as lines of a tree, each below its first caller."""
        yield from self._below(None, "")

    def _below(self, caller: Function | None, indent: str) -> Iterator[str]:
        for each, before in self.callers.items():
            if before == caller or (caller is None and before not in self.callers):
                yield f"{indent}{each.name}  ({each.file})"
                yield from self._below(each, f"{indent}  ")


def _named(file: str, name: str) -> Function | None:
    """Return a function of the project; None for any other. A part of a function stands for the whole."""
    path = Path(file).resolve()
    if not path.is_relative_to(_ROOT) or path.relative_to(_ROOT).parts[0] not in COUNTED:
        return None
    whole = name.partition(".<locals>.<")[0]
    return None if whole.startswith("<") else Function(path.relative_to(_ROOT).as_posix(), whole)


class _StillClock:
    """A clock that stands still, so that nothing but the event is at work. Timers do not fire."""

    def now_ms(self) -> int:
        return 1_700_000_000_000

    async def sleep_until(self, at_ms: int) -> None:
        del at_ms
        await anyio.sleep_forever()


class _Watched:
    """A store that closes a path when a transaction with a ``SessionExited`` is committed."""

    def __init__(self, inner: SqliteStore, path: EventPath) -> None:
        self._inner = inner
        self._path = path

    async def append(self, batch: Batch) -> None:
        self._inner._took_s = 0.0  # noqa: SLF001 - after slow work another thread would write
        await self._inner.append(batch)
        if any(b"SessionExited" in entry.envelope for entry in batch.entries):
            self._path.is_open = False

    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        return await self._inner.read(stream, after)

    async def performed(self) -> Mapping[str, int]:
        return await self._inner.performed()

    async def submit(self, stream: str, envelope: bytes) -> int:
        return await self._inner.submit(stream, envelope)

    async def commands(self, *, unanswered: bool = True) -> Sequence[StoredCommand]:
        return await self._inner.commands(unanswered=unanswered)


class _Handlers:
    """Handlers that succeed at once. The path opens with the report of the last task's session."""

    def __init__(self, path: EventPath) -> None:
        self._path = path
        self._exits = 0

    def interpreter(self) -> Interpreter:
        effects, activities = wanted(system)
        return Interpreter(dict.fromkeys(effects, self.perform), dict.fromkeys(activities, self.attend))

    async def perform(self, effect: Effect, context: EffectContext) -> None:
        """Do nothing."""

    async def attend(self, activity: Activity, context: ActivityContext) -> None:
        if type(activity).__name__ in {"WatchOutput", "FollowOutput", "WatchBranch"}:
            await anyio.sleep_forever()
        for event in outcome(activity):
            if isinstance(event, session.SessionExited):
                self._exits += 1
                # The engine has taken in what came before when no other task is ready.
                await anyio.wait_all_tasks_blocked()
                self._path.is_open = self._exits == TASKS
            await context.report(event)


def measure() -> EventPath:
    """Run the fleet, and return the path."""
    path = EventPath()
    with tempfile.TemporaryDirectory() as folder, SqliteStore.create(Path(folder) / "path.db", {}) as store:
        threading.setprofile(path.note)
        sys.setprofile(path.note)
        try:
            anyio.run(partial(_run, _Watched(store, path), path))
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return path


async def _run(store: _Watched, path: EventPath) -> None:
    engine = Engine(system, store, _Handlers(path).interpreter(), clock=_StillClock())
    await engine.load()
    for name, envelope in opening(plan(1, TASKS), engine.clock.now_ms()):
        engine.offer(name, envelope)
    await engine.run(lambda now: _is_over(now.aggregates))


def _is_over(aggregates: Mapping[str, Aggregate]) -> bool:
    board = aggregates.get("board")
    tasks = [each for each in board.entities.values() if each.ref.startswith("task:")] if board else []
    return bool(tasks) and all(each.state is task.State.CLOSED for each in tasks)


def main() -> None:
    """Print the path."""
    path = measure()
    print(*path.tree(), sep="\n")
    print(f"{len(path.functions)} functions in {len(path.files)} files")


if __name__ == "__main__":
    main()
