"""Tables and lines for a terminal of any width.

A table leaves out columns in an order, and cuts names in the middle. A line is cut between words. A file or a pipe gets
all of it, because a program may read it.
"""

import shutil
import sys
from collections.abc import Sequence
from textwrap import wrap
from typing import Final

from lifefold.interpreters.cli.wording import columns, cut_in_the_middle

NAME_CHARACTERS: Final = 10
"""The fewest characters of a shortened cell."""

_BETWEEN: Final = 2
"""The characters between two columns."""


def terminal_width() -> int | None:
    """Return the characters of a line on the terminal of the output; None if it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def terminal_height() -> int | None:
    """Return the lines of the terminal of the output, without the one of the next prompt; None if it is no terminal."""
    return shutil.get_terminal_size().lines - 1 if sys.stdout.isatty() else None


def fitted(
    rows: Sequence[tuple[str, ...]],
    width: int | None,
    *,
    first_out: Sequence[str],
    shortened: Sequence[str],
    note: bool = True,
) -> str:
    """Return a table of at most ``width`` characters, the head first, with a ``note`` about the columns left out.

    The columns ``first_out`` are left out one after the other while the table is too wide. Then the cells of the
    columns ``shortened`` are cut, again in their order. A table that is still too wide keeps what is left.
    """
    if width is None or not rows:
        return columns(rows)
    kept, left_out = list(rows), list[str]()
    for head in first_out:
        if _width(kept) <= width:
            break
        if head in kept[0]:
            place = kept[0].index(head)
            kept = [(*row[:place], *row[place + 1 :]) for row in kept]
            left_out.append(head)
    for head in shortened:
        over = _width(kept) - width
        if over > 0 and head in kept[0]:
            place = kept[0].index(head)
            longest = max(len(row[place]) for row in kept)
            room = max(NAME_CHARACTERS, longest - over)
            kept = [(*row[:place], cut_in_the_middle(row[place], room), *row[place + 1 :]) for row in kept]
    about = [f"left out here: {', '.join(left_out)}"] if left_out and note else []
    return "\n".join((columns(kept), *about))


def wrapped(line: str, width: int | None) -> list[str]:
    """Return a line as lines of at most ``width`` characters, cut at spaces only: a path or a command stays whole."""
    if width is None or len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return wrap(
        line,
        width,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )


def _width(rows: Sequence[tuple[str, ...]]) -> int:
    return sum(max(map(len, column)) for column in zip(*rows, strict=True)) + _BETWEEN * (len(rows[0]) - 1)
