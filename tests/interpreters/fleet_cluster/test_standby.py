"""A brain that waits until no other process writes the log of its fleet."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

pytest.importorskip("temporalio", reason="needs the extra temporal")

from temporalio.client import Client

from lifefold.interpreters.cli.commands import clustering
from lifefold.interpreters.fleet_cluster import standby
from lifefold.interpreters.store import SqliteStore, Unreachable
from lifefold.interpreters.temporal import Cluster
from small_fleet_file import SMALL_FLEET

pytestmark = pytest.mark.anyio

SOON_S = 0.01


async def test_a_standby_waits_for_the_end_of_the_writer(tmp_path: Path) -> None:
    """The lock of the log tells it."""
    log, is_free = tmp_path / "log.db", anyio.Event()
    writer = SqliteStore.create(log, {})

    async def wait() -> None:
        await standby.until_free(log, SOON_S)
        is_free.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        with anyio.move_on_after(10 * SOON_S):
            await is_free.wait()
        assert not is_free.is_set()
        writer.close()
        await is_free.wait()


async def test_a_standby_waits_for_the_server_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be away, with the machine of the writer. A log that cannot be read is told by the one who opens it."""
    SqliteStore.create(tmp_path / "log.db", {}).close()
    answers: list[bool | None] = [None, True, False]

    def is_written(_self: SqliteStore) -> bool:
        answer = answers.pop(0)
        if answer is None:
            raise Unreachable("no server")
        return answer

    monkeypatch.setattr(SqliteStore, "is_written", is_written)
    await standby.until_free(tmp_path / "log.db", SOON_S)
    assert answers == []


async def test_a_log_that_cannot_be_read_is_left_to_the_one_who_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a pause: the one who opens it may find it locked, and ask again at once."""
    pauses: list[float] = []

    async def sleep(pause_s: float) -> None:
        pauses.append(pause_s)

    monkeypatch.setattr(anyio, "sleep", sleep)
    await standby.until_free(tmp_path / "none.db", SOON_S)
    assert pauses == [SOON_S]


async def test_the_second_of_two_first_brains_stands_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other one makes the log while this one looks what to write into it."""
    (tmp_path / "fleet.toml").write_text(SMALL_FLEET)
    arguments = Namespace(fleet=str(tmp_path / "fleet.toml"), db=str(tmp_path / "log.db"))

    def create(log: Path, meta: Mapping[str, str]) -> SqliteStore:
        SqliteStore.create(log, meta).close()
        return SqliteStore.create(log, meta)

    monkeypatch.setattr("lifefold.interpreters.fleet_cluster.brain.create_log", create)
    cluster = Cluster(await Client.connect("127.0.0.1:1", lazy=True), "demo")
    brain = await clustering._opened_in_turn(arguments, cluster, lambda _of: {})
    assert brain is not None
    brain.close()
    assert "the brain of demo stands by: another process decides" in capsys.readouterr().out
