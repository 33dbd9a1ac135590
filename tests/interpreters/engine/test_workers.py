"""Tasks that are used again: each work has a task of its own while it runs, and leaves no trace in the next one."""

from contextvars import ContextVar
from typing import Any, Final
from weakref import ref

import anyio
import pytest
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from back_ends import BACK_ENDS
from lifefold.interpreters.engine import workers
from lifefold.interpreters.engine.workers import Workers

SETTING: Final[ContextVar[object]] = ContextVar("SETTING", default=None)


class Incomparable:
    """A value whose comparison raises, as that of an array does."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")


class Group:
    """What works have noted: the value of the context variable of each, and how many tasks were started for them."""

    def __init__(self) -> None:
        self.started = 0
        self.settings: list[object] = []

    def pool(self, tasks: TaskGroup) -> Workers:
        """Return workers of a task group, and count the tasks that they start."""
        counting: Any = tasks
        start_soon = counting.start_soon

        def counted(*given: Any) -> None:
            self.started += 1
            start_soon(*given)

        counting.start_soon = counted
        return Workers(tasks)

    async def work(self, value: object = None) -> None:
        self.settings.append(SETTING.get())
        await checkpoint()
        if value is not None:
            SETTING.set(value)


def run(backend: str, values: list[object]) -> Group:
    """Let works run one after the other, each setting a context variable to its value; None sets nothing."""
    group = Group()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            pool = group.pool(tasks)
            for value in values:
                pool.start(group.work, value)
                await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    anyio.run(main, backend=backend)
    return group


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_works_one_after_the_other_share_a_task(backend: str) -> None:
    """The second and the third one run in the task of the first one."""
    assert run(backend, [None, None, None]).started == 1


@pytest.mark.parametrize("value", [1, Incomparable()], ids=["number", "incomparable"])
@pytest.mark.parametrize("backend", BACK_ENDS)
def test_a_context_variable_of_a_work_is_not_seen_by_the_next_one(backend: str, value: object) -> None:
    """A task in which a variable was set is not used again."""
    group = run(backend, [value, None, None])
    assert group.settings == [None, None, None]
    assert group.started == 2


def test_a_work_has_the_context_of_its_caller() -> None:
    """A caller that has set a variable since gets a task with it, and later works do not."""
    group = Group()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            pool = group.pool(tasks)
            pool.start(group.work)
            await anyio.wait_all_tasks_blocked()
            token = SETTING.set("caller's")
            pool.start(group.work)
            SETTING.reset(token)
            await anyio.wait_all_tasks_blocked()
            pool.start(group.work)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    anyio.run(main)
    assert group.settings == [None, "caller's", None]


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_works_at_one_time_have_a_task_each_and_a_limited_number_wait_afterwards(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three works run at once. Two of their tasks wait, so four more works need two new tasks."""
    monkeypatch.setattr(workers, "IDLE_LIMIT", 2)
    group = Group()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            pool = group.pool(tasks)
            for count in (3, 4):
                for _ in range(count):
                    pool.start(group.work)
                await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    anyio.run(main, backend=backend)
    assert len(group.settings) == 7
    assert group.started == 3 + 2


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_an_error_of_a_work_ends_the_group(backend: str) -> None:
    """The error of a work in a used task surfaces as that of any task."""

    async def fail() -> None:
        await checkpoint()
        raise LookupError("of a work")

    async def main() -> None:
        group = Group()
        async with anyio.create_task_group() as tasks:
            pool = group.pool(tasks)
            pool.start(group.work)
            await anyio.wait_all_tasks_blocked()
            pool.start(fail)

    with pytest.raises(ExceptionGroup) as raised:
        anyio.run(main, backend=backend)
    assert raised.group_contains(LookupError, match="of a work")


def test_a_waiting_task_keeps_nothing_of_its_last_work() -> None:
    """What a handler was called with is free as soon as it has returned."""

    class Given: ...

    async def main() -> None:
        async def work(_given: Given) -> None:
            await checkpoint()

        async with anyio.create_task_group() as tasks:
            pool = Workers(tasks)
            given = Given()
            seen = ref(given)
            for _ in range(2):
                pool.start(work, given)
                await anyio.wait_all_tasks_blocked()
            del given
            assert seen() is None
            tasks.cancel_scope.cancel()

    anyio.run(main)
