"""Ask an operator through the log, and wait for the answer there.

The question is a command of the session: it is in the log before its asker waits. The answer is read from the log,
so neither a crash of the runner nor one of the asker loses it. A repeated ask with the same identifier finds the same
question. The log is read again every ``LOOK_S`` seconds.
"""

import json
import sqlite3
import time
from collections.abc import Mapping
from typing import Final

import anyio

from lifefold.core.fleet import system
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker.question_model import (
    MOST_CHARACTERS,
    REF,
    Answer,
    Kind,
    QuestionAsked,
    Questions,
    State,
    Verdict,
    refused_ask,
)
from lifefold.core.kernel import Aggregate, Envelope, Event, replace
from lifefold.interpreters.cli import inside
from lifefold.interpreters.cli.agent_tools.claim import Claim
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.logs import LOOK_S
from lifefold.interpreters.cli.operator_commands import ANSWER_TIMEOUT_S
from lifefold.interpreters.engine import ACCEPTED, REFUSED, CommandQueue, Ledger, LogMismatchError
from lifefold.interpreters.store import LogStore, StoreError, peek_log

MOST_INPUT: Final = 2_000
"""The most characters of a tool's input in the log; the tool itself gets all of it."""

MOST_NAME: Final = 200
"""The most characters of a tool's name, and of an identifier."""

FAILURES: Final = (BadInput, StoreError, LogMismatchError, sqlite3.Error, OSError)
"""What may be wrong with the log of a fleet, or with what an agent has given."""

NO_QUESTIONS = "the fleet file has no table [fleet.questions], so no operator is asked"
DROPPED = "the session that asked is over, so there is no answer"
UNREASONED = "an operator has refused it"
"""The reason that a session gets for a refusal whose operator has given none."""


def permission_asked(identifier: str, tool: str, subject: str, given: object, *, is_cut: bool = False) -> QuestionAsked:
    """Return the question whether a tool may be used, without secrets and within the limits of the log.

    ``subject`` is what the tool acts on, and ``given`` its input. ``is_cut``: the subject says only a part of that.
    """
    shown = inside.hidden(subject)
    return QuestionAsked(
        id=identifier,
        kind=Kind.PERMISSION,
        tool=inside.hidden(tool)[:MOST_NAME],
        subject=shown[:MOST_CHARACTERS],
        input=inside.hidden(json.dumps(given, ensure_ascii=False, sort_keys=True))[:MOST_INPUT],
        is_cut=is_cut or len(shown) > MOST_CHARACTERS or len(tool) > MOST_NAME,
    )


async def answer_to(claim: Claim, event: QuestionAsked, patience_s: float = 0) -> Answer:
    """Ask and wait as ``ask`` does. What is wrong with the log is a refusal, so nothing is allowed by mistake."""
    try:
        return await ask(claim, event, patience_s)
    except FAILURES as error:
        return Answer(Verdict.REFUSED, f"the question cannot be asked: {error}")


async def ask(claim: Claim, event: QuestionAsked, patience_s: float = 0) -> Answer:
    """Ask, wait for the answer, and return it; a refusal if the question cannot be asked, or is dropped.

    Questions are closed until the runner has read that the session took an urgent message. The ask waits so long for
    that as ``patience_s`` says.
    """
    asked = replace(event, task=claim.task, epoch=claim.epoch, token=claim.secret, asked_ms=time.time_ns() // 1_000_000)
    with peek_log(claim.log) as store:
        ledger = Ledger(system)
        found = await _opened(store, ledger, claim, patience_s)
        why = NO_QUESTIONS if found is None else refused_ask(found, asked)
        if why:
            return Answer(Verdict.REFUSED, why)
        queue = CommandQueue(store, system, _as_it_is, lambda _aggregates: ACCEPTED)
        command = Envelope(REF, asked, asked.asked_ms, claim.actor)
        (given,) = await queue.give([(f"{worker.KIND}/{claim.agent}", command)], ANSWER_TIMEOUT_S)
        if given is not None and given.startswith(REFUSED):
            return Answer(Verdict.REFUSED, given)
        return await _answer(store, ledger, claim, asked)


async def _opened(store: LogStore, ledger: Ledger, claim: Claim, patience_s: float) -> Questions | None:
    """Return the questions of the claim's worker, once they are open or the patience is over."""
    end_s = time.monotonic() + patience_s
    while True:
        await _read_on(store, ledger)
        found = _questions(ledger.aggregates, claim)
        if found is None or found.state is not State.CLOSED or time.monotonic() >= end_s:
            return found
        await anyio.sleep(LOOK_S)


async def _answer(store: LogStore, ledger: Ledger, claim: Claim, asked: QuestionAsked) -> Answer:
    """Read the log until it has the answer, or no longer has the question."""
    was_there = False
    while True:
        await _read_on(store, ledger)
        record = _questions(ledger.aggregates, claim)
        is_over = (
            record is None or record.state is State.CLOSED or (record.task, record.epoch) != (claim.task, claim.epoch)
        )
        found = None if record is None or is_over else record.with_id(asked.id)
        if found is not None and found.answer is not None:
            return found.answer
        if is_over or (was_there and found is None):
            return Answer(Verdict.REFUSED, DROPPED)
        was_there = was_there or found is not None
        await anyio.sleep(LOOK_S)


async def _read_on(store: LogStore, ledger: Ledger) -> None:
    entries = await store.read_on(ledger.entries)
    for _ in ledger.fold(entries):
        pass


def _questions(aggregates: Mapping[str, Aggregate], claim: Claim) -> Questions | None:
    """Return the questions of the claim's worker; None in a fleet without questions."""
    of = aggregates.get(f"{worker.KIND}/{claim.agent}")
    if of is None or REF not in of.entities:
        return None
    record: Questions = of.record(REF)
    return record


def _as_it_is(_of: Aggregate | None, event: Event) -> Event:
    return event
