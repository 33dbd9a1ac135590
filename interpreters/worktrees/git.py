"""Git commands for workplaces: running one, and the queries and changes that workplaces need.

These commands must not depend on the user's configuration of git, nor disturb it. Every call runs without hooks,
signing, editor, prompt, automatic garbage collection and file monitor, and in English. No variable of its environment
points git to another repository. Settings that an agent can change are pinned (see ``pinned``, ``excludes`` and
docs/decisions.md, "Pinned for git"). A command that waits at a named pipe is ended (see ``pipes``). File names are
handled as NUL-separated lists.

A killed git leaves its lock files. So a cancelled git command may complete first, and one whose runner is killed
continues, with the locks of its task (see ``locks``). Some references are written by the fleet only. A lock file there
that outlasts git's own waiting belongs to a dead git, and is removed. One in the user's references never is.
"""

import os
import re
import shutil
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lifefold.interpreters.processes.command import Limits, Streams, plain, run
from lifefold.interpreters.worktrees.errors import BY_OTHERS, GitError, KilledError, LockedError, PipeError
from lifefold.interpreters.worktrees.left_at_pipes import mark
from lifefold.interpreters.worktrees.locks import held
from lifefold.interpreters.worktrees.pinned import Pins, remove_pipes, repository_at, worktree_at
from lifefold.interpreters.worktrees.pipes import pipe_before

GIT_LIMITS = Limits(timeout_ms=600_000, grace_ms=5_000, keep_bytes=67_108_864)
"""The longest run of a git command, its patience when cancelled, and the most bytes that it may print."""

NAMES_SHOWN = 20
"""The number of file names that a message lists."""

NAMES_AT_ONCE = 200
"""The number of file names per command; a name has 4,096 bytes at most, and arguments have space for 2 MiB."""

CHANGING = frozenset(
    {"add", "checkout", "checkout-index", "clean", "commit", "commit-tree", "merge", "merge-tree"}
    | {"sparse-checkout", "symbolic-ref", "update-index", "update-ref", "worktree"}
)
"""The commands that change something: they write into files, so a killed runner does not interrupt them."""

_CONFIGURATION = (
    f"core.hooksPath={os.devnull}",
    "core.filesRefLockTimeout=1000",
    "core.fsmonitor=false",
    "core.safecrlf=false",
    "commit.cleanup=default",
    "commit.gpgSign=false",
    "core.checkStat=default",
    "core.ignoreStat=false",
    "core.preferSymlinkRefs=false",
    "core.trustctime=true",
    "diff.orderFile=/dev/null",
    "gc.auto=0",
    "i18n.commitEncoding=UTF-8",
    "maintenance.auto=false",
    "merge.autoStash=false",
    "merge.verbosity=2",
    "merge.verifySignatures=false",
    "protocol.ext.allow=never",
    "sparse.expectFilesOutsideOfPatterns=false",
    "submodule.recurse=false",
)
_NOWHERE = f"{os.devnull}/none"
_VARIABLES = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":", "GIT_OPTIONAL_LOCKS": "0"} | {
    # Agents can write replace references and grafts, which must not change the meaning of a commit.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": _NOWHERE,
}
_KEPT_VARIABLES = (
    *("GIT_CONFIG_", "GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_EXEC_PATH"),
    *("GIT_ASKPASS", "GIT_HTTP_", "GIT_PROXY_", "GIT_SSH", "GIT_SSL_"),  # how a remote is reached
)
_LOCKED = re.compile(r"Unable to create '.*\.lock': File exists")
_LEFT_LOCK = re.compile(r"Unable to create '(.*/refs/(?:heads/)?lifefold/.*\.lock)': File exists")
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]|(?<![A-Za-z0-9])\.|\.(?![A-Za-z0-9])|\.(?=lock$)")
_OURS = ("-c", "user.name=lifefold", "-c", "user.email=lifefold@localhost")


@dataclass(frozen=True, slots=True)
class Answer:
    """The exit status of a git command, its output without the last newline, and its error output."""

    status: int
    text: str
    stderr: str

    @property
    def names(self) -> tuple[str, ...]:
        """The NUL-separated names in the output, without repetitions."""
        return tuple(dict.fromkeys(name for name in self.text.split("\0") if name))


@dataclass(frozen=True, slots=True)
class Way:
    """How a git command is run: its input, an index other than the usual one, and a program that starts it."""

    given: bytes = b""
    index: Path | None = None
    within: tuple[str, ...] = ()


PLAIN = Way()
"""Without input, on the usual index, by itself."""


class Git:
    """Git in one folder: a repository's working tree, or a worktree of it.

    With ``pins`` it uses this working tree and no other, also against the configuration.
    """

    def __init__(self, folder: Path, limits: Limits = GIT_LIMITS, pins: Pins | None = None) -> None:
        self.folder = folder
        self.pins = pins
        self._limits = limits

    @property
    def is_there(self) -> bool:
        """Whether the folder exists."""
        return self.folder.is_dir()

    async def run(self, *arguments: str, accept: Container[int] = (0,), way: Way = PLAIN) -> Answer:
        """Run one git command.

        Raises GitError if its exit status is not accepted, or if it exceeds a limit. The error is a LockedError if a
        lock of another git is the reason, and a KilledError if another process has ended this one.
        """
        answer = await self._attempt(*arguments, way=way)
        if answer.status not in accept and _remove_left_lock(answer.stderr):
            answer = await self._attempt(*arguments, way=way)
        if answer.status not in accept:
            how = f"was ended by signal {-answer.status}" if answer.status < 0 else f"ended with status {answer.status}"
            reason = answer.stderr or f"it {how}"
            passing = LockedError if _LOCKED.search(reason) else KilledError if answer.status in BY_OTHERS else None
            raise (passing or GitError)(_name_of(arguments), self.folder, reason, answer.status)
        return answer

    async def _attempt(self, *arguments: str, way: Way) -> Answer:
        settings = (part for setting in _CONFIGURATION for part in ("-c", setting))
        command = (*way.within, "git", *settings, *arguments)
        name = _name_of(arguments)
        spooled = name in CHANGING
        directory = None if self.pins is None else self.pins.common
        streams = Streams(way.given, held(), spooled, partial(pipe_before, directory=directory))
        try:
            where = {} if self.pins is None else self.pins.environment()
            index = {"GIT_INDEX_FILE": str(way.index)} if way.index else {}
            env = environment() | where | index
            outcome = await run(command, self.folder, self._limits, env=env, streams=streams)
        except OSError as error:
            raise GitError(name, self.folder, f"{error.strerror}: {error.filename}") from error
        if outcome.waited_for:
            raise PipeError(name, self.folder, outcome.waited_for)
        if max(len(outcome.output), len(outcome.errors) if spooled else 0) >= self._limits.keep_bytes:
            raise GitError(name, self.folder, f"it printed {self._limits.keep_bytes} bytes or more")
        if outcome.status is None:
            raise GitError(name, self.folder, f"it did not end within {self._limits.timeout_ms} ms")
        text = outcome.output.decode("utf-8", "surrogateescape").removesuffix("\n")
        return Answer(outcome.status, text, plain(outcome.errors))

    async def agrees(self, *arguments: str) -> bool:
        """Run a command whose exit status is 0 for yes and 1 for no."""
        return (await self.run(*arguments, accept=(0, 1))).status == 0

    async def commit_at(self, revision: str) -> str:
        """Return the id of the commit that a revision names, or an empty text."""
        query = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return (await self.run(*query, accept=(0, 1))).text

    async def tree_of(self, commit: str) -> str:
        """Return the id of a commit's tree."""
        return (await self.run("rev-parse", "--verify", f"{commit}^{{tree}}")).text

    async def is_ancestor(self, older: str, newer: str) -> bool:
        """Tell whether ``older`` is in the history of ``newer``, or is the same commit."""
        return await self.agrees("merge-base", "--is-ancestor", older, newer)

    async def target_of(self, name: str) -> str:
        """Return the full name of the reference that a symbolic one (``HEAD``) points to, or an empty text."""
        return (await self.run("symbolic-ref", "--quiet", name, accept=(0, 1))).text

    async def set_ref(self, name: str, new: str, *, expected: str | None = None) -> None:
        """Point a reference to a commit. If ``expected`` is given, the reference must point to it before."""
        await self.run(
            "update-ref", "-m", "lifefold", "--no-deref", name, new, *(() if expected is None else (expected,))
        )

    async def references(self, *selection: str) -> tuple[str, ...]:
        """Return the full names of the selected references: by prefixes that end with a slash, or by options."""
        return tuple((await self.run("for-each-ref", "--format=%(refname)", *selection)).text.splitlines())

    async def detach(self) -> None:
        """Detach HEAD from its branch, without touching a file."""
        head = await self.commit_at("HEAD")
        if head:
            await self.set_ref("HEAD", head)

    async def is_clean(self) -> bool:
        """Tell whether the working tree is as committed, without untracked files; ignored ones do not count."""
        query = ("status", "--porcelain", "-z", "--untracked-files=normal")
        return not (await self.run(*query)).text and not await self._hidden("--directory", "--no-empty-directory")

    async def unmerged(self) -> tuple[str, ...]:
        """Return the paths that a merge has left unresolved in the working tree."""
        return (await self.run("diff", "--name-only", "--diff-filter=U", "-z")).names

    async def commit_all(self, message: str) -> None:
        """Commit all changes since the last commit, with untracked files, but without ignored ones."""
        await self.stage_all()
        if await self.agrees("diff", "--cached", "--quiet", "--no-ext-diff"):
            return
        arguments = ("commit", "--quiet", "--no-verify", "--cleanup=whitespace", f"--message={message}")
        await self.run(*await self._identity(), *arguments)

    async def stage_all(self, way: Way = PLAIN) -> None:
        """Put all changes into the index, with untracked files, but without ignored ones."""
        await self.run("add", "--all", "--sparse", way=way)  # also files outside a sparse checkout
        for names in portions(await self._hidden(way=way)):
            await self.run("update-index", "--add", "--", *names, way=way)

    async def _hidden(self, *options: str, way: Way = PLAIN) -> tuple[str, ...]:
        """Return the untracked files that only rules from after the run's start ignore (see ``excludes``)."""
        rules = None if self.pins is None else self.pins.excludes
        if rules is None:
            return ()
        query = ("ls-files", "--others", "-z", "--exclude-per-directory=.gitignore", f"--exclude-from={rules}")
        return tuple(name.removesuffix("/") for name in (await self.run(*query, *options, way=way)).names)

    async def heed_all(self, way: Way = PLAIN) -> None:
        """Clear the flags of the index that hide changes of tracked files.

        An agent may have set ``assume-unchanged`` and ``skip-worktree``. In a sparse checkout git itself sets the
        latter, and it stays.
        """
        listed = (await self.run("ls-files", "-v", "-z", way=way)).names
        sparse = await self.run("config", "--type=bool", "--get", "core.sparseCheckout", accept=(0, 1))
        flagged = {
            "--no-assume-unchanged": [line[2:] for line in listed if line[0].islower()],
            "--no-skip-worktree": [line[2:] for line in listed if line[0] in "Ss" and sparse.text != "true"],
        }
        for option, hidden in flagged.items():
            for names in portions(tuple(hidden)):
                await self.run("update-index", option, "--", *names, way=way)

    async def ignored(self) -> tuple[str, ...]:
        """Return the untracked files that git ignores; an ignored folder stands for its contents."""
        query = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        return (await self.run(*query)).names

    async def merged_tree(self, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
        """Merge two commits without touching any working tree; return the tree and the paths that are in conflict."""
        query = ("merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", ours, theirs)
        answer = await self.run(*query, accept=(0, 1))
        tree, *paths = answer.names
        return tree, () if answer.status == 0 else tuple(paths) or ("folders that were renamed",)

    async def commit_tree(self, tree: str, parents: tuple[str, ...], message: str) -> str:
        """Make a commit of a tree; return its id. No reference moves."""
        of = [part for parent in parents for part in ("-p", parent)]
        return (await self.run(*await self._identity(), "commit-tree", tree, *of, "-m", message)).text

    async def added_repositories(self, older: str, newer: str) -> tuple[str, ...]:
        """Return the paths at which ``newer`` records another repository (a gitlink) where ``older`` did not."""
        parts = (await self.run("diff", "--raw", "-z", "--no-renames", "--ignore-submodules=none", older, newer)).text
        fields = parts.split("\0")
        changes = zip(fields[::2], fields[1::2], strict=False)
        return tuple(path for change, path in changes if change.split()[1] == "160000" and change[:7] != ":160000")

    async def worktrees(self) -> tuple[dict[str, str], ...]:
        """Return the repository's worktrees, the main one first: ``worktree`` (its path), ``HEAD``, ``branch``, …."""
        remove_pipes(await self.common_directory())
        listed = (await self.run("worktree", "list", "--porcelain", "-z")).text
        entries = (entry.split("\0") for entry in listed.split("\0\0") if entry)
        return tuple({key: value for key, _, value in (line.partition(" ") for line in entry)} for entry in entries)

    async def linked_worktrees(self) -> tuple["Git", ...]:
        """Return the repository's worktrees but the main one, as far as they exist and are sound."""
        found = [await self.worktree_at(Path(known["worktree"])) for known in (await self.worktrees())[1:]]
        return tuple(git for git in found if git is not None)

    async def worktree_at(self, folder: Path) -> "Git | None":
        """Return the repository's worktree at a folder, pinned to it; None if there is no sound one."""
        pins = worktree_at(folder, await self.common_directory())
        if pins is None:
            return None
        found = Git(folder, self._limits, pins)
        return found if (await found.run("rev-parse", "--git-dir", accept=range(256))).status == 0 else None

    async def working_tree_of(self, branch: str) -> "Git | None":
        """Return the working tree that has a branch checked out, if any has."""
        if await self.target_of("HEAD") == branch:
            return self
        for known in await self.worktrees():
            if known.get("branch") == branch and "prunable" not in known:
                return await self.tree_at(Path(known["worktree"]))
        return None

    async def tree_at(self, folder: Path) -> "Git | None":
        """Return the repository's working tree at a folder: the main one, or a sound worktree."""
        main = repository_at(folder)
        if main is not None and main.directory == main.common == await self.common_directory():
            return Git(folder, self._limits, main)
        return await self.worktree_at(folder)

    async def common_directory(self) -> Path:
        """Return the git directory that the repository's worktrees share."""
        if self.pins is not None:
            return self.pins.common
        return Path((await self.run("rev-parse", "--path-format=absolute", "--git-common-dir")).text)

    async def directory(self) -> Path:
        """Return the git directory of this folder, where its index is."""
        if self.pins is not None:
            return self.pins.directory
        return Path((await self.run("rev-parse", "--absolute-git-dir")).text)

    async def forget_unfinished(self) -> None:
        """Forget unfinished operations that a checkout does not end, so that no later command continues them."""
        directory = await self.directory()
        for name in ("rebase-merge", "rebase-apply", "sequencer"):
            shutil.rmtree(directory / name, ignore_errors=True)
        _remove(directory, "BISECT_*")

    async def _identity(self) -> tuple[str, ...]:
        """Return options with an identity for commits; none if an identity is configured."""
        query = ("-c", "user.useConfigOnly=true", "var")
        answers = [
            await self.run(*query, name, accept=(0, 1, 128)) for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT")
        ]
        return () if all(answer.status == 0 for answer in answers) else _OURS


def environment() -> dict[str, str]:
    """Return the environment of git: this process's, without variables that name another repository or prompt a user.

    It names this process as the command's runner (see ``left_at_pipes``). Neither ``refs/replace/`` nor ``info/grafts``
    gives a commit other parents or files.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT_VARIABLES)
    }
    return kept | _VARIABLES | mark()


def portions(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield file names in groups that fit the arguments of one command."""
    for first in range(0, len(names), NAMES_AT_ONCE):
        yield names[first : first + NAMES_AT_ONCE]


def remove_locks(git_directory: Path) -> None:
    """Remove the lock files that a killed git has left in the git directory of a fleet's worktree."""
    for lock in git_directory.rglob("*.lock"):
        lock.unlink(missing_ok=True)


def path_name(name: str) -> str:
    """Return a name in a form that fits a path and a reference; different names stay different."""
    return _UNFIT.sub(_percent, name) or "%"


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


def shown(names: tuple[str, ...]) -> str:
    """Return file names as a list for a message, on one line."""
    listed = ", ".join(name if name.isprintable() else ascii(name) for name in names[:NAMES_SHOWN])
    return listed if len(names) <= NAMES_SHOWN else f"{listed}, and {len(names) - NAMES_SHOWN} more"


def _name_of(arguments: tuple[str, ...]) -> str:
    """Return the name of the git command, after the settings."""
    settings = 0
    while arguments[settings] == "-c":
        settings += 2
    return arguments[settings]


def _remove_left_lock(stderr: str) -> bool:
    """Remove the lock that git reports, if it is on a fleet's reference; tell whether it was."""
    found = _LEFT_LOCK.search(stderr)
    if found:
        Path(found[1]).unlink(missing_ok=True)
    return found is not None


def _remove(folder: Path, pattern: str) -> None:
    for file in folder.glob(pattern):
        file.unlink(missing_ok=True)
