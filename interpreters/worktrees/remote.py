"""A git remote: its references are read, brought and pushed, each push with the values that it expects there.

*The configuration of the clone does not redirect it.* A git command in a worktree can set the address of a remote, or
the program that reaches it. So these commands run in a repository of their own, the *exchange*. It shares only the
objects of the repository in which agents work. An agent is the same user, so it can still write into the exchange, or
into the user's configuration of git.

*A push is all or nothing.* It names the value that each reference must have, and the remote compares and moves all of
them in one transaction. A process that was frozen in the middle of a push cannot undo what others have pushed since.
After a failed push the references are read again: the push may have succeeded although its answer was lost.

*A host overwrites only what it knows.* The exchange keeps the value of each reference that this host has pushed or gone
on from. A host that was frozen does not know what the next host has pushed since.

*Secrets* belong to git: credential helpers, and keys of ssh. No message has the user part of an address.
"""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.worktrees.errors import STDERR_LINES, GitError, InTheWayError, WorkplaceError
from lifefold.interpreters.worktrees.git import GIT_LIMITS, Answer, Git, portions, shown
from lifefold.interpreters.worktrees.pinned import Pins

LOOK_MS: Final = 60_000
"""The longest time for a remote to name its references."""

FETCH_MS: Final = 3_600_000
"""The longest time for a fetch: the first one brings the whole history."""

STALLED: Final = ("-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=60")
"""Options of git: a transfer by HTTP without a byte in 60 s has failed."""

_PUSHES: Final = ("--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no")

PUT_ROUNDS: Final = 3
"""The number of tries to move references that only this run moves."""

_USER: Final = re.compile(r"(?<=://)[^/@\s]*@")
_BROUGHT: Final = "refs/brought/"
_KNOWN: Final = "refs/known/"


class RemoteAwayError(InTheWayError):
    """The remote does not answer, or refuses to be read."""


class RefusedPushError(InTheWayError):
    """The remote refuses a push, such as by a hook or for want of permission."""


class OtherHostError(WorkplaceError):
    """Another host has moved a reference since this host has read it, and so has the work that it stands for."""


@dataclass(frozen=True, slots=True)
class Change:
    """The move of a reference: its full name, its new commit, and the commit that it has before; empty for none.

    Raises ValueError without a new commit: git would delete the reference.
    """

    name: str
    new: str
    expected: str

    def __post_init__(self) -> None:
        if not self.new:
            raise ValueError(f"{self.name} would be deleted: it has no new commit")


class Remote:
    """The remote at the address ``url``; ``folder`` is the exchange, and ``objects`` the folder of its objects."""

    def __init__(self, url: str, folder: Path, objects: Path) -> None:
        self.shown: Final = shown_address(url)
        self._url: Final = url
        self._folder: Final = folder
        pins = Pins(folder, folder, folder, objects=objects)
        self._git: Final = Git(folder, pins=pins)
        self._look: Final = Git(folder, replace(GIT_LIMITS, timeout_ms=LOOK_MS, grace_ms=0), pins)
        self._fetch: Final = Git(folder, replace(GIT_LIMITS, timeout_ms=FETCH_MS, grace_ms=0), pins)
        self._tried: Final[dict[str, set[str]]] = {}
        """Commits whose push may have succeeded, or may still succeed, although it has failed here."""

    async def begin(self) -> None:
        """Make the exchange, if there is none."""
        make_private(self._folder)
        if not (self._folder / "HEAD").is_file():
            await Git(self._folder).run("init", "--quiet", "--bare", "--template=", str(self._folder))

    async def values(self, *names: str) -> dict[str, str]:
        """Return the commits of references of the remote, without those that do not exist. ``*`` stands for any text.

        Raises RemoteAwayError.
        """
        if not names:
            return {}
        listed = await self._reached(self._look, "ls-remote", "--quiet", "--refs", self._url, *names)
        pairs = (line.partition("\t") for line in listed.text.splitlines())
        prefixes = tuple(name.removesuffix("*") for name in names if name.endswith("*"))
        return {name: commit for commit, _, name in pairs if name in names or name.startswith(prefixes)}

    async def head(self) -> str:
        """Return the full name of the branch that the remote's HEAD names; empty if it names none."""
        listed = await self._reached(self._look, "ls-remote", "--quiet", "--symref", self._url, "HEAD")
        found = re.match(r"ref: (\S+)\tHEAD", listed.text)
        return found[1] if found else ""

    async def bring(self, *names: str) -> dict[str, str]:
        """Fetch references that exist, as far as their commits are not here, and return their commits.

        Raises RemoteAwayError.
        """
        found = await self.values(*names)
        missing = [name for name, commit in found.items() if not await self._git.commit_at(commit)]
        if missing:
            specs = [f"+{name}:{_place(_BROUGHT, name)}" for name in missing]
            options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no")
            await self._reached(self._fetch, "fetch", *options, self._url, *specs)
            found |= {name: await self._git.commit_at(_place(_BROUGHT, name)) for name in missing}
        return found

    async def fetch(self, *specs: str) -> None:
        """Fetch references by git's patterns, and remove those that the remote no longer has.

        Raises RemoteAwayError.
        """
        options = ("--quiet", "--prune", "--update-head-ok", "--no-tags", "--no-write-fetch-head")
        await self._reached(self._fetch, "fetch", *options, "--recurse-submodules=no", self._url, *specs)

    async def delete(self, values: Mapping[str, str]) -> None:
        """Delete references that still have these values; those with other values stay.

        Raises RemoteAwayError, RefusedPushError.
        """
        for names in portions(tuple(values)):
            leases = [f"--force-with-lease={name}:{values[name]}" for name in names]
            push = ("push", "--quiet", *_PUSHES, *leases, self._url, *(f":{name}" for name in names))
            answer = await self._reached(self._git, *push, accept=range(-64, 256))
            found = await self.values(*names) if answer.status else {}
            refused = tuple(name for name in names if found.get(name) == values[name])
            if refused:
                raise self._refused(refused, answer)

    async def push(self, *changes: Change) -> bool:
        """Move references of the remote, all or none. Return False if one of them has another value than expected.

        A repetition of a push that has succeeded returns True. Raises RemoteAwayError, RefusedPushError.
        """
        leases = [f"--force-with-lease={each.name}:{each.expected}" for each in changes]
        specs = [f"{each.new}:{each.name}" for each in changes]
        push = ("push", "--quiet", "--atomic", *_PUSHES, *leases, self._url, *specs)
        answer = await self._reached(self._git, *push, accept=range(-64, 256))
        if answer.status == 0:
            return True
        found = await self.values(*(each.name for each in changes))
        if all(found.get(each.name) == each.new for each in changes):
            return True
        if any(found.get(each.name, "") != each.expected for each in changes):
            return False
        raise self._refused(tuple(each.name for each in changes), answer)

    async def know(self, values: Mapping[str, str]) -> None:
        """Keep values of references, whose commits are here, as those that this host goes on from."""
        for name, commit in values.items():
            await self._git.set_ref(_place(_KNOWN, name), commit)
            self._tried.pop(name, None)

    async def known(self, name: str) -> str:
        """Return the value of a reference that this host has pushed or gone on from last; empty without one."""
        return await self._git.commit_at(_place(_KNOWN, name))

    async def knows(self, name: str, value: str) -> bool:
        """Tell whether this host has pushed a value, or has gone on from it last."""
        return value in self._tried.get(name, ()) or value == await self.known(name)

    async def put(self, commits: Mapping[str, str]) -> None:
        """Point references to commits. Only values that this host knows are overwritten.

        Raises OtherHostError if a reference has another value. Raises RemoteAwayError, RefusedPushError.
        """
        expected = {name: await self.known(name) for name in commits}
        for _ in range(PUT_ROUNDS):
            changes = [Change(name, new, expected[name]) for name, new in commits.items()]
            for each in changes:
                self._tried.setdefault(each.name, set()).add(each.new)
            if await self.push(*changes):
                await self.know(commits)
                return
            found = await self.values(*commits)
            others = [name for name, value in found.items() if not await self.knows(name, value)]
            if others:
                what = f"Another host has gone on with this work: it has moved {shown(tuple(others))} of {self.shown}"
                raise OtherHostError(what, self._folder, "This host does not change them.")
            expected = {name: found.get(name, "") for name in commits}
        what = f"Other processes move {shown(tuple(commits))} of {self.shown}"
        raise InTheWayError(what, self._folder, "End them; the push is repeated then.")

    async def _reached(self, git: Git, *arguments: str, accept: Container[int] = (0,)) -> Answer:
        """Run a command that speaks with the remote. Raises RemoteAwayError if its exit status is not accepted."""
        try:
            return await git.run(*STALLED, *arguments, accept=accept)
        except GitError as error:
            what = f"The remote {self.shown} does not answer git {arguments[0]}: {self._quoted(error.stderr)}"
            raise RemoteAwayError(what, self._folder, "The operation is repeated by itself.") from error

    def _refused(self, names: tuple[str, ...], answer: Answer) -> RefusedPushError:
        what = f"The remote {self.shown} does not take {shown(names)}: {self._quoted(answer.stderr)}"
        return RefusedPushError(what, self._folder, "Correct that at the remote; the push is repeated then.")

    def _quoted(self, stderr: str) -> str:
        lines = stderr.replace(self._url, self.shown).splitlines()
        return " / ".join(line for each in lines[-STDERR_LINES:] if (line := _USER.sub("", each).strip()))


def shown_address(url: str) -> str:
    """Return an address without its user part, which may be a secret."""
    return _USER.sub("", url)


def _place(folder: str, name: str) -> str:
    """Return the name of the reference in the exchange that stands for a reference of the remote."""
    return f"{folder}{name.removeprefix('refs/')}"
