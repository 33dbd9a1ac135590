"""The command ``replay``: a system as its log has it after one of its entries, for any system."""

import json
from argparse import Namespace
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

import msgspec

from lifefold.core.kernel import World
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.fitting import fitted, terminal_width, wrapped
from lifefold.interpreters.cli.recorded_logs import entries_of, one_log, opened, position_of
from lifefold.interpreters.cli.wording import age, as_typed, moment
from lifefold.interpreters.desk.session_output import secrets_of_log
from lifefold.interpreters.engine import LogMismatchError
from lifefold.interpreters.fleet_runner.redaction import Secrets
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.recorder.recording import Recorded, fields_of, recorded
from lifefold.interpreters.report.trace import kernel_words


def replay(arguments: Namespace) -> None:
    """Print the entities of the system as it was, the messages in flight, and the entries around."""
    of = one_log(arguments.log, arguments.db)
    with opened(of) as store:
        seq = position_of(store, arguments)
        entries = entries_of(store, of)
        secrets = secrets_of_log(store) if of.is_fleet else Secrets(())
    here, then = None, None
    try:
        for each in recorded(of.system, entries[: seq + 1]):
            here, then = (each, None) if each.seq <= seq else (here, each)
    except LogMismatchError as error:
        raise BadInput(str(error)) from error
    if here is None:
        return
    if arguments.json:
        print(secrets.hidden(json.dumps(_json(here, len(entries)), indent=2)))
        return
    print(f"{of.path} after entry {seq} of {len(entries)}, {moment(here.entry.at_ms)}")
    print(f"  this entry: {in_words(here)}")
    if then is not None:
        print(f"  the next:   {in_words(then)}, {age(then.entry.at_ms - here.entry.at_ms)} later")
    print()
    for line in _table(here.world):
        print(secrets.hidden(line))
    for (sender, receiver, _), tell in here.world.in_flight.items():
        print(secrets.hidden(plain(f"in flight: {sender} tells {receiver} {tell.entity} {tell.event!r}".encode())))
    if of.is_fleet:
        option = logs.option(of.path)
        print(
            as_typed(
                f"\nThe same moment in other words: lifefold status --at {seq}{option}; also tasks, why, show, log"
            )
        )


def in_words(of: Recorded) -> str:
    """Return an entry in one line: its stream and version, its input, and the changes of state."""
    envelope = of.step.envelope
    what = kernel_words(envelope.event) or type(envelope.event).__name__
    place = " ".join(filter(None, (of.entry.stream, envelope.entity if envelope.entity != of.entry.stream else "")))
    moves = [
        f"{'' if each.entity == envelope.entity else f'{each.entity} '}"
        f"{'(new)' if each.before is None else each.before.state} → {each.after.state}"
        for each in of.step.reaction.transitions
        if each.entered is not None
    ]
    return plain(f"{place}: {what}{'; ' if moves else ''}{'; '.join(moves)}".encode())


def _table(world: World) -> Iterator[str]:
    """Yield a line for each entity. On a terminal its record is below it; a file or a pipe has it in the same line."""
    width = terminal_width()
    rows: list[tuple[str, ...]] = [("AGGREGATE", "ENTITY", "STATE", "FOR", "RUNNING", "RECORD")]
    for name, aggregate in world.aggregates.items():
        for ref, entity in aggregate.entities.items():
            fields = fields_of(entity)
            running = fields["(running)"] or "-"
            waits = f", waits: {fields['(postponed)']}" if "(postponed)" in fields else ""
            record, since = _changed(entity.record), age(world.now_ms - entity.entered_ms)
            rows.append((name, ref, fields["state"], since, f"{running}{waits}", record or "-"))
        for ref, why in aggregate.quarantined.items():
            rows.append((name, ref, "quarantined", "-", "-", why))
    lines = [tuple(plain(cell.encode()) for cell in row) for row in rows]
    if width is None:
        yield from fitted(lines, width, first_out=(), shortened=()).splitlines()
        return
    table = fitted([row[:-1] for row in lines], width, first_out=(), shortened=("RUNNING",), note=False).splitlines()
    for line, row in zip(table, lines, strict=True):
        yield line
        if row[-1] not in {"-", "RECORD"}:
            yield from wrapped(f"    {row[-1]}", width)


MOST_CHARACTERS: Final = 60
"""The most characters of one value of a record; JSON has all of them."""


def _changed(record: Any) -> str:
    """Return the fields of a record, or of a value in it, that have not their default values."""
    names, defaults = record.__struct_fields__, record.__struct_defaults__
    usual = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    found = ((name, getattr(record, name)) for name in names if name not in {"at_ms", "state"})
    return ", ".join(f"{name} {_shown(value)}" for name, value in found if name not in usual or value != usual[name])


def _shown(value: Any) -> str:
    if isinstance(value, msgspec.Struct):
        return f"({_changed(value)})"
    text = str(value) if isinstance(value, Enum) else repr(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def _json(here: Recorded, count: int) -> dict[str, Any]:
    world = here.world
    entities = [
        {"aggregate": name, "entity": ref, "entered_ms": entity.entered_ms, **fields_of(entity)}
        for name, aggregate in world.aggregates.items()
        for ref, entity in aggregate.entities.items()
    ]
    in_flight = [
        {"sender": sender, "receiver": receiver, "entity": tell.entity, "event": repr(tell.event)}
        for (sender, receiver, _), tell in world.in_flight.items()
    ]
    return {"seq": here.seq, "of": count, "at_ms": here.entry.at_ms, "entities": entities, "in_flight": in_flight}
