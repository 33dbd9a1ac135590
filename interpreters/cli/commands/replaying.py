"""The command ``replay``: a system as its log has it after one of its entries, for any system."""

import json
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from lifefold.core.kernel import World
from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.fitting import fitted, terminal_width
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
    rows: list[tuple[str, ...]] = [("AGGREGATE", "ENTITY", "STATE", "FOR", "RUNNING", "RECORD")]
    for name, aggregate in world.aggregates.items():
        for ref, entity in aggregate.entities.items():
            fields = fields_of(entity)
            running = fields.pop("(running)") or "-"
            state = fields.pop("state")
            record = ", ".join(f"{key} {value}" for key, value in _changed(entity.record, fields))
            waits = f", waits: {fields['(postponed)']}" if "(postponed)" in fields else ""
            rows.append((name, ref, state, age(world.now_ms - entity.entered_ms), f"{running}{waits}", record or "-"))
        for ref, why in aggregate.quarantined.items():
            rows.append((name, ref, "quarantined", "-", "-", why))
    lines = [tuple(plain(cell.encode()) for cell in row) for row in rows]
    yield from fitted(lines, terminal_width(), first_out=(), shortened=("RECORD", "RUNNING"), note=False).splitlines()


def _changed(record: Any, fields: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a record that have not their default values."""
    names, defaults = record.__struct_fields__, record.__struct_defaults__
    usual = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    for name in names:
        if name in fields and name != "at_ms" and not (name in usual and getattr(record, name) == usual[name]):
            yield name, fields[name]


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
