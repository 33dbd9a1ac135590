"""Reads text files of a bounded size, and replaces the text of one."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

LARGEST_FILE_BYTES = 10_000_000
"""The largest fleet file, and the largest prompt file."""


def read_text(path: Path) -> str:
    """Return the text of a file. Raises ``OSError``, or ``ValueError`` for a large or non-UTF-8 file, a pipe, a device.

    Reading a pipe could block, or never end.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        message = "it is a pipe or a device, not a file"
        raise ValueError(message)
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


def write_text(path: Path, text: str) -> None:
    """Replace the text of a file at once; its mode stays, and a link to it stays a link. Raises ``OSError``.

    A reader finds the old text or the new one, also after a crash.
    """
    file = path.resolve()
    number, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="") as written:
            written.write(text)
            written.flush()
            os.fsync(number)
        shutil.copymode(file, draft)
        Path(draft).replace(file)
    finally:
        Path(draft).unlink(missing_ok=True)
