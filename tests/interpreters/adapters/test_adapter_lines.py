"""Output in pieces of any size is cut into the same lines, in bounded memory."""

from hypothesis import given
from hypothesis import strategies as st

from lifefold.interpreters.adapters import MAX_LINE_BYTES, Cutter, cut, remaining


def cut_all(pieces: list[bytes]) -> list[bytes]:
    """Return the lines of all pieces."""
    cutter, found = Cutter(), list[bytes]()
    for piece in pieces:
        cutter, lines = cut(cutter, piece)
        found.extend(lines)
    return [*found, *remaining(cutter)]


@given(st.lists(st.binary(max_size=6) | st.just(b"\n"), max_size=12))
def test_the_size_of_the_pieces_does_not_matter(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    expected = whole.split(b"\n")
    assert cut_all(pieces) == cut_all([whole]) == (expected if expected[-1] else expected[:-1])


def test_a_line_that_is_too_long_is_left_out_and_not_kept() -> None:
    pieces = [b"first\n", *[b"x" * 100_000] * 12, b"x\nlast\n"]
    cutter = Cutter()
    for piece in pieces[:-1]:
        cutter, _ = cut(cutter, piece)
        assert len(cutter.rest) <= MAX_LINE_BYTES
    assert cut_all(pieces) == [b"first", b"last"]


def test_a_line_of_the_greatest_length_is_kept() -> None:
    assert cut_all([b"x" * MAX_LINE_BYTES, b"\n"]) == [b"x" * MAX_LINE_BYTES]
    assert cut_all([b"x" * MAX_LINE_BYTES + b"x\n"]) == []
