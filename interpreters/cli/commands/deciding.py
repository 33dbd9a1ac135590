"""The operator's decisions about tasks: ``approve``, ``reject``, ``cancel`` and ``retry``.

``approve`` and ``reject`` accept the names of questions beside those of tasks (``answering``).

Each is an event of the task's own table. In a state that does not accept it, the command is refused with the state and
with the command that helps. No command here completes a task: an approval only lets it go on.
"""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.dispatch import budgets, plan_approval
from lifefold.core.fleet.dispatch.task_index import tasks_of, work_of
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker.question_model import Answer
from lifefold.core.fleet.worker.question_model import Verdict as QuestionVerdict
from lifefold.core.kernel import Aggregate, Event
from lifefold.core.lifecycles import approval, task
from lifefold.core.lifecycles.task import Stage, State
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.cli.commands import answering
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.logs import FLEET_FILE, LOG
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.cli.promotion import agent_to_promote
from lifefold.interpreters.engine import REFUSED
from lifefold.interpreters.explain import questions
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.explain.task_words import is_in

Verdict: TypeAlias = tuple[Event, str] | str
"""An event for a task with the text printed when it is accepted, or the reason of a refusal."""

Decide: TypeAlias = Callable[[Aggregate, fleet_task.FleetTask], Verdict]
"""Returns the verdict on one task of a board."""


def approve(arguments: Namespace) -> int:
    """Approve planned tasks, or finished tasks before their merge; without task ids, the plan."""
    reason = _optional(arguments.reason)
    if not arguments.tasks:
        return _decide_plan(arguments, plan_approval.PlanApproved(reason), PLAN_APPROVED)
    answer = Answer(QuestionVerdict.ALLOWED, reason)
    return _decide(arguments, lambda of, each: approval_of(of, each.id, reason), answer)


def reject(arguments: Namespace) -> int:
    """Reject planned tasks, finished tasks before their merge, questions, or the plan."""
    if bool(arguments.tasks) is arguments.plan:
        raise BadInput("name the tasks to reject, or give --plan to reject the whole plan")
    reason = _optional(arguments.reason)
    if arguments.plan:
        operator_commands.must_be_text("the reason", reason)
        return _decide_plan(
            arguments, plan_approval.PlanDeclined(arguments.reason), "rejected: none of its tasks is done"
        )
    answer = Answer(QuestionVerdict.REFUSED, reason)
    return _decide(arguments, lambda of, each: _rejection(of, each, reason), answer)


def cancel(arguments: Namespace) -> int:
    """Cancel tasks."""
    reason = _optional(arguments.reason)
    return _decide(arguments, lambda of, each: _cancellation(of, each, reason))


def retry(arguments: Namespace) -> int:
    """Let failed tasks be tried once more, and blocked tasks go on."""
    return _decide(arguments, _retry)


def _optional(reason: str) -> str:
    if reason:
        operator_commands.must_be_text("the reason", reason)
    return reason


def _decide(arguments: Namespace, decide: Decide, answer: Answer | None = None) -> int:
    """Decide about tasks, and give an ``answer`` to questions, if it is one of them."""

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        of = aggregates[board.NAME]
        tasks = {each.id: each for each in sorted(tasks_of(of), key=lambda each: each.ordinal)}
        asked = {name: questions.meant(aggregates, name) for name in arguments.tasks if answer and name not in tasks}
        unknown = [name for name in arguments.tasks if not asked.get(name)]
        for name in unknown:
            if name in asked:
                answering.must_be_clear(aggregates, name)
        must_be_there("task", unknown, tasks)
        for name in dict.fromkeys(arguments.tasks):
            if answer is not None and (question := asked.get(name)) is not None:
                yield answering.answered(aggregates, question, answer)
                continue
            yield about_task(name, tasks[name], decide(of, tasks[name]))

    return operator_commands.say(arguments.db, judge, "tasks")


def about_task(name: str, each: fleet_task.FleetTask, verdict: Verdict) -> Said | Refused:
    """Return the command for a task, or its refusal with the task's state."""
    if isinstance(verdict, str):
        return Refused(name, f"{REFUSED}it {is_in(each.state)}: {verdict}")
    return Said(name, board.NAME, f"task:{name}", *verdict)


PLAN: Final = "plan"
PLAN_APPROVED: Final = "approved: agents get its tasks"


def _decide_plan(arguments: Namespace, event: Event, done: str) -> int:
    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        yield about_plan(aggregates, event, done)

    return operator_commands.say(arguments.db, judge, "tasks")


def about_plan(aggregates: Mapping[str, Aggregate], event: Event, done: str) -> Said | Refused:
    """Return the command for the plan as a whole, or its refusal."""
    why = _why_no_plan(aggregates[board.NAME], event)
    asked = [each.name for each in questions.waiting(aggregates)] if why else []
    why += f"; name the questions that wait: {' '.join(asked)}" if asked else ""
    return Refused(PLAN, f"{REFUSED}{why}") if why else Said(PLAN, board.NAME, PLAN, event, done)


def _why_no_plan(of: Aggregate, event: Event) -> str:
    """Return why the plan cannot be approved or rejected; empty if it can."""
    over = board.finished(of)
    waiting = [each.id for each in tasks_of(of) if each.state is State.PENDING_APPROVAL and not over]
    instead = f"; name the tasks whose work waits for your approval: {' '.join(sorted(waiting))}" if waiting else ""
    if PLAN not in of.entities:
        return f"this fleet's plan needs no approval, because its file does not say approve_plan = true{instead}"
    if of.entities[PLAN].state is not plan_approval.State.PROPOSED:
        return f"the plan is {of.entities[PLAN].state} already{instead}"
    if not any(each.state is State.PLANNED for each in tasks_of(of)):
        return f"all its tasks were decided one by one{instead}"
    return no_agent_left(of) if isinstance(event, plan_approval.PlanApproved) else ""


def no_agent_left(of: Aggregate, onward: str = "") -> str:
    """Return that no agent is left to work at tasks, and how to go ``onward``; empty while one is left."""
    if not board.finished(of):
        return ""
    settled = "all tasks are settled, and the fleet is over"
    what = "all agents have stopped for good" if work_of(of).unsettled else settled
    return f"{what}; {onward or _AGAIN}"


_AGAIN: Final = f"no agent takes it in this log; lifefold run {FLEET_FILE} --again does what was not done"


ADD_AND_AGAIN: Final = (
    "no agent takes it in this log; add it to the fleet file, and run that in a new log: "
    f"lifefold run {FLEET_FILE} --again"
)
"""How to go onward with a task that is not in the log of a finished fleet."""


def approval_of(of: Aggregate, name: str, reason: str) -> Verdict:
    """Return the approval of a task, or why it is refused."""
    each: fleet_task.FleetTask = of.record(_ref(name))
    waits = each.state in {State.PLANNED, State.PENDING_APPROVAL} or (each.state, each.stage) == _APPROVED
    if waits and (why := no_agent_left(of)):
        return why
    match each.state:
        case State.PLANNED:
            return task.Approved(reason), "approved: an agent gets it when it is ready"
        case State.PENDING_APPROVAL:
            return approval.ApprovalGranted(reason), "approved: it is merged next"
        case State.DONE if each.stage is Stage.MERGE:
            return "it is approved already, and is merged next"
        case State.DONE if each.stage is Stage.REVERIFY:
            return f"its commands were changed, so it is verified by them first; lifefold why {each.id}{LOG}"
        case _:
            return f"{_not_asked(of, each)}; nothing of it is left to approve"


_APPROVED: Final = (State.DONE, Stage.MERGE)


def _rejection(of: Aggregate, each: fleet_task.FleetTask, reason: str) -> Verdict:
    match each.state:
        case State.PLANNED | State.PENDING_APPROVAL if not reason:
            return f'a rejection needs a reason: lifefold reject {each.id} --reason "..."{LOG}'
        case State.PLANNED:
            return task.Declined(reason), "rejected: it is not done"
        case State.PENDING_APPROVAL:
            is_retried = each.retries < each.allowed_retries and not board.finished(of)
            again = "it is tried again after a pause" if is_retried else "it has failed"
            return approval.ApprovalRefused(reason), f"rejected: {again}"
        case State.DONE if each.stage is Stage.MERGE:
            return "it was approved, and is being merged; git revert undoes that"
        case state if state in fleet_task.CANCELLABLE:
            return f"{_NOT_YET}; lifefold cancel {each.id}{LOG} cancels it"
        case _:
            return _not_asked(of, each)


def _not_asked(of: Aggregate, each: fleet_task.FleetTask) -> str:
    """Return why a task does not wait for an approval."""
    if each.state is State.FAILED and not each.removed and not board.finished(of):
        return f"it does not wait for an approval; lifefold retry {each.id}{LOG} has it tried once more"
    return _NOT_ASKED.get(each.state, _NOT_YET)


_NOT_YET: Final = "it does not wait for an approval now"
_NOT_ASKED: Final[Mapping[State, str]] = {State.CLOSED: "its work is merged", State.CANCELLED: "that is final"}


def _cancellation(of: Aggregate, each: fleet_task.FleetTask, reason: str) -> Verdict:
    if each.state in fleet_task.CANCELLABLE:
        dependents = work_of(of).dependents.get(each.id, ())
        blocked = [name for name in dependents if of.record(_ref(name)).state is State.OPEN]
        more = f"; blocked by that: {' '.join(blocked)}" if blocked else ""
        over = f"; {_LEAVES_OUT}" if board.finished(of) else ""
        return task.Cancelled(reason), f"cancelled{more}{over}"
    if each.state in _TO_COME and (why := no_agent_left(of, _TAKE_OUT)):
        return why
    return INSTEAD_OF_CANCELLING[each.state](each)


_LEAVES_OUT: Final = f"the fleet is over, and lifefold run {FLEET_FILE} --again leaves it out, with what depends on it"
_TAKE_OUT: Final = "nothing more happens to it in this log; take it out of the fleet file before a run with --again"
_TO_COME: Final = frozenset({State.DONE, State.FAILED, State.ORPHANED})
"""The states of which ``INSTEAD_OF_CANCELLING`` names what comes next, as long as the fleet is not over."""


INSTEAD_OF_CANCELLING: Final[Mapping[State, Callable[[fleet_task.FleetTask], str]]] = {
    State.PLANNED: lambda each: f'it waits for your approval; lifefold reject {each.id} --reason "..."{LOG} rejects it',
    State.PENDING_APPROVAL: lambda each: (
        f'its work waits for your approval; lifefold reject {each.id} --reason "..."{LOG} rejects it'
    ),
    State.DONE: lambda _: (
        "its work is done, and is being verified or merged; when it is closed, git revert undoes the merge"
    ),
    State.CLOSED: lambda each: (
        f"its work is on branch {each.branch}"
        if each.branch
        else f"its work is merged; git revert -m 1 {each.commit[:10]} undoes that"
        if each.commit
        else "its work is done"
    ),
    State.FAILED: lambda each: (
        f"it has failed already; only lifefold retry {each.id}{LOG} would begin it again"
        if task.settled(each)
        else "it has failed, and pauses before its next try; it can be cancelled when that begins"
    ),
    State.CANCELLED: lambda _: "that is final",
    State.ORPHANED: lambda each: (
        "its session has died, and the work it has left is verified; if that fails, it can be cancelled when it is"
        " tried again"
        if each.orphaned is task.OnDeath.VERIFY
        else "its session has died; it can be cancelled when its agent has given it back"
    ),
}
"""What helps where a task cannot be cancelled, by its state."""


def _retry(of: Aggregate, each: fleet_task.FleetTask) -> Verdict:
    if each.blocked_by and each.state is not State.CANCELLED:
        return _lack(of, each)
    if each.state not in {State.CLOSED, State.CANCELLED} and (why := no_agent_left(of)):
        return why
    match each.state:
        case State.FAILED:
            return fleet_task.RetryGranted(), "is tried once more, at once"
        case State.BLOCKED:
            return task.Unblocked(), "goes on"
        case State.CLOSED | State.CANCELLED if board.finished(of):
            what = "its work is merged" if each.state is State.CLOSED else "that is final"
            again = f"lifefold run {FLEET_FILE} --again"
            return f"{what}; add another task to the fleet file, and run it in a new log: {again}"
        case _:
            return _INSTEAD_OF_RETRYING.get(each.state, _NOT_FAILED).format(each.id)


_NOT_FAILED: Final = f"it has not failed; lifefold why {{}}{LOG} explains what moves it on"
_INSTEAD_OF_RETRYING: Final[Mapping[State, str]] = {
    State.CLOSED: f'its work is merged; more work is another task: lifefold task add --id {{}}-2 --prompt "..."{LOG}',
    State.CANCELLED: f'that is final; it can be another task: lifefold task add --id {{}}-2 --prompt "..."{LOG}',
    State.PLANNED: f"it waits for your approval; lifefold approve {{}}{LOG}",
    State.PENDING_APPROVAL: f"it waits for your approval; lifefold approve {{}}{LOG}",
}
_CHANGE: Final = f"and that change is accepted: lifefold plan {FLEET_FILE}"


def _lack(of: Aggregate, each: fleet_task.FleetTask) -> str:
    """Return what blocks a task, and the command that helps."""
    if each.removed and board.finished(of):
        begin = f"lifefold run {FLEET_FILE} --again"
        return (
            f"it was {fleet_task.NOT_IN_THE_PLAN}, and no agent takes it in this log; when the file has it again:"
            f" {begin}"
        )
    if each.removed:
        return f"it was {fleet_task.NOT_IN_THE_PLAN}; it goes on when the file has it again, {_CHANGE}"
    if each.blocked_by.startswith((fleet_task.ROLE, fleet_task.LEVEL)):
        return f"it {each.reason}; {_how_an_agent_may(of, each)}"
    if why := no_agent_left(of):
        return f"it {in_plain_words(each.reason)}; {why}"
    if each.blocked_by.startswith(fleet_task.BUDGET):
        return f"{each.reason}; more may be spent: lifefold {budgets.raising(of.entities[each.blocked_by])}{LOG}"
    return _root(of, each)


def _how_an_agent_may(of: Aggregate, each: fleet_task.FleetTask) -> str:
    """Return how a task that no agent may take gets an agent that may."""
    if no_agent_left(of):
        return _AGAIN
    if each.blocked_by.startswith(fleet_task.LEVEL) and (agent := agent_to_promote(of, each)):
        command = f'lifefold trust {agent} --promote --reason "..."{LOG}'
        return f"it goes on when an agent has that trust; this promotes one by one level: {command}"
    return f"it goes on when the file has an agent that may take it, {_CHANGE}"


def _root(of: Aggregate, each: fleet_task.FleetTask) -> str:
    """Return which task to retry so that a task blocked by it goes on."""
    seen = [each.id]
    while each.state is State.BLOCKED and each.lacked_task and each.lacked_task not in seen:
        seen.append(each.lacked_task)
        each = of.record(_ref(each.lacked_task))
    by = f"because of {' because of '.join(seen[1:])}, which {is_in(each.state)}"
    if each.blocked_by and not each.lacked_task:
        return f"{by}: {_lack(of, each)}"
    if each.state in {State.FAILED, State.BLOCKED}:
        return f"{by}; retry that one, and this goes on by itself: lifefold retry {each.id}{LOG}"
    return f"{by}, for good; cancel this one: lifefold cancel {seen[0]}{LOG}"


def _ref(name: str) -> str:
    return f"task:{name}"
