"""The seam of a log: the place from which on other rules decide.

A writer that opens a log compares the version of its rules with that of the newest entry. If they differ, the present
state must suit its rules (``lifefold.core.kernel.seam``). Otherwise the writer does not start, and has changed nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lifefold.core.kernel import RequestedEffect, SystemState, broken, misfits
from lifefold.effects import Begin, CancelTimer, Effect, End, StartTimer, Tell
from lifefold.interpreters.engine.interpreter import EffectContext
from lifefold.interpreters.engine.ledger import Decision, Ledger, LogMismatchError

SHOWN: Final = 10
"""The number of parts that a message names."""


class Undone:
    """What a log still owes: messages that no receiver has accepted, and effects that may not be performed."""

    def __init__(self, performed: Mapping[str, int]) -> None:
        """Begin before the first entry; ``performed`` is the store's."""
        self._performed: Final = performed
        self.untold: Final[dict[tuple[str, str, int], Tell]] = {}
        """The messages by sender, receiver and number."""
        self.owed: Final[list[tuple[str, RequestedEffect, EffectContext]]] = []
        """The effects in their order, each with its aggregate."""

    def observe(self, decision: Decision) -> None:
        """Take the next entry of the log into account."""
        stream, version = decision.entry.stream, decision.entry.version
        is_performed = version <= self._performed.get(stream, 0)
        for index, requested in enumerate(decision.reaction.effects):
            effect = requested.effect
            if isinstance(effect, Tell):
                self.untold[stream, effect.aggregate, effect.ordinal] = effect
            elif not is_performed and not isinstance(effect, Begin | End | StartTimer | CancelTimer):
                context = EffectContext(decision.reaction.aggregate, requested.entity, version, index)
                self.owed.append((stream, requested, context))
        # A message is delivered if its receiver has it in the log, so a folded delivery settles it.
        if decision.envelope.sender:
            self.untold.pop((decision.envelope.sender, stream, decision.envelope.ordinal), None)

    def effects(self) -> Iterator[Effect]:
        """Yield the messages and the effects."""
        yield from self.untold.values()
        yield from (requested.effect for _, requested, _ in self.owed)

    def state(self, ledger: Ledger) -> SystemState:
        """Return the present state of the system, with its messages in flight."""
        in_flight = ((sender, to, tell.entity, tell.event) for (sender, to, _), tell in self.untold.items())
        return SystemState(dict(ledger.aggregates), tuple(in_flight))


def must_suit(ledger: Ledger, undone: Undone) -> None:
    """Raise ``LogMismatchError`` if other rules wrote the log, and those of the ledger cannot go on with it."""
    if not ledger.is_at_seam:
        return
    strange = misfits(ledger.system, ledger.aggregates.values(), undone.effects())
    if strange:
        raise LogMismatchError(_message(_STRANGE, strange))
    wrong = broken(ledger.system, undone.state(ledger))
    if wrong:
        raise LogMismatchError(_message(_WRONG, wrong))


def _message(words: tuple[str, str], found: Iterable[str]) -> str:
    lines = [*found]
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    begin, end = words
    return "\n  ".join([begin, *lines[:SHOWN], *more]) + f"\n{end}"


_STRANGE: Final = (
    "other rules wrote this log, and these no longer know what it still needs; nothing was changed:",
    "end that with the version that wrote the log, or declare in the machine what became of it (evolved=)",
)
_WRONG: Final = (
    "other rules wrote this log, and these properties do not hold of its present state; nothing was changed:",
    "go on with the version that wrote the log, or with rules whose properties allow this state",
)
