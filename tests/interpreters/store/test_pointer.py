"""The file that says on which server a log is."""

import os
from pathlib import Path

import pytest

from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.store.address import read_address
from lifefold.interpreters.store.pointer import address_of, write_pointer


def test_a_pointer_has_the_address_of_its_log(tmp_path: Path) -> None:
    address = read_address("postgresql://fleets@localhost/agents?log=doors")
    write_pointer(tmp_path / "doors.db", address)
    assert address_of(tmp_path / "doors.db") == address


def test_a_log_in_a_file_is_not_opened_to_look_for_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer would lose the locks of SQLite when the descriptor is closed."""
    with SqliteStore.create(tmp_path / "doors.db", {}):
        monkeypatch.delattr(Path, "open")
        assert address_of(tmp_path / "doors.db") is None


def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "doors.db")
    assert address_of(tmp_path / "doors.db") is None
