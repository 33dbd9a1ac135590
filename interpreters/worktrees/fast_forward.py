"""The fast-forward of a branch that the user has checked out: noted before it begins, and repaired after a crash.

A fast-forward changes files, then the index, then the branch. Git, the runner, or both may be killed between any two of
these steps. Before git is started, a durable *note* of the two commits is written into the repository's git directory.
Git works on a copy of the index, ``index.lifefold``. Meanwhile ``index.lock`` keeps other git commands from the index.
That lock contains the text of the note, which identifies it as lifefold's own (see ``index_lock``). When git is done, a
shell replaces the index with the copy. So a fast-forward completes even if its runner is killed.

``recover`` looks for a note, and repairs the fast-forward that it describes (see ``repair``). The note names the
*guard*, a lock that git inherits (see ``locks``). A process that holds the guard knows that no git of the fleet works
on the fast-forward any more.
"""

import os
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from lifefold.interpreters.processes.shim import durable
from lifefold.interpreters.worktrees import index_lock
from lifefold.interpreters.worktrees.aside import make_own, make_room, read_regular
from lifefold.interpreters.worktrees.errors import GitError, InTheWayError
from lifefold.interpreters.worktrees.git import Git, Way, path_name, shown
from lifefold.interpreters.worktrees.locks import holding
from lifefold.interpreters.worktrees.repair import restore

FOLDER: Final = "lifefold-forward"
"""The folder of the notes, in the git directory that all worktrees share: one file per fleet."""

NOTE_BYTES: Final = 65_536
"""The number of bytes that are read of a note; it has two commits and two paths."""

LOCK_MS: Final = 700
POLL_MS: Final = 20
"""The longest wait for git's lock in one try, and the pause between two checks."""

_FOLLOW: Final = """
trap : TERM
copy=$1 index=$2 lock=$3
shift 3
GIT_INDEX_FILE=$copy "$@"
status=$?
[ "$status" -ne 0 ] || mv -f "$copy" "$index"
rm -f "$copy" "$lock"
exit "$status"
"""
"""The shell around git. Asked to end, it waits for git, which removes its locks on the references before it ends."""


@dataclass(frozen=True, slots=True)
class Note:
    """A fast-forward that is about to begin: from commit ``old`` to ``new``, in the working tree ``folder``.

    The process that performs it holds a lock on the file ``guard``.
    """

    fleet: str
    branch: str
    old: str
    new: str
    folder: str
    guard: str

    def text(self) -> str:
        """Return the text of the note's file."""
        fields = {"branch": self.branch, "old": self.old, "new": self.new, "folder": self.folder}
        return durable.encode({index_lock.MARK: self.fleet, **fields, "guard": self.guard})


@dataclass(frozen=True, slots=True)
class Places:
    """The files of a working tree's index: the index, git's lock on it, and the copy for a fast-forward."""

    index: Path

    @property
    def lock(self) -> Path:
        """The path of git's lock."""
        return self.index.with_name(f"{self.index.name}.lock")

    @property
    def copy(self) -> Path:
        """The path of the copy."""
        return self.index.with_name(f"{self.index.name}.lifefold")

    def begin(self) -> None:
        """Make the copy, as a hard link, which keeps the timestamp: git replaces an index and never writes into it."""
        self.drop()
        os.link(self.index, self.copy)

    def end(self) -> None:
        """Replace the index with the copy."""
        self.copy.replace(self.index)
        self.drop()

    def drop(self) -> None:
        """Remove the copy, and the lock on it that a killed git has left."""
        for name in ("", ".lock"):
            file = self.copy.with_name(self.copy.name + name)
            make_room(file)
            file.unlink(missing_ok=True)


class Forward:
    """Moves a branch of the repository ``home``, for one fleet. The caller of its methods holds the lock ``guard``."""

    def __init__(self, home: Git, fleet: str, guard: Path) -> None:
        self._home: Final = home
        self._fleet: Final = fleet
        self._guard: Final = guard

    async def advance(self, branch: str, old: str, new: str) -> str:
        """Move a branch from one commit to a descendant, with the files of the working tree that has it checked out.

        Returns an empty text, or the hindrance if a repetition may succeed at once: the branch has moved, or is locked,
        or git was killed. Raises InTheWayError, and changes nothing, if changed files or another git command block it,
        or if git refuses for another reason.
        """
        tree = await self._home.working_tree_of(branch)
        try:
            if tree is None:
                await self._home.set_ref(branch, new, expected=old)
            else:
                await self._follow(tree, self._note(branch, old, new, tree))
        except GitError as error:
            if await self._home.commit_at(branch) != old or ".lock" in error.stderr or error.was_killed:
                return error.stderr
            raise _hindered(error) from error
        return "" if await self._home.commit_at(branch) == new else "the branch has moved"

    def _note(self, branch: str, old: str, new: str, tree: Git) -> Note:
        return Note(self._fleet, branch, old, new, str(tree.folder.absolute()), str(self._guard))

    async def catch_up(self, tree: Git, branch: str, old: str, new: str) -> None:
        """Update the files of a working tree after its branch was moved from ``old`` to ``new`` without them.

        Raises InTheWayError as ``recover`` does.
        """
        _write(await self._file(), self._note(branch, old, new, tree))
        await self.recover()

    async def recover(self) -> None:
        """Repair an interrupted fast-forward, if there is one.

        Raises InTheWayError if another git is at work there, or if some files could not be repaired; it names them.
        """
        file = await self._file()
        note = _read(file)
        if note is None:
            return
        tree = await self._home.tree_at(Path(note.folder))
        if tree is None:
            if _is_of(note, await self._home.common_directory()):
                what = "An interrupted merge cannot be repaired: the HEAD of the repository is missing or no file"
                raise InTheWayError(what, Path(note.folder), "Put it back; the merge is repaired then.")
            _forget(file)
            return
        others = note.guard != str(self._guard)
        try:
            async with holding(Path(note.guard), LOCK_MS) if others else nullcontext():
                await self._repair(tree, note, file)
        except GitError as error:
            raise InTheWayError(error.what, error.where, error.remedy) from error

    async def _repair(self, tree: Git, note: Note, file: Path) -> None:
        places = await _places(tree)
        if not index_lock.is_ours(places.lock, file):
            await _take(places, tree, file)
        await self._unlock(tree, note)
        left = await self._restored(tree, note, places)
        _forget(places.lock)
        _forget(file)
        if left:
            what = f"An interrupted merge is repaired, but for files neither as before nor as merged: {shown(left)}"
            raise InTheWayError(what, tree.folder, "Look at them with git diff; they were not changed.")

    async def _restored(self, tree: Git, note: Note, places: Places) -> tuple[str, ...]:
        """Repair the fast-forward of the note; return the paths that could not be repaired."""
        head = await tree.commit_at("HEAD")
        if head != note.new and (not head or not await tree.is_ancestor(note.old, head)):
            places.drop()
            return ()
        places.begin()
        left = await restore(tree, note.old, note.new, head, places.copy)
        places.end()
        return left

    async def _follow(self, tree: Git, note: Note) -> None:
        """Fast-forward a working tree. If git fails halfway, repair the working tree."""
        places, file = await _places(tree), await self._file()
        _write(file, note)
        await _take(places, tree, file)
        places.begin()
        within = ("sh", "-c", _FOLLOW, "lifefold", str(places.copy), str(places.index), str(places.lock))
        try:
            # Neither options of the branch's configuration nor an agent's ignore rules may affect this merge.
            options = ("-c", f"branch.{note.branch.removeprefix('refs/heads/')}.mergeOptions=")
            merge = ("merge", "--ff-only", "--strategy=ort", "--quiet", "--no-stat", "--no-overwrite-ignore", note.new)
            await tree.run(*options, *merge, way=Way(within=within))
        except GitError as error:
            if not _in_the_way(error):
                await self.recover()
            _forget(file)
            raise
        _forget(file)

    async def _unlock(self, tree: Git, note: Note) -> None:
        """Remove the lock on the branch that a killed git has left: the lock contains the note's new commit."""
        common = await tree.common_directory()
        lock = common / f"{note.branch}.lock"
        with suppress(OSError):
            if read_regular(lock, NOTE_BYTES) == f"{note.new}\n".encode():
                lock.unlink()

    async def _file(self) -> Path:
        return await self._home.common_directory() / FOLDER / path_name(self._fleet)


async def _places(tree: Git) -> Places:
    return Places(await tree.directory() / "index")


def _write(file: Path, note: Note) -> None:
    make_own(file.parent)
    make_room(file)
    durable.write_durably(str(file.parent), file.name, note.text())


def _is_of(note: Note, git_directory: Path) -> bool:
    """Tell whether the working tree of a note is the main one of the repository with this git directory."""
    return Path(note.folder, ".git").resolve() == git_directory


def _forget(file: Path) -> None:
    file.unlink(missing_ok=True)


def _read(file: Path) -> Note | None:
    try:
        found = durable.decode(read_regular(file, NOTE_BYTES).decode())
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    names = (index_lock.MARK, "branch", "old", "new", "folder", "guard")
    return Note(*(str(found.get(name, "")) for name in names))


async def _take(places: Places, tree: Git, file: Path) -> None:
    """Take git's lock. Raises InTheWayError if it stays locked for longer than most git commands take."""
    with anyio.move_on_after(LOCK_MS / 1000):
        while not index_lock.take(places.lock, file):  # noqa: ASYNC110 - another process sets no event here
            await anyio.sleep(POLL_MS / 1000)
        return
    what = f"The index is locked: {index_lock.whose(places.lock, tree.folder)}"
    raise InTheWayError(what, tree.folder, "The merge is retried then.")


def _hindered(error: GitError) -> InTheWayError:
    """Return the error for a branch that git could not advance."""
    in_the_way = _in_the_way(error)
    if not in_the_way:
        return InTheWayError(error.what, error.where, error.remedy)
    what = f"Changes that are not committed are in the way of a merge: {shown(in_the_way)}"
    return InTheWayError(what, error.where, "Commit, stash or remove them; the merge is retried then.")


def _in_the_way(error: GitError) -> tuple[str, ...]:
    """Return the user's files that git names as the reason why it has not begun."""
    return tuple(line.strip() for line in error.stderr.splitlines() if line.startswith("\t"))
