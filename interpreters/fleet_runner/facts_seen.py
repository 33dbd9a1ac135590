"""The facts of an output as events of the worker's ``output``: a pure fold of pieces, of bounded memory.

A work that begins and ends between two reports is counted and not shown, because a report of works is a snapshot. The
position of a fact is the offset of its line plus the number of the fact in it. Events have the order of their facts.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from lifefold.core.fleet.worker import output
from lifefold.core.fleet.worker.output import Doing, Seen, Work, WorkSeen
from lifefold.interpreters.adapters import (
    Adapter,
    ConversationBegan,
    Cutter,
    Fact,
    Limited,
    MessageTaken,
    Now,
    PermissionDenied,
    PermissionWanted,
    WorkEnded,
    WorkStarted,
    cut,
)

MOST_OPEN: Final = 64
"""The most works that are remembered as under way."""


class FactsSeen:
    """What was read of one output, and what of it is not reported yet.

    ``known`` is the record of the worker: its facts up to its position were reported by an earlier runner.
    ``offset`` is where the next piece is to begin.
    """

    def __init__(self, adapter: Adapter[Any], known: output.Output, state: Any = None) -> None:
        """Begin before the first byte of the output, in a state of the adapter: by default its initial one."""
        self.offset = 0
        self._adapter: Final = adapter
        self._state: Any = adapter.initial if state is None else state
        self._cutter = Cutter()
        self._position = known.position
        self._reported: tuple[Doing, ...] = known.works
        self._works: dict[str, Doing] = {}
        self._begun = {Work.TOOL: 0, Work.COMPACTION: 0}
        self._seen_at = 0

    def take(self, start: int, piece: bytes, now: Callable[[], Now], most: int) -> tuple[Seen, ...]:
        """Take a piece of the output that begins at ``start``; return at most about ``most`` events.

        The rest of the piece is left for the next call: ``offset`` says where it begins.
        """
        if start > self.offset:
            self._cutter = Cutter(too_long=True)  # output was dropped, within a line perhaps
            self.offset = start
        events: list[Seen] = []
        for line in self._lines(piece):
            begun = self.offset - 1 - len(line)
            self._state, facts = self._adapter.read(self._state, line, now())
            for place, fact in enumerate(facts, 1):
                events += self._news(fact, begun + place)
            if len(events) >= most:
                break
        return tuple(events)

    def _lines(self, piece: bytes) -> Iterator[bytes]:
        """Yield the lines that a piece completes; ``offset`` is then behind the line."""
        at = 0
        while at < len(piece):
            end = piece.find(b"\n", at) + 1 or len(piece)
            self._cutter, lines = cut(self._cutter, piece[at:end])
            self.offset += end - at
            at = end
            yield from lines

    def snapshot(self) -> tuple[Seen, ...]:
        """Return the works under way, if they have changed since the last report, or more have begun."""
        works = tuple(sorted(self._works.values(), key=_compactions_first))[: output.MOST_WORKS]
        begun = self._begun
        if works == self._reported and not any(begun.values()):
            return ()
        event = WorkSeen(self._seen_at, works, begun[Work.TOOL], begun[Work.COMPACTION])
        self._reported, self._begun = works, dict.fromkeys(begun, 0)
        return (event,) if event.position > self._position else ()

    def _news(self, fact: Fact, position: int) -> tuple[Seen, ...]:
        """Return the events of a fact; works wait for the snapshot."""
        is_new = position > self._position
        match fact:
            case WorkStarted(work=work, id=identifier, name=name):
                if len(self._works) < MOST_OPEN:
                    self._works[identifier] = Doing(work, name)
                self._begun[work] += is_new
                self._seen_at = position
                return ()
            case WorkEnded(id=identifier):
                self._works.pop(identifier, None)
                self._seen_at = position
                return ()
            case _:
                event = _event(fact, position) if is_new else None
                return () if event is None else (*self.snapshot(), event)


def _compactions_first(doing: Doing) -> bool:
    return doing.work is not Work.COMPACTION


def _event(fact: Fact, position: int) -> Seen | None:
    """Return the event of a fact that is reported by itself; None for one that the end of the session reports."""
    match fact:
        case ConversationBegan(id=identifier):
            return output.ConversationSeen(position, identifier)
        case PermissionWanted(id=identifier, tool=tool, question=question):
            return output.PermissionWanted(position, identifier, tool, question)
        case PermissionDenied(id=identifier, tool=tool, reason=reason):
            return output.PermissionDenied(position, identifier, tool, reason)
        case MessageTaken(number=number):
            return output.MessageTaken(position, number)
        case Limited(until_ms=until_ms, scope=scope, reason=reason):
            return output.LimitSeen(position, until_ms, scope, reason)
        case _:
            return None
