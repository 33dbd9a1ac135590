"""The command ``fleets``: the fleets of this machine, which of them run, and what waits where."""

import json
import shlex
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import anyio
import msgspec

from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli import awaited
from lifefold.interpreters.cli.account import usage_json
from lifefold.interpreters.cli.fitting import terminal_width, wrapped
from lifefold.interpreters.cli.wording import age, as_typed, spent
from lifefold.interpreters.desk import registry
from lifefold.interpreters.desk.fleets import FleetSummary, summary
from lifefold.interpreters.explain.task_words import OF_TASKS
from lifefold.interpreters.explain.why.phrases import brief, count, enumerated
from lifefold.interpreters.processes.command import plain

MOST_WAITING: Final = 5
"""The most decisions that are listed for a fleet."""


def fleets(arguments: Namespace) -> None:
    """Print the fleets that run or wait; with ``--all`` those that are over, too."""
    found = [anyio.run(summary, each, awaited.waiting) for each in registry.found()]
    shown = [each for each in found if arguments.all or each.runs or not each.is_over]
    if arguments.json:
        print(json.dumps([{**msgspec.to_builtins(each), "cost": usage_json(each.cost)} for each in shown], indent=2))
        return
    for place, each in enumerate(shown):
        for line in (*([""] if place else []), *_lines(each)):
            print(*wrapped(plain(line.encode("utf-8", "surrogateescape")), terminal_width()), sep="\n")
    if over := len(found) - len(shown):
        print(as_typed(f"{count(over, 'fleet')} {'is' if over == 1 else 'are'} over; lifefold fleets --all"))
    elif not found:
        print(as_typed("no fleet has run on this machine yet, as this user; lifefold run FLEET.toml begins one"))


def _lines(of: FleetSummary) -> Iterator[str]:
    """Yield the lines of a fleet: whether it runs, how far it is, its log, and what waits."""
    now_ms = time.time_ns() // 1_000_000
    since = age(now_ms - of.began_ms)
    at_work = f"a runner is at work for {since} (process {of.pid})"
    runner = at_work if of.runs else "it is over" if of.is_over else f"no runner; the last one began {since} ago"
    if of.unread:
        yield f"fleet {of.fleet}: its log cannot be read: {of.unread}"
        return
    closed = of.states.get(State.CLOSED, 0)
    others = (f"{number} {words}" for words, number in of.in_words.items() if words != OF_TASKS[State.CLOSED])
    total = spent(of.cost)
    far = ", ".join((f"{closed} of {of.tasks} tasks closed", *others))
    yield f"fleet {of.fleet}: {runner}; {far}{f'; spent {total}' if total else ''}"
    yield f"  {of.log}"
    log = f" --db {shlex.quote(of.log)}"
    lines = list(awaited.lines(of.waiting, {}, log))
    yield from (f"  ! {line}" for line in lines[:MOST_WAITING])
    if len(lines) > MOST_WAITING:
        yield as_typed(f"  ! and {len(lines) - MOST_WAITING} more: lifefold status{log}")
    if of.failed and not of.is_over:
        yield as_typed(f"  ! {brief(enumerated(of.failed))} failed for good: lifefold show {of.failed[0]}{log}")
    if not of.runs and not of.is_over and Path(of.source).is_file():
        yield as_typed(f"  to go on: lifefold run {shlex.quote(of.source)}{log}")
