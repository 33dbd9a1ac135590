"""The newest part of a log, folded from the nearest mark before it and not from the first entry.

How many entries a line needs is not known before: entries without a line are common, and a filter makes more of them.
So the part becomes longer until it has its lines, or begins with the log.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from lifefold.core.fleet import system
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.positions import newest_position
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.explain.chronicle import Chronicle
from lifefold.interpreters.store import LogStore

USUAL_LINES: Final = 1_000
"""The last lines that ``lifefold log`` prints unless it is told another number."""

ENTRIES_A_LINE: Final = 2
"""For each line that is wanted, so many entries are read at first."""

LONGER: Final = 4
"""If they have too few lines, so many times as many are read."""


class Begun(NamedTuple):
    """A fleet after the entry at position ``seq``, from which the further entries are folded and told."""

    seq: int
    ledger: Ledger
    chronicle: Chronicle


class Part(NamedTuple):
    """Lines of the entries after a beginning. ``is_whole``: no earlier line is left out.

    The lines of a part without a limit are made while they are read, each time an entry is folded.
    """

    begun: Begun
    lines: Iterable[str]
    is_whole: bool


def begun(store: LogStore, seq: int) -> Begun:
    """Return a fleet as it was after an entry; 0 is before the first. Raises ``BadInput`` as ``logs.fold`` does."""
    if not seq:
        return Begun(0, Ledger(system), Chronicle())
    ledger, account = logs.fold_at(store.path, seq)
    return Begun(seq, ledger, Chronicle(account.attempts, ledger.aggregates))


def newest_part(store: LogStore, most: int, read: Callable[[Begun], Iterable[Sequence[str]]]) -> Part:
    """Return the last lines of a log, at least ``most`` if it has as many; the lines of an entry stay together.

    ``read`` folds the further entries, and returns the lines of each.
    """
    end, span = newest_position(store), most * ENTRIES_A_LINE
    while True:
        of = begun(store, max(0, end - span))
        found = list(read(of))
        kept, number = len(found), 0
        while kept and number < most:
            kept -= 1
            number += len(found[kept])
        is_whole = not (of.seq or any(found[:kept]))
        if number >= most or not of.seq:
            return Part(of, [line for lines in found[kept:] for line in lines], is_whole)
        span *= LONGER
