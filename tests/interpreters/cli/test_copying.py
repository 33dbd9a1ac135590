"""``lifefold copy`` and ``move`` of logs in files; those of logs on servers are in the tests of the store."""

from pathlib import Path

import anyio
import pytest

from conformance import entry
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.store import Batch, SqliteStore, peek_log
from postgres_server import PostgresServer


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.db"
    with SqliteStore.create(path, {"name": "x"}) as store:
        anyio.run(store.append, Batch((entry("a", 1), entry("a", 2))))
    return path


def test_a_copy_is_told_with_its_newest_link(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy.db"
    assert main(["copy", str(log), str(copy)]) == 0
    with peek_log(copy) as store:
        end = anyio.run(store.chain).end
    assert capsys.readouterr().out == (
        f"copied 2 entries of {log} to {copy}\nits newest link is that of the original: {end.link.hex()[:16]}\n"
    )
    assert main(["verify", str(copy), "--chain"]) == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["copy", "{log}", "{log}"], "is there already; accepted: the place of a new log"),
        (["copy", "{log}", "{folder}/none/copy.db"], "none is not a folder; accepted: a file in an existing folder"),
        (["copy", "{folder}/none.db", "{folder}/copy.db"], "there is no such log"),
        (["move", "{log}", "--to", "file"], "is in a file already"),
        (["move", "{log}", "--to", "elsewhere"], "--to elsewhere: accepted: file, or postgresql://"),
        (
            ["move", "{log}", "--to", "postgresql://db/x?log=public"],
            "the name of the log in its address cannot be used",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert main([each.format(log=log, folder=tmp_path) for each in words]) == 2
    assert why in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.glob("*.db")) == ["fleet.db"]


def test_a_log_that_is_written_is_not_taken_elsewhere(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SqliteStore.open(log):
        assert main(["copy", str(log), str(tmp_path / "copy.db")]) == 2
    assert "another lifefold is running on this log" in capsys.readouterr().err


@pytest.mark.cluster
def test_the_first_copy_of_a_user_to_a_server_needs_no_folder(
    log: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pointer is kept in the state of the user, which may not be there yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(log.parent / "state"))
    assert main(["copy", str(log), address := postgres.new_log()]) == 0
    assert f"copied 2 entries of {log} to {address}" in capsys.readouterr().out
