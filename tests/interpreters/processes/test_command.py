"""A cancelled short command may complete within its patience."""

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from lifefold.interpreters.processes import command
from lifefold.interpreters.processes.command import Limits, Streams, run

pytestmark = pytest.mark.anyio

READS_THEN_WRITES = ("sh", "-c", 'echo > begun; read -r line < gate; echo "$line" > done')


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def cancelled(folder: Path, grace_ms: int) -> anyio.CancelScope:
    """Run the command, cancel it once it waits at its gate, and open the gate only then."""
    os.mkfifo(folder / "gate")
    limits = Limits(timeout_ms=60_000, grace_ms=grace_ms, keep_bytes=100)

    def open_gate() -> None:
        (folder / "gate").write_text("orderly\n")

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        with scope:
            tasks.start_soon(cancel_when_begun, folder, scope, open_gate if grace_ms else None)
            await run(READS_THEN_WRITES, folder, limits)
    return scope


async def cancel_when_begun(folder: Path, scope: anyio.CancelScope, then: Callable[[], None] | None) -> None:
    while not (folder / "begun").exists():
        await anyio.lowlevel.checkpoint()
    scope.cancel()
    if then is not None:
        await anyio.to_thread.run_sync(then)


async def test_a_cancelled_command_may_end_what_it_is_at(tmp_path: Path) -> None:
    """What it would have left halfway (git's locks) is put in order by itself; the cancellation holds all the same."""
    scope = await cancelled(tmp_path, grace_ms=30_000)
    assert scope.cancelled_caught
    assert (tmp_path / "done").read_text() == "orderly\n"


async def test_patience_ends(tmp_path: Path) -> None:
    """A cancelled command that does not end by itself is ended."""
    scope = await cancelled(tmp_path, grace_ms=0)
    assert scope.cancelled_caught
    assert not (tmp_path / "done").exists()


async def test_a_spooled_command_that_writes_too_much_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes into a file, so it would fill the disk; what it has written last is kept."""
    monkeypatch.setattr(command, "SPOOL_POLL_MS", 10)
    limits = Limits(timeout_ms=600_000, grace_ms=0, keep_bytes=1000)
    ended = await run(("sh", "-c", "while :; do echo x; done"), tmp_path, limits, streams=Streams(spooled=True))
    assert ended.status is None
    assert len(ended.output) == 1000
    assert ended.errors == b""


async def test_a_spooled_command_reads_what_it_is_given(tmp_path: Path) -> None:
    """And what it writes is read when it has ended."""
    limits = Limits(timeout_ms=600_000, grace_ms=0, keep_bytes=1000)
    ended = await run(("sh", "-c", "cat; echo e >&2"), tmp_path, limits, streams=Streams(b"given", spooled=True))
    assert (ended.status, ended.output, ended.errors) == (0, b"given", b"e\n")
