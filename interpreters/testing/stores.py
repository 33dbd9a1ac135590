"""The conformance kit for event stores: checks that any store must pass.

A check is an async function that takes a ``Log``: one new and empty log of the store, with the ways to open it. It
returns if the store has the property in its docstring, and raises ``AssertionError`` otherwise. ``STORE_CHECKS`` has
them all; they need neither pytest nor any fixture. ``check_store`` makes them all of one store, in one line, and
``StoreConformance`` is a class of tests made of them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import ClassVar, Final, Protocol

import anyio
import pytest

from lifefold.interpreters.store import Batch, Entry, EventStore, Fenced, StoreError, VersionConflict


class Log(Protocol):
    """One log. Each writer has a higher epoch than those before."""

    async def write(self) -> EventStore:
        """Open the log for writing, whether or not an earlier writer still holds it; make it if there is none."""
        ...

    async def watch(self) -> EventStore:
        """Open the log beside its writer, for reading and for commands. There has been a writer before."""
        ...

    async def lose(self) -> None:
        """Drop everything that is open, as in a crash."""
        ...


StoreCheck = Callable[[Log], Awaitable[None]]
"""Raises ``AssertionError`` if a store does not have the property in its docstring."""

CONTESTANTS: Final = 20
"""The number of concurrent tasks in a check."""


def entry(stream: str, version: int, key: str = "", *, envelope: bytes = b"{}") -> Entry:
    """Return an entry that contains its own place; a store does not read it."""
    return Entry(stream, version, 1_000 + version, key, envelope, f"{stream}@{version}".encode())


async def refused(store: EventStore, batch: Batch, error: type[StoreError]) -> StoreError:
    """Return the error with which the store refuses a batch; it must refuse it."""
    try:
        await store.append(batch)
    except error as raised:
        return raised
    message = f"{batch} was accepted, instead of refused with {error.__name__}"
    raise AssertionError(message)


async def contents(store: EventStore) -> tuple[Sequence[Entry], Mapping[str, int], Sequence[object]]:
    """Return all that can be read from a store."""
    return list(await store.read()), dict(await store.performed()), list(await store.commands(unanswered=False))


async def a_new_log_is_empty(log: Log) -> None:
    """A new log is empty."""
    assert await contents(await log.write()) == ([], {}, [])


async def entries_come_back_as_they_were_written(log: Log) -> None:
    """Names, keys and bytes of any kind and size come back unchanged."""
    store = await log.write()
    strange = Entry("wörker/Ünïcode ✓'\"%_", 1, 2**53, "k'", bytes(range(256)), b"\x00" * 100_000, "ü1")
    plain = Entry("", 1, 0, "", b"", b"")
    await store.append(Batch((strange, plain)))
    assert list(await store.read()) == [strange, plain]
    assert list(await store.read(strange.stream)) == [strange]


async def versions_count_from_one_without_gaps(log: Log) -> None:
    """An entry is accepted only if its version follows the last one of its stream, in the store or in the batch."""
    store = await log.write()
    for wrong in (0, 2):
        await refused(store, Batch((entry("a", wrong),)), VersionConflict)
    await store.append(Batch((entry("a", 1), entry("a", 2))))
    for wrong in (1, 2, 4):
        await refused(store, Batch((entry("a", wrong),)), VersionConflict)
    await refused(store, Batch((entry("a", 3), entry("a", 3))), VersionConflict)
    await refused(store, Batch((entry("a", 4), entry("a", 3))), VersionConflict)
    await store.append(Batch((entry("b", 1), entry("a", 3))))
    assert [(e.stream, e.version) for e in await store.read()] == [("a", 1), ("a", 2), ("b", 1), ("a", 3)]


async def a_conflict_anywhere_in_a_batch_writes_nothing(log: Log) -> None:
    """Of a refused batch no entries, watermarks or answers are written; without the conflict it is accepted."""
    store = await log.write()
    await store.append(Batch((entry("a", 1),), performed={"a": 1}))
    number = await store.submit("a", b"{}")
    before = await contents(store)
    good, bad = (entry("b", 1), entry("a", 2)), entry("c", 7)
    for entries in ((bad, *good), (good[0], bad, good[1]), (*good, bad)):
        error = await refused(store, Batch(entries, {"a": 2, "b": 1}, {number: "accepted"}), VersionConflict)
        assert "c" in str(error)
        assert await contents(store) == before
    await store.append(Batch(good, {"a": 2}, {number: "accepted"}))
    assert list(await store.read()) == [entry("a", 1), *good]


async def keys_are_unique_in_their_stream(log: Log) -> None:
    """A key that its stream has already refuses the batch; other streams may use it, and an empty key is no key."""
    store = await log.write()
    await store.append(Batch((entry("a", 1, "k"), entry("b", 1, "k"), entry("a", 2), entry("a", 3))))
    before = await contents(store)
    await refused(store, Batch((entry("c", 1), entry("a", 4, "k"))), StoreError)
    await refused(store, Batch((entry("a", 4, "new"), entry("a", 5, "new"))), StoreError)
    assert await contents(store) == before
    await store.append(Batch((entry("a", 4, "new"),)))


async def entries_are_read_in_the_order_of_writing(log: Log) -> None:
    """All streams together are read as they were written; ``after`` leaves out versions up to it, stream by stream."""
    store = await log.write()
    written = [entry("b", 1), entry("a", 1), entry("a", 2), entry("b", 2), entry("c", 1), entry("a", 3)]
    await store.append(Batch(written[:2]))
    await store.append(Batch(written[2:]))
    assert list(await store.read()) == written
    assert list(await store.read(after=1)) == [e for e in written if e.version > 1]
    assert list(await store.read("a")) == [e for e in written if e.stream == "a"]
    assert list(await store.read("a", 2)) == [entry("a", 3)]
    assert list(await store.read("a", 3)) == []
    assert list(await store.read("nobody")) == []


async def what_was_read_does_not_change(log: Log) -> None:
    """A later batch appears in later reads only."""
    store = await log.write()
    await store.append(Batch((entry("a", 1),), {"a": 1}))
    number = await store.submit("a", b"{}")
    entries, performed, commands = await store.read(), await store.performed(), await store.commands()
    await store.append(Batch((entry("a", 2),), {"a": 2}, {number: "accepted"}))
    assert (len(entries), dict(performed), [command.answer for command in commands]) == (1, {"a": 1}, [None])


async def watermarks_are_kept_for_each_stream(log: Log) -> None:
    """The last watermark of a stream counts, whether it came with entries or alone; those of others stay."""
    store = await log.write()
    await store.append(Batch((entry("a", 1), entry("b", 1)), {"a": 1}))
    await store.append(Batch(performed={"b": 1}))
    await store.append(Batch((entry("a", 2),)))
    assert dict(await store.performed()) == {"a": 1, "b": 1}
    await store.append(Batch(performed={"a": 2}))
    assert dict(await store.performed()) == {"a": 2, "b": 1}


async def commands_wait_in_order_until_they_are_answered(log: Log) -> None:
    """Commands have increasing numbers, keep their contents, and are unanswered until a batch answers them."""
    store = await log.write()
    beside = await log.watch()
    said = [("a", b"\x00one"), ("b", b"two"), ("a", b"three")]
    numbers = [await beside.submit(stream, envelope) for stream, envelope in said]
    assert numbers == sorted(set(numbers))
    assert [(p.id, p.stream, p.envelope, p.answer) for p in await store.commands()] == [
        (number, *what, None) for number, what in zip(numbers, said, strict=True)
    ]
    await store.append(Batch((entry("b", 1),), answers={numbers[1]: "accepted"}))
    assert [command.id for command in await store.commands()] == [numbers[0], numbers[2]]
    assert [command.answer for command in await beside.commands(unanswered=False)] == [None, "accepted", None]


async def a_post_is_answered_in_the_batch_that_takes_it(log: Log) -> None:
    """Entry and answer are written together or not at all."""
    store = await log.write()
    number = await store.submit("a", b"{}")
    await refused(store, Batch((entry("a", 2),), answers={number: "accepted"}), VersionConflict)
    assert ([command.id for command in await store.commands()], list(await store.read())) == ([number], [])
    await store.append(Batch((entry("a", 1),), answers={number: "accepted"}))
    assert (list(await store.commands()), len(await store.read())) == ([], 1)
    await store.append(Batch(answers={await store.submit("a", b"{}"): "refused: no"}))
    assert [command.answer for command in await store.commands(unanswered=False)] == ["accepted", "refused: no"]


async def an_answer_to_no_post_does_not_tear_a_batch(log: Log) -> None:
    """A batch with an answer to a command that is not there is taken or refused, but as a whole."""
    store = await log.write()
    try:
        await store.append(Batch((entry("a", 1),), {"a": 1}, {99: "accepted"}))
    except StoreError:
        assert await contents(store) == ([], {}, [])
    else:
        assert await contents(store) == ([entry("a", 1)], {"a": 1}, [])


async def a_writer_of_an_earlier_epoch_writes_nothing(log: Log) -> None:
    """Once a later writer has opened the log, every batch of the earlier one fails, and the later one goes on."""
    old = await log.write()
    await old.append(Batch((entry("a", 1),)))
    number = await old.submit("a", b"{}")
    new = await log.write()
    before = await contents(new)
    for batch in (
        Batch((entry("a", 2),)),
        Batch(performed={"a": 1}),
        Batch(answers={number: "accepted"}),
        Batch((entry("b", 1),), {"b": 1}, {number: "accepted"}),
    ):
        await refused(old, batch, Fenced)
        assert await contents(new) == before
    await new.append(Batch((entry("a", 2),), answers={number: "accepted"}))
    await refused(old, Batch((entry("a", 3),)), Fenced)
    assert [e.version for e in await new.read()] == [1, 2]


async def an_earlier_writer_may_still_read_and_post(log: Log) -> None:
    """Neither reading nor submitting needs an epoch."""
    old = await log.write()
    new = await log.write()
    await new.append(Batch((entry("a", 1),)))
    number = await old.submit("a", b"{}")
    assert list(await old.read()) == [entry("a", 1)]
    assert [command.id for command in await new.commands()] == [number]


async def everything_survives_a_crash(log: Log) -> None:
    """Written entries are there for the next writer, which continues after them; so are commands left meanwhile."""
    store = await log.write()
    numbers = [await store.submit("a", b"one"), await store.submit("a", b"two")]
    await store.append(Batch((entry("a", 1, "k"), entry("b", 1)), {"a": 1}, {numbers[0]: "accepted"}))
    before = await contents(store)
    await log.lose()
    between = await log.watch()
    assert await contents(between) == before
    numbers.append(await between.submit("b", b"three"))
    await log.lose()
    again = await log.write()
    assert [command.id for command in await again.commands()] == numbers[1:]
    assert numbers == sorted(set(numbers))
    assert (list(await again.read()), dict(await again.performed())) == (before[0], before[1])
    await refused(again, Batch((entry("a", 1),)), VersionConflict)
    await refused(again, Batch((entry("a", 2, "k"),)), StoreError)
    await again.append(Batch((entry("a", 2),), {"a": 2}, dict.fromkeys(numbers[1:], "accepted")))
    assert list(await again.commands()) == []


async def writers_of_one_store_do_not_mix(log: Log) -> None:
    """Of several concurrent appends of the same version, exactly one is accepted, with all of its batch."""
    store = await log.write()
    winners: list[int] = []

    async def contend(number: int) -> None:
        try:
            await store.append(Batch((entry(f"own/{number}", 1), entry("shared", 1)), {f"own/{number}": 1}))
        except VersionConflict:
            return
        winners.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(CONTESTANTS):
            tasks.start_soon(contend, number)
    assert len(winners) == 1
    assert [e.stream for e in await store.read()] == [f"own/{winners[0]}", "shared"]
    assert dict(await store.performed()) == {f"own/{winners[0]}": 1}


async def a_cancelled_append_is_whole_or_not_at_all(log: Log) -> None:
    """A cancelled append has written the whole batch or nothing, and the store continues to work."""
    store = await log.write()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await store.append(Batch((entry("a", 1), entry("b", 1)), {"a": 1}))
    found = await contents(store)
    assert found in (([], {}, []), ([entry("a", 1), entry("b", 1)], {"a": 1}, []))
    await store.append(Batch((entry("c", 1),)))
    assert list(await store.read("c")) == [entry("c", 1)]


async def many_may_post_at_once(log: Log) -> None:
    """Concurrent commands, beside a writer that writes, have different numbers, and none is lost."""
    store = await log.write()
    beside = await log.watch()
    numbers: list[int] = []

    async def leave(number: int) -> None:
        numbers.append(await (beside if number % 2 else store).submit(f"from/{number}", b"{}"))

    async def write() -> None:
        for version in range(1, CONTESTANTS):
            await store.append(Batch((entry("a", version),)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        for number in range(CONTESTANTS):
            tasks.start_soon(leave, number)
    assert sorted(numbers) == [command.id for command in await store.commands()]
    assert len(set(numbers)) == CONTESTANTS


STORE_CHECKS: Final[tuple[StoreCheck, ...]] = (
    a_new_log_is_empty,
    entries_come_back_as_they_were_written,
    versions_count_from_one_without_gaps,
    a_conflict_anywhere_in_a_batch_writes_nothing,
    keys_are_unique_in_their_stream,
    entries_are_read_in_the_order_of_writing,
    what_was_read_does_not_change,
    watermarks_are_kept_for_each_stream,
    commands_wait_in_order_until_they_are_answered,
    a_post_is_answered_in_the_batch_that_takes_it,
    an_answer_to_no_post_does_not_tear_a_batch,
    a_writer_of_an_earlier_epoch_writes_nothing,
    an_earlier_writer_may_still_read_and_post,
    everything_survives_a_crash,
    writers_of_one_store_do_not_mix,
    a_cancelled_append_is_whole_or_not_at_all,
    many_may_post_at_once,
)


def check_store(factory: Callable[[], Log], *, backend: str = "asyncio") -> None:
    """Make all checks, each of a new and empty log that ``factory`` returns; ``backend`` is the event loop.

    Everything that a log has opened is dropped after its check, by ``lose``. Raises ``AssertionError`` with the
    property that the store does not have, and the reason.
    """
    for check in STORE_CHECKS:
        anyio.run(_checked, check, factory, backend=backend)


async def _checked(check: StoreCheck, factory: Callable[[], Log]) -> None:
    log = factory()
    try:
        await check(log)
    except (AssertionError, StoreError) as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        raise AssertionError(f"{check.__name__}: {check.__doc__} The store does not: {why}") from error
    finally:
        await log.lose()


class StoreConformance:
    """Tests of your store: subclass it in a test module, with a fixture ``log`` that gives a new, empty ``Log``.

    ``backend`` is the event loop: "asyncio" or "trio".
    """

    backend: ClassVar[str] = "asyncio"

    @pytest.mark.parametrize("check", STORE_CHECKS, ids=[check.__name__ for check in STORE_CHECKS])
    def test_the_store_keeps_the_property(self, check: StoreCheck, log: Log) -> None:
        """The docstring of each check states the property."""
        anyio.run(check, log, backend=self.backend)
