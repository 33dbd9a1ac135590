"""Ask an operator through the log, and wait for the answer there.

The question is a command of the session: it is in the log before its asker waits. The answer is read from the log,
so neither a crash of the runner nor one of the asker loses it. A repeated ask with the same identifier finds the same
question. The log is read again every ``LOOK_S`` seconds.
"""

import time
from collections.abc import Mapping

import anyio

from lifefold.core.fleet import system
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker.question_model import REF, Answer, QuestionAsked, Questions, State, Verdict, refused_ask
from lifefold.core.kernel import Aggregate, Envelope, Event, replace
from lifefold.interpreters.cli.agent_tools.claim import Claim
from lifefold.interpreters.cli.logs import LOOK_S
from lifefold.interpreters.cli.operator_commands import ANSWER_TIMEOUT_S
from lifefold.interpreters.engine import ACCEPTED, REFUSED, CommandQueue, Ledger
from lifefold.interpreters.store import SqliteStore

NO_QUESTIONS = "the fleet file has no table [fleet.questions], so no operator is asked"
DROPPED = "the session that asked is over, so there is no answer"


async def ask(claim: Claim, event: QuestionAsked) -> Answer:
    """Ask, wait for the answer, and return it; a refusal if the question cannot be asked, or is dropped."""
    asked = replace(event, task=claim.task, epoch=claim.epoch, token=claim.secret, asked_ms=time.time_ns() // 1_000_000)
    with SqliteStore.peek(claim.log) as store:
        ledger = Ledger(system)
        await _read_on(store, ledger)
        found = _questions(ledger.aggregates, claim)
        why = NO_QUESTIONS if found is None else refused_ask(found, asked)
        if why:
            return Answer(Verdict.REFUSED, why)
        queue = CommandQueue(store, system, _as_it_is, lambda _aggregates: ACCEPTED)
        command = Envelope(REF, asked, asked.asked_ms, claim.actor)
        (given,) = await queue.give([(f"{worker.KIND}/{claim.agent}", command)], ANSWER_TIMEOUT_S)
        if given is not None and given.startswith(REFUSED):
            return Answer(Verdict.REFUSED, given)
        return await _answer(store, ledger, claim, asked)


async def _answer(store: SqliteStore, ledger: Ledger, claim: Claim, asked: QuestionAsked) -> Answer:
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


async def _read_on(store: SqliteStore, ledger: Ledger) -> None:
    entries = await store.read_on(sum(each.version for each in ledger.aggregates.values()))
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
