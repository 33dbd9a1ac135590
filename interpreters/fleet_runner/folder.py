"""The files of a fleet: all beside its log, so that copying or deleting both is complete."""

import os
import re
from itertools import count
from pathlib import Path
from typing import Final

from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.processes.shim.durable import OUTPUT
from lifefold.interpreters.store.place import COPY

_START: Final = re.compile(r"start-([1-9][0-9]{0,5})")
"""The name of a start's folder; an agent can make others."""

_OF_A_COPY: Final = tuple(COPY + end for end in ("", "-wal", "-shm", ".lock", ".new", ".anchor"))
BESIDE: Final = ("", "-wal", "-shm", "-journal", ".lock", ".new", ".anchor", ".anchor.new", *_OF_A_COPY)
"""The suffixes of the files of a log."""


class FleetFolder:
    """The files of one log: ``<log>.files/`` with the agents' worktrees and one folder for every session."""

    def __init__(self, log: Path) -> None:
        """Name the folder after the log's path."""
        self.log: Final = log.absolute()
        self.root: Final = log.with_name(log.name + ".files").absolute()
        self.worktrees: Final = self.root / "worktrees"
        self.hosts: Final = self.root / "hosts"
        """The clones of hosts in a cluster: a folder for each log, with a folder for each host."""
        self.mirrors: Final = self.root / "mirrors"
        """What commands have brought of the work at a git remote: a repository for each log."""
        self.refusals: Final = self.root / "refused.jsonl"
        self.waits: Final = self.root / "in_the_way.json"

    @property
    def own(self) -> frozenset[Path]:
        """All files that the fleet itself writes, the log and the files of its store included."""
        return frozenset({self.root, *(self.log.with_name(self.log.name + each) for each in BESIDE)})

    def session(self, agent: str, attempt: int) -> Path:
        """Return the folder of an agent's n-th session: its prompt, and a folder for each start."""
        return self.root / "sessions" / agent / f"{attempt:04d}"

    def next_start(self, agent: str, attempt: int) -> Path:
        """Return the folder for the next start of a session: its output and its end. More than one start is rare.

        An agent can close the folder of its session to its owner, or leave a link in it.
        """
        starts = (self.session(agent, attempt) / f"start-{number}" for number in count(1))
        return next(start for start in starts if not os.path.lexists(start))

    def last_start(self, agent: str, attempt: int) -> Path:
        """Return the folder of a session's last start, or of its first start if there was none."""
        names = (_START.fullmatch(path.name) for path in self.session(agent, attempt).glob("start-*"))
        numbers = [int(found[1]) for found in names if found is not None]
        if not numbers:
            return self.next_start(agent, attempt)
        return self.session(agent, attempt) / f"start-{max(numbers)}"

    def output(self, agent: str, attempt: int) -> Path:
        """Return the file with the output of the last start of an agent's n-th session."""
        return self.last_start(agent, attempt) / OUTPUT

    def prompt(self, agent: str, attempt: int) -> Path:
        """Return the file of the prompt of an agent's n-th session."""
        return self.session(agent, attempt) / "prompt.txt"

    def inbox(self, agent: str, attempt: int) -> Path:
        """Return the folder with the messages for an agent's n-th session while it runs."""
        return self.session(agent, attempt) / "inbox"

    def heartbeat(self, agent: str, attempt: int) -> Path:
        """Return the file that an agent's n-th session touches as a sign of progress without output."""
        return self.session(agent, attempt) / "heartbeat"

    def state(self, task: str, kept: int) -> Path:
        """Return the file in which a session may keep its state for the next session at the task."""
        return self.root / "states" / f"{task}-{kept}.json"

    def delivery(self, notifier: str) -> Path:
        """Return the file with the command that a notifier runs now."""
        return self.root / "deliveries" / f"{notifier}.json"

    def verification(self, task: str, epoch: int) -> Path:
        """Return the folder with the output of the verification of a claim."""
        return self.root / "verifications" / task / str(epoch)

    def make(self) -> None:
        """Create the folder, ignored by git and readable by its user only."""
        make_private(self.root)
        ignore = self.root.parent / ".gitignore"
        if self.root.parent.name == ".lifefold" and not ignore.exists():
            ignore.write_text("*\n")
