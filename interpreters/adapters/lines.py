"""Lines out of the output of an agent, which arrives in pieces of any size: a pure cutter of bounded memory."""

import msgspec

from lifefold.interpreters.adapters.adapter import MAX_LINE_BYTES


class Cutter(msgspec.Struct, frozen=True):
    """The beginning of a line whose end has not arrived; ``too_long`` while a line is passed over."""

    rest: bytes = b""
    too_long: bool = False


def cut(cutter: Cutter, piece: bytes) -> tuple[Cutter, tuple[bytes, ...]]:
    """Return the lines that a piece of output completes, without their newlines, and none that is too long."""
    *complete, rest = piece.split(b"\n")
    lines: list[bytes] = []
    for part in complete:
        whole = cutter.rest + part
        if not cutter.too_long and len(whole) <= MAX_LINE_BYTES:
            lines.append(whole)
        cutter = Cutter()
    whole = cutter.rest + rest
    if cutter.too_long or len(whole) > MAX_LINE_BYTES:
        return Cutter(too_long=True), tuple(lines)
    return Cutter(whole), tuple(lines)


def remaining(cutter: Cutter) -> tuple[bytes, ...]:
    """Return the last line of an output without a newline at its end; none if it was too long or empty."""
    return (cutter.rest,) if cutter.rest else ()
