"""The log of an agent's output: bounded, with its head and its tail, for all outputs in pieces of all sizes."""

from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.processes import launch
from lifefold.interpreters.processes.shim.output import OutputLog, pieces, put_in_order, tail
from session_scripts import PATIENCE_S, script


def expected(written: bytes, limit_bytes: int) -> bytes:
    """Say what a log is to hold: all, or the first and the last half of the limit."""
    if len(written) <= limit_bytes or limit_bytes == 0:
        return written[:limit_bytes]
    head_bytes = limit_bytes // 2
    missing = f"\n[{len(written) - limit_bytes} bytes of output were dropped here]\n".encode()
    return written[:head_bytes] + missing + written[len(written) - (limit_bytes - head_bytes) :]


@given(
    limit_bytes=st.integers(0, 40),
    writes=st.lists(st.binary(max_size=60), max_size=8),
    size_bytes=st.integers(0, 100),
    finished=st.booleans(),
)
def test_head_and_tail_are_kept_and_the_middle_is_counted(
    *, limit_bytes: int, writes: list[bytes], size_bytes: int, finished: bool
) -> None:
    """While it is written, after a crash and in the end, the log reads the same."""
    written = b"".join(writes)
    with TemporaryDirectory() as directory:
        log = OutputLog(directory, limit_bytes)
        for piece in writes:
            log.write(piece)
        whole = expected(written, limit_bytes)
        assert tail(directory, 1000) == b"".join(pieces(directory)) == whole
        assert tail(directory, size_bytes) == whole[max(0, len(whole) - size_bytes) :]
        if finished:
            log.finish()
        else:
            put_in_order(directory)
        assert Path(directory, "output.log").read_bytes() == whole == tail(directory, 1000)
        assert b"".join(pieces(directory)) == whole
        assert log.total_bytes == len(written)
        assert log.dropped_bytes == max(0, len(written) - limit_bytes)
        assert not Path(directory, "output.position").exists()


@pytest.mark.anyio
async def test_a_flood_of_output_is_bounded_and_blocks_no_process(tmp_path: Path) -> None:
    """An agent may write without end: it never blocks, the disk never fills, and the beginning and the end are kept."""
    text = "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last"
    session = await launch(tmp_path / "run", script(text, output_limit_bytes=65_536))
    with anyio.fail_after(PATIENCE_S):
        ended = await session.wait()
    assert (ended.code, ended.output_bytes) == (0, 20_000_012)
    assert ended.output_dropped_bytes == 20_000_012 - 65_536
    kept = (tmp_path / "run" / "output.log").read_bytes()
    assert kept.startswith(b"first\nxxx")
    assert kept.endswith(b"xxx\nlast\n")
    assert len(kept) < 65_536 + 100
    assert b"\n[19934476 bytes of output were dropped here]\n" in kept
    assert await session.output_tail(6) == b"\nlast\n"
