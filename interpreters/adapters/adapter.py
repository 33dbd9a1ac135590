"""The protocol of an adapter: one agent program, as a pure translation in both directions.

``argv`` translates a brief into a command line. ``read`` translates a line of output into facts, and ``finish`` the end
of the process into the last fact. An adapter performs nothing and knows no clock: the moment is an argument. Its state
is a value of bounded size, so that a restarted runner can read the output again from its beginning.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import msgspec

from lifefold.interpreters.adapters.facts import Ended, Fact, Tokens

MAX_LINE_BYTES: Final = 1 << 20
"""The longest line that an adapter decodes, in bytes; it ignores longer ones."""

State = TypeVar("State")


class Permissions(StrEnum):
    """What an agent may do without asking, in the words of the fleet file."""

    DEFAULT = ""
    """What the program's own settings allow."""
    READ = "read"
    """Look and plan; change nothing."""
    EDIT = "edit"
    """Change files in its worktree."""
    ALL = "all"
    """Everything. For agents in a sandbox of their own."""


class Reports(StrEnum):
    """What an agent program reports about its cost."""

    USD = "usd"
    TOKENS = "tokens"
    NOTHING = "nothing"


class Brief(msgspec.Struct, frozen=True):
    """What a session is to do: the prompt, and how to run the program.

    ``arguments`` are passed on as they are, before the prompt. ``budget_microusd`` and ``turns`` limit the session if
    the program can limit itself; None is no limit. ``permission_tool`` is the tool that the agent asks for leave.
    ``mcp_config`` is the configuration of the server with that tool, as JSON, and ``mcp_server`` its name. ``inbox`` is
    the folder with messages for the running session, for a program that can be steered.
    """

    prompt: str
    model: str = ""
    permissions: Permissions = Permissions.DEFAULT
    arguments: tuple[str, ...] = ()
    budget_microusd: int | None = None
    turns: int | None = None
    permission_tool: str = ""
    mcp_config: str = ""
    mcp_server: str = ""
    inbox: str = ""


class Conversation(msgspec.Struct, frozen=True):
    """The agent's own conversation. ``begun``: an earlier session has had it, and this one resumes it.

    An identifier of a conversation that is not begun was chosen beforehand, for an adapter that can choose. ``charged``
    are the tokens of its earlier sessions, for a program that does not tell them.
    """

    id: str
    begun: bool = False
    charged: Tokens = Tokens()


class Now(msgspec.Struct, frozen=True):
    """The moment at which a line was read. Agents print local times, so the zone's offset from UTC belongs to it."""

    ms: int
    utc_offset_min: int = 0


class Adapter(Protocol[State]):
    """One agent program. All methods are pure."""

    @property
    def name(self) -> str:
        """The name in the fleet file: ``kind = "claude"``."""
        ...

    @property
    def initial(self) -> State:
        """The state before the first line."""
        ...

    @property
    def resumable(self) -> bool:
        """Whether a later session can resume a conversation."""
        ...

    @property
    def chooses_conversation(self) -> bool:
        """Whether the identifier of a new conversation can be chosen beforehand; it is a UUID then."""
        ...

    @property
    def reports(self) -> Reports:
        """What the program reports about its cost."""
        ...

    @property
    def tested_versions(self) -> tuple[str, ...]:
        """The versions of the program whose output was recorded for the tests."""
        ...

    @property
    def version_argv(self) -> tuple[str, ...]:
        """The command that prints the program's version; empty if there is no such program."""
        ...

    def argv(self, brief: Brief, conversation: Conversation | None) -> tuple[str, ...]:
        """Return the command line of a session.

        The prompt is never taken for an option. Without a conversation the session begins one of its own.
        """
        ...

    def read(self, state: State, line: bytes, now: Now) -> tuple[State, tuple[Fact, ...]]:
        """Return the facts of one line of output, with or without its newline. A line is hostile input."""
        ...

    def finish(self, state: State, status: int | None) -> Ended:
        """Return the end of the session by its exit status: -n is a death by signal n, None is unknown."""
        ...


@runtime_checkable
class Attachable(Protocol):
    """An adapter whose program a person can use at a terminal. It is optional, and pure like the rest."""

    def resume_argv(self, conversation: Conversation) -> tuple[str, ...]:
        """Return the command that resumes a conversation at a terminal, without a prompt."""
        ...


def resume_argv(adapter: Adapter[Any], conversation: Conversation) -> tuple[str, ...]:
    """Return the command that resumes a conversation at a terminal; empty if the adapter has none."""
    return adapter.resume_argv(conversation) if isinstance(adapter, Attachable) else ()


@runtime_checkable
class Named(Protocol):
    """An adapter whose program prints no name of its conversation. It is optional, and pure like the rest."""

    def beginning(self, argv: tuple[str, ...]) -> Any:
        """Return the state before the first line of a session with this command line, which has the identifier."""
        ...


def beginning(adapter: Adapter[Any], argv: tuple[str, ...]) -> Any:
    """Return the state before the first line of a session with this command line."""
    return adapter.beginning(argv) if isinstance(adapter, Named) else adapter.initial


@runtime_checkable
class Spoken(Protocol):
    """An adapter of a protocol that many programs speak. It is optional, and its attributes are names.

    ``client`` is the module that speaks the protocol: a session runs it, and it runs the program of the fleet file.
    ``package`` is the module that it needs, and ``extra`` the extra of lifefold that installs it.
    """

    @property
    def client(self) -> str:
        """The module of the client, for ``python -m``."""
        ...

    @property
    def package(self) -> str:
        """The module without which the client cannot run."""
        ...

    @property
    def extra(self) -> str:
        """The extra of lifefold with that module."""
        ...


def steers(adapter: Adapter[Any]) -> bool:
    """Tell whether the program takes messages while its session runs: those of ``Brief.inbox``.

    An adapter says so in the optional attribute ``steers``. Its output has a ``MessageTaken`` for each message.
    """
    return bool(getattr(adapter, "steers", False))


def refused_to_root(adapter: Adapter[Any]) -> Mapping[Permissions, str]:
    """Return the permissions that the program refuses to root, each with the variable that allows them; usually none.

    An adapter has them in the optional attribute ``refused_to_root``.
    """
    found: Mapping[Permissions, str] = getattr(adapter, "refused_to_root", {})
    return found
