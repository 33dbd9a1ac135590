"""The changes that the work at a task makes: which two states are compared, and their difference.

The states come from the log where it has them. A closed task has a merge commit, and a task that waits for its approval
has a parked commit. Otherwise they come from git, for the latest claim with work. That is the agent's worktree with its
uncommitted files, the salvage of a worktree, or the branch of the claim.

The past of a log has the commits that it names, and the work of the claims that had ended. Of a claim that went on
then, git has the commits up to that time. Files that were not committed by then are not known.

Nothing in the repository or in a worktree changes. A worktree is compared through a copy of its index, in which new
files are named.
"""

import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Final

import anyio
import msgspec
from msgspec.structs import replace as replace_struct

from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.desk.work_place import GIT_OF_OPERATOR, place_at_remote, place_here
from lifefold.interpreters.explain.task_words import is_in
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.remote_work import NoRemoteError, is_at_remote, may_have_moved
from lifefold.interpreters.store import LogStore
from lifefold.interpreters.worktrees.claim_commit import CLAIM, Claim
from lifefold.interpreters.worktrees.errors import GitError, WorkplaceError
from lifefold.interpreters.worktrees.excludes import RULES
from lifefold.interpreters.worktrees.git import PLAIN, Git, Way, path_name, portions
from lifefold.interpreters.worktrees.pinned import Pins, worktree_at
from lifefold.interpreters.worktrees.salvage import salvage_name
from lifefold.interpreters.worktrees.snapshot import copied_index

SHORT: Final = 10
"""The characters of a commit in a sentence."""

MOST_PATHS: Final = 1_000
"""The most files to which a comparison of two attempts is limited; with more of them, all files are compared."""

LOOK_S: Final = 20.0
"""The longest time that a page waits for a git remote; ``lifefold diff`` waits until the work is here."""

NO_PATH: Final = ".git"
"""A path that no commit has: a comparison of it alone is empty."""

_DIFF: Final = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames")


class Changes(msgspec.Struct, frozen=True):
    """Two states that are compared.

    ``kind`` is ``merge``, ``ready``, ``parked``, ``worktree``, ``salvage`` or ``branch``.
    ``base`` and ``head`` are commits; ``head`` is empty for a worktree, whose files are compared. ``branch`` is the
    short name of the claim's branch, or of the ready branch. ``said`` says in a sentence what is compared.

    Only ``paths`` are compared; without any, all files are.
    """

    task: str
    claim: int
    kind: str
    said: str
    base: str
    head: str
    branch: str
    worktree: str = ""
    paths: tuple[str, ...] = ()


class Then(msgspec.Struct, frozen=True):
    """A past moment: its time in Unix milliseconds, and the claims of a task that went on then."""

    at_ms: int
    claims: frozenset[int] = frozenset()


class NoChangesError(Exception):
    """There is no work to compare; the message says why."""


class Repository:
    """The repository of a fleet's log, for questions about the work at its tasks.

    That of a fleet on a cluster is the mirror of its git remote. What a question needs is brought from there.
    """

    def __init__(self, store: LogStore, within_s: float = inf) -> None:
        """Read its place from the log; a git remote may send for so long. Raises ``NoChangesError`` without a place."""
        self._within_s: Final = within_s
        self._store: Final = store
        self._folders: Final = FleetFolder(store.path).worktrees
        self._fleet: Final = store.meta("fleet") or ""
        self._target: Final = store.meta("branch") or ""
        if not self._target:
            raise NoChangesError(f"this fleet has no repository; its agents work in folders below {self._folders}")
        try:
            self._place = place_at_remote(store) if is_at_remote(store) else place_here(store)
        except NoRemoteError as error:
            raise NoChangesError(str(error)) from error

    @property
    def _git(self) -> Git:
        return self._place.git

    @property
    def _home(self) -> Path:
        return self._place.home

    async def changes(self, of: FleetTask, then: Then | None = None) -> Changes:
        """Return what is compared for a task, now or at a past moment, whose record ``of`` is.

        A fleet may have moved to its remote: without work here, work there is asked for. Raises ``NoChangesError`` if
        there is nothing, or git cannot read it.
        """
        try:
            return await self._changes(of, then)
        except NoChangesError as error:
            if self._place.mirror is not None or not of.epoch or not may_have_moved(self._store):
                raise
            here, place = error, self._place
        try:
            self._place = place_at_remote(self._store)
            return await self._changes(of, then)
        except (NoChangesError, NoRemoteError) as there:
            self._place = place
            raise NoChangesError(f"{here}; {there}") from there

    async def _changes(self, of: FleetTask, then: Then | None) -> Changes:
        try:
            await self._bring(of)
            found = await self._merged(of) or await self._parked(of)
            for epoch in range(of.epoch, 0, -1):
                found = found or await self._of_claim(Claim(self._fleet, of.id, epoch), then)
        except (GitError, WorkplaceError, OSError) as error:
            raise NoChangesError(f"git cannot read the work at {of.id}: {error}") from error
        if found is None:
            raise NoChangesError(_uncommitted(of.id) if then is not None and then.claims else self._nothing(of))
        return found

    async def of_attempt(self, of: FleetTask, attempt: int, claims: Sequence[int], then: Then | None = None) -> Changes:
        """Return the work of one attempt at a task, of which ``claims`` has the claims, the last one first.

        Raises ``NoChangesError`` if nothing is left of it, or git cannot read it.
        """
        found: Changes | None = None
        try:
            await self._bring(of, is_named=False)
            for epoch in claims:
                found = found or await self._of_claim(Claim(self._fleet, of.id, epoch), then)
        except (GitError, WorkplaceError, OSError) as error:
            raise NoChangesError(f"git cannot read attempt {attempt} at {of.id}: {error}") from error
        if found is None and then is not None and then.claims.intersection(claims):
            raise NoChangesError(_uncommitted(of.id))
        if found is None:
            raise NoChangesError(f"no work of attempt {attempt} at {of.id} is {self._place.left}")
        return replace_struct(found, said=f"attempt {attempt}, {found.said}")

    async def since(self, of: Changes, attempt: int, before: Changes) -> Changes:
        """Return the work against that of another attempt, in the files that either has changed.

        Other changes of the target branch between both attempts are left out. Raises ``NoChangesError`` while the other
        attempt is worked at, and if git cannot read it.
        """
        if not before.head:
            raise NoChangesError(
                f"attempt {attempt} at {of.task} has no commit yet: its files are in {before.worktree}"
            )
        try:
            names = sorted({*await self._names(of), *await self._names(before)})
        except (GitError, WorkplaceError, OSError) as error:
            raise NoChangesError(f"git cannot compare the attempts at {of.task}: {error}") from error
        paths = () if len(names) > MOST_PATHS else tuple(names) or (NO_PATH,)
        said = f"{of.said.partition(' against ')[0]} against attempt {attempt} ({before.head[:SHORT]})"
        return replace_struct(of, base=before.head, said=said, paths=paths)

    async def _names(self, of: Changes) -> tuple[str, ...]:
        """Return the names of the changed files; a renamed file has both."""
        async with self._compared(of) as (git, way):
            heads = (of.head,) if of.head else ()
            query = ("diff", "--no-ext-diff", "--name-only", "--no-renames", "-z", of.base, *heads, "--")
            return (await git.run(*query, *_literal(of.paths), way=way)).names

    async def diff(self, of: Changes, *options: str) -> bytes:
        """Return the difference in git's format; with ``--stat`` among the options, its summary.

        Raises ``NoChangesError`` if git cannot read a state any more.
        """
        try:
            async with self._compared(of) as (git, way):
                heads = (of.head,) if of.head else ()
                text = (await git.run(*_DIFF, *options, of.base, *heads, "--", *_literal(of.paths), way=way)).text
        except (GitError, WorkplaceError, OSError) as error:
            raise NoChangesError(f"git cannot compare the work at {of.task}: {error}") from error
        return f"{text}\n".encode("utf-8", "surrogateescape") if text else b""

    async def sides(self, of: Changes, into: Path) -> tuple[Path, Path]:
        """Write the changed files of both states into two new folders for a tool, and return them."""
        before, after = into / "before", into / "after"
        for folder in (before, after):
            folder.mkdir()
        try:
            names = await self._names(of)
            await self._write(of.base, names, before)
            if of.head:
                await self._write(of.head, names, after)
            else:
                _copy(Path(of.worktree), names, after)
        except (GitError, WorkplaceError, OSError) as error:
            raise NoChangesError(f"git cannot compare the work at {of.task}: {error}") from error
        return before, after

    async def _merged(self, of: FleetTask) -> Changes | None:
        if of.state is not State.CLOSED or not of.commit:
            return None
        if of.branch:
            return await self._ready(of)
        base = await self._git.commit_at(f"{of.commit}^1")
        if not base:
            raise NoChangesError(f"the merge commit {of.commit[:SHORT]} of {of.id} is not {self._place.where} any more")
        said = f"{of.id} is merged into {self._target}: its merge commit {of.commit[:SHORT]} against {base[:SHORT]}"
        return Changes(of.id, of.epoch, "merge", said, base, of.commit, self._branch(of.id, of.epoch))

    async def _ready(self, of: FleetTask) -> Changes:
        """Return the work on a ready branch: the commit that the log names, wherever the branch is by now."""
        claim = Claim(self._fleet, of.id, of.result or of.epoch)
        base, head = await self._git.commit_at(claim.base), await self._git.commit_at(of.commit)
        if not base or not head:
            raise NoChangesError(f"the commit {of.commit[:SHORT]} of {of.id}, or its base, is not {self._place.where}")
        said = f"{of.id} is on branch {of.branch}: commit {head[:SHORT]} against its base {base[:SHORT]}"
        return Changes(of.id, claim.epoch, "ready", said, base, head, of.branch)

    async def _parked(self, of: FleetTask) -> Changes | None:
        """Return the parked work: the commit that an approval merges, as the log has it."""
        if not of.result or not of.collected:
            return None
        claim = Claim(self._fleet, of.id, of.result)
        base, head = await self._git.commit_at(claim.base), await self._git.commit_at(of.collected)
        if not base or not head:
            raise NoChangesError(f"the parked commit {of.collected[:SHORT]} of {of.id} is not {self._place.where}")
        waits = "waits for your approval" if of.state is State.PENDING_APPROVAL else "is to be merged"
        nothing = "; it changes nothing" if await self._git.tree_of(head) == await self._git.tree_of(base) else ""
        name = self._place.result_of(claim)
        said = f"{of.id} {waits}: commit {head[:SHORT]} of {name} against its base {base[:SHORT]}{nothing}"
        return Changes(of.id, of.result, "parked", said, base, head, name)

    async def _of_claim(self, claim: Claim, then: Then | None) -> Changes | None:
        """Return the latest work of a claim, if it has any: in a worktree, as salvage, or on its branch."""
        base = await self._git.commit_at(claim.base)
        if not base:
            return None
        if then is not None and claim.epoch in then.claims:
            return await self._committed(claim, base, then.at_ms)
        about, against = f"claim {claim.epoch} of {claim.task}", f"against its base {base[:SHORT]}"
        worktree = await self._worktree(claim)
        if worktree is not None:
            said = f"{about}: the files in {worktree}, uncommitted ones included, {against}"
            return Changes(claim.task, claim.epoch, "worktree", said, base, "", self._named(claim), str(worktree))
        for kind, reference in (("salvage", await self._salvage(claim)), ("branch", claim.branch)):
            head = await self._git.commit_at(reference) if reference else ""
            if head and head != base:
                kept = (
                    f"its salvage {reference}"
                    if kind == "salvage"
                    else f"the kept {self._place.kept} {self._named(claim)}"
                )
                said = f"{about}: {kept} ({head[:SHORT]}) {against}"
                return Changes(claim.task, claim.epoch, kind, said, base, head, self._named(claim))
        return None

    async def _committed(self, claim: Claim, base: str, at_ms: int) -> Changes | None:
        """Return what a claim had committed by a time, in Unix milliseconds; None if that was nothing.

        Git counts in seconds. A commit of the second of that time may be later, so it is left out.
        """
        until_s = max(0, at_ms // 1_000 - 1)
        for reference in filter(None, (await self._salvage(claim), claim.branch)):
            if await self._git.commit_at(reference):
                query = ("rev-list", "-1", f"--min-age={until_s}", f"{base}..{reference}")
                if head := (await self._git.run(*query)).text.strip():
                    said = f"claim {claim.epoch} of {claim.task}: its last commit by then, {head[:SHORT]}"
                    against = f"against its base {base[:SHORT]}; files that were not committed by then are not known"
                    return Changes(
                        claim.task, claim.epoch, "branch", f"{said}, {against}", base, head, self._named(claim)
                    )
        return None

    async def _worktree(self, claim: Claim) -> Path | None:
        """Return the worktree that belongs to a claim."""
        with suppress(OSError):
            for folder in sorted(self._folders.glob("*")):
                pins = worktree_at(folder, self._home)
                if pins is not None and await Git(folder, GIT_OF_OPERATOR, pins).target_of(CLAIM) == claim.branch:
                    return folder
        return None

    async def _salvage(self, claim: Claim) -> str:
        """Return the newest salvage of a claim; empty without any."""
        prefix, name = f"refs/lifefold/{path_name(self._fleet)}/salvage/", salvage_name(claim.branch)
        for each in await self._git.references("--sort=-committerdate", prefix):
            kept = each.rpartition("/")[2]
            if kept == name or kept.startswith(f"{name}."):
                return each
        return ""

    def _branch(self, task: str, epoch: int) -> str:
        return self._named(Claim(self._fleet, task, epoch))

    def _named(self, claim: Claim) -> str:
        """Return the name of the branch of a claim, or of the reference at the remote that stands for it."""
        return self._place.branch_of(claim)

    def _nothing(self, of: FleetTask) -> str:
        """Return why there is nothing to compare."""
        if of.state is State.CLOSED:
            return f"{of.id} is closed, and nothing was changed"
        if not of.epoch:
            return f"no agent has begun {of.id} yet; it {is_in(of.state)}"
        return f"{of.id} {is_in(of.state)}, and no work of it is {self._place.left}"

    async def _bring(self, of: FleetTask, *, is_named: bool = True) -> None:
        """Bring the work of a task from the remote, if there is one.

        ``is_named``: only the commits are wanted that the log names, so nothing is asked if they are here.
        """
        mirror = self._place.mirror
        if mirror is None:
            return None
        await mirror.begin()
        if not is_named or not await self._is_here(of):
            with anyio.move_on_after(self._within_s):
                return await mirror.bring(of.id)
            said = f"{mirror.remote.shown} has not sent the work at {of.id} within {self._within_s:.0f} s"
            raise NoChangesError(f"{said}; lifefold diff {of.id} waits for it")
        return None

    async def _is_here(self, of: FleetTask) -> bool:
        is_closed = of.state is State.CLOSED
        head, base = of.commit if is_closed else of.collected, f"{of.commit}^1"
        if of.branch or not is_closed:
            base = Claim(self._fleet, of.id, of.result or of.epoch).base
        is_whole = bool(head and await self._git.commit_at(head) and await self._git.commit_at(base))
        return is_whole or (is_closed and not head)

    @asynccontextmanager
    async def _compared(self, of: Changes) -> AsyncGenerator[tuple[Git, Way]]:
        """Return git for a comparison; for a worktree with a copy of its index that has all changes and new files."""
        if of.head:
            yield self._git, PLAIN
            return
        folder = Path(of.worktree)
        pins = worktree_at(folder, self._home)
        if pins is None:
            raise WorkplaceError(f"the worktree of {of.task} is gone", folder, "Look again.")
        git = Git(folder, GIT_OF_OPERATOR, pins.by(folder.parent / RULES))
        async with copied_index(git) as way:
            await git.run("add", "--intent-to-add", "--all", "--sparse", way=way)
            yield git, way

    async def _write(self, commit: str, names: tuple[str, ...], into: Path) -> None:
        """Write files of a commit into a folder, as far as the commit has them."""
        git = Git(into, GIT_OF_OPERATOR, Pins(into, self._home, self._home))
        with tempfile.TemporaryDirectory(prefix="lifefold-diff-") as temporary:
            way = Way(index=Path(temporary) / "index")
            await git.run("read-tree", commit, way=way)
            for some in portions(names):
                there = (await git.run("ls-files", "-z", "--", *(f":(literal){each}" for each in some), way=way)).names
                given = b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in there)
                await git.run("checkout-index", "-z", "--stdin", way=replace(way, given=given))


def _literal(paths: Sequence[str]) -> Iterator[str]:
    return (f":(top,literal){each}" for each in paths)


def _copy(worktree: Path, names: tuple[str, ...], into: Path) -> None:
    """Copy files of a worktree into a folder; links stay links, and what is no file is left out."""
    for name in names:
        source = worktree / name
        if source.is_symlink() or source.is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, into / name, follow_symlinks=False)


def _uncommitted(task: str) -> str:
    return (
        f"the claim of {task} went on at this moment, and had committed nothing:"
        " the past does not have the files of a worktree"
    )
