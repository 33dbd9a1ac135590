"""The page of a task: why it is in its state, what helps, its claims, its work, its verification, its cost."""

import shlex
from collections.abc import Iterable, Iterator
from typing import Final

import anyio

from lifefold.core.fleet.board.fleet_task import CANCELLABLE, FleetTask
from lifefold.core.fleet.system import board, worker
from lifefold.core.kernel import replace
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli import awaited, logs
from lifefold.interpreters.desk.changes import LOOK_S, NoChangesError, Then
from lifefold.interpreters.desk.difference import Attempts, patch
from lifefold.interpreters.desk.history import attempt_of, claims_of_attempt, open_claims
from lifefold.interpreters.desk.verifications import Verification, begun_by, verifications
from lifefold.interpreters.desk.visible import lines
from lifefold.interpreters.explain import why
from lifefold.interpreters.explain.pending import Awaited
from lifefold.interpreters.explain.task_words import OF_TASKS
from lifefold.interpreters.web.agent_page import MOST_LINES, PICTURES, UnknownName, marks
from lifefold.interpreters.web.journal import Choice
from lifefold.interpreters.web.moments import View, of_words
from lifefold.interpreters.web.structs import Action, Claim, Diff, DiffPage, Mark, TaskPage, Wait
from lifefold.interpreters.web.task_edits import form_of

MOST_CHARACTERS: Final = 200_000
"""The most characters of a diff on a page."""

MOST_CLAIMS: Final = 50
"""The latest claims on the page of a task."""


def task_page(view: View, name: str) -> TaskPage:
    """Return the page of a task. Raises ``UnknownName``."""
    found = next((each for each in view.tasks if each.id == name), None)
    if found is None:
        message = f"there is no task {name!r}"
        raise UnknownName(message)
    entity = view.there[board.NAME].entities[f"task:{name}"]
    record: FleetTask = entity.record
    is_now = view.moment.is_now
    said = why.explain(why.look(view.there, name, view.now_ms), view.log.trails.at(name, view.moment.seq))
    said = replace(said, onward=logs.typed(said.onward, view.log.store))
    owner = view.there.get(f"{worker.KIND}/{found.owner}")
    waits = _waits(view, name)
    transitions = view.log.journal.chosen(Choice(task=name), before=view.moment.seq + 1, most=MOST_LINES)
    return TaskPage(
        view.at(),
        view.task(found),
        view.secrets.hidden(record.prompt),
        said,
        (
            Mark("task", PICTURES["task"], entity.state, entity.entered_ms),
            *(each for each in (marks(owner) if owner is not None else ()) if each.machine == "assignment"),
        ),
        tuple(_doubts(view, found.settled)),
        waits,
        tuple(_others(_actions(record, said.options), waits)) if is_now else (),
        form_of(view, record),
        tuple(_claims(view, name))[-MOST_CLAIMS:],
        verifications_of(view, record, record.epoch),
        tuple(transitions)[::-1],
    )


def diff_page(view: View, name: str, attempt: int = 0, since: int = 0) -> DiffPage:
    """Return what a task has changed, by its work or in one attempt, against its base or another attempt.

    The past has what the log and git have of that moment (``Repository.changes``). Raises ``UnknownName`` for an
    unknown task, and for an attempt that was not.
    """
    entity = view.there[board.NAME].entities.get(f"task:{name}") if view.has_board else None
    if entity is None:
        message = f"there is no task {name!r}"
        raise UnknownName(message)
    record: FleetTask = entity.record
    waits = tuple(each for each in _waits(view, name) if each.about == Awaited.TASK)
    every = view.log.claims.of(name, view.moment.seq)
    claims = {each: claims_of_attempt(every, each) for each in (attempt, since) if each}
    for number, found in claims.items():
        if not found:
            message = f"there is no attempt {number} at {name!r}"
            raise UnknownName(message)
    shown = (attempt_of(every, record.epoch), attempt, since)
    checked = verifications_of(view, record, claims[attempt][0] if attempt else record.epoch)
    try:
        then = None if view.moment.is_now else Then(view.moment.at_ms, open_claims(every))
        of = Attempts(attempt, since, claims, then)
        changes, text = anyio.run(patch, view.log.store, record, ("--stat", "--patch"), of, LOOK_S)
    except NoChangesError as error:
        return DiffPage(view.at(), name, waits, None, str(error), checked, *shown)
    readable = view.secrets.hidden("\n".join(lines(text)))
    diff = Diff(changes.said, readable[:MOST_CHARACTERS], len(readable) > MOST_CHARACTERS)
    return DiffPage(view.at(), name, waits, diff, "", checked, *shown)


def verifications_of(view: View, record: FleetTask, claim: int) -> tuple[Verification, ...]:
    """Return the verification of the latest claim that had one, up to a claim, as far as it had come at the moment."""
    found = anyio.run(verifications, view.folder, record.id, claim, view.secrets)
    return found if view.moment.is_now else begun_by(found, view.moment.at_ms)


def _waits(view: View, name: str) -> tuple[Wait, ...]:
    return tuple(each for each in view.waits if name in each.names and each.about != Awaited.PLAN)


def _others(actions: Iterable[Action], waits: Iterable[Wait]) -> Iterator[Action]:
    """Yield the actions that are not offered with what waits, or before: each command once."""
    seen = [(each.command, each.asks) for wait in waits for each in wait.actions]
    for each in actions:
        if (each.command, each.asks) not in seen:
            seen.append((each.command, each.asks))
            yield each


def _doubts(view: View, settled: bool) -> Iterator[str]:  # noqa: FBT001 - the status of a task has it
    """Yield what the log says and nothing carries out."""
    if view.moment.is_now and not settled and not view.runs and awaited.goes_on(view.there):
        yield "no runner is at work, so nothing happens by itself"


def _actions(of: FleetTask, options: Iterable[why.Option]) -> Iterator[Action]:
    """Yield the commands that ``why`` names, a message for the task, and the commands that end it."""
    name, state = of.id, of.state
    for each in options:
        yield from _action(each)
    if state not in {State.CLOSED, State.CANCELLED}:
        about = "its agent gets it, or its next prompt has it"
        yield Action(f"Send {name} a message", {"command": "send", "name": name}, about, "text", is_optional=False)
    if state in CANCELLABLE:
        about = "its session ends, and tasks that depend on it are blocked"
        yield Action(f"Cancel {name}", {"command": "cancel", "names": [name]}, about, "reason")
    if of.fate is not None and state in CANCELLABLE:
        about = "its session ends, and those of its parts"
        yield Action(f"Abort {name}", {"command": "abort", "name": name}, about, "reason")


def _action(option: why.Option) -> Iterator[Action]:
    words, about = shlex.split(option.to), option.about
    name = words[0] if words else ""
    match option.command:
        case "approve" | "retry" | "resume" if not name.startswith("--"):
            yield Action(f"{option.command.title()} {name}", {"command": option.command, "names": [name]}, about)
        case "stop":
            yield Action(f"Stop {name}", {"command": "stop", "names": [name]}, about)
        case "reject":
            command = {"command": "reject", "names": [name]}
            yield Action(f"Reject {name}", command, about, "reason", is_optional="/Q" in name)
        case "answer":
            yield Action(f"Answer {name}", {"command": "answer", "name": name}, about, "text", is_optional=False)
        case "send":
            yield Action(f"Send {name} a message", {"command": "send", "name": name}, about, "text", is_optional=False)
        case "branch":
            yield Action("Accept the branch", {"command": "branch"}, about, "reason")
        case "trust":
            yield from of_words(("trust", name, "--promote"), about)
        case _:
            yield from of_words((option.command, *words), about)


def _claims(view: View, name: str) -> Iterator[Claim]:
    """Yield the claims of a task; a handover of done work is one, too."""
    every = view.log.claims.of(name, view.moment.seq)
    for each in every:
        ended = ": ".join(filter(None, (OF_TASKS.get(each.outcome, each.outcome), each.reason)))
        yield Claim(each.number, each.agent, each.began_ms, each.ended_ms, ended, attempt_of(every, each.number))
