"""The command ``plan``, and the confirmation of a changed fleet file by ``run``.

A plan change is one entry of the log (``core/fleet/system/plan_change``), stored like any operator command. A runner at
work takes it and follows the new file; without one the next run does.
"""

import shlex
from argparse import Namespace
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

import anyio
import msgspec

from lifefold.core.fleet.system import board, plan_change, plan_obstacles
from lifefold.core.fleet.system.plan_difference import TaskChange
from lifefold.core.fleet.system.plan_places import parts_of, place_of
from lifefold.core.fleet.system.rerun import is_over
from lifefold.core.kernel import Aggregate, Created
from lifefold.interpreters.cli import logs, operator_commands
from lifefold.interpreters.cli.answers import DELIVERY
from lifefold.interpreters.cli.cluster_options import log_of
from lifefold.interpreters.cli.confirming import is_confirmed
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.cli.wording import this_command
from lifefold.interpreters.explain.task_words import is_in
from lifefold.interpreters.fleet_file import Agent, Fleet, FleetFileError, Service, load
from lifefold.interpreters.fleet_runner.log_owner import fresh_log
from lifefold.interpreters.fleet_runner.plan_changes import Proposed, proposed
from lifefold.interpreters.fleet_runner.python_targets import unloadable
from lifefold.interpreters.store import LogStore, StoreError, peek_log


def plan(arguments: Namespace) -> int:
    """Print how a fleet file differs from the plan in force in its log; with ``--accept``, accept the difference."""
    try:
        fleet = load(Path(arguments.fleet), watch=True)
    except FleetFileError as error:
        raise BadInput(str(error)) from error
    log = log_of(arguments, fleet)
    if not arguments.db and not fleet.cluster.log:
        must_keep_its_name(fleet, log)
    note = DELIVERY.get().note
    if not log.exists():
        begin = _command("run", fleet, log)
        note(f"there is no log {log} yet, and no plan in force; to begin with this file:  {begin}")
        return 0
    found = look(fleet, log, partial=arguments.rest)
    if arguments.json and not arguments.accept:
        print(msgspec.json.encode(_difference(found, log)).decode())
    if found is None:
        note("nothing has changed: the fleet file is the plan in force")
        _show_variables(fleet)
        return 0
    show(found, log)
    _show_variables(fleet)
    must_be_possible(found, fleet, log)
    if not arguments.accept:
        note(f"to accept it:  {_command('plan', fleet, log)} --accept{' --rest' * arguments.rest}")
        return 0
    accept(fleet, log, found)
    return 0


class Difference(msgspec.Struct, frozen=True):
    """The difference of a fleet file to the plan in force, for a program.

    ``change`` is the number that its acceptance has; 0 without a difference. ``lines`` are not in force yet, each with
    the time from which it holds. ``obstacles`` are the parts that are not possible.
    """

    change: int = 0
    lines: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()


def _difference(found: Proposed | None, log: Path) -> Difference:
    if found is None:
        return Difference()
    return Difference(found.number, tuple(shown(found, log)), tuple(map(str, found.obstacles)))


def look(fleet: Fleet, log: Path, *, partial: bool = False) -> Proposed | None:
    """Return how the fleet file differs from the plan in force; None without a difference. Raises ``BadInput``.

    ``partial``: the operator accepts that tasks which are over stay as they are.
    """
    with logs.peek(str(log)) as store:
        owner = store.meta("fleet")
        if owner != fleet.name:
            fresh = f"{this_command()} run {shlex.quote(str(fleet.source))} --db {shlex.quote(str(fresh_log(log)))}"
            raise BadInput(f"{log}: is the log of the fleet {owner!r}, not of {fleet.name!r}; for a new log: {fresh}")
        of = logs.fold(store).aggregates.get(board.NAME)
        return None if of is None else _proposed(fleet, store, of, partial=partial)


def _proposed(fleet: Fleet, store: LogStore, of: Aggregate, *, partial: bool) -> Proposed | None:
    try:
        return proposed(fleet, store, of, partial=partial)
    except ValueError as error:
        raise BadInput(str(error)) from error


def must_keep_its_name(fleet: Fleet, log: Path) -> None:
    """Raise ``BadInput`` if a run would begin a new log because the fleet of this file has another name now.

    The default log has the name of the fleet. The run would leave an unfinished fleet, and repeat all its tasks.
    """
    beside = sorted(log.parent.glob("*.db")) if not log.exists() and log.parent.name == logs.FOLDER else []
    for other in beside:
        was, is_at_work = _goes_on_as(fleet, other)
        if was:
            file = shlex.quote(str(fleet.source))
            first, after = ("plan", "when its runner has left (Ctrl-C), ") if is_at_work else ("run", "")
            raise BadInput(
                f"fleet.name: was {was}, is {fleet.name}: a fleet keeps its name until it is over, and {other} is its"
                f" log; restore the name, and go on:\n    {this_command()} {first} {file}\n"
                f"  or leave that fleet as it is, and {after}do all tasks in a new log:\n"
                f"    {this_command()} run {file} --db {shlex.quote(str(log))}"
            )


def _goes_on_as(fleet: Fleet, log: Path) -> tuple[str, bool]:
    """Return the name of an unfinished fleet of this file with this log, and whether a runner is at work with it.

    The name is empty for any other log.
    """
    try:
        with peek_log(log) as store:
            name = store.meta("fleet") or ""
            is_its = store.meta("source") == str(fleet.source) and name != fleet.name
            return (name, store.is_written()) if is_its and not is_over(logs.fold(store).aggregates) else ("", False)
    except (BadInput, StoreError):  # not a log, or unreadable: a command that names it reports that
        return "", False


def show(found: Proposed, log: Path) -> None:
    """Print each difference, with the time from which it holds if the change is possible."""
    note = DELIVERY.get().note
    note(f"the fleet file was changed (change {found.number}):")
    for line in found.same:
        note(f"  {line}  (nothing changes)")
    for line in shown(found, log):
        note(f"  {line}")


def shown(found: Proposed, log: Path) -> Iterator[str]:
    """Yield the differences that are not in force already, each with the time from which it holds."""
    for line in found.lines:
        place = line.partition(": ")[0]
        when = [] if found.obstacles and not found.is_possible_in_part else [_since(line, found, log)]
        if place in found.raised:
            when.append(f"the file said {found.raised[place]}, and lifefold budget has raised that")
        details = "; ".join(filter(None, when))
        yield f"{line}{f'  ({details})' if details else ''}"


def _show_variables(fleet: Fleet) -> None:
    """Print from when the variables of a fleet file hold, if it has any: they cannot be compared with the log."""
    every: tuple[Fleet | Agent | Service, ...] = (fleet, *fleet.agents, *fleet.services)
    keys = ("env" * any(each.env for each in every), "env_pass" * any(each.env_pass for each in every))
    named = [each for each in (*keys, "redact" * bool(fleet.redact)) if each]
    if named:
        said = f"not compared, because the log has no variables: {', '.join(named)}  (from each next session on)"
        DELIVERY.get().note(said)


def must_be_possible(found: Proposed, fleet: Fleet, log: Path) -> None:
    """Raise ``BadInput`` with every obstacle of a change, each with a command that helps, and the text to put back."""
    if found.obstacles:
        with logs.peek(str(log)) as store:
            is_at_work = store.is_written()
        refused = "this change is refused as a whole, because parts of it are not possible:"
        said = [refused]
        for command, same in groupby(found.obstacles, key=lambda each: each.instead):
            said += (f"  {each}" for each in same)
            first = "when the others are possible:  " * (
                command == plan_obstacles.REST and not found.is_possible_in_part
            )
            said.append(f"    {first}{instead_of(command, fleet, log, is_at_work)}")
        if found.former:
            said += ["or put this back into the file, exactly:", *(f"    {line}" for line in found.former)]
            said += ["  and accept the other parts:", f"    {_command('plan', fleet, log)} --accept"]
        raise BadInput("\n".join(said))


def instead_of(command: str, fleet: Fleet, log: Path, is_at_work: bool) -> str:  # noqa: FBT001 - as it was found
    """Return a command that helps, for this fleet file and log, and for a runner at work if there is one."""
    if is_at_work and command == plan_obstacles.FRESH:
        return f"after the runner has left (Ctrl-C):  {instead_of(command, fleet, log, is_at_work=False)}"
    if command == plan_obstacles.ACCEPT:
        return f"after that edit:  {_command('plan' if is_at_work else 'run', fleet, log)} --accept"
    if command == plan_obstacles.REST:
        word = "plan" if is_at_work else "run"
        return f"{_command(word, fleet, log)} --accept --rest"
    typed = command.format(fleet=shlex.quote(str(fleet.source)), fresh=shlex.quote(str(fresh_log(log))))
    names_file = "{fleet}" in command
    usual = logs.are_one(logs.default_log(fleet.source, fleet.name), log) if names_file else False
    typed = typed.replace("lifefold", this_command(), 1)
    return typed if "--db" in typed or usual else f"{typed}{logs.option(log)}"


def _command(word: str, fleet: Fleet, log: Path) -> str:
    usual = logs.are_one(logs.default_log(fleet.source, fleet.name), log)
    elsewhere = "" if usual else f" --db {shlex.quote(str(log))}"
    return f"{this_command()} {word} {shlex.quote(str(fleet.source))}{elsewhere}"


def accept(fleet: Fleet, log: Path, found: Proposed, edited: str = "") -> None:
    """Send a change to the board, and print the answer: of the change, or of the task that is ``edited``.

    Raises ``BadInput`` if it is refused. A change without an answer can still come to be in force.
    """
    wrong = anyio.run(unloadable, fleet)
    if wrong:
        raise BadInput("\n".join(wrong))
    ref, name = plan_change.ref_of(found.number), f"change {found.number}"

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        if ref in aggregates[board.NAME].entities:
            yield Refused(edited or name, "the change waited in the log, and was decided first")
            return
        done = f"edited; {name} is accepted, and in force" if edited else "accepted, and in force"
        yield Said(edited or name, board.NAME, ref, Created(found.change), done)

    refused: BadInput | None = None
    try:
        operator_commands.say(str(log), judge, "log")
    except BadInput as error:
        refused = error
    with logs.peek(str(log)) as store:
        of = logs.fold(store).aggregates[board.NAME]
        taken = of.entities.get(ref)
        if taken is None and refused is None and anyio.run(store.commands):
            return  # without an answer it stays in the log, and the next writer decides on it
    if taken is None and refused is not None:
        raise refused
    if taken is None or taken.state is not plan_change.State.IN_FORCE or taken.record.meaning != fleet.meaning:
        reasons = "" if taken is None else "".join(f"\n  {each}" for each in taken.record.reasons)
        again = f"the fleet has changed meanwhile; look again: {_command('plan', fleet, log)}"
        raise BadInput(f"{name} is not in force: {again}{reasons}")
    for task, state in plan_obstacles.over(of, found.change).items():
        if found.change.partial and task not in found.over:
            DELIVERY.get().note(f"{place_of('tasks', task)}: without effect, because the task {is_in(state)} by now")


def settle(fleet: Fleet, log: Path, *, accepted: bool, partial: bool = False) -> bool:
    """Show and confirm a changed fleet file before a run.

    Return whether a runner at work has taken the change, so that there is nothing to run. Raises ``BadInput`` with the
    command if the change is neither accepted nor confirmed on a terminal. Differences that are in force already need no
    confirmation.
    """
    found = look(fleet, log, partial=partial) if log.exists() else None
    if found is None:
        return False
    show(found, log)
    if found.is_possible_in_part and not accepted and is_confirmed(_PARTLY):
        partial = accepted = True
        found = look(fleet, log, partial=True) or found
    must_be_possible(found, fleet, log)
    command = f"{_command('run', fleet, log)} --accept{' --rest' * partial}"
    if found.lines and not accepted and not is_confirmed(_WHOLLY):
        raise BadInput(f"nothing has changed in the log; to run the changed file: {command}")
    accept(fleet, log, found)
    with logs.peek(str(log)) as store:
        is_at_work = store.is_written()
    if is_at_work:
        print("a runner is at work with this log, and follows the changed file")
    return is_at_work


_WHOLLY: Final = "accept this change?"
_PARTLY: Final = "accept the rest of this change?"


def _since(line: str, found: Proposed, log: Path) -> str:
    """Return the time from which a difference holds; for a task that nothing begins again, with what does."""
    place, _, difference = line.partition(": ")
    kind, name, key = parts_of(place)
    when = since(kind, key, difference)
    if kind == "tasks" and name in found.over:
        return f"without effect: {found.over[name]}"
    if kind == "tasks" and key == "verify" and name in found.verified:
        return _of_done_work(name, found)
    if kind == "tasks" and name in found.failed and when:
        return f"{when}; it has failed for good, so that needs: {this_command()} retry {name}{logs.option(log)}"
    return when


def _of_done_work(name: str, found: Proposed) -> str:
    """Return whether changed commands verify the work of a task that is done, and whether others have verified it."""
    changed = (each for each in found.change.changes if isinstance(each, TaskChange) and each.name == name)
    had_commands = any(each.was is not None and each.was.verify for each in changed)
    if found.verified[name]:
        return f"at once: its work, which waits for your approval, is verified{' again' * had_commands}"
    past, more = ("verified", " again") if had_commands else ("approved", "")
    return f"not for its work, which was {past} before and is not verified{more}"


def since(kind: str, key: str, difference: str) -> str:
    """Return the time from which a difference holds; empty if it holds at once."""
    if kind == "interpreters":
        return _NEXT_RUN
    if kind in _REMOVED and not key:
        return _REMOVED[kind] if difference == "was removed" else ""
    if kind != "fleet":
        key = "env" if key.startswith("env.") else key.rpartition(".")[2]
    return _SINCE.get((kind, key), "")


_REMOVED: Final = {
    "agents": "it finishes its task, and leaves",
    "services": "it finishes its run, and leaves",
    "tasks": "it is not done, and not counted",
}
_NEXT_RUN: Final = "from the next run on"
_SESSION: Final = "from its next session on"
_SINCE: Final[Mapping[tuple[str, str], str]] = {
    ("fleet", "lease"): _NEXT_RUN,
    ("fleet", "verify_timeout"): "from the next verification on",
    ("fleet", "approval_timeout"): "for work finished from now on",
    ("fleet", "retry.backoff_base"): "from the next failure on",
    ("fleet", "retry.backoff_cap"): "from the next failure on",
    ("fleet", "retry.fatal_retries"): "from the next failure on",
    ("tasks", "verify"): "from its next verification on",
    ("tasks", "prompt"): "from its next claim on",
    ("tasks", "on_nothing"): "from its next claim on",
    ("tasks", "on_retry"): "from its next failure on",
    **dict.fromkeys(
        [
            ("agents", key)
            for key in (
                "command",
                "target",
                "env",
                "output_limit",
                "session_timeout",
                "grace",
                "max_consecutive_errors",
                "max_total_errors",
                "backoff_base",
                "backoff_cap",
                "jitter",
                "reset_errors_on",
                "directory",
            )
        ],
        _SESSION,
    ),
}
"""The time from which a changed key of the fleet file holds, by table and key; a key that is missing holds at once."""
