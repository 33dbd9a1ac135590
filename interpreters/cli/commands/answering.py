"""The operator's answers to questions of agents: ``answer``, and ``approve`` and ``reject`` with the name of one."""

from argparse import Namespace
from collections.abc import Iterator, Mapping

from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker.question_model import REF, Answer, QuestionAnswered, Questions, Verdict, refused_answer
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.engine import REFUSED
from lifefold.interpreters.explain import questions


def answer(arguments: Namespace) -> int:
    """Answer a question in words."""
    operator_commands.must_be_text("the answer", arguments.text)
    given = Answer(Verdict.ANSWERED, arguments.text)

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        found = questions.meant(aggregates, arguments.question)
        if found is None:
            known = [each.name for each in questions.waiting(aggregates) if not each.is_permission]
            must_be_there("question that waits", [arguments.question], known)
        else:
            yield answered(aggregates, found, given)

    return operator_commands.say(arguments.db, judge, "status")


def answered(aggregates: Mapping[str, Aggregate], found: tuple[str, int], given: Answer) -> Said | Refused:
    """Return the command that answers the question of an agent, or why it would be refused."""
    agent, number = found
    name, to = questions.name_of(agent, number), f"{worker.KIND}/{agent}"
    if REF not in aggregates[to].entities:
        return Refused(name, f"{REFUSED}the fleet file has no table [fleet.questions], so no agent asks anything")
    event = QuestionAnswered(number, given)
    record: Questions = aggregates[to].record(REF)
    why = refused_answer(record, event)
    return Refused(name, f"{REFUSED}{why}") if why else Said(name, to, REF, event, _DONE[given.verdict])


_DONE = {
    Verdict.ANSWERED: "answered: its agent goes on",
    Verdict.ALLOWED: "approved: its agent goes on",
    Verdict.REFUSED: "rejected: its agent is told so, and goes on",
}
