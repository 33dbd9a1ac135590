"""Copies of logs between a file and a server: the same entries and links, commands, watermarks and metadata."""

from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance import entry
from lifefold.interpreters.store import Batch, Entry, Locked, LogStore, SqliteStore, create_log, open_log, peek_log
from lifefold.interpreters.store.address import read_address
from lifefold.interpreters.store.copying import copy_log, move_log
from lifefold.interpreters.store.pointer import address_of, announce
from postgres_server import PostgresServer

pytestmark = pytest.mark.cluster

TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12)
ROW = st.tuples(TEXT, st.integers(0, 2**53), st.binary(max_size=40), st.binary(max_size=40), TEXT)


async def contents(store: LogStore) -> tuple[Any, ...]:
    """Return all that a copy has to have: entries with links, anchor, commands, watermarks, metadata."""
    chain = await store.chain()
    return chain, list(await store.commands(unanswered=False)), dict(await store.performed()), store.made_with()


def all_of(path: Path) -> tuple[Any, ...]:
    with peek_log(path) as store:
        return anyio.run(contents, store)


async def written(store: LogStore, rows: list[tuple[str, int, bytes, bytes, str]], commands: list[bytes]) -> None:
    """Write entries of any contents, answer each second command, and mark some effects as performed."""
    numbers = [await store.submit("a", each) for each in commands]
    versions: dict[str, int] = {}
    entries: list[Entry] = []
    for number, (stream, at_ms, envelope, outcome, rules) in enumerate(rows):
        versions[stream] = versions.get(stream, 0) + 1
        entries.append(
            Entry(stream, versions[stream], at_ms, f"k{number}" if number % 2 else "", envelope, outcome, rules)
        )
    await store.append(Batch(entries, versions, dict.fromkeys(numbers[::2], "accepted")))


_numbers = count()


@settings(max_examples=5, deadline=None)
@given(st.lists(ROW, max_size=6), st.lists(st.binary(max_size=20), max_size=3), st.dictionaries(TEXT, TEXT, max_size=3))
def test_a_copy_to_a_server_and_back_is_the_same_log(
    postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, int, bytes, bytes, str]],
    commands: list[bytes],
    meta: dict[str, str],
) -> None:
    folder = tmp_path_factory.mktemp("copies")
    begun, there, back = (folder / each for each in ("begun.db", "there.db", "back.db"))
    with SqliteStore.create(begun, {f"m{name}": value for name, value in meta.items()}) as store:
        anyio.run(written, store, rows, commands)
    announce(there, read_address(f"{postgres.url}?log=copy-{next(_numbers)}-{folder.name}"))
    copy_log(begun, there)
    copy_log(there, back)
    assert all_of(begun) == all_of(there) == all_of(back)
    with open_log(there) as further:
        assert anyio.run(further.submit, "a", b"next") > len(commands)
        anyio.run(further.append, Batch((entry("further", 1),)))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.db"
    with SqliteStore.create(path, {"name": "x"}) as store:
        anyio.run(store.append, Batch((entry("a", 1), entry("b", 1)), {"a": 1}))
    return path


def test_a_log_is_moved_and_comes_back_at_the_same_path(postgres: PostgresServer, log: Path) -> None:
    """Nothing finds the earlier one under its old name, so no second run goes on with it."""
    address = read_address(postgres.new_log())
    before = all_of(log)
    kept, anchor = move_log(log, address)
    assert address_of(log) == address
    assert (all_of(log), all_of(kept), anchor) == (before, before, before[0].end)
    with open_log(log) as store:
        anyio.run(store.append, Batch((entry("a", 2),)))
    on_server = all_of(log)
    kept_there, _ = move_log(log, None)
    assert address_of(log) is None
    assert (all_of(log), all_of(kept_there)) == (on_server, on_server)
    assert address_of(kept_there) == address.named(f"{address.log}.moved-2")
    kept_again, _ = move_log(log, address)
    assert len({kept, kept_there, kept_again}) == 3
    with open_log(log) as store:
        anyio.run(store.append, Batch((entry("a", 3),)))


def test_a_log_that_is_written_is_not_copied(log: Path, tmp_path: Path) -> None:
    with open_log(log), pytest.raises(Locked):
        copy_log(log, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_a_copy_does_not_replace_a_log(postgres: PostgresServer, log: Path, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        copy_log(log, log)
    one, other = tmp_path / "one.db", tmp_path / "other.db"
    address = read_address(postgres.new_log())
    for each in (one, other):
        announce(each, address)
    copy_log(log, one)
    with pytest.raises(FileExistsError, match=address.log):
        copy_log(log, other)


def test_the_draft_of_a_copy_that_a_crash_has_left_is_replaced(
    postgres: PostgresServer, log: Path, tmp_path: Path
) -> None:
    there, address = tmp_path / "there.db", read_address(postgres.new_log())
    announce(there, address)
    announce(tmp_path / "there.db.copy", address.named(f"{address.log}.copy"))
    create_log(tmp_path / "there.db.copy", {"name": "half"}).close()
    copy_log(log, there)
    assert all_of(there) == all_of(log)
    assert not (tmp_path / "there.db.copy").exists()
