"""Where a task is, in a sentence: a table of what is said in each state, of it and of those it waits for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lifefold.core.fleet.board import budget, worker_slot
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import assignment, desired_state, supervisor
from lifefold.core.kernel import Entity
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.session import State as SessionState
from lifefold.core.lifecycles.task import Stage, State
from lifefold.interpreters.explain.why.chain import (
    MISSING,
    chain,
    lost,
    parts,
    rivals,
    roots,
    state_of,
    unmet,
    waits_for,
)
from lifefold.interpreters.explain.why.phrases import (
    because,
    brief,
    count,
    duration,
    enumerated,
    in_brackets,
    in_time,
    ordinal,
)
from lifefold.interpreters.explain.why.scene import FleetView


def sentence(scene: FleetView) -> str:
    """Say where a task is, and why."""
    said = SENTENCES[scene.job.state](scene)
    doom = f" {_doomed(scene)}" if scene.job.is_doomed and scene.job.state is not State.CANCELLED else ""
    return f"{scene.name} {said}{'' if said.endswith('…') else '.'}{doom}"


def _doomed(scene: FleetView) -> str:
    """Say that a task is cancelled when it is opened again."""
    why = "" if scene.job.fate is None else scene.job.fate.why
    return "" if task.settled(scene.job) else f"If it is not done now, it is cancelled: it was aborted{because(why)}."


def seen(scene: FleetView, name: str) -> str:
    """Say in which state another task is, as the reason of this one: ``has FAILED (...) and has no retries left``."""
    if name not in scene.tasks:
        return f"is {MISSING} to the board"
    other = scene.about(name)
    state = other.job.state
    return _SEEN[state](other) if state in _SEEN else f"is {state}"


def _planned(_scene: FleetView) -> str:
    return "is PLANNED: it waits for a person to approve the plan"


def _open(scene: FleetView) -> str:
    waits, busy = unmet(scene), rivals(scene)
    if waits:
        return f"is OPEN: it waits for {_named(scene, waits)}{_in_the_end(scene, waits)}"
    if busy:
        change = "which changes" if len(busy) == 1 else "which change"
        return f"is OPEN: it waits for {_named(scene, busy)}, {change} the same files"
    ready = [name for name in scene.tasks if is_ready(scene.about(name))]
    place = f", the {ordinal(ready.index(scene.name) + 1)} of {len(ready)} ready tasks" if len(ready) > 1 else ""
    again = f". It is open again{because(scene.job.reason)}" if scene.job.reason else ""
    return f"is OPEN and ready{place}: {_nobody(scene)}{again}"


def is_ready(scene: FleetView) -> bool:
    """Tell whether a task is open and nothing hinders it."""
    return scene.job.state is State.OPEN and not waits_for(scene)


def _named(scene: FleetView, names: tuple[str, ...]) -> str:
    return enumerated([f"{each} ({state_of(scene, each)})" for each in names])


def _in_the_end(scene: FleetView, nearest: tuple[str, ...]) -> str:
    """Name where the causes lie, if that is further away than the nearest ones."""
    links = chain(scene)
    ends = roots(links)
    if not ends:
        return f", in a circle: {enumerated([each.task for each in links])}"
    if set(ends) <= set(nearest):
        return ""
    return f", in the end for {_named(scene, ends)}"


def _nobody(scene: FleetView) -> str:
    """Say why nobody has taken a task that is ready."""
    money, role, level = _money(scene), scene.job.role, scene.job.level
    if money:
        return money
    able = [name for name, each in scene.worker_slots.items() if each.may_take(role, level)]
    if not able:
        return f"it needs an agent with the role {role}, and there is none" if role else "there are no agents"
    present = [name for name in able if scene.worker_slots[name].state is not worker_slot.State.GONE]
    who = f"nobody with the role {role}" if role else "nobody"
    who = f"{who} that is {level.word}" if level else who
    at = enumerated([whereabouts(scene, name) for name in able])
    return f"{who} is {'free' if present else 'left to take it'}: {at}"


def _money(scene: FleetView) -> str:
    """Say for what a ready task waits if it is money."""
    found = empty_purse(scene)
    if found is None:
        return ""
    whose = "the fleet's" if found.ref == budgets.FLEET else "its"
    if found.state is budget.State.HELD:
        return f"all that is left of {whose} budget is set aside for what is at work"
    return f"{whose} budget is spent{_anew(scene, found)}"


def empty_purse(scene: FleetView, agent: str = "") -> Entity[budget.Budget] | None:
    """Return the budget that has nothing left for the task, of those that it needs or of an agent's own; None if none.

    None, too, for a task that needs no money because it is done.
    """
    entities = scene.aggregates[board.NAME].entities
    needed = [budgets.of_agent(agent)] if agent else [budgets.FLEET, budgets.of_task(scene.name)]
    found = (entities.get(ref) for ref in needed if scene.job.state is State.OPEN)
    return next((each for each in found if each is not None and each.state not in budget.ADMITS), None)


def _anew(scene: FleetView, spent: Entity[budget.Budget]) -> str:
    """Say when a budget is filled anew, if it is."""
    left_ms = refill_ms(scene, spent)
    return "" if left_ms is None else f", and filled anew {in_time(left_ms)}"


def refill_ms(scene: FleetView, spent: Entity[budget.Budget]) -> int | None:
    """Return in how long a budget is filled anew; None if that is never so."""
    timer = spent.find(budget.Refilled.__name__)
    return max(0, timer.deadline_ms - scene.now_ms) if timer is not None and timer.deadline_ms else None


def whereabouts(scene: FleetView, agent: str) -> str:
    """Say what an agent is at."""
    sits, wanted = scene.worker_slots[agent], scene.desired_state(agent)
    if sits.state is worker_slot.State.GONE:
        errors = scene.session(agent).consecutive_errors if wanted.state is not desired_state.State.STOP else 0
        quarantined = scene.supervisor(agent).state is supervisor.State.QUARANTINED
        reason = f"{count(errors, 'error')} in a row" if errors and not quarantined else sits.reason
        return f"{agent} has stopped{in_brackets(reason)}"
    if wanted.state in _RESTS:
        return f"{agent} {_RESTS[wanted.state]}{in_brackets(wanted.reason)}"
    if sits.state is worker_slot.State.WORKING:
        makes_room = scene.work.makes_room.get(agent)
        return f"{agent} makes room for {makes_room}" if makes_room else f"{agent} is at {sits.task}"
    spent = empty_purse(scene, agent)
    if spent is not None:
        return f"{agent}'s own budget is spent{_anew(scene, spent)}"
    doing = _DOING[scene.session(agent).state]
    return f"{agent} {doing}" if sits.state is worker_slot.State.AWAY and doing else f"{agent} waits for work"


_RESTS: Final[Mapping[desired_state.State, str]] = {
    desired_state.State.PAUSE: "is paused",
    desired_state.State.HOLD: "is held until a runner is at work",
    desired_state.State.DRAIN: "is draining, and stops then",
}

_DOING: Final[Mapping[SessionState, str]] = {
    SessionState.INITIALIZING: "makes its place to work",
    SessionState.BUILDING_PROMPT: "",
    SessionState.SPAWNING: "starts a session",
    SessionState.RUNNING: "",
    SessionState.INTERRUPTING: "is being interrupted",
    SessionState.COOLING_DOWN: "pauses before its next session",
    SessionState.SESSION_COMPLETE: "ends its last round",
    SessionState.STOPPED: "has stopped",
}
"""What an agent is at when it does not simply work, or wait for work."""


def _claimed(scene: FleetView) -> str:
    return f"is CLAIMED: {scene.job.owner} has it in hand for {_age(scene)}, under claim {scene.job.epoch}{_at(scene)}"


def _in_progress(scene: FleetView) -> str:
    sessions = f"in session {scene.sessions} of claim" if scene.sessions else "under claim"
    worked = f"{scene.job.owner} began with it {_age(scene)} ago"
    return f"is IN_PROGRESS: {worked}, {sessions} {scene.job.epoch}{_at(scene)}"


def _age(scene: FleetView) -> str:
    return duration(scene.now_ms - scene.entity.entered_ms)


def _at(scene: FleetView) -> str:
    """Say what its owner is at just now, if it does not simply work."""
    owner = scene.job.owner
    wanted = scene.desired_state(owner)
    if wanted.state in desired_state.RESTS:
        return f"; {owner} {_RESTS[wanted.state]}{in_brackets(wanted.reason)}"
    if scene.assignment(owner).state is assignment.State.PREPARING:
        return "; its place is being made"
    doing = _DOING[scene.session(owner).state]
    return f"; {owner} {doing}" if doing else ""


def _done(scene: FleetView) -> str:
    job = scene.job
    if not job.owner:
        what = "a person has agreed to it" if job.stage is Stage.MERGE else "its parts are closed"
        return f"is DONE: {what}, and it waits for an agent to {_left(job.stage)} it{because(job.reason)}"
    return f"is DONE: {_on_its_way(scene)} by {job.owner}, for {_age(scene)}"


def _left(stage: Stage) -> str:
    return "merge" if stage is Stage.MERGE else "verify"


def _on_its_way(scene: FleetView) -> str:
    match scene.assignment(scene.job.owner).state:
        case assignment.State.VERIFYING:
            return f"it is being verified{_proofs(scene)}"
        case assignment.State.MERGING:
            return "it is being merged"
        case assignment.State.DISPUTED:
            return "it is not merged, because an agent has moved the fleet's branch: it is held"
        case assignment.State.PARKING:
            return "it is being kept for a person to see"
        case _:
            return "it is being brought home"


def _proofs(scene: FleetView) -> str:
    """Name the commands by which a task is verified, in brackets."""
    proofs = [f"`{' '.join(each)}`" for each in scene.job.verify]
    return f" ({brief(enumerated(proofs))})" if proofs else ""


def _closed(scene: FleetView) -> str:
    commit = scene.job.commit
    return f"is CLOSED: {f'merged as {commit[:10]}' if commit else 'it is done, and there was nothing to merge'}"


def _failed(scene: FleetView) -> str:
    job = scene.job
    if not task.settled(job) and scene.is_over:
        used = f"({job.retries} of {job.allowed_retries} retries used)"
        return f"has FAILED{in_brackets(job.reason)}, and nobody is left to try it again {used}"
    if not task.settled(job):
        when = f" in {duration(scene.deadline_ms - scene.now_ms)}" if scene.deadline_ms > scene.now_ms else ""
        tried = f"and is tried again{when} (retry {job.retries + 1} of {job.allowed_retries})"
        return f"has FAILED{in_brackets(job.reason)} {tried}"
    if job.retries < job.max_retries:
        return f"has FAILED{in_brackets(job.reason)} and is not tried again by itself: such a failure does not pass"
    used = f" ({job.retries} of {job.max_retries} used)" if job.max_retries else ""
    return f"has FAILED{in_brackets(job.reason)} and has no retries left{used}"


def _blocked(scene: FleetView) -> str:
    needed = lost(scene)
    if not needed:
        return f"is BLOCKED{because(scene.job.reason) or ': nobody has said by what'}"
    ends = [each for each in roots(chain(scene)) if each not in needed]
    cause = f", in the end because of {_which(scene, ends)}" if ends else ""
    return f"is BLOCKED: {'it needs its part' if scene.job.waits else 'it depends on'} {_which(scene, needed)}{cause}"


def _which(scene: FleetView, names: Sequence[str]) -> str:
    return "; and ".join(f"{each}, which {seen(scene, each)}" for each in names)


def _waiting(scene: FleetView) -> str:
    waits = parts(scene)
    closed = scene.job.parts - len(waits)
    named = f", it waits for {_named(scene, waits)}{_in_the_end(scene, waits)}" if waits else ""
    left_ms = scene.deadline_ms - scene.now_ms
    limit = f"; it is blocked in {duration(left_ms)} if they are not" if left_ms > 0 else ""
    return f"is WAITING_FOR_SUBTASKS: {closed} of {count(scene.job.parts, 'subtask')} closed{named}{limit}"


def _cancelled(scene: FleetView) -> str:
    return f"is CANCELLED{because(scene.job.reason) or ': nobody wants it any more'}"


def _orphaned(scene: FleetView) -> str:
    owner = scene.job.owner
    died = f"is ORPHANED: the session of {owner} has died{in_brackets(scene.job.reason)}"
    match scene.assignment(owner).state:
        case assignment.State.ORPHANED:
            return f"{died}, and is being ended; then it is looked at what it has left"
        case assignment.State.INSPECTING:
            return f"{died}; it is being looked at what it has left"
        case assignment.State.VERIFYING:
            return f"{died}; what it has left is being verified{_proofs(scene)}"
        case _:
            return f"is ORPHANED: {owner} has died, and nobody has looked yet at what it has left"


def _pending(scene: FleetView) -> str:
    limit = f"; silence is a refusal, {in_time(scene.deadline_ms - scene.now_ms)}" if scene.deadline_ms else ""
    whose = _because_of_whom(scene)
    return (
        f"is PENDING_APPROVAL: it is done and verified, and waits for a person's word before it is merged{whose}{limit}"
    )


def _because_of_whom(scene: FleetView) -> str:
    """Say who has done it, if a person is asked because of that."""
    job = scene.job
    return "" if job.always_asks or not job.author else f", for it is {job.author}'s, and that takes {job.merges.word}"


SENTENCES: Final[Mapping[State, Callable[[FleetView], str]]] = {
    State.PLANNED: _planned,
    State.OPEN: _open,
    State.CLAIMED: _claimed,
    State.IN_PROGRESS: _in_progress,
    State.DONE: _done,
    State.CLOSED: _closed,
    State.FAILED: _failed,
    State.BLOCKED: _blocked,
    State.WAITING_FOR_SUBTASKS: _waiting,
    State.CANCELLED: _cancelled,
    State.ORPHANED: _orphaned,
    State.PENDING_APPROVAL: _pending,
}
"""What is said of a task itself, by its state."""


def _owned(scene: FleetView) -> str:
    return f"is {scene.job.state} with {scene.job.owner}"


def _cancelled_there(scene: FleetView) -> str:
    return f"is CANCELLED{in_brackets(scene.job.reason)}"


def _blocked_there(scene: FleetView) -> str:
    return f"is BLOCKED{'' if scene.job.lacks else in_brackets(scene.job.reason)}"


_SEEN: Final[Mapping[State, Callable[[FleetView], str]]] = {
    State.CLAIMED: _owned,
    State.IN_PROGRESS: _owned,
    State.FAILED: _failed,
    State.BLOCKED: _blocked_there,
    State.CANCELLED: _cancelled_there,
}
"""What is said of a task that another one waits for, where its state alone is not enough."""
