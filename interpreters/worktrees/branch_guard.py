"""The guard of the target branch: noticing that an agent, and not the user, has moved it.

Agents run git in the same repository. They can move the branch to work that is not verified, without the user's
checkout following. The user may commit to the branch at any time. The user's checkout tells the two apart. If it has
the branch checked out, the reflog of its HEAD has every move of the user. A move in another worktree is not in it. If
it has another branch checked out, a move is an agent's only if its commits were made in an agent's worktree. The reflog
of that worktree tells. If it does not reach back to the checkout of the claim, some of it was removed. Then it is not
known who made the commits, and nothing is merged before the user has looked.

A file beside the worktrees keeps the commits at which lifefold has left the branch. While lifefold moves the branch,
it has two: before and after. Limit: an agent that runs git in the user's own checkout is taken for the user.
"""

import re
from pathlib import Path
from typing import Final

from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.processes.shim import durable
from lifefold.interpreters.worktrees.aside import make_room, read_regular
from lifefold.interpreters.worktrees.claim_commit import CLAIM
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.git import Git, shown
from lifefold.interpreters.worktrees.repair import difference, indexed

NAME: Final = ".left"
"""The name of that file, in the folder of the worktrees."""

LEFT_BYTES: Final = 1_024
"""The number of bytes that are read of it; it has two commits at most."""

COMMITS_SHOWN: Final = 5
"""The number of commits that a message names."""

LOGGED: Final = ("-c", "core.logAllRefUpdates=true")
"""Options of git for the commands that begin an agent's work: the reflog of its worktree is evidence."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40,64}")
_MADE: Final = ("commit", "merge", "rebase", "cherry-pick", "revert", "am", "pull")
"""The beginnings of reflog lines for commits that were made there, and not only checked out."""

_ONLY_CHECKED_OUT: Final = ("Fast-forward", "(start): checkout")


class MovedError(WorkplaceError):
    """An agent has moved the fleet's branch to commit ``found``."""

    def __init__(self, found: str, what: str, where: Path, remedy: str) -> None:
        super().__init__(what, where, remedy)
        self.found = found


class BranchGuard:
    """Watches the branch ``name`` of the repository ``home`` for the fleet whose worktrees are in ``root``."""

    def __init__(self, home: Git, root: Path, name: str) -> None:
        self._home: Final = home
        self._root: Final = root
        self._name: Final = name
        self._left: tuple[str, ...] = ()

    @property
    def left(self) -> tuple[str, ...]:
        """The commits at which lifefold has left the branch, the latest last; empty before the first check."""
        if not self._left:
            text = read_regular(self._root / NAME, LEFT_BYTES).decode("ascii", "replace").split()
            self._left = tuple(text) if all(_COMMIT.fullmatch(commit) for commit in text) else ()
        return self._left

    def leave(self, *commits: str) -> None:
        """Record, durably, that lifefold leaves the branch at one of these commits."""
        if self.left != commits:
            make_private(self._root)
            make_room(self._root / NAME)
            durable.write_durably(str(self._root), NAME, "".join(f"{commit}\n" for commit in commits))
            self._left = commits

    async def check(self, tip: str) -> None:
        """Record the branch's commit ``tip``. Raises MovedError if an agent has moved the branch there."""
        if self.left and tip not in self.left:
            left = await self.before(tip)
            text = await self._move_of_an_agent(left, tip)
            if text:
                raise self._moved(left, tip, text)
        if not self.left or tip not in self.left:
            self.leave(tip)

    async def sound(self, tip: str) -> str:
        """Return the commit from which new work begins: ``tip``, or an earlier one if an agent has moved the branch."""
        try:
            await self.check(tip)
        except MovedError:
            return await self.before(tip)
        return tip

    async def before(self, tip: str) -> str:
        """Return the commit at which lifefold has left the branch before it was moved to ``tip``."""
        for commit in reversed(self.left):
            if await self._home.is_ancestor(commit, tip):
                return commit
        return self.left[0]

    async def users_tree(self) -> Git | None:
        """Return the user's working tree that has the branch checked out, if there is one."""
        for known in await self._home.worktrees():
            if known.get("branch") != f"refs/heads/{self._name}":
                continue
            tree = await self._home.tree_at(Path(known["worktree"]))
            if tree is not None and not await self._is_agents(tree):
                return tree
        return None

    async def _is_agents(self, tree: Git) -> bool:
        return tree.folder.parent == self._root.resolve() or bool(await tree.target_of(CLAIM))

    def _moved(self, left: str, tip: str, text: str) -> MovedError:
        what = (
            f"{self._name} was moved from {left[:12]} to {tip[:12]}, not by lifefold and not in your checkout: {text}"
        )
        back = f"git -C '{self._home.folder}' update-ref refs/heads/{self._name} {left}"
        remedy = f"Nothing is merged until you set it back ({back}) or accept it: lifefold branch --accept."
        return MovedError(tip, what, self._home.folder, remedy)

    async def _move_of_an_agent(self, left: str, tip: str) -> str:
        """Return how an agent has moved the branch, or may have; empty if the user has moved it."""
        tree, made, doubts = await self.users_tree(), await self._made_by_agents(), await self._without_evidence()
        new = (await self._home.run("rev-list", "--first-parent", "--max-count=1000", f"{left}..{tip}")).text.split()
        by_agents = bool(made.keys() & set(new) or doubts)
        if tree is not None and await _has_followed(tree, left, tip, by_agents=by_agents):
            return ""
        onward = await self._home.is_ancestor(left, tip)
        if tree is None and onward and not by_agents:
            return ""
        text = [await self._described(commit, made.get(commit, "")) for commit in new[:COMMITS_SHOWN]]
        more = [f"{len(new) - COMMITS_SHOWN} more commits"] if len(new) > COMMITS_SHOWN else []
        lost = [] if onward else ["commits that were merged are not in it any more"]
        return "; ".join((*text, *more, *lost, *([] if made.keys() & set(new) else doubts)))

    async def _described(self, commit: str, by: str) -> str:
        shown_as = (await self._home.run("log", "-1", "--no-show-signature", "--format=%h %s, by %an", commit)).text
        return shown((f"{shown_as}{f', made by {by}' if by else ''}",))

    async def _without_evidence(self) -> list[str]:
        """Return why it is not known what was made in some agents' worktrees."""
        found: list[str] = []
        for tree in await self._home.linked_worktrees():
            claim = (await tree.target_of(CLAIM)).removeprefix("refs/heads/")
            if claim and not any(
                line.endswith(f" to {claim}") for line in (await _reflog(tree, "--format=%gs")).splitlines()
            ):
                found.append(
                    f"it is not known by whom, because the reflog of the worktree of {tree.folder.name} was removed"
                )
        return found

    async def _made_by_agents(self) -> dict[str, str]:
        """Return the commits that were made in agents' worktrees, each with the agent and its claim."""
        found: dict[str, str] = {}
        for tree in await self._home.linked_worktrees():
            if not await self._is_agents(tree):
                continue
            claim = (await tree.target_of(CLAIM)).removeprefix("refs/heads/")
            by = f"agent {tree.folder.name}{f' on {claim}' if claim else ''}"
            for line in (await _reflog(tree, "--format=%H %gs")).splitlines():
                commit, _, how = line.partition(" ")
                if how.startswith(_MADE) and not how.endswith(_ONLY_CHECKED_OUT):
                    found[commit] = by
        return found


async def _has_followed(tree: Git, left: str, tip: str, *, by_agents: bool) -> bool:
    """Tell whether the branch was moved in this working tree, according to its reflog.

    Agents can write the reflog too. So the index must have moved as well if the commits were made in an agent's
    worktree, or if there is no reflog.
    """
    newest = await _reflog(tree, "-1", "--format=%H")
    if newest and (newest != tip or not by_agents):
        return newest == tip
    before, now = await difference(tree, left, tip)
    paths = set(before) | set(now)
    index = await indexed(tree, paths, await tree.directory() / "index")
    return not paths or any(index.get(path) != before.get(path) for path in paths)


async def _reflog(tree: Git, *options: str) -> str:
    """Return the reflog of a working tree's HEAD, the newest line first; an empty text if it has none."""
    query = ("log", "--walk-reflogs", "--no-show-signature", *options, "HEAD", "--")
    answer = await tree.run(*query, accept=range(256))
    return answer.text if answer.status == 0 else ""
