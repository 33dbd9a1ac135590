"""What the log of a cluster's fleet says after the fleet has ended: its order, its timers, and its tasks."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lifefold.core.fleet import system
from lifefold.core.kernel import TimerFired
from lifefold.effects import StartTimer
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.explain import task_status
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import Entry, peek_log


class Journal:
    """A log whose entries were all decided again, with the same result."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Read entries. Raises ``LogMismatchError``."""
        ledger = Ledger(system, rules=rules_version(system))
        versions: Counter[str] = Counter()
        taken: Counter[tuple[str, str]] = Counter()
        deadlines: dict[tuple[str, str, str, int], int] = {}
        self.entries = 0
        self.out_of_order: Final[list[str]] = []
        """Entries whose version is not the one after the last of their stream."""
        self.early: Final[list[str]] = []
        """Timers that have fired before their deadline, by the times of the log."""
        for decision in ledger.verify(entries):
            stream, envelope = decision.entry.stream, decision.envelope
            self.entries += 1
            versions[stream] += 1
            if decision.entry.version != versions[stream]:
                self.out_of_order.append(f"{stream} {decision.entry.version}")
            if envelope.key:
                taken[stream, envelope.key] += 1
            if isinstance(event := envelope.event, TimerFired):
                due_ms = deadlines[stream, envelope.entity, event.slot, event.generation]
                if envelope.at_ms < due_ms:
                    self.early.append(f"{stream} {event.slot}: {envelope.at_ms} before {due_ms}")
            for requested in decision.reaction.effects:
                match requested.effect:
                    case StartTimer(slot=slot, generation=generation, deadline_ms=due_ms):
                        deadlines[stream, requested.entity, slot, generation] = due_ms
                    case _:
                        pass
        self.doubles: Final = [f"{stream} {key}" for (stream, key), number in taken.items() if number > 1]
        """Inputs with a key that were taken more than once."""
        self.settled: Final = {
            each.id: str(each.state).lower() for each in task_status.tasks(ledger.aggregates) if each.settled
        }
        """The states of the tasks with which nothing more happens."""

    @property
    def closed(self) -> set[str]:
        """The tasks that are done."""
        return {name for name, state in self.settled.items() if state == "closed"}


async def read_journal(log: Path) -> Journal:
    """Read a log, or the log on a server that a file points to; its chain is verified."""
    with peek_log(log) as store:
        return Journal(await store.read_on(0))
