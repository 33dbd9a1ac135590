"""The giving of operator commands: the command line's parser reads their words, and its function gives them.

A repeated key gives nothing: it returns the recorded answers of the first time.
"""

from contextlib import nullcontext
from contextvars import copy_context
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Final

import anyio
import msgspec

from lifefold.core.fleet import system
from lifefold.core.kernel import Codec, UnreadableEntry
from lifefold.interpreters.cli import inside, logs
from lifefold.interpreters.cli.answers import DELIVERY, Delivery
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.engine import ACCEPTED, REFUSED
from lifefold.interpreters.store import StoreError, peek_log
from lifefold.interpreters.web import plan_changes, task_edits
from lifefold.interpreters.web.commands import AcceptPlan, Command, Edit

_MODULES: Final = "lifefold.interpreters.cli.commands"


class AnswerLine(msgspec.Struct, frozen=True):
    """The answer for one name: the line that the command line would print."""

    words: str
    is_accepted: bool


class Given(msgspec.Struct, frozen=True):
    """The answers to a command. ``refusal`` is the sentence of a command that was refused as a whole, or empty.

    ``notes`` are sentences beside the answers. ``is_repeated``: the key was used before, and these are the recorded
    answers.
    """

    lines: tuple[AnswerLine, ...] = ()
    notes: tuple[str, ...] = ()
    refusal: str = ""
    is_repeated: bool = False

    @property
    def is_accepted(self) -> bool:
        """Whether at least one part of the command was accepted."""
        return not self.refusal and any(each.is_accepted for each in self.lines)


class Desk:
    """Gives operator commands to one log, each key once."""

    def __init__(self, log: Path) -> None:
        """Give commands to the log at a path."""
        self._log: Final = log
        self._answered: Final[dict[str, Given]] = {}
        self._turns: Final[dict[str, Lock]] = {}
        self._lock: Final = Lock()
        self._file: Final = Lock()
        """Is held by a command that reads the fleet file and writes it, or accepts it."""

    def give(self, command: Command, key: str) -> Given:
        """Give a command, and return its answers; those of the first time if the key was used before.

        It is called in a thread, and waits for the runner. Raises ``StoreError`` for a log that is locked or lost.
        """
        with self._lock:
            turn = self._turns.setdefault(key, Lock())
        with turn:
            before = self._answered.get(key) or self._recorded(key)
            if before is not None:
                return msgspec.structs.replace(before, is_repeated=True)
            with self._file if isinstance(command, Edit | AcceptPlan) else nullcontext():
                given = copy_context().run(_give, self._log, command, key)
            with self._lock:
                self._answered[key] = given
                while len(self._answered) > _MOST_REMEMBERED:
                    forgotten = next(iter(self._answered))
                    del self._answered[forgotten], self._turns[forgotten]
            return given

    def _recorded(self, key: str) -> Given | None:
        """Return the answers that the log has for a key, after a restart of this program; None if it has none."""
        codec = Codec(system)
        found: list[tuple[str, str]] = []
        with peek_log(self._log) as store:
            for sent in anyio.run(lambda: store.commands(unanswered=False)):
                if key.encode() not in sent.envelope:
                    continue
                try:
                    of = codec.decode(sent.stream, sent.envelope).key
                except UnreadableEntry:
                    continue
                if of.startswith(f"{key}/"):
                    found.append((of.removeprefix(f"{key}/").partition("/")[2], sent.answer or ACCEPTED))
        lines = tuple(AnswerLine(f"{name}: {answer}", not answer.startswith(REFUSED)) for name, answer in found)
        return Given(lines) if lines else None


_MOST_REMEMBERED: Final = 1_000
"""The most keys whose answers are kept in memory; the log has all of them."""


def _give(log: Path, command: Command, key: str) -> Given:
    lines: list[AnswerLine] = []
    notes: list[str] = []
    DELIVERY.set(Delivery(key, lambda given: lines.append(AnswerLine(given.line, given.is_accepted)), notes.append))
    verb, *rest = command.words()
    arguments = parser().parse_args([*verb.split(), f"--db={log}", *rest])
    module, _, function = arguments.command.partition(":")
    try:
        inside.must_be_permitted(arguments)
        if isinstance(command, AcceptPlan):
            plan_changes.accept(log, command.seen, rest=command.rest)
            return Given(tuple(lines), tuple(notes))
        if isinstance(command, Edit):
            task_edits.must_be_as_seen(log, command.name, command.seen)
        getattr(import_module(f"{_MODULES}.{module}"), function)(arguments)
    except BadInput as refused:
        return Given(tuple(lines), tuple(notes), _in_words(str(refused), log))
    return Given(tuple(lines), tuple(notes))


def _in_words(refusal: str, log: Path) -> str:
    """Return a refusal as the command line prints it."""
    try:
        with peek_log(log) as store:
            return logs.typed(refusal, store)
    except (StoreError, OSError):
        return refusal
