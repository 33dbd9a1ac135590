"""A brain that waits until no other process writes the log of its fleet."""

from pathlib import Path

import anyio
import pytest

pytest.importorskip("temporalio", reason="needs the extra temporal")

from lifefold.interpreters.fleet_cluster import standby
from lifefold.interpreters.store import SqliteStore, Unreachable

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
    await standby.until_free(tmp_path / "none.db", SOON_S)
