"""The queue of operator commands: they reach a system through its log, whether or not a runner is at work.

A command is first stored in the log, durably. A runner decides on it and answers it there. Without a runner the process
of the command becomes the writer for a moment. It decides on all stored commands in order, by the same rules and the
same ``LogWriter``. The next runner performs their effects. So two commands at once are decided one after the other, and
the next writer decides on the commands that a dead one has left.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import anyio

from lifefold.core.kernel import Aggregate, Envelope, Event, System, encode, replace
from lifefold.interpreters.engine.clock import WallClock
from lifefold.interpreters.engine.inputs import Input
from lifefold.interpreters.engine.ledger import Ledger
from lifefold.interpreters.engine.log_writer import Accepted, LogWriter
from lifefold.interpreters.engine.seam import Undone, must_suit
from lifefold.interpreters.engine.snapshots import load
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import Busy, Locked, LogStore, open_log

PAUSE_S: Final = 0.05
"""The pause between two queries for answers."""

Unattended: TypeAlias = Callable[[Aggregate | None, Event], Event]
"""Returns an event of an operator as it applies while no runner is at work, for the present state of its aggregate."""


class CommandQueue:
    """Gives operator commands to one system through its log."""

    def __init__(self, store: LogStore, system: System, unattended: Unattended, accepted: Accepted) -> None:
        """Use a log that is open for reading.

        Without a runner, ``unattended`` adapts the commands, and ``accepted`` answers the accepted ones.
        """
        self._store: Final = store
        self._system: Final = system
        self._unattended: Final = unattended
        self._accepted: Final = accepted

    async def give(self, commands: Sequence[tuple[str, Envelope]], timeout_s: float) -> list[str | None]:
        """Store commands for aggregates, and return their answers in order; None for one without an answer in time.

        A crash stores all commands, or none. A command without an answer stays in the log, and the next writer decides
        on it. Raises ``LogMismatchError`` if there is no runner, and the rules of this process cannot go on with those
        of the log. Nothing is stored then.
        """
        if not self._store.is_written():
            await self._must_suit()
        numbers = await self._store.submit_all([(aggregate, encode(envelope)) for aggregate, envelope in commands])
        answers: dict[int, str] = {}
        with anyio.move_on_after(timeout_s):
            while len(answers) < len(numbers):
                if not self._store.is_written():
                    await self._decide(self._store.path)
                answers = await self._store.answers(numbers)
                if len(answers) < len(numbers):
                    await anyio.sleep(PAUSE_S)
        return [answers.get(number) for number in numbers]

    async def _must_suit(self) -> None:
        rules = rules_version(self._system)
        if self._store.newest_rules() not in {None, rules}:
            ledger = Ledger(self._system, rules=rules)
            must_suit(ledger, await self._folded(ledger, self._store))

    async def _folded(self, ledger: Ledger, store: LogStore) -> Undone:
        """Fold a log into a ledger, and return what the log owes."""
        undone, loaded = Undone(await store.performed()), await load(ledger, store)
        undone.untold.update(((sender, tell.aggregate, tell.ordinal), tell) for sender, tell in loaded.untold)
        for decision in ledger.fold(loaded.entries):
            undone.observe(decision)
        return undone

    async def _decide(self, log: Path) -> None:
        """Decide on all stored commands as the writer; do nothing if another process is, or the log is busy."""
        try:
            with open_log(log, patient=False) as store:
                ledger = Ledger(self._system, rules=rules_version(self._system))
                must_suit(ledger, await self._folded(ledger, store))
                writer = LogWriter(ledger, store, WallClock(), accepted=self._accepted)
                await writer.change_rules()
                await writer.commit(self._adapted(ledger, await writer.commands()))
        except (Locked, Busy):
            return

    def _adapted(self, ledger: Ledger, commands: list[Input]) -> Iterator[Input]:
        """Yield each command when its turn comes: ``commit`` has then decided on those before it."""
        for given in commands:
            event = self._unattended(ledger.aggregates.get(given.aggregate), given.envelope.event)
            yield Input(given.aggregate, replace(given.envelope, event=event), given.command)
