"""Workplaces: the folders in which agents work.

A fleet without a repository works in plain folders, one per task. A fleet with a repository works in worktrees, one per
agent (see ``worktrees``).
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
"""The remedy for folders within a repository."""


NOTHING_KEPT: Final = (0, "")
"""The claim and the commit of kept work, where there is none."""


class Workplace(Protocol):
    """The workplace of a fleet. After a crash at any point of an operation, the operation can be repeated."""

    def folder(self, agent: str, task: str) -> Path:
        """Return the folder of the agent's session and of the task's verification."""
        ...

    async def prepare(self, agent: str) -> None:
        """Make or repair the agent's folder. Raises InTheWayError, as other operations do, if that must wait."""
        ...

    async def check_out(
        self, agent: str, task: str, epoch: int, kept: tuple[int, str] = NOTHING_KEPT, *, resumes: bool = False
    ) -> None:
        """Clean the folder for this claim of the task; do nothing if that was done already.

        With ``kept``, an earlier claim and the commit of its work, the folder has that work. Raises WorkplaceError if
        it is lost. With ``resumes`` the folder has the changes of the agent's last claim of the task, unless they
        conflict with what was merged since.
        """
        ...

    async def enter(self, agent: str, task: str, epoch: int) -> None:
        """Let the folder have the files of the claim, whose check-out may have been on another machine.

        Raises WorkplaceError if they are lost.
        """
        ...

    async def keep(self, agent: str, task: str, epoch: int) -> None:
        """Keep the files of the claim as they are, so that another machine can go on with them.

        A repetition without a change does nothing. Raises InTheWayError if that must wait.
        """
        ...

    async def keep_state(self, task: str, kept: int, file: Path) -> None:
        """Keep the file in which sessions at a task keep their state, so that another machine can have it.

        ``kept`` is the claim under whose number the state is kept. Raises WorkplaceError, InTheWayError if that waits.
        """
        ...

    async def bring_state(self, task: str, kept: int, file: Path) -> None:
        """Write the file as another machine has kept it, if one has. Raises as ``keep_state`` does."""
        ...

    async def differs(self, agent: str, task: str, epoch: int) -> bool:
        """Tell whether the folder differs from the start of the claim; nothing is changed.

        Raises WorkplaceError if that cannot be found out any more.
        """
        ...

    async def ignored(self, agent: str, task: str, epoch: int) -> tuple[str, ...]:
        """Return some of the files and folders that are not part of the work because a rule ignores them."""
        ...

    async def park(self, agent: str, task: str, epoch: int, title: str) -> str:
        """Commit the work, so that it can be merged later, also by another agent; return the commit.

        Raises WorkplaceError if the work cannot be merged as it is.
        """
        ...

    async def merge(  # noqa: PLR0913 - a claim, and its data from the log
        self, agent: str, task: str, epoch: int, title: str, *, result: str, accepted: str = ""
    ) -> str:
        """Merge the commit ``result``; return the merge commit in the target branch, empty if nothing changed.

        Raises MergeConflict if it conflicts with work that was merged meanwhile. Raises MovedError if an agent has
        moved the branch to another commit than ``accepted``, and WorkplaceError if it can never be merged as it is.
        """
        ...

    async def make_ready(self, task: str, epoch: int, result: str) -> str:
        """Put the commit ``result`` on a branch named after the task; return its name, empty if nothing changed.

        Raises InTheWayError if that must wait.
        """
        ...

    async def displaced(self, found: str) -> str:
        """Return why nothing is merged into the branch, which an agent has moved to ``found``; empty if it may be."""
        ...

    async def clear(self) -> None:
        """Remove the agents' folders, as far as they contain nothing of value. No agent works there any more."""
        ...

    async def warnings(self) -> tuple[str, ...]:
        """Return settings, possibly of an agent, that affect the user or the next run, but not this one."""
        ...

    async def take_over(self, run: str, log: Path) -> None:
        """Give the fleet's name to this new run; the work of an earlier one is put aside."""
        ...

    async def go_on(self, run: str) -> None:
        """Continue an earlier run. Raises WorkplaceError if another run has taken over since."""
        ...

    def close(self) -> None:
        """Release the workplace for other runs."""
        ...


class FolderWorkplace:
    """Plain folders, one per task, kept between attempts. Nothing is merged."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @classmethod
    def open(cls, root: Path) -> Self:
        """Return the workplace of a run. Raises WorkplaceError if the folders would lie within a repository.

        Git and most tools look for a repository in all parent folders. So an agent's commit would be on the branch that
        the user has checked out.
        """
        around = repository_at(root)
        if around is not None:
            what = "No repository is named, and the agents' folders would lie within one, on whose branch they commit"
            raise WorkplaceError(what, around.folder, INSTEAD.format(around.folder))
        return cls(root)

    def folder(self, agent: str, task: str) -> Path:  # noqa: ARG002 - all agents of a task use its folder
        """Return the task's folder."""
        return self._root / path_name(task)

    async def prepare(self, agent: str) -> None:  # noqa: ARG002 - an agent has no folder but the task's
        """Make the folder for the tasks' folders."""
        make_own(self._root)

    async def check_out(
        self,
        agent: str,
        task: str,
        epoch: int,  # noqa: ARG002 - it is kept between attempts
        kept: tuple[int, str] = NOTHING_KEPT,  # noqa: ARG002 - it has the work already
        *,
        resumes: bool = False,  # noqa: ARG002 - as before
    ) -> None:
        """Make the task's folder, if there is none; anything else at that path is moved aside."""
        folder = self.folder(agent, task)
        make_own(self._root)
        if not is_folder(folder):
            set_aside(folder, self._root / ".aside")
        make_own(folder)

    async def enter(self, agent: str, task: str, epoch: int) -> None:
        """Do nothing: all agents of a task use its folder."""

    async def keep(self, agent: str, task: str, epoch: int) -> None:
        """Do nothing: the folder is kept."""

    async def keep_state(self, task: str, kept: int, file: Path) -> None:
        """Do nothing: the file stays."""

    async def bring_state(self, task: str, kept: int, file: Path) -> None:
        """Do nothing: the file is there."""

    async def differs(self, agent: str, task: str, epoch: int) -> bool:  # noqa: ARG002 - no claim begins anywhere
        """Return False: the folder is kept between attempts, so the changes of one attempt are not known."""
        return False

    async def ignored(self, agent: str, task: str, epoch: int) -> tuple[str, ...]:  # noqa: ARG002 - as the protocol
        """Return nothing: all files in the folder are kept."""
        return ()

    async def park(self, agent: str, task: str, epoch: int, title: str) -> str:  # noqa: ARG002 - nothing is committed
        """Return an empty text: the work stays in the folder."""
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
        """Return an empty text: the work stays in the folder."""
        return ""

    async def make_ready(self, task: str, epoch: int, result: str) -> str:  # noqa: ARG002 - there is no branch
        """Return an empty text: the work stays in the folder."""
        return ""

    async def displaced(self, found: str) -> str:  # noqa: ARG002 - there is no branch
        """Return an empty text: there is no branch."""
        return ""

    async def clear(self) -> None:
        """Do nothing: the folders are the work."""

    async def warnings(self) -> tuple[str, ...]:
        """Return nothing: there are no settings."""
        return ()

    async def take_over(self, run: str, log: Path) -> None:
        """Do nothing: the folders are beside the log, and belong to its run only."""

    async def go_on(self, run: str) -> None:
        """Do nothing, for the same reason."""

    def close(self) -> None:
        """Do nothing."""
