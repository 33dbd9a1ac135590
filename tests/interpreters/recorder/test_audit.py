"""An audit: a sound run is allowed, and each kind of wrong entry is named as the first one that was not."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from lifefold import SqliteStore
from lifefold.core.kernel import Created
from lifefold.interpreters.recorder.audit import Audit, audit
from lifefold.interpreters.store import Entry
from lifefold.interpreters.store.anchor_file import anchor_beside
from lifefold.interpreters.store.chain import FIRST, Anchor, linked
from lifefold.interpreters.store.reading import Chain
from lobby import ALLOWED, RUN, Lobby, Pulled, entries_of, lobby, system, turn_twice, written


def audited(path: Path, rules: str = "") -> Audit:
    """Return the audit of a log with the anchor beside it."""
    with SqliteStore.peek(path) as store:
        return audit(system, anyio.run(store.chain), anchor_beside(path), rules)


def changed(path: Path, *statements: str) -> None:
    """Change a log as another program would."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_a_run_of_the_present_rules_is_allowed(tmp_path: Path) -> None:
    """Every entry is decided again, and properties were judged."""
    found = audited(written(tmp_path / "door.db", ALLOWED))
    assert found.is_allowed
    assert (found.entries, found.decided, found.compared) == (5, 5, True)
    assert found.judged == 5, "the property of the door, after each entry"


def test_the_first_entry_after_which_a_property_is_broken_is_named(tmp_path: Path) -> None:
    """The fault has the entry, the property, its owner and its subject."""
    fault = audited(written(tmp_path / "door.db")).fault
    assert fault is not None
    assert (fault.kind, fault.seq, fault.stream, fault.version) == ("property", 6, "lobby", 6)
    assert (fault.owner, fault.name, fault.of) == ("door", "turned at most twice", "door")


@pytest.mark.parametrize(
    ("statements", "seq"),
    [
        (("UPDATE entries SET at_ms = at_ms + 1 WHERE position = 3",), 3),
        (("DELETE FROM entries WHERE position = 2",), 2),
        (
            (
                "UPDATE entries SET position = 99 WHERE position = 2",
                "UPDATE entries SET position = 2 WHERE position = 3",
                "UPDATE entries SET position = 3 WHERE position = 99",
            ),
            2,
        ),
        (("DELETE FROM entries WHERE position = 5",), 5),
    ],
    ids=["changed", "missing", "moved", "cut off"],
)
def test_an_entry_that_is_not_as_written_is_named(tmp_path: Path, statements: tuple[str, ...], seq: int) -> None:
    """A changed, missing, moved or cut-off entry breaks the chain at its position."""
    path = written(tmp_path / "door.db", ALLOWED)
    changed(path, *statements)
    fault = audited(path).fault
    assert fault is not None
    assert (fault.kind, fault.seq) == ("chain", seq)


def cut(path: Path) -> None:
    """Cut the newest entry off, and adapt the anchor inside of the log."""
    changed(path, "DELETE FROM entries WHERE position = 5")
    adapt(path)


def rewrite(path: Path) -> None:
    """Change the newest entry, and compute all links and the inner anchor anew."""
    changed(path, "UPDATE entries SET at_ms = at_ms + 1 WHERE position = 5")
    relink(path)


def relink(path: Path) -> None:
    """Compute all links of a log anew."""
    with SqliteStore.peek(path) as store:
        chain = anyio.run(store.chain)
    links = linked(Anchor(0, FIRST), [entry for entry, _ in chain.rows])
    with closing(sqlite3.connect(path)) as connection:
        rows = [(link, position) for position, (_, link) in enumerate(links, 1)]
        connection.executemany("UPDATE entries SET link = ? WHERE position = ?", rows)
        connection.commit()
    adapt(path)


def adapt(path: Path) -> None:
    """Let the anchor inside of a log name its newest entry."""
    with closing(sqlite3.connect(path)) as connection:
        count, link = connection.execute("SELECT position, link FROM entries ORDER BY position DESC").fetchone()
        connection.execute("UPDATE meta SET value = ? WHERE name = 'anchor'", (f"{count} {link.hex()}",))
        connection.commit()


@pytest.mark.parametrize("forge", [cut, rewrite])
def test_the_anchor_beside_a_log_shows_what_its_own_chain_hides(tmp_path: Path, forge: Callable[[Path], None]) -> None:
    """Entries that were cut off or rewritten together with links and inner anchor contradict the outer one."""
    path = written(tmp_path / "door.db", ALLOWED)
    forge(path)
    with SqliteStore.peek(path) as store:
        chain = anyio.run(store.chain)
    assert getattr(audit(system, chain).fault, "kind", "") != "chain"
    fault = audit(system, chain, anchor_beside(path)).fault
    assert fault is not None
    assert (fault.kind, fault.seq) == ("anchor", 5)


def test_a_log_that_went_on_after_its_anchor_is_allowed(tmp_path: Path) -> None:
    """A runner that crashed leaves an older anchor, which names an earlier entry."""
    path = written(tmp_path / "door.db", ALLOWED)
    with SqliteStore.peek(path) as store:
        chain = anyio.run(store.chain)
    older = Anchor(3, chain.rows[2][1])
    assert audit(system, chain, older).is_allowed


def test_another_decision_of_the_present_rules_is_named() -> None:
    """The first entry on which these rules decide otherwise is not allowed, if it claims to be of these rules."""
    fault = audit(system, chain_of(lobby_entries("same")), None, "same").fault
    assert fault is not None
    assert (fault.kind, fault.seq) == ("rules", 3)
    assert "decide otherwise" in fault.why


def test_entries_of_other_rules_are_folded_as_they_were_decided() -> None:
    """Rules of a later version do not accuse a run of an earlier one."""
    found = audit(system, chain_of(lobby_entries("older")), None, "newer")
    assert found.is_allowed
    assert (found.entries, found.decided) == (3, 0)


def test_an_entry_that_cannot_be_read_is_named() -> None:
    """An outcome of no meaning is named by its entry."""
    entries = entries_of(ALLOWED)
    broken = type(entries[2])("lobby", 3, entries[2].at_ms, "", entries[2].envelope, b"[]")
    fault = audit(system, chain_of([*entries[:2], broken, *entries[3:]])).fault
    assert fault is not None
    assert (fault.kind, fault.seq) == ("unreadable", 3)


def lobby_entries(rules: str) -> list[Entry]:
    """Return a run of other rules, on which no property is broken."""
    return entries_of(RUN[:3], lobby(turn_twice), rules)


def chain_of(entries: list[Entry]) -> Chain:
    """Return the chain of entries."""
    rows = list(linked(Anchor(), entries))
    return Chain(Anchor(), rows, Anchor(len(rows), rows[-1][1]))


def test_a_property_that_the_opening_breaks_is_named_at_the_opening() -> None:
    """An entry of the opening is judged too, when the opening is over."""
    fault = audit(system, chain_of(entries_of([Created(Lobby(turns=3)), Pulled()]))).fault
    assert fault is not None
    assert (fault.kind, fault.seq) == ("property", 1)
