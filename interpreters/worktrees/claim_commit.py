"""A claim of a task in a repository: the names of its references, and the messages of its commits."""

from dataclasses import dataclass

from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.worktrees.git import path_name

CLAIM = "refs/worktree/lifefold/claim"
"""A symbolic reference in each worktree to the branch of its claim."""

TITLE_CHARS = 200
"""The number of characters of a title in a commit's subject."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a task, with the names of its references."""

    fleet: str
    task: str
    epoch: int

    @property
    def name(self) -> str:
        """``FLEET/TASK/EPOCH``, as in references and trailers."""
        return f"{path_name(self.fleet)}/{path_name(self.task)}/{self.epoch}"

    @property
    def branch(self) -> str:
        """The claim's branch."""
        return f"refs/heads/lifefold/{self.name}"

    @property
    def base(self) -> str:
        """The reference to the commit at which the branch began."""
        return self._reference("base")

    @property
    def result(self) -> str:
        """The reference to the commit to be merged."""
        return self._reference("result")

    def message(self, subject: str, agent: str) -> str:
        """Return a commit message with trailers that name the task, the claim, and the agent of the commit."""
        task, by = one_line(self.task), one_line(agent)
        return f"{subject}\n\nLifefold-Task: {task}\nLifefold-Claim: {self.name}\nLifefold-Agent: {by}\n"

    def _reference(self, kind: str) -> str:
        return f"refs/lifefold/{path_name(self.fleet)}/{kind}/{path_name(self.task)}/{self.epoch}"


def one_line(text: str) -> str:
    """Return a text on one line, shortened for a commit's subject."""
    return " ".join(plain(text.encode("utf-8", "replace")).split())[:TITLE_CHARS]
