"""A fleet as its log has it, with what is told beside the aggregates: sessions, claims, costs, one task's history."""

import time
from collections.abc import Mapping
from typing import Final

import msgspec

from lifefold.core.fleet.system import board
from lifefold.core.kernel import RunnerRecovered
from lifefold.interpreters.desk.history import History
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.explain import why
from lifefold.interpreters.explain.spending import Spending
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.store import LogStore


class Sums(msgspec.Struct, frozen=True):
    """What the whole log adds up to: the costs, the attempts at each task, and the agent of each task's last attempt.

    The handing-over of done work is no attempt.
    """

    spending: Spending
    attempts: Mapping[str, int]
    authors: Mapping[str, str]


class Seen:
    """What a page about one task or agent needs: the present, sums, and the decisions about the task or agent.

    The decisions are observed in their order; ``name`` is the task whose history is told, if it is one.
    """

    def __init__(self, store: LogStore, ledger: Ledger, sums: Sums, name: str = "") -> None:
        """Begin before the first decision."""
        self.store: Final = store
        self.is_now: Final = store.past is None
        """Whether the log is read as it is now, and not as it was."""
        self.now_ms: Final = time.time_ns() // 1_000_000 if store.past is None else store.past[1]
        self.folder: Final = FleetFolder(store.path)
        self.ledger: Final = ledger
        self.sums: Final = sums
        self.history: Final = History()
        self.story = why.Story(name)

    def observe(self, decision: Decision) -> None:
        """Add one decision about the task or the agent."""
        name, envelope = decision.entry.stream, decision.envelope
        self.history.observe(name, decision.reaction)
        if name == board.NAME and isinstance(envelope.event, RunnerRecovered):
            self.story = why.resumed(self.story, envelope.at_ms)
            return
        for transition in decision.reaction.transitions:
            self.story = why.tell(self.story, name, transition)
