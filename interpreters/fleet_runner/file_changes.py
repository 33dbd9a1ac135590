"""Whether files have changed: what is there now, as a text of which only equality counts, and notice of changes.

The system's notices only say when to look. What is there is compared with what was there when that was last written
down, so what changed while nobody looked is found, too; and so is, after a while, what a system gives no notice of.
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
"""How long is waited for a notice before the files are looked at all the same."""

LEFT_OUT: Final = frozenset({".git", ".lifefold"})
"""Folders that are no part of anything that is watched: what a fleet writes there itself would trigger it again."""

GLOB: Final = frozenset("*?[")


def mark_of(folder: Path, path: str, apart: Collection[Path] = ()) -> str:
    """Return what is there of a path or a glob: which files, how long, and changed when. It may take long.

    What is, or is in, one of the places ``apart`` does not count.
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
            continue  # it has just gone, or leads nowhere
        yield str(each.relative_to(folder)), found.st_size, found.st_mtime_ns


def _within(folder: Path, apart: Collection[Path]) -> frozenset[Path]:
    """Return those of some places that are in a folder, as one who looks into that folder finds them."""
    real = folder.resolve()
    places = [each.resolve() for each in apart]
    return frozenset(folder / each.relative_to(real) for each in places if each.is_relative_to(real))


def _matching(folder: Path, path: str) -> Iterator[Path]:
    place = folder / path
    if set(path) & GLOB:
        wanted = f"{path}/*" if path.rpartition("/")[2] == "**" else path  # by itself it has folders alone, before 3.13
        found = (each for each in folder.glob(wanted) if not each.is_dir())
        yield from (each for each in found if not LEFT_OUT.intersection(each.relative_to(folder).parts))
    elif place.is_dir():
        for where, folders, files in os.walk(place):
            folders[:] = [each for each in folders if each not in LEFT_OUT]
            yield from (Path(where, each) for each in files)
    else:
        yield place


def root_of(folder: Path, path: str) -> Path:
    """Return the folder that has everything that a path or a glob may be: the nearest one that is there."""
    parts = path.split("/")
    certain = next((n for n, part in enumerate(parts) if set(part) & GLOB), len(parts))
    place = folder / posixpath.join("", *parts[:certain])
    return next(each for each in (place, *place.parents) if each.is_dir())


async def notices(folder: Path, path: str, apart: Collection[Path] = ()) -> AsyncGenerator[None]:
    """Yield at once, and then whenever it is time to look. Raises ``OSError`` if the folder cannot be watched."""
    yield None
    root = root_of(folder, path)
    within = _within(root, apart)

    def counts(_change: Change, name: str) -> bool:
        place = root / os.path.relpath(name, root)
        left_out = LEFT_OUT.intersection(place.relative_to(root).parts)
        return not left_out and place not in within and within.isdisjoint(place.parents)

    told = awatch(
        root,
        watch_filter=counts,
        rust_timeout=LOOK_MS,
        yield_on_timeout=True,
        ignore_permission_denied=True,
    )
    async with aclosing(told):
        async for _ in told:
            yield None
            if root_of(folder, path) != root:
                return
