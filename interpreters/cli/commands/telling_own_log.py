"""``lifefold log MODULE:SYSTEM LOG``: the transitions of a system of one's own, and the tables of any log."""

import json
from argparse import Namespace
from collections.abc import Iterator, Sequence

import msgspec

from lifefold.core.kernel import SystemStep, journal
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.fitting import fitted, terminal_width
from lifefold.interpreters.cli.recorded_logs import OneLog, entries_of, opened, position_of
from lifefold.interpreters.cli.wording import clock_time
from lifefold.interpreters.engine import LogMismatchError
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.recorder.recording import Recorded, recorded
from lifefold.interpreters.report.trace import kernel_words

OF_FLEETS = ("task", "agent", "follow", "last")
"""The options that only the log of a fleet has."""

HEAD = ("POSITION", "TIME", "ENTITY", "STATE", "INPUT", "CAUSE", "BY")
"""The columns of ``--format table``."""


def tell(of: OneLog, arguments: Namespace, since_ms: int) -> None:
    """Print the log of a system of one's own. Raises ``BadInput``."""
    for name in OF_FLEETS:
        if getattr(arguments, name):
            raise BadInput(f"--{name} is for the log of a fleet; {of.target.name} has none")
    with opened(of) as store:
        seq = position_of(store, arguments)
        entries = entries_of(store, of)[:seq]
    try:
        found = [each for each in recorded(of.system, entries) if each.entry.at_ms >= since_ms]
    except LogMismatchError as error:
        raise BadInput(str(error)) from error
    if arguments.json or arguments.format == "json":
        print(json.dumps([each for of_one in found for each in _json(of_one)], indent=2))
    elif arguments.format == "sequence":
        print(diagram(of.path.stem, (each.step for each in found), is_whole=arguments.all))
    elif arguments.format == "table":
        for line in table([row for each in found for row in rows(each.seq, each.step)]):
            print(line)
    else:
        for each in found:
            print(_line(each))


def diagram(title: str, steps: Iterator[SystemStep], *, is_whole: bool) -> str:
    """Return steps as a sequence diagram: the first ones, or all."""
    from lifefold.interpreters.views.sequence import MOST, mermaid_sequence, sequence  # noqa: PLC0415 - slow, rare

    every = list(steps)
    return mermaid_sequence(sequence(title, every, most=len(every) if is_whole else MOST)).rstrip("\n")


def rows(seq: int, step: SystemStep) -> Iterator[tuple[str, ...]]:
    """Yield a row for each transition of an entry; one for an entry without transitions."""
    envelope, at = step.envelope, clock_time(step.envelope.at_ms / 1_000)
    given = kernel_words(envelope.event) or type(envelope.event).__name__
    moves = [
        (f"{step.aggregate} {each.entity}", _moved(each.before, each.after)) for each in step.reaction.transitions
    ] or [(f"{step.aggregate} {envelope.entity}".rstrip(), "-")]
    for number, (entity, moved) in enumerate(moves):
        first = (str(seq), at) if number == 0 else ("", "")
        last = (given, str(step.cause), envelope.actor or "-") if number == 0 else ("", "", "")
        yield (*first, entity, moved, *last)


def _moved(before: object, after: object) -> str:
    was, now = getattr(before, "state", None), getattr(after, "state", "")
    return f"(new) → {now}" if before is None else str(now) if was == now else f"{was} → {now}"


def table(found: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows as the lines of a table with its head."""
    lines = [HEAD, *(tuple(plain(cell.encode()) for cell in row) for row in found)]
    return fitted(
        lines, terminal_width(), first_out=("BY", "CAUSE"), shortened=("ENTITY", "INPUT"), note=False
    ).splitlines()


def _line(of: Recorded) -> str:
    step = of.step
    parts = [
        f"{step.aggregate} {each.entity}: {_moved(each.before, each.after)}"
        if each.entity != step.aggregate
        else f"{each.entity}: {_moved(each.before, each.after)}"
        for each in step.reaction.transitions
    ]
    given = kernel_words(step.envelope.event) or repr(step.envelope.event)
    by = f" (by {step.envelope.actor})" if step.envelope.actor else ""
    moved = "; ".join(parts) or step.aggregate
    return plain(f"{of.seq:>5}  {clock_time(of.entry.at_ms / 1_000)}  {moved}  {given}{by}".encode())


def _json(of: Recorded) -> Iterator[dict[str, object]]:
    for each in of.step.reaction.transitions:
        yield {"seq": of.seq, **msgspec.to_builtins(journal(of.entry.stream, each))}
