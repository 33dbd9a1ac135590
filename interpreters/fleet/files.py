"""Reads text files of a bounded size."""

from pathlib import Path

LARGEST_FILE_BYTES = 10_000_000
"""The largest fleet file, and the largest prompt file."""


def read_text(path: Path) -> str:
    """Return what a file says. Raises ``OSError``, or ``ValueError`` if it is too large or not UTF-8."""
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE_BYTES + 1)
    if len(content) > LARGEST_FILE_BYTES:
        message = f"it has more than {LARGEST_FILE_BYTES} bytes"
        raise ValueError(message)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"it is not UTF-8: byte {error.start} is 0x{content[error.start]:02x}"
        raise ValueError(message) from None
