"""Files that a command writes: over nobody else's, and not without a word."""

import sys
from collections.abc import Callable
from pathlib import Path

from lifefold.interpreters.cli.errors import BadInput


def see_to(path: Path, what: str, is_ours: Callable[[bytes], bool], *, in_new_folder: bool = False) -> None:
    """See to it that a file can be written later on, and that it takes the place of its own kind only.

    Raises ``BadInput`` if something else is there, or its folder is not, unless that may be new. What is empty, and
    a device, is nobody's.
    """
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file")
    folder = next(each for each in path.parents if each.exists())
    if not folder.is_dir():
        raise BadInput(f"{path}: {folder} is no folder")
    if not in_new_folder and not path.parent.exists():
        raise BadInput(f"{path}: there is no folder {path.parent}; make it, or name a file in one that is there")
    text = path.read_bytes() if path.is_file() else b""
    if text and not is_ours(text):
        raise BadInput(f"{path} is there, and no {what} that lifefold has written; name another file, or remove it")


def write(path: Path, text: bytes, *, is_quiet: bool) -> None:
    """Write a file, and its folders, and say so: beside the output if that ``is_quiet`` for programs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    print(f"written: {path}", file=sys.stderr if is_quiet else sys.stdout)
