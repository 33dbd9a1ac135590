"""Operator commands of the command line: what a command asks for, and what it prints.

The queue of the engine (``command_queue``) stores them in the log, whether or not a runner is at work, and returns the
answers. The actor of a command is the login name of its user; the permission to write the log authenticates it.
"""

import os
import pwd
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

import anyio
import msgspec

from lifefold.core.fleet import system
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.system.rerun import is_over
from lifefold.core.fleet.worker import mailbox
from lifefold.core.kernel import Aggregate, Envelope, Event, replace
from lifefold.interpreters.cli import inside, logs
from lifefold.interpreters.cli.answers import DELIVERY, LEFT, Answer, answer
from lifefold.interpreters.cli.earlier import found_earlier
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.names import UnknownName
from lifefold.interpreters.engine import ACCEPTED, REFUSED, CommandQueue
from lifefold.interpreters.explain import status
from lifefold.interpreters.fleet_runner.folder import FleetFolder
from lifefold.interpreters.fleet_runner.process_evidence import look
from lifefold.interpreters.store import LogStore

ANSWER_TIMEOUT_S: Final = 30.0
"""How long a command waits for its answer. Without one it stays in the log."""

TEXT_CHARACTERS: Final = 10_000
"""The longest message or reason: it may become part of a prompt, and a prompt an argument of a command."""


class Said(msgspec.Struct, frozen=True):
    """An event for an entity of the aggregate ``to``; ``name`` is the agent or task as operators call it.

    ``done`` is printed when the event is accepted; nothing is printed of an event that only ``prepares`` another one.
    """

    name: str
    to: str
    entity: str
    event: Event
    done: str = ACCEPTED
    prepares: bool = False


class Refused(msgspec.Struct, frozen=True):
    """A command that is not sent, because its refusal is certain."""

    name: str
    why: str


Judge: TypeAlias = Callable[[Mapping[str, Aggregate]], Iterable[Said | Refused]]
"""Returns the events of a command for the present state of a fleet, or refusals; one for each name."""


def say(db: str | None, judge: Judge, hint: str) -> int:
    """Give an operator's command, print a line for each name, and return 0.

    Raises ``BadInput`` if all is refused; ``hint`` is the command that shows why. Inside a session it raises
    ``BadInput`` before it reads the log.
    """
    inside.must_be_outside("this command")
    return _say(db, judge, hint)


def say_of_a_session(db: str | None, judge: Judge, hint: str) -> int:
    """Give a command of a session, which has the token of its claim."""
    return _say(db, judge, hint)


def answer_to_a_session(db: str | None, judge: Judge) -> str:
    """Give a command of a session, and return its answer. Raises ``BadInput`` with the reason of a refusal."""
    with logs.peek(db) as store:
        given = list(_given(store, judge))
    said = "; ".join(each.line for each in given)
    if not all(each.is_accepted for each in given):
        raise BadInput(said)
    return said


def _say(db: str | None, judge: Judge, hint: str) -> int:
    with logs.peek(db) as store:
        given = list(_given(store, judge))
        path = shlex.quote(str(store.path))
    for each in given:
        DELIVERY.get().tell(each)
    if not any(each.is_accepted for each in given):
        raise BadInput(f"nothing has changed; lifefold {hint} --db {path} shows the present state")
    return 0


def _given(store: LogStore, judge: Judge) -> Iterator[Answer]:
    """Give a command, and yield the answer for each name."""
    judged = list(_judged(store, judge))
    answers = anyio.run(partial(_tell, store, [each for each in judged if isinstance(each, Said)]))
    if any(answer.startswith(REFUSED) for answer in answers.values()):
        # Another command was decided first; now the reason is known.
        answers |= {each.name: each.why for each in judge(_fleet(store)) if isinstance(each, Refused)}
    for each in judged:
        if isinstance(each, Said) and each.prepares:
            continue
        answered = each.why if isinstance(each, Refused) else answers[each.name]
        words = answered.replace(ACCEPTED, each.done, 1) if isinstance(each, Said) else answered
        yield answer(each.name, answered, logs.typed(words, store))


def _judged(store: LogStore, judge: Judge) -> Iterable[Said | Refused]:
    """Judge a command. Raises ``BadInput`` for a log that another log continues, and says where an unknown task is."""
    aggregates, then = _fleet(store), logs.next_log(store.path)
    if then.exists() and is_over(aggregates):
        option = f"--db {shlex.quote(str(then))}"
        raise BadInput(f"{store.path}: the fleet is over, and {then} continues it; give the command with {option}")
    try:
        return list(judge(aggregates))
    except UnknownName as unknown:
        raise found_earlier(store, unknown) from None


def present(db: str | None) -> Mapping[str, Aggregate]:
    """Return the state of a fleet before a command asks about it. Raises ``BadInput`` inside a session."""
    inside.must_be_outside("this command")
    with logs.peek(db) as store:
        return _fleet(store)


def _fleet(store: LogStore) -> Mapping[str, Aggregate]:
    aggregates = logs.fold(store).aggregates
    if board.NAME not in aggregates:
        begin = logs.typed(f"begin with lifefold run {logs.FLEET_FILE}", store)
        raise BadInput(f"{store.path}: the fleet has no agents yet; {begin}")
    return aggregates


def must_be_text(what: str, text: str) -> None:
    """Raise ``BadInput`` for a text that is empty, too long, or undecodable."""
    if not text.strip() or len(text) > TEXT_CHARACTERS:
        raise BadInput(f"{what} must have 1 to {TEXT_CHARACTERS} characters, not {len(text)}")
    must_be_decoded(what, text)


def must_be_decoded(what: str, text: str) -> None:
    """Raise ``BadInput`` for undecodable bytes of the command line, which Python keeps as surrogates."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise BadInput(f"{what} has bytes that are not text in the encoding of this terminal; write it in UTF-8")


def login() -> str:
    """Return the login name of the user of this process, or the user's number if it has no name."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


async def _tell(store: LogStore, said: Sequence[Said]) -> dict[str, str]:
    """Give commands to the fleet, and return the answers by name."""
    now_ms, actor = time.time_ns() // 1_000_000, inside.actor() or f"operator:{login()}"
    key = DELIVERY.get().key
    keys = [f"{key}/{number}/{each.name}" if key else "" for number, each in enumerate(said)]
    commands = [
        (each.to, Envelope(each.entity, each.event, now_ms, actor, named))
        for each, named in zip(said, keys, strict=True)
    ]
    queue = CommandQueue(store, system, partial(_unattended, FleetFolder(store.path)), _accepted)
    answers = await queue.give(commands, ANSWER_TIMEOUT_S)
    return {each.name: answered or LEFT for each, answered in zip(said, answers, strict=True)}


def _accepted(aggregates: Mapping[str, Aggregate]) -> str:
    """Return the answer to a command that was accepted without a runner."""
    return ACCEPTED if is_over(aggregates) else f"{ACCEPTED}; the next run acts on it"


def _unattended(folder: FleetFolder, of: Aggregate | None, event: Event) -> Event:
    """Return an event as it applies without a runner: a message interrupts no session that has ended meanwhile.

    The next run interrupts a session that is alive, or whose process is unknown.
    """
    if not isinstance(event, mailbox.OperatorMessageArrived) or of is None or of.kind != worker.KIND:
        return event
    found = look(folder, status.agent_status(of))
    return event if found is None or found.alive else replace(event, urgent=False)
