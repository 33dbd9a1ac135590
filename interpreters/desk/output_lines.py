"""The output of a session as lines for people: a pure fold of its bytes, through the adapter of its program.

A line of the program's own format becomes what it says: a text, a tool, a permission, a limit, a cost. Any other line
is shown as it is. All texts are bounded and have no control characters.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from lifefold.interpreters.adapters import (
    MAX_LINE_BYTES,
    Adapter,
    ConversationBegan,
    Cost,
    Cutter,
    Ended,
    Fact,
    Limited,
    MessageTaken,
    Now,
    PermissionDenied,
    PermissionWanted,
    Said,
    Spent,
    Work,
    WorkEnded,
    WorkStarted,
    cut,
    remaining,
)
from lifefold.interpreters.processes.command import plain

TEXT_CHARS: Final = 4_000
"""The longest line that is shown of a program without a format of its own."""

MOST_OPEN: Final = 64
"""The most works whose names are remembered until their ends."""

COMMAND: Final = "command"
"""The adapter of a plain command, whose own lines are all shown."""


class OutputLine(msgspec.Struct, frozen=True):
    """A line for people; ``is_bad``: it reports a failure, a refusal or a loss.

    ``kind`` is ``text``, ``conversation``, ``tool``, ``permission``, ``message``, ``limit``, ``cost``, ``missing``,
    ``elsewhere`` or ``end``. A limit ends at ``until_ms``, in Unix milliseconds; 0 is an unknown time.
    """

    kind: str
    text: str
    is_bad: bool = False
    until_ms: int = 0

    def line(self) -> str:
        """Return it for a terminal; the text of an agent is indented, so that it cannot imitate other lines."""
        return f"  {self.text}" if self.kind == "text" else f"{self.kind}: {self.text}"


class OutputReader:
    """Reads the output of one session, piece by piece; its memory is bounded by the longest line."""

    def __init__(self, adapter: Adapter[Any], now: Callable[[], Now]) -> None:
        """Begin before the first byte; ``now`` is the moment of a line."""
        self.offset = 0
        self._adapter: Final = adapter
        self._now: Final = now
        self._state: Any = adapter.initial
        self._cutter = Cutter()
        self._open: Final[dict[str, str]] = {}

    def take(self, start: int, piece: bytes) -> Iterator[OutputLine]:
        """Yield the lines that a piece completes; it begins at ``start``, which is later if output was dropped."""
        if start > self.offset:
            yield OutputLine("missing", f"{start - self.offset:,} bytes of the output are not kept", is_bad=True)
            self._cutter = Cutter(too_long=True)
        self.offset = start + len(piece)
        at = 0
        while at < len(piece):
            end = piece.find(b"\n", at) + 1 or len(piece)
            was_too_long = self._cutter.too_long
            self._cutter, lines = cut(self._cutter, piece[at:end])
            at = end
            for line in lines:
                yield from self._line(line)
            if self._cutter.too_long and not was_too_long:
                yield OutputLine("missing", f"a line of more than {MAX_LINE_BYTES:,} bytes is left out", is_bad=True)

    def finish(self, status: int | None, told: str = "") -> Iterator[OutputLine]:
        """Yield the last line, if its newline is missing, and the end of the session.

        ``told`` is the record of an end that the runner has brought about; the output itself does not have it.
        """
        for line in remaining(self._cutter):
            yield from self._line(line)
        self._cutter = Cutter()
        yield OutputLine("end", told, is_bad=True) if told else _end(self._adapter.finish(self._state, status))

    def _line(self, line: bytes) -> Iterator[OutputLine]:
        self._state, facts = self._adapter.read(self._state, line, self._now())
        found = [shown for fact in facts if (shown := self._shown(fact)) is not None]
        if not facts and (self._adapter.name == COMMAND or not line.lstrip().startswith((b"{", b"["))):
            text = plain(line[: 4 * TEXT_CHARS]).replace("\n", " ").rstrip()
            found = [OutputLine("text", _cut(text))] if text.strip() else []
        yield from found

    def _shown(self, fact: Fact) -> OutputLine | None:
        """Return a fact as a line; None for the end of a work that has succeeded."""
        if isinstance(fact, WorkStarted):
            words = "shortens its context" if fact.work is Work.COMPACTION else fact.name or "a tool"
            if len(self._open) < MOST_OPEN:
                self._open[fact.id] = words
            return OutputLine("tool", f"{words}: {fact.subject}" if fact.subject else words)
        if isinstance(fact, WorkEnded):
            words = self._open.pop(fact.id, "a tool")
            return None if fact.ok else OutputLine("tool", f"{words} failed", is_bad=True)
        return SHOWN[type(fact)](fact)


def _wanted(fact: PermissionWanted) -> OutputLine:
    return OutputLine("permission", f"asks to use {fact.tool}{f': {fact.question}' if fact.question else ''}")


def _denied(fact: PermissionDenied) -> OutputLine:
    words = f"{fact.tool} was refused{f': {fact.reason}' if fact.reason else ''}"
    return OutputLine("permission", words, is_bad=True)


def _limited(fact: Limited) -> OutputLine:
    words = ", ".join(filter(None, (fact.scope, fact.reason))) or "the account is limited"
    return OutputLine("limit", words, is_bad=True, until_ms=fact.until_ms or 0)


def in_words(cost: Cost) -> str:
    """Return a cost: ``$0.0124, 1,200 tokens in, 340 out``."""
    tokens = cost.tokens
    read = tokens.input + tokens.cache_read + tokens.cache_write
    money = () if cost.microusd is None else (f"${cost.microusd / 1_000_000:,.4f}",)
    counted = (f"{read:,} tokens in, {tokens.output:,} out",) if read or tokens.output else ()
    return ", ".join((*money, *counted)) or "nothing"


def _end(fact: Ended) -> OutputLine:
    reason = f": {fact.reason}" if fact.reason else ""
    return OutputLine("end", f"{fact.outcome.replace('_', ' ')}{reason}", is_bad=not fact.ok)


SHOWN: Final[dict[type[Fact], Callable[[Any], OutputLine]]] = {
    Said: lambda fact: OutputLine("text", fact.text),
    ConversationBegan: lambda fact: OutputLine("conversation", fact.id),
    PermissionWanted: _wanted,
    PermissionDenied: _denied,
    Limited: _limited,
    MessageTaken: lambda fact: OutputLine("message", f"has begun with message {fact.number}"),
    Spent: lambda fact: OutputLine("cost", in_words(fact.total)),
    Ended: _end,
}
"""The line of each kind of fact, without the works."""


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS else f"{text[: TEXT_CHARS - 1]}…"
