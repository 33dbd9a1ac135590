"""The command ``approve``: names that wait, the plan, or with ``--all`` everything that waits for an approval."""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker.question_model import Answer, Verdict
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli import awaited, operator_commands
from lifefold.interpreters.cli.answers import DELIVERY
from lifefold.interpreters.cli.commands import answering, deciding
from lifefold.interpreters.cli.confirming import must_be_confirmed
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.explain import questions
from lifefold.interpreters.explain.pending import Awaited, Waiting
from lifefold.interpreters.explain.why.phrases import count, enumerated

_APPROVABLE = frozenset({Awaited.PLAN, Awaited.TASK})


def approve(arguments: Namespace) -> int:
    """Approve the named tasks and permissions; without names the plan, and with ``--all`` all that waits."""
    if arguments.yes and not arguments.all:
        raise BadInput("--yes answers the question of --all; without --all nothing is asked")
    if not arguments.all:
        return deciding.approve(arguments)
    if arguments.tasks:
        raise BadInput("name what to approve, or give --all; not both")
    if arguments.reason:
        operator_commands.must_be_text("the reason", arguments.reason)
    return _approve_all(arguments)


def _approve_all(arguments: Namespace) -> int:
    every = awaited.waiting(operator_commands.present(arguments.db))
    found = [each for each in every if is_approvable(each)]
    note = DELIVERY.get().note
    for each in every:
        if each.about is Awaited.QUESTION and not is_approvable(each):
            note(f"not approved: {each.names[0]} needs an answer in words: {each.reason}")
    if not found:
        note("nothing waits for your approval")
        return 0
    if not arguments.yes:
        note("\n".join(("these wait for your approval:", *(f"  {_told(each)}" for each in found))))
        must_be_confirmed(f"approve {'it' if len(found) == 1 else f'all {len(found)}'}?", "--yes")
    return operator_commands.say(arguments.db, lambda there: _approved(there, found, arguments.reason), "tasks")


def is_approvable(each: Waiting) -> bool:
    """Tell whether an approval lets this go on: a plan, finished work, or a permission."""
    return each.about in _APPROVABLE or (each.about is Awaited.QUESTION and each.command == "approve")


def _told(each: Waiting) -> str:
    match each.about:
        case Awaited.PLAN:
            return f"the plan, with {count(len(each.names), 'task')}: {enumerated(each.names)}"
        case Awaited.TASK:
            seen = f", which is merged then (lifefold diff {each.names[0]})" if each.commit else ""
            return f"the work of {each.names[0]}{seen}"
        case _:
            return each.reason


def _approved(there: Mapping[str, Aggregate], found: Sequence[Waiting], reason: str) -> Iterator[Said | Refused]:
    """Yield the approval of all that was shown; what has begun to wait since then still waits."""
    of = there[board.NAME]
    for each in found:
        name = each.names[0]
        match each.about:
            case Awaited.PLAN:
                yield deciding.about_plan(there, plan_approval.PlanApproved(reason), deciding.PLAN_APPROVED)
            case Awaited.TASK:
                yield deciding.about_task(name, of.record(f"task:{name}"), deciding.approval_of(of, name, reason))
            case _:
                question = questions.meant(there, name)
                if question is None:
                    yield Refused(name, "it waits no longer")
                else:
                    yield answering.answered(there, question, Answer(Verdict.ALLOWED, reason))
