"""A cache of what is made of the same source files: in ``$XDG_CACHE_HOME/lifefold``, by the digests of the files.

A cached value counts only if each file it was made of has the same bytes as then. A cache that cannot be read or
written costs time and nothing else. Each value has a file of its own, which is replaced as a whole.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters.rules.modules import file_of

FORMAT: Final = "1"
"""Changes when equal files give another value, as with another way to make it."""


class Made(msgspec.Struct, frozen=True):
    """A value, and the digests of the files that it was made of, by path."""

    value: str
    files: dict[str, str]


def kept(names: list[str], make: Callable[[list[str]], Made]) -> str:
    """Return what ``make`` makes of these modules, from the cache if it has that."""
    place = _place(names)
    found = None if place is None else _read(place)
    if found is None:
        found = make(names)
        if place is not None:
            with suppress(OSError):
                _write(place, found)
    return found.value


def digest(data: bytes) -> str:
    """Return the digest of a file's bytes."""
    return sha256(data).hexdigest()


def folder() -> Path | None:
    """Return the folder of the cache: ``$XDG_CACHE_HOME/lifefold``, or ``~/.cache/lifefold``; None without a home."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if named.startswith("/"):
        return Path(named, "lifefold")
    try:
        return Path.home() / ".cache" / "lifefold"
    except RuntimeError:
        return None


def _place(names: list[str]) -> Path | None:
    """Return the path of a value, by the files of its modules: another checkout has a value of its own."""
    of = "\n".join([FORMAT, *(f"{name} {file_of(name)}" for name in names)])
    there = folder()
    return None if there is None else there / f"rules-{digest(of.encode())[:32]}.json"


def _read(place: Path) -> Made | None:
    """Return a cached value if all of its files are as they were."""
    try:
        found = msgspec.json.decode(place.read_bytes(), type=Made)
        same = all(digest(Path(path).read_bytes()) == was for path, was in found.files.items())
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    return found if same else None


def _write(place: Path, made: Made) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent, prefix=place.stem, delete=False) as draft:
        try:
            draft.write(msgspec.json.encode(made))
            draft.close()
            Path(draft.name).replace(place)
        except OSError:
            with suppress(OSError):
                Path(draft.name).unlink()
            raise
