"""Ignored files of a worktree that changed since a claim began: earlier claims have left ignored files there too."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MOST_LOOKED_AT: Final = 100_000
"""The number of files that are checked per folder; a folder with more counts as changed."""


def changed_ns(path: Path) -> int | None:
    """Return when a file or a folder was changed last, in Unix nanoseconds; None if it does not exist.

    It is the ``ctime``, which a copy with an old modification time does not preserve.
    """
    try:
        return path.lstat().st_ctime_ns
    except OSError:
        return None


def changed_since(folder: Path, names: tuple[str, ...], since_ns: int) -> tuple[str, ...]:
    """Return the names that have changed since a time.

    A name that ends with a slash is a folder. Names within another named folder are left out.
    """
    return tuple(name for name in _outermost(names) if _has_changed(folder / name, since_ns))


def _outermost(names: tuple[str, ...]) -> Iterator[str]:
    folders = tuple(name for name in names if name.endswith("/"))
    return (each for each in names if not any(each != folder and each.startswith(folder) for folder in folders))


def _has_changed(path: Path, since_ns: int) -> bool:
    for number, each in enumerate(_within(path)):
        changed = changed_ns(each)
        if number >= MOST_LOOKED_AT or (changed is not None and changed >= since_ns):
            return True
    return False


def _within(path: Path) -> Iterator[Path]:
    """Yield a path and, for a folder, its contents; links are not followed."""
    yield path
    for place, folders, files in os.walk(path):
        yield from (Path(place, name) for name in (*folders, *files))
