"""Changes of files: a fingerprint of the watched files, and the moments at which to compare it.

Notices of the operating system only tell when to look. The fingerprint is compared with the one in the log, so that
changes without a runner are found. Changes without a notice are found after ``LOOK_MS``.
"""

import os
import posixpath
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import aclosing
from hashlib import blake2b
from pathlib import Path
from typing import Final

from watchfiles import Change, awatch

LOOK_MS: Final = 10_000
"""The time after which files are read without a notice."""

LEFT_OUT: Final = frozenset({".git", ".lifefold"})
"""Folders that are never watched: the fleet's own writes there would trigger it again."""

GLOB: Final = frozenset("*?[")


def mark_of(folder: Path, path: str, apart: Collection[Path] = ()) -> str:
    """Return a fingerprint of a path or a glob: names, sizes and modification times. It may take long.

    The places ``apart``, and files in them, do not count.
    """
    digest = blake2b(digest_size=16)
    for name, size, changed_ns in sorted(_seen(folder, path, apart)):
        digest.update(f"{name}\0{size}\0{changed_ns}\0".encode(errors="surrogatepass"))
    return digest.hexdigest()


def _seen(folder: Path, path: str, apart: Collection[Path]) -> Iterator[tuple[str, int, int]]:
    within = _within(folder, apart)
    for each in _matching(folder, path):
        if each in within or not within.isdisjoint(each.parents):
            continue
        try:
            found = each.stat()
        except OSError:
            continue  # deleted meanwhile, or a dangling link
        yield str(each.relative_to(folder)), found.st_size, found.st_mtime_ns


def _within(folder: Path, apart: Collection[Path]) -> frozenset[Path]:
    """Return the places inside a folder, as paths below that folder."""
    real = folder.resolve()
    places = [each.resolve() for each in apart]
    return frozenset(folder / each.relative_to(real) for each in places if each.is_relative_to(real))


def _matching(folder: Path, path: str) -> Iterator[Path]:
    place = folder / path
    if set(path) & GLOB:
        wanted = f"{path}/*" if path.rpartition("/")[2] == "**" else path  # before 3.13 it matches folders only
        found = (each for each in folder.glob(wanted) if not each.is_dir())
        yield from (each for each in found if not LEFT_OUT.intersection(each.relative_to(folder).parts))
    elif place.is_dir():
        for where, folders, files in os.walk(place):
            folders[:] = [each for each in folders if each not in LEFT_OUT]
            yield from (Path(where, each) for each in files)
    else:
        yield place


def root_of(folder: Path, path: str) -> Path:
    """Return the nearest existing folder that contains all matches of a path or a glob."""
    parts = path.split("/")
    certain = next((n for n, part in enumerate(parts) if set(part) & GLOB), len(parts))
    place = folder / posixpath.join("", *parts[:certain])
    return next(each for each in (place, *place.parents) if each.is_dir())


async def notices(folder: Path, path: str, apart: Collection[Path] = ()) -> AsyncGenerator[None]:
    """Yield at once, and then whenever files should be read. Raises ``OSError`` if the folder cannot be watched."""
    yield None
    root = root_of(folder, path)
    within = _within(root, apart)

    def counts(_change: Change, name: str) -> bool:
        place = root / os.path.relpath(name, root)
        left_out = LEFT_OUT.intersection(place.relative_to(root).parts)
        return not left_out and place not in within and within.isdisjoint(place.parents)

    changes = awatch(
        root, watch_filter=counts, rust_timeout=LOOK_MS, yield_on_timeout=True, ignore_permission_denied=True
    )
    async with aclosing(changes):
        async for _ in changes:
            yield None
            if root_of(folder, path) != root:
                return
