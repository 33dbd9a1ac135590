"""The queue of operator commands gives the same guarantees with a runner and without one, by one writer of the log."""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio
import pytest

import lifefold.interpreters
from engine_harness import Hands, VirtualClock
from kiln import Called, Lit, opened, system
from lifefold.core.kernel import Aggregate, Envelope, Event, encode
from lifefold.interpreters.engine import ACCEPTED, CommandQueue, Engine, Ledger, LogWriter
from lifefold.interpreters.engine.inputs import Input
from lifefold.interpreters.store import Fenced, MemoryStore, Shelf, SqliteStore

pytestmark = pytest.mark.anyio

HANG_S: Final = 60.0

ALONE: Final = "accepted without a runner, one of 2 aggregates"


def as_it_is(_of: Aggregate | None, event: Event) -> Event:
    return event


def alone(aggregates: Mapping[str, Aggregate]) -> str:
    return f"{ACCEPTED} without a runner, one of {len(aggregates)} aggregates"


def said(*words: str) -> list[tuple[str, Envelope]]:
    return [("kiln/a", Envelope("kiln", Called(word), 0)) for word in words]


async def words(log: Path) -> list[str]:
    """Return the words of the log's entries, after a fold that compares every digest."""
    with SqliteStore.peek(log) as store:
        events = [decision.envelope.event for decision in Ledger(system).fold(await store.read())]
    return [event.word for event in events if isinstance(event, Called)]


@pytest.fixture
async def log(tmp_path: Path) -> Path:
    """A log of a cold kiln and its tally."""
    path = tmp_path / "pottery.db"
    with SqliteStore.create(path, {}) as store:
        clock = VirtualClock()
        await LogWriter(Ledger(system), store, clock).commit([Input(*each) for each in opened(clock.now_ms())])
    return path


async def test_without_a_runner_a_command_is_decided_and_durable_before_its_answer(log: Path) -> None:
    """Commands that were stored earlier are decided first, each for the state after the one before it."""
    with SqliteStore.peek(log) as store:
        await store.submit("kiln/a", b"not json")
        queue = CommandQueue(store, system, as_it_is, alone)
        answers = await queue.give([*said("one"), ("kiln/a", Envelope("kiln", Lit(), 0)), *said("two")], HANG_S)
        assert answers == [ALONE] * 3
        (again,) = await queue.give([("kiln/a", Envelope("kiln", Lit(), 0))], HANG_S)
        assert str(again).startswith("refused: kiln: Lit is not possible in Firing")
        first, *_ = await store.commands(unanswered=False)
        assert str(first.answer).startswith("refused: ")
        assert await store.commands() == []
    assert await words(log) == ["one", "two"]


async def test_commands_that_are_given_together_are_stored_together(log: Path) -> None:
    """After a failure in between, here with a name that no text in UTF-8 has, a list of tasks is not half there."""
    with SqliteStore.peek(log) as store:
        queue = CommandQueue(store, system, as_it_is, alone)
        with pytest.raises(UnicodeEncodeError):
            await queue.give([*said("one"), ("kiln/\ud800", Envelope("kiln", Called("two"), 0))], HANG_S)
        assert await store.commands(unanswered=False) == []
        assert await queue.give(said("three"), HANG_S) == [ALONE]
    assert await words(log) == ["three"]


async def test_a_repeated_key_is_refused_without_a_runner_too(log: Path) -> None:
    """An operator who is not sure of a command can give it again under its key."""
    with SqliteStore.peek(log) as store:
        queue = CommandQueue(store, system, as_it_is, alone)
        once = ("kiln/a", Envelope("kiln", Called("once"), 0, key="k1"))
        answers = [str(*(await queue.give([once], HANG_S))) for _ in range(2)]
    assert answers[0] == ALONE
    assert answers[1].startswith("refused: kiln/a has taken an input with the key")
    assert await words(log) == ["once"]


async def test_a_command_is_adapted_to_the_state_after_the_commands_before_it(log: Path) -> None:
    """``unattended`` sees the aggregate at the moment of the decision."""
    seen: list[str] = []

    def adapt(of: Aggregate | None, event: Event) -> Event:
        seen.append("nothing" if of is None else of.record("kiln").state)
        return Called("adapted") if isinstance(event, Called) else event

    with SqliteStore.peek(log) as store:
        commands = [("kiln/a", Envelope("kiln", Lit(), 0)), *said("one"), ("kiln/z", Envelope("kiln", Lit(), 0))]
        answers = await CommandQueue(store, system, adapt, alone).give(commands, HANG_S)
    assert [str(answer).partition(":")[0] for answer in answers] == [ALONE, ALONE, "refused"]
    assert seen == ["Cold", "Firing", "nothing"]
    assert await words(log) == ["adapted"]


async def test_while_another_process_writes_a_command_waits_and_stays_in_the_log(log: Path) -> None:
    """It has no answer in time then, and the next writer decides on it once."""
    with SqliteStore.peek(log) as store:
        queue = CommandQueue(store, system, as_it_is, alone)
        with SqliteStore.open(log):
            assert await queue.give(said("first"), 0.2) == [None]
        assert await words(log) == []
        assert await queue.give(said("second"), HANG_S) == [ALONE]
    assert await words(log) == ["first", "second"]


async def test_a_runner_at_work_answers_a_command(log: Path) -> None:
    """The process of the command only waits: the entry is the runner's, which performs its effects at once."""
    hands, heard = Hands(), list[str | None]()
    with SqliteStore.open(log) as writing, SqliteStore.peek(log) as store:
        engine = Engine(system, writing, hands.interpreter())

        async def ask() -> None:
            heard.extend(await CommandQueue(store, system, as_it_is, alone).give(said("one"), HANG_S))
            engine.wake()

        engine.spawn(ask)
        with anyio.fail_after(HANG_S):
            await engine.run(lambda _engine: bool(heard))
    assert heard == [ACCEPTED]
    assert hands.words == ["one"]


async def test_a_writer_that_was_replaced_answers_nothing() -> None:
    """Its transaction fails as a whole, so the command is left to the present writer."""
    shelf, clock = Shelf(), VirtualClock()
    old = MemoryStore(shelf)
    number = await old.submit("kiln/a", encode(Envelope("kiln", Lit(), 0)))
    writer = LogWriter(Ledger(system), old, clock)
    new = MemoryStore(shelf)
    with pytest.raises(Fenced):
        await writer.commit([*(Input(*each) for each in opened(clock.now_ms())), *(await writer.commands())])
    assert [(command.id, command.answer) for command in await new.commands(unanswered=False)] == [(number, None)]
    assert list(await new.read()) == []


def test_only_the_log_writer_appends_entries() -> None:
    """Only the log writer makes a batch; stores, their conformance kit and virtual stores hand one on.

    A fork copies the entries of a log into a new one, and decides nothing.
    """
    root = Path(lifefold.interpreters.__path__[0])
    makers = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if _makes_a_batch(path)}
    assert makers == {"engine/log_writer.py", "testing/stores.py", "recorder/forks.py"}


def _makes_a_batch(path: Path) -> bool:
    tree = ast.parse(path.read_text())
    stores = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "store" in str(node.module)]
    is_imported = any(alias.name == "Batch" for node in stores for alias in node.names)
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return is_imported and any(isinstance(call, ast.Name) and call.id == "Batch" for call in calls)
