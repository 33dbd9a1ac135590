"""The ``[[notify]]`` of a fleet file: who is told what waits and what has happened, and how."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from lifefold.core.fleet import NotifierPlan
from lifefold.core.fleet.board import notifier
from lifefold.effects import NotificationKind
from lifefold.interpreters.fleet_file import forms
from lifefold.interpreters.fleet_file.command import placeholders, settled_command, what_is_wrong_with
from lifefold.interpreters.fleet_file.forms import WORDS, Form
from lifefold.interpreters.fleet_file.keys import Key, Section, said, said_but_defaults
from lifefold.interpreters.fleet_file.table import Names, Table
from lifefold.interpreters.fleet_file.values import RefusedError, as_table, shown

KINDS: Final[Mapping[NotificationKind, str]] = {
    NotificationKind.PLAN: "the plan waits for an approval",
    NotificationKind.APPROVAL: "finished work of a task waits for an approval",
    NotificationKind.QUESTION: "an agent asks a question and waits for the answer",
    NotificationKind.PERMISSION: "an agent asks for a permission and waits for it",
    NotificationKind.LIMIT: "an account rests at a limit of its model service",
    NotificationKind.BUDGET: "a budget is spent",
    NotificationKind.BLOCKED: "a task is blocked: it needs something that is missing",
    NotificationKind.BLOCKED_MERGE: "a merge waits: local changes, a lock, or a moved target branch",
    NotificationKind.STALLED: "a session shows no progress; its agent has `stall_timeout`",
    NotificationKind.FAILED: "a task has failed, without a retry left",
    NotificationKind.CLOSED: "a task is closed: its work is merged",
    NotificationKind.STOPPED: "an agent has stopped while tasks are left",
    NotificationKind.SERVICE: "a service is down after its failures",
    NotificationKind.OVER: "the fleet is over",
}
"""The words of the key ``on``, each with its occasion."""

PLACEHOLDERS: Final = ("kind", "fleet", "task", "agent", "text", "log", "id", "fleet_dir")
"""What is inserted into a command: the facts of a notification, and the folder of the fleet file."""

DEFAULT_TIMEOUT_MS: Final = 10_000
"""The longest time of one try."""

MOST_RETRIES: Final = 20
"""The most retries of a delivery."""

_PLACEHOLDER_FORM: Final = (
    f"{', '.join(f'{{{each}}}' for each in PLACEHOLDERS)}; a brace itself is written {{{{ or }}}}"
)
_ARGUMENT: Final = rf"^(?:[^{{}}]|\{{\{{|\}}\}}|\{{(?:{'|'.join(PLACEHOLDERS)})\}})*$"
_HEADER_NAME: Final = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
_HEADER_VALUE: Final = r"^[ -~]*$"


class Notifier(msgspec.Struct, frozen=True):
    """One table: a command to ``run``, ready to be filled in, or a ``url`` with its ``headers``."""

    name: str
    kinds: tuple[NotificationKind, ...]
    run: tuple[str, ...] = ()
    url: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    retries: int = notifier.DEFAULT_RETRIES

    @property
    def plan(self) -> NotifierPlan:
        """Return what the core knows of it."""
        return NotifierPlan(self.name, self.kinds, self.retries)


def _command(value: object) -> tuple[str, ...]:
    """Accept a command with known placeholders only."""
    command = WORDS.parse(value)
    for index, argument in enumerate(command):
        for name in placeholders(argument):
            if name not in PLACEHOLDERS:
                raise RefusedError(name if name in {"{", "}"} else f"{{{name}}}", _PLACEHOLDER_FORM, index)
    return command


COMMAND: Final = Form(
    WORDS.accepted,
    WORDS.brief,
    {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": _ARGUMENT}},
    _command,
    list,
)
"""A command with the placeholders of a notification."""


def _url(value: object) -> str | None:
    """Return an address of the two schemes with a host; without white space and control characters."""
    if not isinstance(value, str) or not value.isprintable() or any(each.isspace() for each in value):
        return None
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return None
    return value if parts.scheme in {"http", "https"} and parts.hostname else None


URL: Final = Form(
    'an address, such as "https://example.org/hook"',
    "an `http` or `https` address",
    {"type": "string", "pattern": r"^https?://\S+$"},
    _url,
)


def _headers(value: object) -> dict[str, str] | None:
    """Return names of headers with values on one line."""
    table = as_table(value)
    if table is None:
        return None
    found: dict[str, str] = {}
    for name, text in table.items():
        if not re.search(_HEADER_NAME, name) or name.endswith("\n"):
            raise RefusedError(name, "the name of a header", name)
        if not isinstance(text, str) or not re.search(_HEADER_VALUE, text) or text.endswith("\n"):
            raise RefusedError(text, "a text of ASCII characters on one line", name)
        found[name] = text
    return found


HEADERS: Final = Form(
    'a table of texts, such as { Authorization = "Bearer ..." }',
    "a table of texts",
    {
        "type": "object",
        "propertyNames": {"pattern": _HEADER_NAME},
        "additionalProperties": {"type": "string", "pattern": _HEADER_VALUE},
    },
    _headers,
)


ON: Final = forms.one_or_several(tuple(KINDS))


class NotifyKeys(Section, header="[[notify]]", named_by="name", one_of=("run", "url")):
    """Tells people what waits for them and what has happened, by a command or a web hook."""

    name = Key(
        forms.NAME, "the name, for the log and `lifefold status`", "", absent="`notify-1` and so on, by its place"
    )
    on = Key[tuple[str, ...]](ON, "what is told; see [notifications](fleet/notify.md)", (), required=True)
    run = Key[tuple[str, ...]](
        COMMAND,
        "a command, run in the folder of the fleet file; it has the facts by placeholders, in its environment,"
        " and as JSON on its standard input",
        (),
        absent="none",
    )
    url = Key(URL, "an address that gets the facts as JSON, by `POST`; `${NAME}` is a variable of the runner", "")
    headers = Key[dict[str, str]](HEADERS, "headers of the request; `${NAME}` is a variable of the runner", {})
    timeout = Key(
        forms.duration(1),
        "the longest time of one try; then a command is ended, and the try has failed",
        DEFAULT_TIMEOUT_MS,
    )
    retries = Key(
        forms.integer(0, MOST_RETRIES),
        "how often a failed delivery is tried again, after pauses of 1, 2, 4 s and so on, up to a minute",
        notifier.DEFAULT_RETRIES,
    )


def read_notifiers(root: Table, folder: Path) -> tuple[Notifier, ...]:
    """Return the notifiers of the tables, in their order."""
    names = Names()
    return tuple(
        _notifier(table, f"notify-{number}", names, folder) for number, table in enumerate(root.tables(NotifyKeys), 1)
    )


def _notifier(table: Table, place: str, names: Names, folder: Path) -> Notifier:
    """Return the notifier of a table; ``place`` is its name if it has none."""
    name = table.read(NotifyKeys.name) or place
    if name in HOOKS:
        table.problem("name", f"found {shown(name)}, a key of [fleet]; accepted: another name")
    names.is_new(table, "name", name)
    found = Notifier(
        name,
        tuple(NotificationKind(each) for each in table.read(NotifyKeys.on)),
        _run(table, "run", table.read(NotifyKeys.run), folder),
        table.read(NotifyKeys.url),
        dict(table.read(NotifyKeys.headers)),
        table.read(NotifyKeys.timeout),
        table.read(NotifyKeys.retries),
    )
    if "run" not in table and "url" not in table:
        table.missing("run", "url")
    if "run" in table:
        for key in ("url", "headers"):
            if key in table:
                table.problem(key, "there is a command, too; accepted: run, or url with its headers")
    table.finish()
    return found


HOOKS: Final = ("on_closed", "on_failed")
"""The names of the notifiers that are keys of ``[fleet]``."""


def read_hooks(
    table: Table, hooks: Mapping[Key[tuple[str, ...]], NotificationKind], folder: Path
) -> tuple[Notifier, ...]:
    """Return the notifiers of keys of ``[fleet]``, each a command for one kind of notification."""
    commands = ((key.name, kind, _run(table, key.name, table.read(key), folder)) for key, kind in hooks.items())
    return tuple(Notifier(name, (kind,), command) for name, kind, command in commands if command)


def _run(table: Table, key: str, command: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return a command with the path of its program made absolute; report a program that cannot run."""
    if not command:
        return ()
    settled = settled_command(command, folder)
    wrong = what_is_wrong_with(settled[0], os.environ)
    if wrong:
        table.problem(key, f"the program {shown(command[0])} {wrong}; accepted: a program on PATH, or a path", 0)
    return settled


def said_notifiers(notifiers: Sequence[Notifier]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield what the core knows of each notifier, in the form of a file: the part that a log begins with."""
    for place, each in enumerate(notifiers, 1):
        written = said({NotifyKeys.on: tuple(str(kind) for kind in each.kinds)})
        yield each.name, {"place": place} | written | said_but_defaults({NotifyKeys.retries: each.retries})
