"""Where an agent works: a place of its own, or that of its task, as the fleet wants it.

A fleet without a repository works in plain folders. One with a repository works in worktrees, see ``worktrees``.
"""

from pathlib import Path
from typing import Final, Protocol, Self

from lifefold.interpreters.worktrees.aside import make_own, set_aside
from lifefold.interpreters.worktrees.errors import WorkplaceError
from lifefold.interpreters.worktrees.git import path_name
from lifefold.interpreters.worktrees.pinned import is_folder, repository_at

INSTEAD: Final = (
    'Write repository = "{}" into [fleet], for worktrees whose work is merged into its branch;'
    " or keep the folders elsewhere: --db with a path that is in no repository."
)
"""What to do about folders within a repository."""


class Workplace(Protocol):
    """Where the agents of a fleet work. Every operation may be performed again after a crash at any point of it."""

    def folder(self, agent: str, task: str) -> Path:
        """Return where the agent's session and the task's verification commands run."""
        ...

    async def prepare(self, agent: str) -> None:
        """Make or repair the agent's place. Raises InTheWayError, as the others do, if that has to wait for others."""
        ...

    async def check_out(self, agent: str, task: str, epoch: int) -> None:
        """Make the place clean for this claim of the task; if that has been done already, leave it as it is."""
        ...

    async def differs(self, agent: str, task: str, epoch: int) -> bool:
        """Tell whether what is there differs from where the claim began; nothing is changed.

        Raises WorkplaceError if nobody can tell any more.
        """
        ...

    async def ignored(self, agent: str, task: str, epoch: int) -> tuple[str, ...]:
        """Return some of the files and folders in the place that are no work because a rule ignores them."""
        ...

    async def park(self, agent: str, task: str, epoch: int, title: str) -> str:
        """Keep what was done, so that it can be merged later, by any agent; return the commit that has it.

        Raises WorkplaceError if it never will come home as it is.
        """
        ...

    async def merge(  # noqa: PLR0913 - a claim, and what the log knows of it
        self, agent: str, task: str, epoch: int, title: str, *, result: str, accepted: str = ""
    ) -> str:
        """Merge the commit ``result``; return the commit that the fleet's branch got, empty if nothing changed.

        Raises MergeConflict if it does not fit what others have done meanwhile; MovedError if an agent has moved the
        branch to another commit than ``accepted``; WorkplaceError if it can never be merged as it is.
        """
        ...

    async def displaced(self, found: str) -> str:
        """Say why the fleet's branch, which an agent has moved to ``found``, is not merged into; "" if it may be."""
        ...

    async def clear(self) -> None:
        """Take the agents' places away, as far as nothing of value is in them: nobody works there any more."""
        ...

    async def warnings(self) -> tuple[str, ...]:
        """Return what agents may have set here that concerns the user, or the next run, and not this one."""
        ...

    async def take_over(self, run: str, log: Path) -> None:
        """Let the fleet's name here belong to this new run; what an earlier one has left is put aside."""
        ...

    async def go_on(self, run: str) -> None:
        """Let a run that was begun earlier go on. Raises WorkplaceError if another has taken over since."""
        ...

    def close(self) -> None:
        """Let other runs work here."""
        ...


class FolderWorkplace:
    """Plain folders, one per task, kept between attempts. There is nothing to be merged."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @classmethod
    def open(cls, root: Path) -> Self:
        """Return the workplace of a run. Raises WorkplaceError if the folders would lie within a repository.

        An agent's git, and most tools, look for a repository in all folders above; so an agent that commits would do so
        on the branch that the user has checked out.
        """
        around = repository_at(root)
        if around is not None:
            what = "No repository is named, and the agents' folders would lie within one, on whose branch they commit"
            raise WorkplaceError(what, around.folder, INSTEAD.format(around.folder))
        return cls(root)

    def folder(self, agent: str, task: str) -> Path:  # noqa: ARG002 - whoever works at the task works there
        """Return the task's folder."""
        return self._root / path_name(task)

    async def prepare(self, agent: str) -> None:  # noqa: ARG002 - an agent has no place but the task's
        """Make the folder for the tasks' folders."""
        make_own(self._root)

    async def check_out(self, agent: str, task: str, epoch: int) -> None:  # noqa: ARG002 - it is kept between attempts
        """Make the task's folder, if there is none; what stands there and is none is moved aside."""
        folder = self.folder(agent, task)
        make_own(self._root)
        if not is_folder(folder):
            set_aside(folder, self._root / ".aside")
        make_own(folder)

    async def differs(self, agent: str, task: str, epoch: int) -> bool:  # noqa: ARG002 - no claim begins anywhere
        """Return False: the folder is kept between attempts, so nobody knows what this one has changed."""
        return False

    async def ignored(self, agent: str, task: str, epoch: int) -> tuple[str, ...]:  # noqa: ARG002 - as the protocol
        """Return nothing: all that is in the folder is there to stay."""
        return ()

    async def park(self, agent: str, task: str, epoch: int, title: str) -> str:  # noqa: ARG002 - nothing is committed
        """Return an empty text: what was done is where it belongs."""
        return ""

    async def merge(  # noqa: PLR0913 - as the protocol has it
        self,
        agent: str,  # noqa: ARG002 - nothing is merged
        task: str,  # noqa: ARG002
        epoch: int,  # noqa: ARG002
        title: str,  # noqa: ARG002
        *,
        result: str,  # noqa: ARG002
        accepted: str = "",  # noqa: ARG002
    ) -> str:
        """Return an empty text: what was done is where it belongs."""
        return ""

    async def displaced(self, found: str) -> str:  # noqa: ARG002 - there is no branch
        """Return an empty text: there is no branch."""
        return ""

    async def clear(self) -> None:
        """Do nothing: the folders are the work."""

    async def warnings(self) -> tuple[str, ...]:
        """Return nothing: there is nothing to be set."""
        return ()

    async def take_over(self, run: str, log: Path) -> None:
        """Do nothing: the folders are beside the log, and belong to its run alone."""

    async def go_on(self, run: str) -> None:
        """Do nothing, for the same reason."""

    def close(self) -> None:
        """Do nothing."""
