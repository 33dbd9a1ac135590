"""What would move a task on, by itself or by a person's word: asked of the tasks where the cause lies.

When everybody has gone home, no word moves anything on in this log: no agent is there to be given what it lets go on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from lifefold.core.fleet.board import budget, fleet_task, worker_slot
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import assignment, desired_state, supervisor
from lifefold.core.kernel import Entity
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.budget.amounts import Resource
from lifefold.core.lifecycles.session import State as SessionState
from lifefold.core.lifecycles.task import Stage, State
from lifefold.interpreters.explain.why.chain import chain, roots
from lifefold.interpreters.explain.why.now import empty_purse, refill_ms
from lifefold.interpreters.explain.why.phrases import MOST_NAMED, duration, enumerated, in_brackets, in_time
from lifefold.interpreters.explain.why.scene import FleetView


class Way(msgspec.Struct, frozen=True):
    """Something that a person can say: the command, to which task or agent, and what comes of it."""

    command: str
    to: str
    about: str


def onward(scene: FleetView) -> str:
    """Say what would move a task on."""
    ends = roots(chain(scene))
    if not ends:
        return "Nothing: the tasks wait for each other in a circle."
    left = [each for each in ends if each not in scene.tasks or scene.tasks[each].state not in _FOR_GOOD]
    if left and scene.is_over:
        return _nothing(scene, left)
    said = dict.fromkeys(_next(scene.about(each)) for each in ends if each in scene.tasks)
    unknown = [each for each in ends if each not in scene.tasks]
    missing = (f"The board would have to get a task {enumerated(unknown)}.",) if unknown else ()
    return " ".join((*said, *missing))


def ways(scene: FleetView) -> tuple[Way, ...]:
    """Return what a person can do, first what helps and then what ends it; each thing once."""
    ends = () if scene.is_over else roots(chain(scene))
    found = [way for each in ends if each in scene.tasks for way in _ways(scene.about(each))]
    if scene.job.state in fleet_task.CANCELLABLE:
        found.append(Way("cancel", scene.name, "nobody wants it any more; what depends on it is blocked"))
    return tuple(dict.fromkeys(found))


def _nothing(scene: FleetView, left: Sequence[str]) -> str:
    """Say that these tasks are not done any more, and how they could be."""
    down = [name for name in scene.worker_slots if scene.supervisor(name).state is supervisor.State.QUARANTINED]
    why = in_brackets("; ".join(f"{name} is {scene.worker_slots[name].reason}" for name in down))
    home = f"all agents have stopped for good{why}" if scene.work.unsettled else "everybody has gone home"
    them = "it" if len(left) == 1 else "them"
    anew = f"To have {them} done, run the fleet file that has {them} with --again: that begins a new log"
    return f"Nothing moves {enumerated(left)} on: {home}. {anew}."


_FOR_GOOD: Final = frozenset({State.CLOSED, State.CANCELLED})


def _next(scene: FleetView) -> str:
    return f"{_NEXT[scene.job.state](scene)}."


def _ways(scene: FleetView) -> Iterator[Way]:
    yield from _WAYS.get(scene.job.state, _no_way)(scene)


# By itself


def _planned(scene: FleetView) -> str:
    return f"{scene.name} goes on when a person approves it"


def _open(scene: FleetView) -> str:
    if not _left(scene):
        return f"Nothing moves {scene.name} on: no agent is left that may take it"
    lacking = empty_purse(scene)
    return (
        f"{scene.name} goes on when {_when_there_is_more(scene, lacking)}"
        if lacking is not None
        else _when_somebody_may(scene) or f"{scene.name} is given to the next agent that is free and may take it"
    )


def _left(scene: FleetView) -> list[str]:
    """Return who may take a task, and has not gone home."""
    worker_slots = scene.worker_slots.items()
    able = (name for name, each in worker_slots if each.may_take(scene.job.role, scene.job.level) and not each.leaves)
    return [name for name in able if scene.worker_slots[name].state is not worker_slot.State.GONE]


def _when_somebody_may(scene: FleetView) -> str:
    """Say what it takes if nobody who may take a task begins with anything: a word to them, or more money."""
    left = _left(scene)
    paused = [name for name in left if scene.desired_state(name).state is desired_state.State.PAUSE]
    spent = {name: found for name in left if (found := empty_purse(scene, name)) is not None and name not in paused}
    if not left or len(paused) + len(spent) < len(left):
        return ""
    words = [f"a person resumes {enumerated(paused, 'or')}"] if paused else []
    words += [_when_there_is_more(scene, each) for each in spent.values()]
    return f"{scene.name} goes on when {', or when '.join(words[:MOST_NAMED])}"


def _when_there_is_more(scene: FleetView, lacking: Entity[budget.Budget]) -> str:
    """Say when there is something in a budget again."""
    kind, _, name = lacking.ref.removeprefix(fleet_task.PURSE).partition("/")
    whose = f"the budget of {name}" if name else f"the {kind}'s budget"
    by_person = "a person lets more be spent"
    left_ms = refill_ms(scene, lacking)
    by_itself = [] if left_ms is None else [f"{whose} is filled anew, {in_time(left_ms)}"]
    if lacking.state is budget.State.HELD:
        by_itself.append(f"what is set aside of {whose} is settled, and something is left of it")
    return ", or when ".join((*by_itself, by_person))


def _in_hand(scene: FleetView) -> str:
    owner = scene.job.owner
    wanted = scene.desired_state(owner).state
    if scene.session(owner).state is SessionState.STOPPED:
        return f"{scene.name} is given back when a runner is at work: {owner} has stopped"
    if wanted is desired_state.State.STOP:
        return f"{scene.name} is given back when the session of {owner} has ended: {owner} is to stop"
    if wanted is desired_state.State.PAUSE:
        return f"{scene.name} goes on when a person resumes {owner}"
    if wanted is desired_state.State.HOLD:
        return f"{scene.name} goes on when a runner is at work: {owner} is held until then"
    limit_ms = scene.assignment(owner).brief.timeout_ms or scene.session(owner).limits.session_timeout_ms
    limit = f"; each is ended after {duration(limit_ms)} at the latest" if limit_ms else ""
    return f"{scene.name} goes on when a session of {scene.job.owner} has ended{limit}"


def _done(scene: FleetView) -> str:
    if not scene.job.owner:
        what = "merge" if scene.job.stage is Stage.MERGE else "verify"
        return _when_somebody_may(scene) or f"{scene.name} is given to the next agent that is free, to {what} it"
    if _is_disputed(scene):
        return f"{scene.name} is merged when the fleet's branch is set back, or a person accepts it as it is"
    return f"{scene.name} goes on by itself when {scene.job.owner} has brought it home"


def _is_disputed(scene: FleetView) -> bool:
    """Tell whether the owner waits to merge, because an agent has moved the branch."""
    return bool(scene.job.owner) and scene.assignment(scene.job.owner).state is assignment.State.DISPUTED


def _over(scene: FleetView) -> str:
    return f"Nothing: {scene.name} is {scene.job.state}, and stays so"


def _put_back(scene: FleetView) -> str:
    return f"{scene.name} goes on when the fleet file has it again, {_ACCEPTED}"


_ACCEPTED: Final = "and that change is accepted: `lifefold plan FLEET.toml`"


def _failed(scene: FleetView) -> str:
    if scene.job.removed:
        return _put_back(scene)
    if task.settled(scene.job):
        return f"{scene.name} is tried again only when a person says so"
    return f"{scene.name} is tried again by itself, {in_time(scene.deadline_ms - scene.now_ms)}"


def _blocked(scene: FleetView) -> str:
    if scene.job.removed:
        return _put_back(scene)
    if scene.job.lacks.startswith(fleet_task.ROLE):
        return f"{scene.name} goes on when the fleet file has an agent that may take it, {_ACCEPTED}"
    if scene.job.lacks.startswith(fleet_task.PURSE):
        return f"{scene.name} goes on when a person lets more be spent"
    if scene.job.lacks.startswith(fleet_task.LEVEL):
        return f"{scene.name} goes on when an agent has earned to be {scene.job.level.word}, or a person promotes one"
    return f"{scene.name} goes on when a person says that what it needs is there"


def _waiting(scene: FleetView) -> str:
    return f"{scene.name} goes on when all its subtasks are closed"


def _orphaned(scene: FleetView) -> str:
    return f"{scene.name} goes on when somebody has looked at what {scene.job.owner} has left"


def _pending(scene: FleetView) -> str:
    return f"{scene.name} is merged when a person agrees to it"


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

# By people


def _no_way(_scene: FleetView) -> Iterator[Way]:
    yield from ()


def _decide_plan(scene: FleetView) -> Iterator[Way]:
    yield Way("approve", scene.name, "it is given to an agent when it is ready")
    yield Way("reject", scene.name, "it is not done")


def _decide_work(scene: FleetView) -> Iterator[Way]:
    yield Way("approve", scene.name, "it is merged")
    yield Way("reject", scene.name, "it has failed, and is tried again while it has retries")


def _accept_branch(scene: FleetView) -> Iterator[Way]:
    if _is_disputed(scene):
        yield Way("branch", "--accept", "the fleet's branch is accepted as it is, and the work is merged into it")
    yield from _let_go_on(scene)


def _let_go_on(scene: FleetView) -> Iterator[Way]:
    for name in _left(scene) if not scene.job.owner else ():
        if scene.desired_state(name).state is desired_state.State.PAUSE:
            yield Way("resume", name, "it goes on with its work, or takes new")
    for lacking in (empty_purse(scene), *(empty_purse(scene, name) for name in _left(scene))):
        if lacking is not None:
            yield _more(lacking.ref, lacking, "more may be spent, at once")


def _more(ref: str, lacking: Entity[budget.Budget] | None, about: str) -> Way:
    """Return how more may be spent, of what there is not enough."""
    kind, _, name = ref.removeprefix(fleet_task.PURSE).partition("/")
    lines = () if lacking is None else lacking.record.lines
    short = [each for each in lines if not each.suffices] or lines
    options = " ".join(f"--add-{_WORDS[each.resource]} ..." for each in short)
    return Way("budget", " ".join(filter(None, (f"--{kind} {name}" if name else "", options))), about)


_WORDS: Final[Mapping[Resource, str]] = {
    Resource.MONEY: "usd",
    Resource.TOKENS: "tokens",
    Resource.TIME: "time",
    Resource.SESSIONS: "sessions",
}
"""How the command that raises a budget calls what is limited."""


def _talk(scene: FleetView) -> Iterator[Way]:
    owner = scene.job.owner
    if (
        scene.desired_state(owner).state is desired_state.State.STOP
        or scene.session(owner).state is SessionState.STOPPED
    ):
        return
    if scene.desired_state(owner).state is desired_state.State.PAUSE:
        yield Way("resume", owner, f"it goes on with {scene.name}")
    yield Way("send", owner, "say something to it: it is interrupted, and its next prompt has the text")
    yield Way("stop", owner, f"it stops for good, and {scene.name} is given back to be taken by another one")


def _grant(scene: FleetView) -> Iterator[Way]:
    if not scene.job.removed:
        yield Way("retry", scene.name, "it is tried once more, at once")


def _unblock(scene: FleetView) -> Iterator[Way]:
    if scene.job.lacks.startswith(fleet_task.PURSE):
        lacking = scene.aggregates[board.NAME].entities.get(scene.job.lacks)
        yield _more(scene.job.lacks, lacking, "more may be spent, and it goes on")
    elif scene.job.lacks.startswith(fleet_task.LEVEL):
        for name, each in scene.worker_slots.items():
            if each.may_take(scene.job.role) and each.state is not worker_slot.State.GONE:
                yield Way("trust", name, f"it is promoted by one level, from {each.level.word}")
    elif not scene.job.removed and not scene.job.lacks.startswith(fleet_task.ROLE):
        yield Way("retry", scene.name, "what it needs is there: it goes on where it was")


_WAYS: Final[Mapping[str, Callable[[FleetView], Iterator[Way]]]] = {
    State.PLANNED: _decide_plan,
    State.OPEN: _let_go_on,
    State.DONE: _accept_branch,
    State.CLAIMED: _talk,
    State.IN_PROGRESS: _talk,
    State.FAILED: _grant,
    State.BLOCKED: _unblock,
    State.PENDING_APPROVAL: _decide_work,
}
"""What a person can say where the cause lies, by the state of that task."""
