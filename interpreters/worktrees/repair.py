"""Repairing a working tree after an interrupted fast-forward from commit ``old`` to ``new``.

Only the paths in which the two commits differ are examined. A file there may have the contents of one of the commits.
It may have the beginning of such contents, if git was writing it, or be missing, if git had removed it. Such files are
the result of the fast-forward, and are changed to the contents of the present commit. Any other file is the user's: it
is not changed, and is reported. The same holds for the entries of the index.

Git itself compares files with commits, through small indexes of only these paths. So the user's filters, line ends,
modes and symbolic links count. Files outside the user's sparse checkout stay outside it. Nothing is overwritten: a file
to be replaced is removed first, if it is unchanged since it was examined. A repair can be interrupted too, and
repeated.
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
"""The entries of a commit or an index: mode and object by path."""


async def restore(tree: Git, old: str, new: str, head: str, index: Path) -> tuple[str, ...]:
    """Restore the paths in which ``old`` and ``new`` differ to ``head``; return the paths that were left unchanged.

    The index in the file ``index`` is changed. The caller holds git's lock on the working tree's own index.
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
    omitted = await _omitted(tree, index)
    await _check_out(tree, {path: entry for path, entry in wanted.items() if path not in omitted}, index)
    right = await _unchanged(tree, wanted, index) | omitted
    return tuple(sorted(path for path in paths if path not in right and _is_left(tree.folder, path, wanted)))


def _is_left(folder: Path, path: str, wanted: Entries) -> bool:
    return path in wanted or _seen(folder, path) is not None


async def difference(tree: Git, old: str, new: str) -> tuple[Entries, Entries]:
    """Return the entries of two commits at the paths in which they differ, without inner repositories."""
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
    """Return the entries of a commit at some paths."""
    listed = (await tree.run("ls-tree", "-r", "-z", "--full-tree", commit)).text
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    split = ((path, meta.split()) for meta, _, path in entries)
    return {path: (meta[0], meta[2]) for path, meta in split if path in paths and meta[0] != _REPOSITORY}


async def indexed(tree: Git, paths: set[str], index: Path) -> dict[str, tuple[str, str]]:
    """Return the entries of an index at some paths; unmerged entries of a user's merge get the object "unmerged"."""
    listed = (await tree.run("ls-files", "--stage", "-z", "--full-name", way=Way(index=index))).text
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    split = ((path, meta.split()) for meta, _, path in entries)
    return {path: (meta[0], meta[1] if meta[2] == "0" else "unmerged") for path, meta in split if path in paths}


async def _unchanged(tree: Git, entries: Entries, index: Path) -> set[str]:
    """Return the paths at which the working tree equals the entries, according to git."""
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
    """Tell whether a file is the beginning of a file that git was writing."""
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
    """Set the wanted entries in the index wherever it has the entry of one of the sides."""
    found = await indexed(tree, paths, index)
    moved = [path for path in paths if found.get(path) in {side.get(path) for side in sides}]
    wrong = [path for path in moved if found.get(path) != wanted.get(path)]
    none = ("0", "0" * 40)
    for remove in (True, False):  # a file and a folder of one name exclude each other
        lines = [(path, wanted.get(path, none)) for path in wrong if (path not in wanted) is remove]
        if lines:
            await tree.run("update-index", "-z", "--index-info", way=Way(_lines(lines), index))


async def _omitted(tree: Git, index: Path) -> set[str]:
    """Apply the patterns of the user's sparse checkout to an index; return the paths that it does not check out."""
    query = ("config", "--type=bool", "--get", "core.sparseCheckout")
    if (await tree.run(*query, accept=_STATUS)).text != "true":
        return set()
    # Entries that were reset have lost their flags. Git refuses an index with a merge of the user's.
    await tree.run("sparse-checkout", "reapply", accept=_STATUS, way=Way(index=index))
    listed = (await tree.run("ls-files", "-t", "-z", "--full-name", way=Way(index=index))).names
    return {line[2:] for line in listed if line.startswith("S ")}


async def _check_out(tree: Git, wanted: Entries, index: Path) -> None:
    """Write missing files, without overwriting any; the caller finds files that could not be written."""
    found = await indexed(tree, set(wanted), index)
    missing = [path for path in wanted if found.get(path) == wanted[path] and _has_room(tree.folder, path)]
    if missing:
        way = Way(b"".join(os.fsencode(path) + b"\0" for path in missing), index)
        await tree.run("checkout-index", "--quiet", "-u", "-z", "--stdin", way=way)
    await tree.run("update-index", "-q", "--refresh", accept=_STATUS, way=Way(index=index))


def _lines(entries: Iterable[tuple[str, tuple[str, str]]]) -> bytes:
    return b"".join(f"{mode} {found}\t".encode() + os.fsencode(path) + b"\0" for path, (mode, found) in entries)


def _seen(folder: Path, path: str) -> tuple[int, int, int] | None:
    """Return a mark that changes with the file; None if there is no file, or a folder."""
    if any((folder / above).is_symlink() for above in _above(path)):
        return None  # files behind a symbolic link are outside the working tree
    try:
        found = os.lstat(folder / path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if (folder / path).is_dir() and not (folder / path).is_symlink() else _mark(found)


def _has_room(folder: Path, path: str) -> bool:
    """Tell whether a path is free, with only folders above it."""
    above = [folder / each for each in _above(path)]
    there = [each for each in above if os.path.lexists(each)]
    return all(each.is_dir() and not each.is_symlink() for each in there) and not os.path.lexists(folder / path)


def _mark(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_mtime_ns, found.st_size


def _above(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts)))


def _prune(folder: Path, path: str) -> None:
    """Remove the empty folders above a path."""
    above = list(_above(path))
    if any((folder / each).is_symlink() for each in above):
        return
    for each in reversed(above):
        with suppress(OSError):  # it is not empty, or does not exist
            (folder / each).rmdir()
