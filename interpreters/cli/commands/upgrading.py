"""The command ``upgrade``: what the rules of this program make of a log, and the record that they go on with it."""

from argparse import Namespace
from pathlib import Path

import anyio

from lifefold.core.fleet import system as fleet
from lifefold.core.kernel import ENGINE, System
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.engine import Ledger, LogMismatchError, LogWriter, WallClock
from lifefold.interpreters.engine.seam import Undone, must_suit
from lifefold.interpreters.engine.upgrade import Examined, examined
from lifefold.interpreters.rules import rules_version
from lifefold.interpreters.store import open_log, peek_log


def upgrade(arguments: Namespace) -> int:
    """Say what an upgrade of a log means, and record it unless that is only asked; 2 if the rules cannot go on."""
    system, log = _named(arguments.names)
    try:
        found = anyio.run(_examined, system, log)
        for sentence in found.sentences():
            print(sentence)
        if not found.is_at_seam:
            return 0
        is_recorded = found.can_go_on and not arguments.dry_run
        if is_recorded:
            anyio.run(_record, system, log)
        print(found.conclusion(is_recorded=is_recorded))
    except LogMismatchError as error:
        raise BadInput(f"{log}: {error}") from error
    return 0 if found.can_go_on else 2


def _named(names: list[str]) -> tuple[System, Path]:
    """Return the system and the log that a command names: a log of a fleet, or ``PROGRAM:system LOG``."""
    *program, log = names
    if len(program) > 1:
        raise BadInput(f"upgrade takes one log, and before it at most one system; found {' '.join(names)}")
    if not program:
        if ":" in log and not Path(log).exists():
            raise BadInput(f"{log} needs a log after it: lifefold upgrade {log} LOG")
        return fleet, Path(log)
    from lifefold.interpreters.targets.check_targets import of_logs  # noqa: PLC0415 - slow, seldom needed
    from lifefold.interpreters.targets.target import UnusableTarget  # noqa: PLC0415 - as above

    try:
        return of_logs(program[0]).system, Path(log)
    except UnusableTarget as error:
        raise BadInput(str(error)) from error


async def _examined(system: System, log: Path) -> Examined:
    with peek_log(log) as store:
        entries = await store.read()
        _must_be_of(system, {each.stream.partition("/")[0] for each in entries} - {ENGINE})
        return examined(system, rules_version(system), entries, await store.performed())


def _must_be_of(system: System, kinds: set[str]) -> None:
    """Raise ``BadInput`` for a log of which this system knows no aggregate."""
    if kinds and not kinds & system.aggregates.keys():
        raise BadInput(
            f"this is not a log of {system.name!r}; its aggregates are {', '.join(sorted(kinds))}; "
            "name the system before it: lifefold upgrade PROGRAM:SYSTEM LOG"
        )


async def _record(system: System, log: Path) -> None:
    """Become the writer, and record that these rules decide from here on. The log may have got entries meanwhile."""
    with open_log(log, patient=False) as store:
        ledger, undone = Ledger(system, rules=rules_version(system)), Undone(await store.performed())
        for decision in ledger.fold(await store.read()):
            undone.observe(decision)
        must_suit(ledger, undone)
        await LogWriter(ledger, store, WallClock()).change_rules()
