"""The output of a client: a line of JSON for each fact, in the form that the adapter ``acp`` reads.

Agents send their texts in pieces of a few characters. A printer joins the pieces of one text, and prints them at the
next line of another kind, or when they are long. Growing output is a sign of life for the stall detector, so also
thoughts are printed.
"""

from collections.abc import Callable
from typing import Final

import msgspec

PIECE_CHARS: Final = 400
"""A text is printed in pieces of about this length."""

MOST_CHARS: Final = 8_000
"""The longest text of any other field; the rest is cut."""


class Printer:
    """Prints lines through ``write``, each in one call, so that no line is torn by another process."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """Take the function that writes bytes to the output of the session."""
        self._write: Final = write
        self._kind = ""
        self._pieces: list[str] = []

    def say(self, kind: str, piece: str) -> None:
        """Add a piece to a text of a kind: ``text`` or ``thought``."""
        if kind != self._kind:
            self.flush()
            self._kind = kind
        self._pieces.append(piece)
        if sum(map(len, self._pieces)) >= PIECE_CHARS:
            self.flush()

    def line(self, kind: str, /, **fields: object) -> None:
        """Print a line, after the text before it."""
        self.flush()
        self._line(kind, fields)

    def flush(self) -> None:
        """Print the text that is joined so far."""
        text = "".join(self._pieces)
        self._pieces = []
        for place in range(0, len(text), MOST_CHARS):
            self._line(self._kind, {"text": text[place : place + MOST_CHARS]})

    def _line(self, kind: str, fields: dict[str, object]) -> None:
        cut = {name: _whole(each[:MOST_CHARS]) if isinstance(each, str) else each for name, each in fields.items()}
        self._write(_ENCODER.encode({"acp": kind, **cut}) + b"\n")


def _whole(text: str) -> str:
    """Return a text that can be encoded: half a character can be in JSON, and not in UTF-8."""
    return text.encode(errors="replace").decode()


_ENCODER: Final = msgspec.json.Encoder()
