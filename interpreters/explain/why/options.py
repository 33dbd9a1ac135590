"""What would move a task on, by itself or by an operator's command, computed from the root causes.

When all workers have stopped, no command moves a task on in this log: no agent is left to take it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from lifefold.core.fleet.board import account, budget, fleet_task, worker_slot
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import assignment, desired_state, supervisor
from lifefold.core.kernel import Entity
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Resource
from lifefold.core.lifecycles.session import State as SessionState
from lifefold.core.lifecycles.task import Stage, State
from lifefold.interpreters.explain.questions import Asked
from lifefold.interpreters.explain.task_words import is_in
from lifefold.interpreters.explain.why.chain import Link, chain, roots, state_of
from lifefold.interpreters.explain.why.fleet_view import FleetView
from lifefold.interpreters.explain.why.phrases import MOST_NAMED, duration, enumerated, in_brackets, in_time
from lifefold.interpreters.explain.why.whereabouts import empty_budget, refill_ms, rest_left_ms, resting_account


class Option(msgspec.Struct, frozen=True):
    """A command that an operator can give: its name, its task or agent, and its consequence."""

    command: str
    to: str
    about: str


def onward(view: FleetView) -> str:
    """Return what would move a task on."""
    links = chain(view)
    ends = roots(links)
    if not ends:
        return "Nothing: the tasks wait for each other in a circle."
    left = [each for each in ends if each not in view.tasks or view.tasks[each].state not in _FOR_GOOD]
    if left and view.is_over:
        return _nothing(view, left)
    freed = () if view.is_over else tuple(_freed(view, links))
    said = dict.fromkeys(_next(view.about(each)) for each in ends if each in view.tasks)
    if freed:
        said = dict.fromkeys(each.removeprefix(_NOTHING) for each in said)
    unknown = [each for each in ends if each not in view.tasks]
    missing = (f"The board has no task {enumerated(unknown, 'or')}.",) if unknown else ()
    return " ".join((*said, *freed, *missing))


def _freed(view: FleetView, links: Sequence[Link]) -> Iterator[str]:
    """Yield that tasks that depend on a cancelled one go on with other dependencies."""
    for each in links:
        needed = view.tasks[each.task].depends_on if each.because_of else ()
        if any(name in needed and state_of(view, name) == State.CANCELLED for name in each.because_of):
            yield f"{each.task} goes on when the fleet file has it without that dependency, {_ACCEPTED}."


def options(view: FleetView) -> tuple[Option, ...]:
    """Return the commands of an operator, each once: first those that move the task on, then its end."""
    ends = () if view.is_over else roots(chain(view))
    found = [option for each in ends if each in view.tasks for option in _options(view.about(each))]
    if view.task.state in fleet_task.CANCELLABLE:
        found.append(Option("cancel", view.name, _LEFT_OUT if view.is_over else _NOT_DONE))
    return tuple(dict.fromkeys(found))


_NOT_DONE: Final = "it is not done, and tasks that depend on it are blocked"
_LEFT_OUT: Final = "a run with --again leaves it out, with the tasks that depend on it"


def _nothing(view: FleetView, left: Sequence[str]) -> str:
    """Return that these tasks are not done in this log, and how they could be done."""
    down = [name for name in view.worker_slots if view.supervisor(name).state is supervisor.State.QUARANTINED]
    why = in_brackets("; ".join(f"{name} is {view.worker_slots[name].reason}" for name in down))
    stopped = f"all agents have stopped for good{why}" if view.work.unsettled else "the fleet is finished"
    them = "it" if len(left) == 1 else "them"
    rerun = f"To have {them} done, run the fleet file that has {them} with --again: that begins a new log"
    return f"Nothing moves {enumerated(left)} on: {stopped}. {rerun}."


_FOR_GOOD: Final = frozenset({State.CLOSED, State.CANCELLED})


def _next(view: FleetView) -> str:
    return f"{_NEXT[view.task.state](view)}."


def _options(view: FleetView) -> Iterator[Option]:
    yield from _OPTIONS.get(view.task.state, _no_option)(view)


# By itself


def _planned(view: FleetView) -> str:
    return f"{view.name} goes on when an operator approves it"


def _open(view: FleetView) -> str:
    if not _left(view):
        return f"Nothing moves {view.name} on: no agent is left that may take it"
    lacking = empty_budget(view)
    return (
        f"{view.name} goes on when {_when_there_is_more(view, lacking)}"
        if lacking is not None
        else _when_an_agent_may(view) or f"{view.name} is given to the next agent that is free and may take it"
    )


def _left(view: FleetView) -> list[str]:
    """Return the agents that may take a task, and have not stopped for good."""
    worker_slots = view.worker_slots.items()
    able = (name for name, each in worker_slots if each.may_take(view.task.role, view.task.level) and not each.leaves)
    return [name for name in able if view.worker_slots[name].state is not worker_slot.State.GONE]


def _when_an_agent_may(view: FleetView) -> str:
    """Return what is needed if every agent that may take a task is paused or has no means; empty otherwise."""
    left = _left(view)
    paused = [name for name in left if view.desired_state(name).state is desired_state.State.PAUSE]
    spent = {name: found for name in left if (found := empty_budget(view, name)) is not None and name not in paused}
    others = [name for name in left if name not in paused and name not in spent]
    resting = [each for name in others if (each := resting_account(view, name)) is not None]
    if not left or len(resting) < len(others):
        return ""
    words = [f"an operator resumes {enumerated(paused, 'or')}"] if paused else []
    words += [_when_there_is_more(view, each) for each in spent.values()]
    words += [_when_it_resumes(view, each) for each in {each.ref: each for each in resting}.values()]
    return f"{view.name} goes on when {', or when '.join(words[:MOST_NAMED])}"


def _when_it_resumes(view: FleetView, of: Entity[account.Account]) -> str:
    """Return when an account is open again."""
    name, left_ms = of.ref.partition(":")[2], rest_left_ms(view, of)
    if left_ms is None:
        return f"the session of {of.record.probe}, which tries account {name} again, succeeds or ends"
    return f"account {name} resumes, {in_time(left_ms)}"


def _when_there_is_more(view: FleetView, lacking: Entity[budget.Budget]) -> str:
    """Return when a budget has a share left again."""
    kind, _, name = lacking.ref.removeprefix(fleet_task.BUDGET).partition("/")
    whose = f"the budget of {name}" if name else f"the {kind}'s budget"
    left_ms = refill_ms(view, lacking)
    by_itself = [] if left_ms is None else [f"{whose} is refilled, {in_time(left_ms)}"]
    if lacking.state is budget.State.HELD:
        by_itself.append(f"the reservations of {whose} are settled, and something is left")
    return ", or when ".join((*by_itself, f"an operator raises {'it' if by_itself else whose}"))


def _in_hand(view: FleetView) -> str:
    owner = view.task.owner
    wanted = view.desired_state(owner).state
    if view.session(owner).state is SessionState.STOPPED:
        return f"{view.name} is given back when a runner is at work: {owner} has stopped"
    if wanted is desired_state.State.STOP:
        return f"{view.name} is given back when the session of {owner} has ended: {owner} is to stop"
    if wanted is desired_state.State.PAUSE:
        return f"{view.name} goes on when an operator resumes {owner}"
    if wanted is desired_state.State.HOLD:
        return f"{view.name} goes on when a runner is at work: {owner} is held until then"
    if asked := view.questions(owner):
        return f"{view.name} goes on when an operator answers {asked[0].name}"
    limit_ms = view.time_limit_ms(owner)
    which = "each" if limit_ms == view.next_time_limit_ms(owner) else "the present one"
    limit = f"; {which} is ended after {duration(limit_ms)} at the latest" if limit_ms else ""
    return f"{view.name} goes on when a session of {view.task.owner} has ended{limit}"


def _done(view: FleetView) -> str:
    if not view.task.owner:
        what = "merge" if view.task.stage is Stage.MERGE else "verify"
        return _when_an_agent_may(view) or f"{view.name} is given to the next agent that is free, to {what} it"
    if _is_disputed(view):
        return f"{view.name} is merged when the target branch is set back, or an operator accepts it as it is"
    return f"{view.name} goes on by itself when {view.task.owner} has finished its verification or merge"


def _is_disputed(view: FleetView) -> bool:
    """Tell whether the merge waits because an agent has moved the target branch."""
    return bool(view.task.owner) and view.assignment(view.task.owner).state is assignment.State.DISPUTED


def _over(view: FleetView) -> str:
    return f"{_NOTHING}{view.name} {is_in(view.task.state)}, and stays so"


_NOTHING: Final = "Nothing: "


def _put_back(view: FleetView) -> str:
    return f"{view.name} goes on when the fleet file has it again, {_ACCEPTED}"


_ACCEPTED: Final = "and that change is accepted: `lifefold plan FLEET.toml`"


def _failed(view: FleetView) -> str:
    if view.task.removed:
        return _put_back(view)
    if task.settled(view.task):
        return f"{view.name} is tried again only when an operator grants a retry"
    return f"{view.name} is tried again by itself, {in_time(view.deadline_ms - view.now_ms)}"


def _blocked(view: FleetView) -> str:
    if view.task.removed:
        return _put_back(view)
    if view.task.blocked_by.startswith(fleet_task.ROLE):
        return f"{view.name} goes on when the fleet file has an agent that may take it, {_ACCEPTED}"
    if view.task.blocked_by.startswith(fleet_task.BUDGET):
        return f"{view.name} goes on when an operator raises the budget"
    if view.task.blocked_by.startswith(fleet_task.LEVEL):
        level = view.task.level.word
        return f"{view.name} goes on when an agent has earned the level {level}, or an operator promotes one"
    return f"{view.name} goes on when an operator confirms that its blocker is gone"


def _waiting(view: FleetView) -> str:
    return f"{view.name} goes on when all its subtasks are closed"


def _orphaned(view: FleetView) -> str:
    return f"{view.name} goes on when the worktree of {view.task.owner} has been inspected"


def _pending(view: FleetView) -> str:
    return f"{view.name} is merged when an operator approves it"


_NEXT: Final[Mapping[str, Callable[[FleetView], str]]] = {
    State.PLANNED: _planned,
    State.OPEN: _open,
    State.CLAIMED: _in_hand,
    State.IN_PROGRESS: _in_hand,
    State.DONE: _done,
    State.CLOSED: _over,
    State.FAILED: _failed,
    State.BLOCKED: _blocked,
    State.WAITING_FOR_SUBTASKS: _waiting,
    State.CANCELLED: _over,
    State.ORPHANED: _orphaned,
    State.PENDING_APPROVAL: _pending,
}

# By operators


def _no_option(_view: FleetView) -> Iterator[Option]:
    yield from ()


def _decide_plan(view: FleetView) -> Iterator[Option]:
    yield Option("approve", view.name, "it is given to an agent when it is ready")
    yield Option("reject", view.name, "it is not done")


def _decide_work(view: FleetView) -> Iterator[Option]:
    yield Option("approve", view.name, "it is merged")
    yield Option("reject", view.name, "it has failed, and is tried again while it has retries")


def _accept_branch(view: FleetView) -> Iterator[Option]:
    if _is_disputed(view):
        yield Option("branch", "--accept", "the target branch is accepted as it is, and the work is merged into it")
    yield from _let_go_on(view)


def _let_go_on(view: FleetView) -> Iterator[Option]:
    for name in _left(view) if not view.task.owner else ():
        if view.desired_state(name).state is desired_state.State.PAUSE:
            yield Option("resume", name, "it goes on with its work, or takes new")
        resting = resting_account(view, name)
        if resting is not None and rest_left_ms(view, resting) is not None:
            yield Option("resume", f"--account {resting.ref.partition(':')[2]}", "it is tried again, with one session")
    for lacking in (empty_budget(view), *(empty_budget(view, name) for name in _left(view))):
        if lacking is not None:
            yield _more(lacking.ref, lacking, "more may be spent, at once")


def _more(ref: str, lacking: Entity[budget.Budget] | None, about: str) -> Option:
    """Return the command that raises a budget, for the resources without a share left."""
    kind, _, name = ref.removeprefix(fleet_task.BUDGET).partition("/")
    lines = () if lacking is None else lacking.record.lines
    short = [each for each in lines if not each.suffices] or lines
    whose = [f"--{kind} {name}"] if name else []
    more = (f"--add-{_WORDS[each.resource]} ..." for each in short)
    return Option("budget", " ".join((*whose, *more)), about)


_WORDS: Final[Mapping[Resource, str]] = {
    Resource.MONEY: "usd",
    Resource.TOKENS: "tokens",
    Resource.TIME: "time",
    Resource.SESSIONS: "sessions",
}
"""The options of ``lifefold budget``, by resource."""


def of_question(asked: Asked) -> Iterator[Option]:
    """Yield the commands that answer a question of an agent."""
    told = f"{asked.agent} is told so, and goes on"
    yield Option("approve" if asked.is_permission else "answer", asked.name, told)
    yield Option("reject", asked.name, f"{told} without it")


def _talk(view: FleetView) -> Iterator[Option]:
    owner = view.task.owner
    if view.desired_state(owner).state is desired_state.State.STOP or view.session(owner).state is SessionState.STOPPED:
        return
    if view.desired_state(owner).state is desired_state.State.PAUSE:
        yield Option("resume", owner, f"it goes on with {view.name}")
    for each in view.questions(owner):
        yield from of_question(each)
    yield Option("send", owner, "it is interrupted, and its next prompt has the text")
    yield Option("stop", owner, f"it stops for good, and {view.name} is given back for another agent")


def _grant(view: FleetView) -> Iterator[Option]:
    if not view.task.removed:
        yield Option("retry", view.name, "it is tried once more, at once")
        if view.task.exhausted and view.task.verify and view.task.failure.startswith(UNMET):
            yield Option("edit", f"{view.name} --verify ...", "if its verification is wrong: change it, then retry")


UNMET: Final = "The command `"
"""How the reason of a failed verification begins."""


def _unblock(view: FleetView) -> Iterator[Option]:
    if view.task.blocked_by.startswith(fleet_task.BUDGET):
        lacking = view.aggregates[board.NAME].entities.get(view.task.blocked_by)
        yield _more(view.task.blocked_by, lacking, "more may be spent, and it goes on")
    elif view.task.blocked_by.startswith(fleet_task.LEVEL):
        for name, each in view.worker_slots.items():
            if each.may_take(view.task.role) and each.state is not worker_slot.State.GONE:
                yield Option("trust", name, f"it is promoted by one level, from {each.level.word}")
    elif not view.task.removed and not view.task.blocked_by.startswith(fleet_task.ROLE):
        yield Option("retry", view.name, "its blocker is gone: it goes on where it was")


_OPTIONS: Final[Mapping[str, Callable[[FleetView], Iterator[Option]]]] = {
    State.PLANNED: _decide_plan,
    State.OPEN: _let_go_on,
    State.DONE: _accept_branch,
    State.CLAIMED: _talk,
    State.IN_PROGRESS: _talk,
    State.FAILED: _grant,
    State.BLOCKED: _unblock,
    State.PENDING_APPROVAL: _decide_work,
}
"""The commands of an operator at a root cause, by the state of its task."""
