"""The kit for event stores: every mistake that a store can make is found by a check that is named for it."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
import pytest
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from lifefold.interpreters.store import Batch, Entry, EventStore, MemoryStore, Shelf, StoredCommand, StoreError
from lifefold.interpreters.testing import STORE_CHECKS, check_store, stores


class Faulty(MemoryStore):
    """A store that is sound but for what a subclass does otherwise."""


class NeverNew(Faulty):
    async def performed(self) -> Mapping[str, int]:
        return {**await super().performed(), "somebody": 1}


class CutsOff(Faulty):
    async def append(self, batch: Batch) -> None:
        entries = [replace(entry, outcome=entry.outcome[:99]) for entry in batch.entries]
        await super().append(Batch(entries, batch.performed, batch.answers))


class TakesGaps(Faulty):
    async def append(self, batch: Batch) -> None:
        for entry in batch.entries:
            self.shelf.last[entry.stream] = entry.version - 1
            await super().append(Batch((entry,)))
        await super().append(Batch((), batch.performed, batch.answers))


class TakesHalves(Faulty):
    async def append(self, batch: Batch) -> None:
        for entry in batch.entries:
            await super().append(Batch((entry,)))
        await super().append(Batch((), batch.performed, batch.answers))


class ForgetsKeys(Faulty):
    async def append(self, batch: Batch) -> None:
        self.shelf.keys.clear()
        await super().append(batch)


class ReadsByStream(Faulty):
    async def read(self, stream: str | None = None, after: int = 0) -> Sequence[Entry]:
        return sorted(await super().read(stream, after), key=lambda entry: entry.stream)


class ReadsAlive(Faulty):
    async def performed(self) -> Mapping[str, int]:
        return self.shelf.performed


class OneWatermark(Faulty):
    async def append(self, batch: Batch) -> None:
        if batch.performed:
            self.shelf.performed.clear()
        await super().append(batch)


class LastPostFirst(Faulty):
    async def commands(self, *, unanswered: bool = True) -> Sequence[StoredCommand]:
        return list(reversed(await super().commands(unanswered=unanswered)))


class AnswersFirst(Faulty):
    async def append(self, batch: Batch) -> None:
        await super().append(Batch(answers=batch.answers))
        await super().append(batch)


class TearsAtAnswers(Faulty):
    async def append(self, batch: Batch) -> None:
        await super().append(Batch(batch.entries))
        if not batch.answers.keys() <= self.shelf.commands.keys():
            message = "there is no such command"
            raise StoreError(message)
        await super().append(Batch((), batch.performed, batch.answers))


class NeverFenced(Faulty):
    async def append(self, batch: Batch) -> None:
        self._epoch = self.shelf.epoch
        await super().append(batch)


class MustBeWriter(Faulty):
    async def submit(self, stream: str, envelope: bytes) -> int:
        await self.append(Batch())
        return await super().submit(stream, envelope)


class LosesAnswers(Faulty):
    def __init__(self, shelf: Shelf | None = None) -> None:
        super().__init__(shelf)
        self.shelf.performed.clear()


class MixesWriters(Faulty):
    async def append(self, batch: Batch) -> None:
        await super().append(Batch(performed=batch.performed))
        await super().append(batch)


class HalfCancelled(Faulty):
    async def append(self, batch: Batch) -> None:
        self.shelf.performed.update(batch.performed)
        await super().append(batch)


class OneNumber(Faulty):
    async def submit(self, stream: str, envelope: bytes) -> int:
        number = len(self.shelf.commands) + 1
        await checkpoint()
        self.shelf.commands[number] = StoredCommand(number, stream, envelope)
        return number


MISTAKES: Final[dict[str, type[Faulty]]] = {
    "a_new_log_is_empty": NeverNew,
    "entries_come_back_as_they_were_written": CutsOff,
    "versions_count_from_one_without_gaps": TakesGaps,
    "a_conflict_anywhere_in_a_batch_writes_nothing": TakesHalves,
    "keys_are_unique_in_their_stream": ForgetsKeys,
    "entries_are_read_in_the_order_of_writing": ReadsByStream,
    "what_was_read_does_not_change": ReadsAlive,
    "watermarks_are_kept_for_each_stream": OneWatermark,
    "commands_wait_in_order_until_they_are_answered": LastPostFirst,
    "a_post_is_answered_in_the_batch_that_takes_it": AnswersFirst,
    "an_answer_to_no_post_does_not_tear_a_batch": TearsAtAnswers,
    "a_writer_of_an_earlier_epoch_writes_nothing": NeverFenced,
    "an_earlier_writer_may_still_read_and_post": MustBeWriter,
    "everything_survives_a_crash": LosesAnswers,
    "writers_of_one_store_do_not_mix": MixesWriters,
    "a_cancelled_append_is_whole_or_not_at_all": HalfCancelled,
    "many_may_post_at_once": OneNumber,
}
"""For each check, a store that makes the mistake it is for."""


class Shelves:
    """A log of a store in memory."""

    def __init__(self, kind: type[MemoryStore]) -> None:
        self._kind = kind
        self._shelf = Shelf()
        self._last = kind(self._shelf)

    async def write(self) -> EventStore:
        self._last = self._kind(self._shelf)
        return self._last

    async def watch(self) -> EventStore:
        return self._last

    async def lose(self) -> None:
        self._last = self._kind(self._shelf)


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_a_check_finds_the_mistake_that_it_is_for(check: Any) -> None:
    """A store with the mistake fails it, and a sound one does not."""
    anyio.run(check, Shelves(MemoryStore))
    with pytest.raises((AssertionError, StoreError)):
        anyio.run(check, Shelves(MISTAKES[check.__name__]))


def test_a_store_with_a_mistake_is_told_its_property() -> None:
    """The message has the check, what it asks for, and the reason."""
    mistake = MISTAKES["keys_are_unique_in_their_stream"]
    with pytest.raises(AssertionError, match=r"^keys_are_unique_in_their_stream: .* The store does not: "):
        check_store(lambda: Shelves(mistake))


def test_the_kit_has_every_check() -> None:
    """No check of the kit's module is left out of its list, and each says what it guarantees."""
    functions = [each for _, each in inspect.getmembers(stores, inspect.iscoroutinefunction)]
    written = {each for each in functions if list(inspect.signature(each).parameters) == ["log"]}
    assert set(STORE_CHECKS) == written
    assert all(check.__doc__ for check in STORE_CHECKS)
