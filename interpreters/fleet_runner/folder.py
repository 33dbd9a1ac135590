"""Where a fleet keeps its things: all beside its log, so that copying or deleting the two takes everything along."""

from itertools import count
from pathlib import Path
from typing import Final

from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.store.place import COPY

_OF_A_COPY: Final = tuple(COPY + end for end in ("", "-wal", "-shm", ".lock", ".new"))
BESIDE: Final = ("", "-wal", "-shm", "-journal", ".lock", ".new", *_OF_A_COPY)
"""The ends of the names of the files that are a log."""


class FleetFolder:
    """The files of one log: ``<log>.files/`` with the agents' worktrees and one folder for every session."""

    def __init__(self, log: Path) -> None:
        """Name the folder after the log's path."""
        self.log: Final = log.absolute()
        self.root: Final = log.with_name(log.name + ".files").absolute()
        self.worktrees: Final = self.root / "worktrees"
        self.refusals: Final = self.root / "refused.jsonl"
        self.waits: Final = self.root / "in_the_way.json"

    @property
    def own(self) -> frozenset[Path]:
        """All that a fleet writes itself, the log and what its store has beside it included."""
        return frozenset({self.root, *(self.log.with_name(self.log.name + each) for each in BESIDE)})

    def session(self, agent: str, attempt: int) -> Path:
        """Return the folder of an agent's n-th session: its prompt, and a folder for every start of it."""
        return self.root / "sessions" / agent / f"{attempt:04d}"

    def next_start(self, agent: str, attempt: int) -> Path:
        """Return the folder for a start of the session: its output, and how it ended. More than one is rare."""
        starts = (self.session(agent, attempt) / f"start-{number}" for number in count(1))
        return next(start for start in starts if not start.exists())

    def last_start(self, agent: str, attempt: int) -> Path:
        """Return the folder of the session's last start; of the one to come if there was none."""
        starts = sorted(self.session(agent, attempt).glob("start-*"), key=lambda path: int(path.name.partition("-")[2]))
        return starts[-1] if starts else self.next_start(agent, attempt)

    def prompt(self, agent: str, attempt: int) -> Path:
        """Return the file with the prompt of an agent's n-th session."""
        return self.session(agent, attempt) / "prompt.txt"

    def heartbeat(self, agent: str, attempt: int) -> Path:
        """Return the file that an agent's n-th session touches to show that it moves, if it has nothing to print."""
        return self.session(agent, attempt) / "heartbeat"

    def state(self, task: str, kept: int) -> Path:
        """Return the file in which a session may keep what the next one with the task needs to go on."""
        return self.root / "states" / f"{task}-{kept}.json"

    def verification(self, task: str, epoch: int) -> Path:
        """Return the folder with what the verification commands of a claim have printed."""
        return self.root / "verifications" / task / str(epoch)

    def make(self) -> None:
        """Create the folder, out of git's sight, and for the user alone who runs the fleet."""
        make_private(self.root)
        ignore = self.root.parent / ".gitignore"
        if self.root.parent.name == ".lifefold" and not ignore.exists():
            ignore.write_text("*\n")
