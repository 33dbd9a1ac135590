"""What a log on a server is made of: its schema, its versions, and what is refused."""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import anyio
import psycopg
import pytest
from psycopg import sql

from conformance import entry
from lifefold.core.kernel import replace
from lifefold.interpreters.cli.cluster_options import log_of
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.logs import find_log
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.store import (
    Batch,
    Damaged,
    Fenced,
    NotAStore,
    NotThere,
    Snapshot,
    SnapshotPart,
    SqliteStore,
    StoreError,
    Unwritable,
    VersionConflict,
)
from lifefold.interpreters.store.anchor_file import anchor_beside
from lifefold.interpreters.store.identity import WITHOUT_RULES
from lifefold.interpreters.store.pointer import address_of, write_pointer
from lifefold.interpreters.store.postgres import Address, PostgresStore, read_address, schema
from postgres_server import PostgresServer
from small_fleet_file import SMALL_FLEET

pytestmark = pytest.mark.cluster


@pytest.fixture
def address(postgres: PostgresServer) -> Address:
    return read_address(postgres.new_log())


@pytest.fixture
def session(address: Address) -> Iterator[psycopg.Connection]:
    """A session of another program, with the schema of the log as its search path."""
    with psycopg.connect(address.url, autocommit=True, options=f"-c search_path={address.log}") as found:
        yield found


def test_a_log_is_a_schema_that_people_can_query(address: Address, session: psycopg.Connection) -> None:
    with PostgresStore.create(address, {"fleet": "x"}) as store:
        anyio.run(store.append, Batch((entry("a", 1), entry("b", 1)), {"a": 1}))
    rows = session.execute("SELECT position, stream, version FROM entries ORDER BY position").fetchall()
    assert rows == [(1, "a", 1), (2, "b", 1)]
    with pytest.raises(FileExistsError):
        PostgresStore.create(address, {})


def test_a_log_can_be_made_in_an_empty_schema(address: Address, session: psycopg.Connection) -> None:
    """As one that an administrator has made for a user who may make none."""
    session.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.log)))
    with PostgresStore.create(address, {}) as store:
        anyio.run(store.append, Batch((entry("a", 1),)))
        assert [each.stream for each in anyio.run(store.read)] == ["a"]


def test_what_is_no_log_is_refused(address: Address, session: psycopg.Connection) -> None:
    with pytest.raises(NotThere, match=f"there is no log '{address.log}'"):
        PostgresStore.peek(address)
    session.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.log)))
    session.execute("CREATE TABLE things (id INTEGER)")
    with pytest.raises(NotAStore, match="is of another program"):
        PostgresStore.peek(address)
    with pytest.raises(FileExistsError):
        PostgresStore.create(address, {})


def test_a_log_of_an_earlier_version_is_brought_to_this_one_by_its_next_writer(
    address: Address, session: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader reads it before that. A log of a later version is refused."""
    with PostgresStore.create(address, {}) as store:
        anyio.run(store.append, Batch((entry("a", 1),)))
    now, later = schema.VERSION, schema.VERSION + 2
    monkeypatch.setattr(schema, "VERSION", later)
    steps = {now: ("ALTER TABLE posts ADD COLUMN at_ms BIGINT", "CREATE INDEX later ON posts (at_ms)"), now + 1: ()}
    monkeypatch.setattr(schema, "STEPS", steps)
    with PostgresStore.peek(address) as store:
        assert anyio.run(store.read) == [entry("a", 1)]
    with PostgresStore.open(address) as store:
        anyio.run(store.append, Batch((entry("a", 2),)))
    assert session.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() == (str(later),)
    assert session.execute("SELECT at_ms FROM posts").fetchall() == []
    monkeypatch.undo()
    with pytest.raises(NotAStore, match=f"has version {later}, this lifefold reads {now}"):
        PostgresStore.peek(address)


def test_entries_keep_their_rules(address: Address) -> None:
    """The version of the tables is none of a log without rules."""
    ruled = replace(entry("a", 1), rules="r1")
    with PostgresStore.create(address, {}) as store:
        anyio.run(store.append, Batch((ruled,)))
        assert anyio.run(store.read) == [ruled]
    assert len({schema.VERSION, WITHOUT_RULES}) == 2


def test_a_changed_or_missing_entry_is_found(address: Address, session: psycopg.Connection) -> None:
    with PostgresStore.create(address, {}) as store:
        anyio.run(store.append, Batch((entry("a", 1), entry("a", 2), entry("a", 3))))
        session.execute("UPDATE entries SET at_ms = 7 WHERE position = 2")
        with pytest.raises(Damaged, match=r"entry 2 \(a, version 2\) is not as it was written"):
            anyio.run(store.read)
        session.execute("DELETE FROM entries WHERE position = 3")
        with pytest.raises(Damaged, match="another program has changed its entries"):
            anyio.run(store.append, Batch((entry("a", 3),)))
    session.execute("DROP TABLE performed")
    with pytest.raises(Damaged):
        PostgresStore.peek(address)


def test_a_writer_leaves_the_anchor_beside_the_pointer(address: Address, tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    PostgresStore.create(address, {}, path).close()
    write_pointer(path, address)
    with PostgresStore.open(address, path) as store:
        anyio.run(store.append, Batch((entry("a", 1),)))
        end = anyio.run(store.chain).end
    assert anchor_beside(path) == end


def test_a_snapshot_is_resumed_and_dropped(address: Address) -> None:
    part, head = SnapshotPart("a", "door", b"\0data"), SnapshotPart("a", "", b"head", version=1)
    with PostgresStore.create(address, {}) as store:
        anyio.run(store.append, Batch((entry("a", 1, "k"),)))
        anyio.run(store.append, Batch((entry("a", 2),), snapshot=Snapshot("form", (part, head))))
        found = anyio.run(store.resumed, "form")
        assert (list(found.parts), list(found.entries), found.count) == ([head, part], [entry("a", 2)], 1)
        assert anyio.run(store.known_keys, [("a", "k"), ("a", "x"), ("b", "k")]) == {("a", "k")}
        anyio.run(store.drop_snapshot)
        found = anyio.run(store.resumed, "form")
        assert (list(found.parts), len(list(found.entries))) == ([], 2)


def test_a_text_that_postgresql_cannot_keep_is_refused_as_a_whole(address: Address) -> None:
    with PostgresStore.create(address, {}) as store:
        with pytest.raises(StoreError, match="NUL"):
            anyio.run(store.append, Batch((entry("a", 1), entry("a\0", 1))))
        assert anyio.run(store.read) == []
        with pytest.raises(VersionConflict):
            anyio.run(store.append, Batch((entry("a", 2),)))


def test_a_user_who_may_only_read_reads_and_is_told_that_it_cannot_write(
    address: Address, session: psycopg.Connection, postgres: PostgresServer
) -> None:
    with PostgresStore.create(address, {}) as store:
        anyio.run(store.append, Batch((entry("a", 1),)))
    schema_name, role = sql.Identifier(address.log), sql.Identifier(f"reader_{address.log}")
    session.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
    session.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema_name, role))
    session.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}").format(schema_name, role))
    of_reader = read_address(f"postgresql://reader_{address.log}@127.0.0.1:{postgres.port}/postgres?log={address.log}")
    with PostgresStore.peek(of_reader) as store:
        assert anyio.run(store.read) == [entry("a", 1)]
        with pytest.raises(Unwritable, match="this user may not do that"):
            anyio.run(store.submit, "a", b"{}")
        assert anyio.run(store.say_instead, "host/one", "begins", 0)
        assert not anyio.run(store.say_instead, "host/one", "begins too", 0)
        assert anyio.run(store.say, "host/one", "first") == "begins"
        anyio.run(store.say, "host/one", "second")
        (found,) = anyio.run(store.members).every
        assert (found.name, found.said) == ("host/one", "second")
        now_ms = anyio.run(store.members).now_ms
        assert 0 <= now_ms - found.heard_ms < 60_000
        anyio.run(store.dismiss, "host/one")
        assert anyio.run(store.members).every == ()
        with PostgresStore.open(address) as writer:
            anyio.run(writer.say_as_writer, "the plan")
        word = anyio.run(store.members).writer
        assert word is not None
        assert word.said == "the plan"
        for statement in ("UPDATE writer_word SET said = 'another'", "DELETE FROM writer_word"):
            with pytest.raises(Unwritable):
                store.database.execute(statement)


def test_a_writer_that_another_one_has_replaced_cannot_speak(address: Address, session: psycopg.Connection) -> None:
    """A log of an earlier version gets the table from its next writer."""
    PostgresStore.create(address, {}).close()
    session.execute("DROP TABLE writer_word")
    session.execute("UPDATE meta SET value = '3' WHERE name = 'schema'")
    with PostgresStore.peek(address) as store:
        assert anyio.run(store.members).writer is None
    with PostgresStore.open(address) as frozen, PostgresStore.open(address, take_over=True) as newest:
        anyio.run(newest.say_as_writer, "newest")
        with pytest.raises(Fenced):
            anyio.run(frozen.say_as_writer, "once more")
        assert session.execute("SELECT said FROM writer_word").fetchall() == [("newest",)]
        anyio.run(newest.say_as_writer, None)
        assert anyio.run(newest.members).writer is None


def test_a_writer_that_another_one_has_replaced_removes_and_renames_nothing(address: Address) -> None:
    """The server has ended its session, as it does after a long silence."""
    PostgresStore.create(address, {}).close()
    with PostgresStore.open(address) as silent, PostgresStore.open(address, take_over=True) as newest:
        with pytest.raises(Fenced):
            silent.discard()
        with pytest.raises(Fenced):
            silent.rename(address.named(f"{address.log}.other"))
        anyio.run(newest.append, Batch((entry("a", 1),)))
        assert anyio.run(newest.read) == [entry("a", 1)]


def test_the_next_writer_adds_the_table_of_a_cluster_to_an_older_log(
    address: Address, session: psycopg.Connection
) -> None:
    """Until then nothing is said, and nothing fails."""
    PostgresStore.create(address, {}).close()
    session.execute("DROP TABLE members")
    session.execute("UPDATE meta SET value = '2' WHERE name = 'schema'")
    with PostgresStore.peek(address) as store:
        anyio.run(store.say, "host/one", "there")
        anyio.run(store.dismiss, "host/one")
        assert anyio.run(store.members).every == ()
        PostgresStore.open(address).close()
        anyio.run(store.say, "host/one", "there")
        assert [each.said for each in anyio.run(store.members).every] == ["there"]


def test_commits_wait_for_the_disk_whatever_the_default_of_the_role_is(
    address: Address, session: psycopg.Connection
) -> None:
    session.execute("ALTER ROLE lifefold SET synchronous_commit = off")
    try:
        with PostgresStore.create(address, {}) as store:
            assert store.database.execute("SELECT current_setting('synchronous_commit')").fetchone() == ("on",)
    finally:
        session.execute("ALTER ROLE lifefold RESET synchronous_commit")


def test_a_command_finds_the_log_that_the_fleet_file_here_names(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it was named. A server that a stranger's file names is not asked, and nothing is written."""
    url = postgres.new_log()
    PostgresStore.create(read_address(url), {"fleet": "docs"}).close()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "fleet.toml").write_text(f'[fleet]\nname = "docs"\n[cluster]\nlog = "{url}"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="that no command has used here yet") as refused:
        find_log(None)
    assert str(refused.value).endswith(f"--db '{url}'")
    assert [each.name for each in tmp_path.iterdir()] == ["fleet.toml"]
    named = find_log(url)
    assert find_log(None) == named
    assert address_of(named) == read_address(url)


def test_an_unusable_address_in_the_fleet_file_here_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is typed."""
    (tmp_path / "fleet.toml").write_text(
        '[fleet]\nname = "docs"\n[cluster]\nlog = "postgresql://db/agents?log=public"\n'
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="the name of the log in its address cannot be used"):
        find_log(None)


FLEET = (
    SMALL_FLEET.replace("demo", "docs")
    + """
[cluster]
engine = "temporal://127.0.0.1:1"
log = "{url}"
"""
)
"""A fleet on a cluster whose log is on a server."""


def _log_of(file: Path, db: str | None = None) -> Path:
    """Return the log that a brain or a host takes."""
    return log_of(Namespace(db=db), load(file))


def test_brain_and_hosts_take_the_log_of_the_latest_run(postgres: PostgresServer, tmp_path: Path) -> None:
    """Also on a machine that has seen no earlier run, and on one that has seen the first run only."""
    url = postgres.new_log()
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET.format(url=url))
    PostgresStore.create(read_address(url), {"fleet": "docs"}).close()
    log = tmp_path / ".lifefold" / "docs.db"
    assert _log_of(file) == log
    first = read_address(url)
    for number in (2, 3):
        PostgresStore.create(first.named(f"{first.log}.run-{number}"), {"fleet": "docs"}).close()
    then = log.with_name("docs.run-3.db")
    assert _log_of(file) == then
    assert address_of(then) == first.named(f"{first.log}.run-3")
    assert _log_of(file, url) == log


def test_a_log_in_a_file_is_not_left_behind(postgres: PostgresServer, tmp_path: Path) -> None:
    """A new log on the server would begin all tasks again."""
    url = postgres.new_log()
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET.format(url=url))
    here = tmp_path / ".lifefold" / "docs.db"
    here.parent.mkdir()
    SqliteStore.create(here, {"fleet": "docs"}).close()
    with pytest.raises(BadInput, match=r"lifefold move --to .* brings it there; --db .* begins a new one"):
        _log_of(file)
    assert address_of(_log_of(file, url)) == read_address(url)
    PostgresStore.create(read_address(url), {"fleet": "docs"}).close()
    assert address_of(_log_of(file)) == read_address(url)
