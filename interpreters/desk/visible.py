"""Texts of files for a terminal or a page, in which no control character and no invisible character is hidden."""

from collections.abc import Iterator
from typing import Final

_SPACE: Final = 32
_CARET: Final = 64
_SURROGATE: Final = 0xDC00


def visible(text: str) -> str:
    """Return a line with control and invisible characters shown as escapes, so that none reaches a terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\t" else _escape(each) for each in text)


def _escape(char: str) -> str:
    """Return an escape of a character: ``^[`` for ESC, ``<U+202E>`` for an invisible one."""
    code = ord(char)
    if code < _SPACE:
        return f"^{chr(code + _CARET)}"
    return f"<{code - _SURROGATE:02X}>" if _SURROGATE <= code < _SURROGATE + 256 else f"<U+{code:04X}>"


def lines(diff: bytes) -> Iterator[str]:
    """Yield the lines of a difference for a terminal or a page."""
    for line in diff.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n"):
        yield visible(line.removesuffix("\r") if line.endswith("\r") else line)
