"""The command ``fork``: a system as it was, in a search of its next steps, or with its recorded inputs given again."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from lifefold.core.kernel import PropertyKind, World
from lifefold.core.kernel.shown import counted
from lifefold.interpreters.cli.commands.replaying import in_words
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.fitting import terminal_width
from lifefold.interpreters.cli.logs import named
from lifefold.interpreters.cli.recorded_logs import OneLog, entries_of, one_log, opened, position_of
from lifefold.interpreters.cli.wording import moment
from lifefold.interpreters.cli.written import see_to, write
from lifefold.interpreters.engine import LogMismatchError
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.recorder.forks import Repeated, repeated, written
from lifefold.interpreters.recorder.recording import Recorded, recorded
from lifefold.interpreters.report.emitted_file import is_written_by
from lifefold.interpreters.store.pointer import address_of

if TYPE_CHECKING:
    from lifefold.interpreters.check import Report
    from lifefold.interpreters.targets.target import Target

MOST_LEFT_OUT: Final = 12
"""The most inputs that are listed as not possible any more."""


class _Fork(NamedTuple):
    """A log, the position of its fork, the world there, and what was recorded after it."""

    of: OneLog
    seq: int
    entries: int
    world: World
    last: Recorded
    later: Sequence[Recorded]

    @property
    def target(self) -> "Target":
        """The target of a search from there."""
        return msgspec.structs.replace(self.of.target, begin=self.world)


def fork(arguments: Namespace) -> int:
    """Search from an entry, or give later inputs again; return 1 if a property is broken. Raises ``BadInput``."""
    if arguments.pytest:
        see_to(Path(arguments.pytest), "test", lambda text: is_written_by("fork", text))
    found = _forked(one_log(arguments.log, arguments.db), arguments)
    if arguments.write:
        return _written(found, arguments.write)
    if arguments.without_crash or arguments.recorded:
        return _again(found, arguments)
    return _searched(found, arguments)


def _forked(of: OneLog, arguments: Namespace) -> _Fork:
    with opened(of) as store:
        seq = position_of(store, arguments)
        entries = entries_of(store, of)
    try:
        every = list(recorded(of.system, entries))
    except LogMismatchError as error:
        raise BadInput(str(error)) from error
    until = len(every) if arguments.steps is None or not arguments.recorded else seq + arguments.steps
    return _Fork(of, seq, len(every), every[seq - 1].world, every[seq - 1], every[seq:until])


def _head(found: _Fork) -> str:
    at = f"{moment(found.last.entry.at_ms)}, {in_words(found.last)}"
    return f"{found.of.path} forked after entry {found.seq} of {found.entries} ({at})"


def _written(found: _Fork, target: str) -> int:
    """Write the fork as a log of its own, at a path or an address."""
    path = named(target)
    where = address_of(path) or path
    try:
        written(found.of.path, found.seq, found.of.path.stem, path)
    except FileExistsError as error:
        raise BadInput(f"{where} is there already; name another log") from error
    print(f"written: {where}")
    return 0


def _searched(found: _Fork, arguments: Namespace) -> int:
    """Search the next steps exhaustively, within bounds."""
    from lifefold.interpreters.check import Bounds  # noqa: PLC0415 - slow to import
    from lifefold.interpreters.cli.commands.checking import needed  # noqa: PLC0415 - as above
    from lifefold.interpreters.cli.searching import searched  # noqa: PLC0415 - as above

    needed()
    steps = STEPS if arguments.steps is None else arguments.steps
    states = STATES if arguments.states is None else arguments.states
    most = max((len(e.postponed) for a in found.world.aggregates.values() for e in a.entities.values()), default=0)
    bounds = Bounds(depth=steps, states=states, commands=arguments.commands, seconds=arguments.seconds)
    bounds = msgspec.structs.replace(bounds, postponed=max(bounds.postponed, most + 1))
    report = searched(found.target, bounds, None, is_quiet=True)
    if arguments.json:
        json.dump({"log": str(found.of.path), "seq": found.seq, **report.facts()}, sys.stdout, indent=2)
        print()
    else:
        print(_head(found))
        for line in _of_search(report, steps, arguments.commands):
            print(plain(line.encode()))
    if arguments.pytest and report.broken():
        _emit([(found.target, report)], Path(arguments.pytest), is_quiet=arguments.json)
    elif arguments.pytest:
        _emit_run(found, arguments)
    return 1 if report.broken() else 0


STEPS: Final = 4
"""The number of next steps that are searched, unless it is given."""

STATES: Final = 200_000
"""The most states that are searched, unless it is given."""


def _of_search(report: "Report", steps: int, commands: int | None) -> Iterator[str]:
    said = "" if commands is None else f", with at most {counted(commands, 'operator command')}"
    ended = f"; the search ended after {report.truncated}" if report.truncated else "; no others can be reached"
    if report.truncated.endswith("steps deep"):
        ended = ""
    yield f"  {report.states:,} states within {steps} steps{said}{ended}"
    broken = report.broken()
    if not broken:
        asked = sum(each.property_kind in _OF_STATES for each in report.verdicts)
        yield f"  all {asked} properties of states and steps hold there; what must happen at last is not decided"
    for each in broken:
        yield ""
        yield from each.lines(terminal_width() or _WIDTH, of=report.target, margin="  ")


_WIDTH: Final = 100
_OF_STATES: Final = frozenset({PropertyKind.ALWAYS, PropertyKind.ALWAYS_STEP})


def _again(found: _Fork, arguments: Namespace) -> int:
    """Give the recorded inputs again, with or without the recoveries of runners."""
    again = repeated(found.of.system, found.world, found.later, without_crash=arguments.without_crash)
    broken = again.run.broken()
    if arguments.json:
        json.dump(_json(found, again, broken), sys.stdout, indent=2)
        print()
    else:
        print(_head(found))
        for line in _of_repeated(again, broken, without_crash=arguments.without_crash):
            print(plain(line.encode()))
    if arguments.pytest:
        _emit_run(found, arguments, again)
    return 1 if broken else 0


def _of_repeated(again: Repeated, broken: Sequence[str], *, without_crash: bool) -> Iterator[str]:
    left = f", {again.recoveries} recoveries of a runner are left out" if without_crash else ""
    yield f"  {len(again.steps):,} recorded inputs are given again{left}"
    if again.left_out:
        yield f"  {len(again.left_out):,} are not possible any more:"
        yield from (f"    entry {each.seq}, {each.aggregate}: {each.why}" for each in again.left_out[:MOST_LEFT_OUT])
        if len(again.left_out) > MOST_LEFT_OUT:
            yield f"    and {len(again.left_out) - MOST_LEFT_OUT} more"
    if again.otherwise:
        yield "  these end otherwise than in the log:"
        for each in again.otherwise:
            was, now = each.recorded or "(not there)", each.forked or "(not there)"
            yield f"    {each.aggregate} {each.entity}: {was} in the log, {now} in the fork"
    else:
        yield "  every entity ends in the state that it has in the log"
    yield from (f"  ✗ {each}" for each in broken)
    if not broken:
        yield "  every property holds after every step"


def _json(found: _Fork, again: Repeated, broken: Sequence[str]) -> dict[str, object]:
    return {
        "log": str(found.of.path),
        "seq": found.seq,
        "repeated": len(again.steps),
        "recoveries_left_out": again.recoveries,
        "left_out": [each._asdict() for each in again.left_out],
        "otherwise": [each._asdict() for each in again.otherwise],
        "broken": list(broken),
    }


def _emit_run(found: _Fork, arguments: Namespace, again: Repeated | None = None) -> None:
    """Write a test of the recorded steps after the fork: it passes as long as every property holds on them."""
    from lifefold.interpreters.certificates.emitted import emitted_run  # noqa: PLC0415 - slow to import
    from lifefold.interpreters.certificates.source import Unwritable  # noqa: PLC0415 - as above

    if again is None:
        later = found.later[: STEPS if arguments.steps is None else arguments.steps]
        again = repeated(found.of.system, found.world, later, without_crash=False)
    try:
        text = emitted_run(found.target, again.steps, f"the recorded steps after entry {found.seq}", "fork")
    except Unwritable as error:
        raise BadInput(f"no test can be written: {error}") from error
    write(Path(arguments.pytest), text.encode(), is_quiet=arguments.json)


def _emit(checked: "Sequence[tuple[Target, Report]]", path: Path, *, is_quiet: bool) -> None:
    from lifefold.interpreters.certificates.emitted import emitted  # noqa: PLC0415 - slow to import
    from lifefold.interpreters.certificates.source import Unwritable  # noqa: PLC0415 - as above

    try:
        text, without = emitted(checked, "fork")
    except Unwritable as error:
        raise BadInput(f"no test can be written: {error}") from error
    for each in without:
        print(f"lifefold: no test of {each}", file=sys.stderr)
    if text:
        write(path, text.encode(), is_quiet=is_quiet)
