"""``lifefold diff LOG LOG``: where two runs of one system part, stream by stream."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.fitting import fitted, terminal_width
from lifefold.interpreters.cli.recorded_logs import OneLog, entries_of, opened, several_logs
from lifefold.interpreters.engine import LogMismatchError
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.recorder.parting import Parting, Place, partings
from lifefold.interpreters.store import Entry

MEANINGLESS = ("stat", "verification", "tool", "db")
"""The options of ``diff TASK`` that do not apply."""


def compare(words: Sequence[str], arguments: Namespace) -> int:
    """Print the first entry of each stream that differs; return 1 if there is one. Raises ``BadInput``."""
    for name in MEANINGLESS:
        if getattr(arguments, name):
            raise BadInput(f"--{name} means nothing for two logs; accepted: lifefold diff [MODULE:SYSTEM] LOG LOG")
    ours, theirs = several_logs(words, 2)
    try:
        found = partings(ours.system, _entries(ours), _entries(theirs))
    except LogMismatchError as error:
        raise BadInput(str(error)) from error
    if arguments.json:
        json.dump([msgspec.to_builtins(each) for each in found], sys.stdout, indent=2)
        print()
    else:
        for line in _lines(ours, theirs, found):
            print(plain(line.encode()))
    return 1 if found else 0


def _entries(of: OneLog) -> Sequence[Entry]:
    with opened(of) as store:
        return entries_of(store, of)


def _lines(ours: OneLog, theirs: OneLog, found: Sequence[Parting]) -> Iterator[str]:
    if not found:
        yield f"{ours.path} and {theirs.path} record the same run, except for times"
        return
    for each in found:
        yield f"{each.stream} parts at its entry {each.version}:"
        yield f"  {ours.path}: {_place(each.left)}"
        yield f"  {theirs.path}: {_place(each.right)}"
        heads = _heads(ours.path, theirs.path)
        rows = [("ENTITY", "FIELD", *heads)]
        rows += [(of.entity, of.field, of.left or "-", of.right or "-") for of in each.differences]
        if each.differences:
            table = fitted(rows, terminal_width(), first_out=(), shortened=heads[::-1], note=False)
            yield from (f"    {line}" for line in table.splitlines())


def _heads(left: Path, right: Path) -> tuple[str, str]:
    """Return the heads of the columns of two logs: their names, or their paths if the names are equal."""
    names = (left.name, right.name) if left.name != right.name else (str(left), str(right))
    return names if names[0] != names[1] else ("FIRST", "SECOND")


def _place(of: Place | None) -> str:
    if of is None:
        return "has no further entry of it"
    by = f" (by {of.actor})" if of.actor else ""
    return f"entry {of.seq}, {of.entity}: {of.event}{by}"
