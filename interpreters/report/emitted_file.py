"""What all written test files have in common: the head that they are known by, names of tests, docstrings."""

import re
from collections.abc import Container
from itertools import chain, count
from typing import Final


def head(command: str) -> str:
    """Return the beginning of a file that this command has written."""
    return f'"""Written by lifefold {command} {_OPTIONS.get(command, "--emit-test")}'


_OPTIONS: Final = {"fork": "--pytest"}
"""The option that writes a test, where it has another name."""


def is_written_by(command: str, text: bytes) -> bool:
    """Tell whether the text of a file was written by this command, by its head."""
    return text.startswith(head(command).encode())


def title(target: str, prop: str, taken: Container[str]) -> str:
    """Return the name of a test of a property, with a number if the name is taken."""
    name = re.sub(r"\W+", "_", f"test_{target}_{prop}".lower()).strip("_")
    names = chain([name], (f"{name}_{number}" for number in count(2)))
    return next(each for each in names if each not in taken)


def docstring(text: str) -> str:
    """Return any text as a docstring."""
    # A quotation mark at the end would be one of the closing ones.
    body, last = (text[:-1], '\\"') if text.endswith('"') else (text, "")
    safe = body.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').replace("\r", "\\r").replace("\0", "\\0")
    return f'"""{safe}{last}"""'
