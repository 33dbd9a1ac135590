"""The output of a running session, read as it grows: in order, with its offsets, and never twice."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.processes.growing_output import GrowingOutput
from lifefold.interpreters.processes.shim.output import OutputLog


@given(
    limit_bytes=st.integers(1, 40),
    pieces=st.lists(st.tuples(st.binary(max_size=30), st.integers(1, 50), st.booleans()), max_size=12),
)
def test_what_is_read_was_written_at_its_offset_and_is_read_once(
    limit_bytes: int, pieces: list[tuple[bytes, int, bool]]
) -> None:
    """A reader that is too slow loses the middle, and sees that by the offset."""
    written, offset = b"", 0
    with TemporaryDirectory() as directory:
        log, output = OutputLog(directory, limit_bytes), GrowingOutput(Path(directory))
        for data, size_bytes, looks in pieces:
            log.write(data)
            written += data
            while looks:
                start, piece = output.read(offset, size_bytes)
                assert start >= offset
                assert len(piece) <= size_bytes
                assert piece == written[start : start + len(piece)]
                if not piece:
                    break
                offset = start + len(piece)
            assert not looks or offset == len(written)
        assert offset == len(written) or len(written) > limit_bytes or not any(looks for _, _, looks in pieces[-1:])
        log.finish()


def test_a_log_that_is_in_order_again_has_no_more_to_read(tmp_path: Path) -> None:
    """Its session is over, and its offsets are no longer those of the output."""
    log, output = OutputLog(str(tmp_path), 10), GrowingOutput(tmp_path)
    log.write(b"0123456789abc")
    assert output.read(0, 100) == (0, b"01234")
    assert output.read(5, 100) == (8, b"89")
    assert output.read(10, 100) == (10, b"abc")
    log.finish()
    assert output.read(13, 100) == (13, b"")


def test_an_output_that_is_not_there_or_no_file_has_nothing_to_read(tmp_path: Path) -> None:
    """An agent can put a pipe in its place, which must not block the runner."""
    assert GrowingOutput(tmp_path).read(0, 100) == (0, b"")
    os.mkfifo(tmp_path / "output.log")
    assert GrowingOutput(tmp_path).read(0, 100) == (0, b"")


def test_more_output_shows_in_the_signs(tmp_path: Path) -> None:
    """Nothing is read of an output without a new sign."""
    output = GrowingOutput(tmp_path)
    nothing = output.signs()
    log = OutputLog(str(tmp_path), 10)
    log.write(b"0123456789")
    some = output.signs()
    log.write(b"a")
    assert len({nothing, some, output.signs()}) == 3
    log.finish()
