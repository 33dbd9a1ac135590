"""Files that a command writes: it overwrites only files of its own kind, and prints their paths."""

import sys
from collections.abc import Callable
from pathlib import Path

from lifefold.interpreters.cli.errors import BadInput


def see_to(path: Path, what: str, is_ours: Callable[[bytes], bool], *, in_new_folder: bool = False) -> None:
    """Check that a file can be written later, and that it overwrites only its own kind, an empty file or a device.

    Raises ``BadInput`` if another file is there, or if its folder is missing and may not be made.
    """
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file")
    folder = next(each for each in path.parents if each.exists())
    if not folder.is_dir():
        raise BadInput(f"{path}: {folder} is no folder")
    if not in_new_folder and not path.parent.exists():
        raise BadInput(f"{path}: there is no folder {path.parent}; make it, or name a file in an existing one")
    text = path.read_bytes() if path.is_file() else b""
    if text and not is_ours(text):
        raise BadInput(f"{path} is there, and no {what} that lifefold has written; name another file, or remove it")


def write(path: Path, text: bytes, *, is_quiet: bool) -> None:
    """Write a file and its folders, and print its path: on standard error if ``is_quiet``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    print(f"written: {path}", file=sys.stderr if is_quiet else sys.stdout)
