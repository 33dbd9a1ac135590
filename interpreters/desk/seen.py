"""A fleet as its log has it, with what is folded beside the aggregates: sessions, claims, costs, one task's history."""

import time
from typing import Final

from lifefold.core.fleet import system
from lifefold.core.fleet.system import board
from lifefold.core.kernel import RunnerRecovered
from lifefold.interpreters.desk.history import History
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.explain import why
from lifefold.interpreters.explain.spending import Spending, spend
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.store import LogStore


class Seen:
    """What is folded of a log for a page about one task or agent; the decisions of the log are observed in order."""

    def __init__(self, store: LogStore, name: str = "") -> None:
        """Begin before the first entry; the history of the task ``name`` is told."""
        self.store: Final = store
        self.is_now: Final = store.past is None
        """Whether the log is read as it is now, and not as it was."""
        self.now_ms: Final = time.time_ns() // 1_000_000 if store.past is None else store.past[1]
        self.folder: Final = FleetFolder(store.path)
        self.ledger: Final = Ledger(system)
        self.history: Final = History()
        self.spending = Spending()
        self.story = why.Story(name)

    def observe(self, decision: Decision) -> None:
        """Add one decision of the log."""
        name, envelope = decision.entry.stream, decision.envelope
        self.history.observe(name, decision.reaction)
        if name == board.NAME and isinstance(envelope.event, RunnerRecovered):
            self.story = why.resumed(self.story, envelope.at_ms)
            return
        for transition in decision.reaction.transitions:
            self.spending = spend(self.spending, name, transition)
            self.story = why.tell(self.story, name, transition)
