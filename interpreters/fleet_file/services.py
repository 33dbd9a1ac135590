"""The ``[[agents]]`` of kind ``service``: their own keys, and keys that other agents do not have."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError
from msgspec.structs import replace

from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.process_restart import Limits, RestartPolicy
from lifefold.effects.service import Changed, Cron, Every, Source
from lifefold.interpreters.fleet_file import forms, values
from lifefold.interpreters.fleet_file.forms import Form, array_of
from lifefold.interpreters.fleet_file.keys import Key
from lifefold.interpreters.fleet_file.model import Service
from lifefold.interpreters.fleet_file.table import Table
from lifefold.interpreters.fleet_file.values import RefusedError, as_array, as_table

LEAST_INTERVAL_MS = 1_000
MOST_FAILURES = 1_000_000
MOST_RESTARTS = 1_000_000

IS_SERVICE = ("kind", "service")
RUNS_A_COMMAND = ("kind", "command", "service")

_LIMITS = Limits()


class Queue(msgspec.Struct, frozen=True):
    """The trigger of operator messages; it needs no waiting."""


Written = Source | Queue

_INTERVAL = forms.duration(LEAST_INTERVAL_MS)
_QUEUE: Form[Queue] = Form("true", "`true`", {"const": True}, lambda value: Queue() if value is True else None)


def _watched(value: object) -> str | None:
    """Return a path or a glob; ``**`` in it stands for folders, and is a part of its own."""
    path = forms.WORK_PATH.convert(value)
    return None if path is None or any("**" in part and part != "**" for part in path.split("/")) else path


PATH = Form(
    f"{forms.WORK_PATH.accepted}; or a glob; ** in it stands alone between two /",
    forms.WORK_PATH.brief,
    {**forms.WORK_PATH.schema, "not": {"pattern": r"[^/]\*\*|\*\*[^/]"}},
    _watched,
)
"""A watched path or glob, with the same meaning for ``pathlib`` of every Python."""


def _cron(value: object) -> str | None:
    """Return a cron expression with at least one due time; it has five fields, and no seconds."""
    if not isinstance(value, str) or len(value.split()) != _FIELDS:
        return None
    try:
        next(CronSim(value, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError:
        name, field = next(_wrong_fields(value), ("", ""))
        raise RefusedError(
            value, f"{CRON.accepted}; {field!r} is not a valid {name}" if name else CRON.accepted
        ) from None
    except StopIteration:
        return None
    return " ".join(value.split())


def _wrong_fields(expression: str) -> Iterator[tuple[str, str]]:
    """Yield each wrong field, as its name and its text."""
    for index, (name, field) in enumerate(zip(_FIELD_NAMES, expression.split(), strict=True)):
        alone = ["*"] * _FIELDS
        alone[index] = field
        try:
            CronSim(" ".join(alone), datetime(2024, 1, 1, tzinfo=UTC))
        except CronSimError:
            yield name, field


_FIELD_NAMES = ("minute", "hour", "day of month", "month", "day of week")
_FIELDS = len(_FIELD_NAMES)

CRON = Form(
    'a cron expression of five fields (minute, hour, day of month, month, day of week), such as "*/5 9-17 * * 1-5"',
    "a cron expression",
    {"type": "string", "pattern": r"^\s*\S+(?:\s+\S+){4}\s*$"},
    _cron,
)


def _zone(value: object) -> str | None:
    try:
        return ZoneInfo(value).key if isinstance(value, str) and value else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


ZONE = Form(
    'the name of a time zone, such as "Europe/Berlin"', "a time zone", {"type": "string", "minLength": 1}, _zone
)


def _trigger(value: object) -> Written | None:
    """Return the meaning of a trigger: a table with one key, or with a time zone as a second key."""
    table = as_table(value)
    if table is None:
        return None
    zone = forms.inside(ZONE, table["timezone"], "timezone") if {"cron", "timezone"} == set(table) else ""
    kinds = [kind for kind in table if not (zone and kind == "timezone")]
    if len(kinds) != 1:
        return None
    kind, of = kinds[0], table[kinds[0]]
    if kind not in _KINDS:
        raise RefusedError(kind, "every, cron, path or queue", kind)
    meant = _KINDS[kind](of)
    return replace(meant, timezone=zone) if zone and isinstance(meant, Cron) else meant


_KINDS: Mapping[str, Callable[[object], Written]] = {
    "every": lambda of: Every(forms.inside(_INTERVAL, of, "every")),
    "cron": lambda of: Cron(forms.inside(CRON, of, "cron")),
    "path": lambda of: Changed(forms.inside(PATH, of, "path")),
    "queue": lambda of: forms.inside(_QUEUE, of, "queue"),
}


def _written(of: Written) -> dict[str, object]:
    """Return a trigger in the form of a file."""
    match of:
        case Every(every_ms=every_ms):
            return {"every": _INTERVAL.write(every_ms)}
        case Cron(expression=expression, timezone=zone):
            return {"cron": expression, "timezone": zone}
        case Changed(path=path):
            return {"path": path}
        case Queue():
            return {"queue": True}


def _alone(key: str, schema: forms.Schema, **more: forms.Schema) -> forms.Schema:
    return {"type": "object", "properties": {key: schema, **more}, "required": [key], "additionalProperties": False}


TRIGGER: Form[Written] = Form(
    'a table such as { every = "10m" }, { cron = "*/5 9-17 * * 1-5", timezone = "Europe/Berlin" }, { path = "inbox/" }'
    " or { queue = true }",
    '`{ every = "10m" }`, `{ cron = "0 9 * * *" }`, `{ path = "inbox/" }` or `{ queue = true }`',
    {
        "anyOf": [
            _alone("every", _INTERVAL.schema),
            _alone("cron", CRON.schema, timezone=ZONE.schema),
            _alone("path", PATH.schema),
            _alone("queue", _QUEUE.schema),
        ]
    },
    _trigger,
    _written,
)
_SEVERAL: Form[tuple[Written, ...]] = array_of(
    TRIGGER, 'an array of triggers, such as [{ every = "10m" }, { queue = true }]', ""
)


def _triggers(value: object) -> tuple[Written, ...] | None:
    found = _SEVERAL.convert(value)
    for index, each in enumerate(found or ()):
        if found is not None and each in found[:index]:
            raise RefusedError(_written(each), "each trigger once", index)
    return found or None


TRIGGERS = Form(
    f"{_SEVERAL.accepted}, at least one",
    'triggers, as `[{ every = "10m" }, { queue = true }]`',
    {**_SEVERAL.schema, "minItems": 1},
    _triggers,
    lambda triggers: [_written(each) for each in triggers],
)
"""The triggers of a service."""

RESTART_POLICY: Form[RestartPolicy] = forms.choice("never", "on_failure", "always")

triggers = Key[tuple[Written, ...]](
    TRIGGERS,
    "its triggers: an interval, times, changed files, messages of `lifefold send` (see below)",
    (),
    required=True,
    when=IS_SERVICE,
)
directory = Key(
    forms.TEXT, "the folder of a service", "", absent="the repository, or the fleet file's folder", when=IS_SERVICE
)
restart_policy = Key[RestartPolicy](
    RESTART_POLICY,
    'whether a failed service is restarted: `"always"` also after `max_lifetime`',
    _LIMITS.restart_policy,
    when=IS_SERVICE,
)
max_restarts = Key(
    forms.integer(0, MOST_RESTARTS),
    "the restarts without a successful run in between; then it stays down",
    _LIMITS.max_restarts,
    when=IS_SERVICE,
)
restart_backoff = Key(
    forms.duration(1),
    "the pause before the n-th restart is `min(backoff * 2^(n-1), 1m)`",
    _LIMITS.restart_backoff_ms,
    when=IS_SERVICE,
)
max_consecutive_failures = Key(
    forms.integer(1, MOST_FAILURES),
    "the failed runs in a row at which a service fails",
    _LIMITS.max_consecutive_failures,
    when=IS_SERVICE,
)
idle_timeout = Key[int | None](
    forms.duration(1),
    "the time without a trigger after which a service is suspended until the next one",
    None,
    when=IS_SERVICE,
)
max_lifetime = Key[int | None](
    forms.duration(1),
    'the time after which a service stops; it is restarted at once if its policy is `"always"`',
    None,
    when=IS_SERVICE,
)
drain_timeout = Key(
    forms.duration(0), "the longest time of a run after `max_lifetime`", _LIMITS.drain_timeout_ms, when=IS_SERVICE
)


def read_life(table: Table) -> Limits:
    """Return the limits of the life of a service."""
    return Limits(
        restart_policy=table.read(restart_policy),
        max_restarts=table.read(max_restarts),
        restart_backoff_ms=table.read(restart_backoff),
        max_consecutive_failures=table.read(max_consecutive_failures),
        idle_timeout_ms=table.read(idle_timeout) or 0,
        max_lifetime_ms=table.read(max_lifetime) or 0,
        drain_timeout_ms=table.read(drain_timeout),
    )


def said_life(service: Service) -> dict[Key[object], object]:
    """Return the values of the keys of a service."""
    life = service.limits
    written: list[Written] = [*service.triggers, *([Queue()] if service.takes_messages else [])]
    return {
        triggers: tuple(written),
        directory: service.written_directory,
        restart_policy: life.restart_policy,
        max_restarts: life.max_restarts,
        restart_backoff: life.restart_backoff_ms,
        max_consecutive_failures: life.max_consecutive_failures,
        idle_timeout: life.idle_timeout_ms or None,
        max_lifetime: life.max_lifetime_ms or None,
        drain_timeout: life.drain_timeout_ms,
    }


def refuse_triggers(table: Table) -> None:
    """Report triggers of an agent of another kind."""
    if triggers.name in table:
        table.read(triggers)
        table.problem(triggers.name, 'only a service has triggers; write kind = "service", or leave them out')


def _report_others(table: Table) -> None:
    """Report each wrong trigger after the first, which the reading of the key has reported."""
    is_reported = False
    for index, each in enumerate(as_array(table.values.get(triggers.name)) or ()):
        try:
            TRIGGER.parse(each)
        except RefusedError as refused:
            if is_reported:
                table.problem(triggers.name, str(refused), index, *refused.at)
            is_reported = True


def read_service(table: Table, name: str, command: tuple[str, ...], runs: session.Limits, folder: Path) -> Service:
    """Return a service; the caller reads the keys that it shares with other agents."""
    written = table.read(directory)
    found = table.read(triggers)
    _report_others(table)
    return Service(
        name=name,
        written_command=command,
        limits=read_life(table),
        runs=runs,
        triggers=tuple(each for each in found if not isinstance(each, Queue)),
        takes_messages=Queue() in found,
        directory=_directory(table, written, folder),
        written_directory=written,
    )


def _directory(table: Table, written: str, folder: Path) -> Path | None:
    if not written:
        return None
    directory_ = folder / written
    if not directory_.is_dir():
        accepted = "a folder, from the fleet file's folder; leave it out for the repository"
        table.problem(directory.name, f"found {values.shown(written)}, which is not a folder; accepted: {accepted}")
    return directory_
