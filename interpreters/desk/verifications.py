"""The verifications of a task's work: the commands of a claim, how each ended, and the end of its output."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.redaction import NO_SECRETS, Secrets
from lifefold.interpreters.processes import SessionError, SessionExit, output_tail, read_exit, read_order, read_start
from lifefold.interpreters.processes.command import plain
from lifefold.interpreters.processes.shim.durable import OUTPUT

OUTPUT_BYTES: Final = 32_768
"""The number of bytes at the end of an output that are read."""

OUTPUT_LINES: Final = 200
"""The most lines of an output."""


class Verification(msgspec.Struct, frozen=True):
    """One command of a verification. ``ok`` is None while it runs; ``ended`` says how it ended.

    ``began_ms`` and ``ended_ms`` are Unix milliseconds, 0 if unknown. ``output`` has the last lines, ``path`` all.
    """

    claim: int
    command: str
    ok: bool | None
    ended: str
    began_ms: int
    ended_ms: int
    output: tuple[str, ...]
    path: str


async def verifications(
    folder: FleetFolder, task: str, claim: int, secrets: Secrets = NO_SECRETS
) -> tuple[Verification, ...]:
    """Return the verification of the latest claim that had one, up to ``claim``; empty without any.

    A verification that a runner has repeated has the commands of each time, in their order.
    """
    for number in range(claim, 0, -1):
        records = folder.verification(task, number)
        try:
            found = sorted(
                (each for each in records.iterdir() if each.name.isdecimal()), key=lambda each: int(each.name)
            )
        except OSError:
            continue
        if found:
            return tuple([await _read(each, number, secrets) for each in found])
    return ()


def begun_by(found: Iterable[Verification], at_ms: int) -> tuple[Verification, ...]:
    """Return the commands that had begun by a time, in Unix milliseconds. One that ran then has no output yet."""
    begun = (each for each in found if 0 < each.began_ms <= at_ms)
    return tuple(
        each
        if 0 < each.ended_ms <= at_ms
        else msgspec.structs.replace(each, ok=None, ended="ran then", ended_ms=0, output=())
        for each in begun
    )


async def _read(record: Path, claim: int, secrets: Secrets) -> Verification:
    order = read_order(record)
    try:
        began, ended = read_start(record), read_exit(record)
    except (SessionError, OSError):
        began, ended = None, None
    command = "" if order is None else plain(shlex.join(order.argv).encode("utf-8", "surrogateescape"))
    try:
        # An agent can put a link to another file in the place of an output.
        output = b"" if (record / OUTPUT).is_symlink() else await output_tail(record, OUTPUT_BYTES)
    except OSError:
        output = b""
    said = secrets.quotable(output, OUTPUT_BYTES).rstrip().splitlines()[-OUTPUT_LINES:]
    return Verification(
        claim,
        secrets.hidden(" ".join(command.split())),
        None if ended is None else (ended.outcome, ended.code) == ("exited", 0),
        "still runs" if ended is None else _ended(ended),
        0 if began is None else began.at_ms,
        0 if ended is None else ended.at_ms,
        tuple(said),
        str(record / OUTPUT),
    )


def _ended(ended: SessionExit) -> str:
    if ended.outcome == "exited":
        return "succeeded" if ended.code == 0 else f"exited with status {ended.code}"
    if ended.signal is not None:
        return f"{ended.outcome}, by signal {ended.signal}"
    return ended.message or ended.outcome
