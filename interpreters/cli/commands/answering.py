"""The operator's answers to questions of agents: ``answer``, and ``approve`` and ``reject`` with the name of one."""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Final

from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker.question_model import REF, Answer, QuestionAnswered, Questions, Verdict, refused_answer
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.engine import REFUSED
from lifefold.interpreters.explain import questions
from lifefold.interpreters.explain.why.phrases import because, enumerated


def answer(arguments: Namespace) -> int:
    """Answer a question in words."""
    operator_commands.must_be_text("the answer", arguments.text)
    given = Answer(Verdict.ANSWERED, arguments.text)

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        found = questions.meant(aggregates, arguments.question)
        if found is None:
            known = [each.name for each in questions.waiting(aggregates) if not each.is_permission]
            must_be_clear(aggregates, arguments.question)
            must_be_there("waiting question", [arguments.question], known)
        else:
            yield answered(aggregates, found, given)

    return operator_commands.say(arguments.db, judge, "status")


def must_be_clear(aggregates: Mapping[str, Aggregate], name: str) -> None:
    """Raise ``BadInput`` for a short name that several questions have, or that no question has which waits."""
    if not questions.is_short(name):
        return
    named, every = questions.numbered(aggregates, name), [each.name for each in questions.waiting(aggregates)]
    if len(named) > 1:
        raise BadInput(f"{name} is the name of several questions; say {enumerated(named, 'or')}")
    if not named:
        waits = f"; there {'is' if len(every) == 1 else 'are'} {enumerated(every)}" if every else ""
        raise BadInput(f"no question {name} waits for an answer; it may be answered, or its session is over{waits}")


def answered(aggregates: Mapping[str, Aggregate], found: tuple[str, int], given: Answer) -> Said | Refused:
    """Return the command that answers the question of an agent, or why it would be refused."""
    agent, number = found
    name, to = questions.name_of(agent, number), f"{worker.KIND}/{agent}"
    if REF not in aggregates[to].entities:
        return Refused(name, f"{REFUSED}the fleet file has no table [fleet.questions], so no agent asks anything")
    event = QuestionAnswered(number, given)
    record: Questions = aggregates[to].record(REF)
    why = _given(record, number) or refused_answer(record, event)
    return Refused(name, f"{REFUSED}{why}") if why else Said(name, to, REF, event, _DONE[given.verdict])


def _given(record: Questions, number: int) -> str:
    """Return that a question has its answer, with that answer; empty without one."""
    found = record.numbered(number)
    if found is None or found.answer is None:
        return ""
    return f"{_HAS[found.answer.verdict]}{because(found.answer.text)}; an answer is final"


_HAS: Final = {
    Verdict.ANSWERED: "the question is answered already",
    Verdict.ALLOWED: "the permission was given already",
    Verdict.REFUSED: "the question was rejected already",
    Verdict.EXPIRED: "no operator has answered in time, so it was rejected",
}

_DONE: Final = {
    Verdict.ANSWERED: "answered: its agent goes on",
    Verdict.ALLOWED: "approved: its agent goes on",
    Verdict.REFUSED: "rejected: its agent is told so, and goes on",
}
