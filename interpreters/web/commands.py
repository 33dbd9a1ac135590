"""Operator commands of the browser: each is a command of the command line, with its words, its refusals, its exit.

A struct becomes the words of a command, the parser of the command line reads them, and the same function gives the
command through the log. A repeated key gives nothing: it returns the recorded answers of the first time.
"""

from contextlib import nullcontext
from contextvars import copy_context
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Annotated, Final, Literal

import anyio
import msgspec
from msgspec import Meta

from lifefold.core.fleet import system
from lifefold.core.kernel import Codec, UnreadableEntry
from lifefold.interpreters.cli import inside, logs
from lifefold.interpreters.cli.answers import DELIVERY, Delivery
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.cli.operator_commands import TEXT_CHARACTERS
from lifefold.interpreters.engine import ACCEPTED, REFUSED
from lifefold.interpreters.store import SqliteStore, StoreError
from lifefold.interpreters.web import plan_changes, task_edits

_MODULES: Final = "lifefold.interpreters.cli.commands"

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]
Names = Annotated[tuple[Name, ...], Meta(min_length=1, max_length=1_000)]
Text = Annotated[str, Meta(min_length=1, max_length=TEXT_CHARACTERS, description="words for the log and for prompts")]
Reason = Annotated[str, Meta(max_length=TEXT_CHARACTERS, description="why; it is in the log")]
Amount = Annotated[str, Meta(max_length=20, pattern=r"^[0-9.a-z]*$")]


class Approve(msgspec.Struct, frozen=True, tag_field="command", tag="approve"):
    """Approve tasks and permissions by their names; without a name, the plan as a whole."""

    names: Annotated[tuple[Name, ...], Meta(max_length=1_000)] = ()
    reason: Reason = ""

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["approve", f"--reason={self.reason}", "--", *self.names]


class Reject(msgspec.Struct, frozen=True, tag_field="command", tag="reject"):
    """Reject tasks and questions by their names; without a name, the plan as a whole."""

    names: Annotated[tuple[Name, ...], Meta(max_length=1_000)] = ()
    reason: Reason = ""

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        if not self.names:
            return ["reject", "--plan", f"--reason={self.reason}"]
        return ["reject", f"--reason={self.reason}", "--", *self.names]


class Answer(msgspec.Struct, frozen=True, tag_field="command", tag="answer"):
    """Answer a question of an agent in words."""

    name: Name
    text: Text

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["answer", "--", self.name, self.text]


class Cancel(msgspec.Struct, frozen=True, tag_field="command", tag="cancel"):
    """Cancel tasks; their sessions end."""

    names: Names
    reason: Reason = ""

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["cancel", f"--reason={self.reason}", "--", *self.names]


class Retry(msgspec.Struct, frozen=True, tag_field="command", tag="retry"):
    """Try failed tasks again, and let blocked tasks go on."""

    names: Names

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["retry", "--", *self.names]


class Send(msgspec.Struct, frozen=True, tag_field="command", tag="send"):
    """Send an operator message to an agent or for a task; without ``waits`` it interrupts a session."""

    name: Name
    text: Text
    waits: bool = False

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["send", *(["--no-interrupt"] if self.waits else []), "--", self.name, self.text]


class Pause(msgspec.Struct, frozen=True, tag_field="command", tag="pause"):
    """Interrupt agents; they begin nothing until they are resumed."""

    names: Names
    reason: Reason = ""

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["pause", f"--reason={self.reason}", "--", *self.names]


class Resume(msgspec.Struct, frozen=True, tag_field="command", tag="resume"):
    """Resume paused agents."""

    names: Names

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["resume", "--", *self.names]


class TryAccount(msgspec.Struct, frozen=True, tag_field="command", tag="try-account"):
    """Try a resting account again before its time."""

    name: Name

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["resume", f"--account={self.name}"]


class Stop(msgspec.Struct, frozen=True, tag_field="command", tag="stop"):
    """Stop agents for good: with grace, after their present task (``drain``), or at once (``kill``)."""

    names: Names
    how: Literal["grace", "drain", "kill"] = "grace"

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["stop", *([] if self.how == "grace" else [f"--{self.how}"]), "--", *self.names]


class Release(msgspec.Struct, frozen=True, tag_field="command", tag="release"):
    """Release an agent, a service or a task from quarantine."""

    name: Name

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["release", "--", self.name]


class Trust(msgspec.Struct, frozen=True, tag_field="command", tag="trust"):
    """Change the trust of an agent."""

    name: Name
    move: Literal["promote", "demote", "violation"]
    reason: Text

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["trust", f"--{self.move}", f"--reason={self.reason}", "--", self.name]


class Raise(msgspec.Struct, frozen=True, tag_field="command", tag="budget"):
    """Raise the budget of the fleet, of an agent or of a task."""

    whose: Literal["fleet", "agent", "task"] = "fleet"
    name: Annotated[str, Meta(max_length=200)] = ""
    usd: Amount = ""
    tokens: Amount = ""
    time: Amount = ""
    sessions: Amount = ""
    reason: Reason = ""

    def __post_init__(self) -> None:
        """Refuse a command that adds nothing, which would only show budgets."""
        if not (self.usd or self.tokens or self.time or self.sessions):
            raise ValueError("one of usd, tokens, time and sessions must have an amount")

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        whose = [] if self.whose == "fleet" else [f"--{self.whose}={self.name}"]
        amounts = {"usd": self.usd, "tokens": self.tokens, "time": self.time, "sessions": self.sessions}
        adds = [f"--add-{name}={amount}" for name, amount in amounts.items() if amount]
        return ["budget", *whose, *adds, f"--reason={self.reason}"]


class AcceptBranch(msgspec.Struct, frozen=True, tag_field="command", tag="branch"):
    """Accept the target branch at the commit to which an agent has moved it."""

    reason: Reason = ""

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["branch", "--accept", f"--reason={self.reason}"]


class Finish(msgspec.Struct, frozen=True, tag_field="command", tag="finish"):
    """Tell a fleet that waits for tasks that no more will come."""

    reason: Reason = ""

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["finish", f"--reason={self.reason}"]


class AddTask(msgspec.Struct, frozen=True, tag_field="command", tag="add-task"):
    """Add a task; ``verify`` are command lines, and ``merge`` as ``approval`` lets its work wait for an operator."""

    id: Name
    prompt: Text
    depends_on: Annotated[tuple[Name, ...], Meta(max_length=1_000)] = ()
    verify: Annotated[tuple[Text, ...], Meta(max_length=100)] = ()
    priority: Annotated[int, Meta(ge=0, le=1_000)] | None = None
    role: Annotated[str, Meta(max_length=200)] = ""
    approval: Literal["none", "merge"] = "none"

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        several = {"depends-on": self.depends_on, "verify": self.verify}
        options = [f"--{name}={each}" for name, values in several.items() for each in values]
        options += [] if self.priority is None else [f"--priority={self.priority}"]
        plain = {"id": self.id, "prompt": self.prompt, "role": self.role, "approval": self.approval}
        return ["task add", *(f"--{name}={value}" for name, value in plain.items()), *options]


class Edit(msgspec.Struct, frozen=True, tag_field="command", tag="edit"):
    """Change a task, in the fleet file and in the plan in force; a field that is null or empty stays as it is.

    ``verify`` are command lines. ``seen`` is from the page of the task: a task that was changed since is not edited.
    """

    name: Name
    seen: Annotated[str, Meta(max_length=64)] = ""
    prompt: Annotated[str, Meta(max_length=TEXT_CHARACTERS)] = ""
    verify: Annotated[tuple[Text, ...], Meta(max_length=100)] = ()
    priority: Annotated[int, Meta(ge=0, le=1_000)] | None = None
    max_retries: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    usd: Amount = ""
    tokens: Amount = ""
    time: Amount = ""
    sessions: Amount = ""

    def __post_init__(self) -> None:
        """Refuse a command that changes nothing."""
        if len(self._options()) == 0:
            raise ValueError(
                "one of prompt, verify, priority, max_retries, usd, tokens, time and sessions must be given"
            )

    def _options(self) -> list[str]:
        given = {"prompt": self.prompt, "budget-usd": self.usd, "budget-tokens": self.tokens, "budget-time": self.time}
        given |= {"budget-sessions": self.sessions}
        numbers = {"priority": self.priority, "max-retries": self.max_retries}
        options = [f"--{name}={value}" for name, value in given.items() if value]
        options += [f"--verify={each}" for each in self.verify]
        return options + [f"--{name}={value}" for name, value in numbers.items() if value is not None]

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["edit", *self._options(), "--yes", "--", self.name]


class AcceptPlan(msgspec.Struct, frozen=True, tag_field="command", tag="accept-plan"):
    """Accept the changed fleet file as a page has shown it; ``rest`` accepts it without its parts without an effect."""

    seen: Annotated[str, Meta(max_length=64, description="the name of the difference, from the page of the fleet")]
    rest: bool = False

    def words(self) -> list[str]:
        """Return the words of the command line, without the log and without the fleet file, which the log names."""
        return ["plan", "--accept", *(["--rest"] if self.rest else []), "FLEET.toml"]


class Abort(msgspec.Struct, frozen=True, tag_field="command", tag="abort"):
    """Abort a task with its parts (``session``), or the other parts of its parent with theirs (``sibling``)."""

    name: Name
    scope: Literal["session", "sibling"] = "session"
    reason: Reason = ""

    def words(self) -> list[str]:
        """Return the words of the command line, without the log."""
        return ["abort", f"--scope={self.scope}", f"--because={self.reason}", "--", self.name]


Command = (
    Approve
    | Reject
    | Answer
    | Cancel
    | Retry
    | Send
    | Pause
    | Resume
    | TryAccount
    | Stop
    | Release
    | Trust
    | Raise
    | AcceptBranch
    | Finish
    | AddTask
    | Edit
    | AcceptPlan
    | Abort
)
"""Any command, told apart by its field ``command``."""

COMMANDS: Final = Command.__args__
"""The structs of all commands."""


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
        with SqliteStore.peek(self._log) as store:
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
        with SqliteStore.peek(log) as store:
            return logs.typed(refusal, store)
    except (StoreError, OSError):
        return refusal
