"""Putting a working tree in order that a fast-forward from commit ``old`` to ``new`` was cut off in.

Only the paths in which the two commits differ are looked at. What is there may be the one's content, the other's, the
beginning of one's (a file that was being written), or nothing (removed, and not yet written). All that is lifefold's
own doing, and is brought to what the present commit has. What is none of these is the user's: it stays as it is, and is
named. The same goes for the entries of the index.

Git itself compares files with commits, by small indexes of these paths alone: with the user's filters, line ends, modes
and symbolic links. Nothing is written over: what is to be replaced is removed first, if it is still as it was looked
at. A repair can be cut off, too, and done again.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from lifefold.interpreters.worktrees.git import Git, Way

_REPOSITORY = "160000"
_SYMLINK = "120000"
_STATUS = range(256)

Entries = Mapping[str, tuple[str, str]]
"""What a commit or an index has at paths: mode and object."""


async def restore(tree: Git, old: str, new: str, head: str, index: Path) -> tuple[str, ...]:
    """Let the paths in which ``old`` and ``new`` differ be as in ``head``; return those that had to be left alone.

    The index in the file ``index`` is changed; git's lock on the working tree's own index must be held.
    """
    sides = await difference(tree, old, new)
    paths = set(sides[0]) | set(sides[1])
    if not paths:
        return ()
    wanted = {old: sides[0], new: sides[1]}.get(head) or await _entries_of(tree, head, paths)
    there = {path: seen for path in paths if (seen := _seen(tree.folder, path)) is not None}
    same = [await _unchanged(tree, entries, index) for entries in (*sides, wanted)]
    ours = {path for path in there if path in same[0] | same[1] or await _is_cut_off(tree, path, (*sides, wanted))}
    for path in sorted(ours - same[2]):
        if _seen(tree.folder, path) == there[path]:
            (tree.folder / path).unlink()
    for path in paths - set(wanted):
        _prune(tree.folder, path)
    await _reset(tree, sides, wanted, paths, index)
    await _check_out(tree, wanted, index)
    right = await _unchanged(tree, wanted, index)
    return tuple(sorted(path for path in paths if path not in right and _is_left(tree.folder, path, wanted)))


def _is_left(folder: Path, path: str, wanted: Entries) -> bool:
    return path in wanted or _seen(folder, path) is not None


async def difference(tree: Git, old: str, new: str) -> tuple[Entries, Entries]:
    """Return what the two commits have at the paths in which they differ; repositories within are left out."""
    sides: tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]] = ({}, {})
    listed = (await tree.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", old, new)).text
    fields = listed.split("\0")
    for change, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_object, new_object, _ = change.removeprefix(":").split()
        for side, mode, found in zip(sides, (old_mode, new_mode), (old_object, new_object), strict=True):
            if found.strip("0") and mode != _REPOSITORY:
                side[path] = (mode, found)
    return sides


async def _entries_of(tree: Git, commit: str, paths: set[str]) -> Entries:
    """Return what a commit has at some paths."""
    listed = (await tree.run("ls-tree", "-r", "-z", "--full-tree", commit)).text
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    split = ((path, meta.split()) for meta, _, path in entries)
    return {path: (meta[0], meta[2]) for path, meta in split if path in paths and meta[0] != _REPOSITORY}


async def indexed(tree: Git, paths: set[str], index: Path) -> dict[str, tuple[str, str]]:
    """Return what an index has at some paths; what a merge of the user's has left there is told apart from all else."""
    listed = (await tree.run("ls-files", "--stage", "-z", "--full-name", way=Way(index=index))).text
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    split = ((path, meta.split()) for meta, _, path in entries)
    return {path: (meta[0], meta[1] if meta[2] == "0" else "unmerged") for path, meta in split if path in paths}


async def _unchanged(tree: Git, entries: Entries, index: Path) -> set[str]:
    """Return the paths at which the working tree has what the entries say, as git sees it."""
    probe = index.with_name(f"{index.name}.probe")
    probe.unlink(missing_ok=True)
    if not entries:
        return set()
    way = Way(index=probe)
    try:
        await tree.run("update-index", "-z", "--index-info", way=Way(_lines(entries.items()), probe))
        await tree.run("update-index", "-q", "--refresh", accept=_STATUS, way=way)
        differing = set((await tree.run("diff-files", "--name-only", "-z", way=way)).names)
    finally:
        probe.unlink(missing_ok=True)
    return set(entries) - differing


async def _is_cut_off(tree: Git, path: str, sides: Iterable[Entries]) -> bool:
    """Tell whether a file is only the beginning of what git was writing there."""
    file = tree.folder / path
    if file.is_symlink() or not file.is_file():
        return False
    found = file.read_bytes()
    for mode, blob in {side[path] for side in sides if path in side}:
        if mode != _SYMLINK:
            whole = await tree.run("cat-file", "--filters", f"--path={path}", blob)
            if whole.text.encode("utf-8", "surrogateescape").startswith(found):
                return True
    return False


async def _reset(tree: Git, sides: tuple[Entries, Entries], wanted: Entries, paths: set[str], index: Path) -> None:
    """Let the index have what is wanted wherever it has what one of the sides has."""
    found = await indexed(tree, paths, index)
    moved = [path for path in paths if found.get(path) in {side.get(path) for side in sides}]
    wrong = [path for path in moved if found.get(path) != wanted.get(path)]
    none = ("0", "0" * 40)
    for remove in (True, False):  # a file and a folder of one name exclude each other
        lines = [(path, wanted.get(path, none)) for path in wrong if (path not in wanted) is remove]
        if lines:
            await tree.run("update-index", "-z", "--index-info", way=Way(_lines(lines), index))


async def _check_out(tree: Git, wanted: Entries, index: Path) -> None:
    """Write what is missing, without writing over anything; what cannot be written is found afterwards."""
    found = await indexed(tree, set(wanted), index)
    missing = [path for path in wanted if found.get(path) == wanted[path] and _has_room(tree.folder, path)]
    if missing:
        way = Way(b"".join(os.fsencode(path) + b"\0" for path in missing), index)
        await tree.run("checkout-index", "--quiet", "-u", "-z", "--stdin", way=way)
    await tree.run("update-index", "-q", "--refresh", accept=_STATUS, way=Way(index=index))


def _lines(entries: Iterable[tuple[str, tuple[str, str]]]) -> bytes:
    return b"".join(f"{mode} {found}\t".encode() + os.fsencode(path) + b"\0" for path, (mode, found) in entries)


def _seen(folder: Path, path: str) -> tuple[int, int, int] | None:
    """Return what tells a file from one that has been changed since; None if there is none, or a folder."""
    if any((folder / above).is_symlink() for above in _above(path)):
        return None  # what is behind a symbolic link is not in the working tree
    try:
        found = os.lstat(folder / path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if (folder / path).is_dir() and not (folder / path).is_symlink() else _mark(found)


def _has_room(folder: Path, path: str) -> bool:
    """Tell whether nothing is at a path, and nothing but folders above it."""
    above = [folder / each for each in _above(path)]
    there = [each for each in above if os.path.lexists(each)]
    return all(each.is_dir() and not each.is_symlink() for each in there) and not os.path.lexists(folder / path)


def _mark(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_mtime_ns, found.st_size


def _above(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts)))


def _prune(folder: Path, path: str) -> None:
    """Remove the folders above a path that are empty."""
    above = list(_above(path))
    if any((folder / each).is_symlink() for each in above):
        return
    for each in reversed(above):
        with suppress(OSError):  # it has something in it, or is not there
            (folder / each).rmdir()
