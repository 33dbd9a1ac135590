"""Operator commands of the browser: each is a command of the command line, with its words, its refusals, its exit."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from lifefold.interpreters.cli.operator_commands import TEXT_CHARACTERS

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
