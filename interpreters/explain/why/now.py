"""The state of a task in a sentence: tables of sentences by state, for a task and for those that it waits for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lifefold.core.fleet.board import budget, worker_slot
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.task import Stage, State
from lifefold.interpreters.explain.task_words import is_in
from lifefold.interpreters.explain.why.chain import (
    MISSING,
    chain,
    lost,
    parts,
    rivals,
    roots,
    unmet,
    waits_for,
)
from lifefold.interpreters.explain.why.fleet_view import FleetView
from lifefold.interpreters.explain.why.phrases import (
    because,
    brief,
    duration,
    enumerated,
    in_brackets,
    in_time,
    ordinal,
)
from lifefold.interpreters.explain.why.whereabouts import DOING, RESTS, empty_budget, refill, whereabouts, works
from lifefold.interpreters.explain.words import of_task


def sentence(view: FleetView) -> str:
    """Return the state of a task, and why it is in it."""
    said = SENTENCES[view.task.state](view)
    aborted = f" {_aborted(view)}" if view.task.is_aborted and view.task.state is not State.CANCELLED else ""
    return f"{view.name} {said}{'' if said.endswith(('…', '?')) else '.'}{aborted}"


def _aborted(view: FleetView) -> str:
    """Return that an aborted task is cancelled when it is opened again."""
    why = "" if view.task.fate is None else view.task.fate.why
    return "" if task.settled(view.task) else f"If it is not done now, it is cancelled: it was aborted{because(why)}."


def seen(view: FleetView, name: str) -> str:
    """Return the state of another task, as a reason: ``has failed (...) and has no retries left``."""
    if name not in view.tasks:
        return f"is {MISSING} to the board"
    other = view.about(name)
    state = other.task.state
    return _SEEN[state](other) if state in _SEEN else is_in(state, again=other.task.epoch > 0)


def _planned(_view: FleetView) -> str:
    return "is planned: it waits for an operator to approve the plan"


def _open(view: FleetView) -> str:
    waits, busy, state = unmet(view), rivals(view), is_in(view.task.state, again=view.task.epoch > 0)
    if waits:
        return f"{state}: it waits for {_named(view, waits)}{_in_the_end(view, waits)}"
    if busy:
        change = "which changes" if len(busy) == 1 else "which change"
        return f"{state}: it waits for {_named(view, busy)}, {change} the same files"
    ready = [name for name in view.tasks if is_ready(view.about(name))]
    place = f", the {ordinal(ready.index(view.name) + 1)} of {len(ready)} ready tasks" if len(ready) > 1 else ""
    again = f". Its last attempt{because(view.task.reason)}" if view.task.reason else ""
    return f"{state}, and ready{place}: {_no_agent(view)}{again}"


def is_ready(view: FleetView) -> bool:
    """Tell whether a task is open and waits for no other task."""
    return view.task.state is State.OPEN and not waits_for(view)


def _named(view: FleetView, names: tuple[str, ...]) -> str:
    return enumerated([f"{each} ({_word(view, each)})" for each in names])


def _word(view: FleetView, name: str) -> str:
    """Return the state of any task in words."""
    if name not in view.tasks:
        return MISSING
    record = view.tasks[name]
    return of_task(record.state, retried=False, attempts=record.epoch)


def _in_the_end(view: FleetView, nearest: tuple[str, ...]) -> str:
    """Name the root causes, if they are further away than the nearest ones."""
    links = chain(view)
    ends = roots(links)
    if not ends:
        return f", in a circle: {enumerated([each.task for each in links])}"
    if set(ends) <= set(nearest):
        return ""
    return f", in the end for {_named(view, ends)}"


def _no_agent(view: FleetView) -> str:
    """Return why no agent has taken a task that is ready."""
    money, role, level = _money(view), view.task.role, view.task.level
    if money:
        return money
    able = [name for name, each in view.worker_slots.items() if each.may_take(role, level)]
    if not able:
        return f"it needs an agent with the role {role}, and there is none" if role else "there are no agents"
    present = [name for name in able if view.worker_slots[name].state is not worker_slot.State.GONE]
    wanted = f"no agent with the role {role}" if role else "no agent"
    wanted = f"{wanted} that is {level.word}" if level else wanted
    at = enumerated([whereabouts(view, name) for name in able])
    return f"{wanted} is {'free' if present else 'left to take it'}: {at}"


def _money(view: FleetView) -> str:
    """Return the budget that a ready task waits for, in words; empty if there is none."""
    found = empty_budget(view)
    if found is None:
        return ""
    whose = "the fleet's" if found.ref == budgets.FLEET else "its"
    if found.state is budget.State.HELD:
        return f"all that is left of {whose} budget is reserved for tasks in progress"
    return f"{whose} budget {budgets.shortage_of(found)}{refill(view, found)}"


def _claimed(view: FleetView) -> str:
    return f"is running: {view.task.owner} has had it for {_age(view)}{_attempt(view)}{_at(view)}"


def _in_progress(view: FleetView) -> str:
    worked = f"{view.task.owner} began with it {_age(view)} ago"
    return f"is running: {worked}{_attempt(view)}{_at(view)}"


def _attempt(view: FleetView) -> str:
    """Return the number of the attempt, and that of its session after the first one."""
    session = f"session {view.sessions} of " if view.sessions > 1 else ""
    return f", in {session}attempt {view.attempts}" if view.attempts else ""


def _age(view: FleetView) -> str:
    return duration(view.now_ms - view.entity.entered_ms)


def _at(view: FleetView) -> str:
    """Return what the owner is doing, unless it simply works."""
    owner = view.task.owner
    wanted = view.desired_state(owner)
    if wanted.state in desired_state.RESTS:
        return f"; {owner} {RESTS[wanted.state]}{in_brackets(wanted.reason)}"
    if view.assignment(owner).state is assignment.State.PREPARING:
        return "; its worktree is being prepared"
    if asked := view.questions(owner):
        return f"; {asked[0].sentence()}"
    does = DOING[view.session(owner).state] or works(view, owner)
    doing = enumerated([each for each in (does, view.conversing(owner)) if each])
    return f"; {owner} {doing}" if doing else ""


def _done(view: FleetView) -> str:
    record = view.task
    if not record.owner:
        what = f"{_LEFT_BECAUSE[record.stage]}, and it waits for an agent to {_left(record.stage)} it"
        return f"is done, not merged: {what}{because(record.reason)}"
    return f"is done, not merged: {_on_its_way(view)} by {record.owner}, for {_age(view)}"


_LEFT_BECAUSE: Final = {
    Stage.MERGE: "it is approved",
    Stage.VERIFY: "its parts are closed",
    Stage.REVERIFY: "its verification has changed",
}
"""Why done work without an owner has something left to do, by what that is."""


def _left(stage: Stage) -> str:
    return "merge" if stage is Stage.MERGE else "verify"


def _on_its_way(view: FleetView) -> str:
    match view.assignment(view.task.owner).state:
        case assignment.State.VERIFYING:
            return f"it is being verified{_proofs(view)}"
        case assignment.State.MERGING:
            return "it is being merged"
        case assignment.State.DISPUTED:
            return "an agent has moved the target branch, and the merge is held"
        case assignment.State.PARKING:
            return "it is being parked"
        case _:
            return "it is being finished"


def _proofs(view: FleetView) -> str:
    """Return the verification commands of a task, in brackets."""
    proofs = [f"`{' '.join(each)}`" for each in view.task.verify]
    return f" ({brief(enumerated(proofs))})" if proofs else ""


def _closed(view: FleetView) -> str:
    commit, branch = view.task.commit, view.task.branch
    if branch:
        return f"is closed: on branch {branch} as {commit[:10]}, and not merged"
    return f"is closed: {f'merged as {commit[:10]}' if commit else 'it is done, and there was nothing to merge'}"


def _failed(view: FleetView) -> str:
    record = view.task
    if not task.settled(record) and view.is_over:
        used = f"({record.retries} of {record.allowed_retries} retries used)"
        return f"has failed{in_brackets(record.reason)}, and no agent is left to try it again {used}"
    if not task.settled(record):
        when = f" in {duration(view.deadline_ms - view.now_ms)}" if view.deadline_ms > view.now_ms else ""
        tried = f"and is tried again{when} (retry {record.retries + 1} of {record.allowed_retries})"
        return f"has failed{in_brackets(record.reason)} {tried}"
    if record.retries < record.max_retries:
        return f"has failed{in_brackets(record.reason)} and is not tried again by itself: such a failure is permanent"
    used = f" ({record.retries} of {record.max_retries} used)" if record.max_retries else ""
    return f"has failed{in_brackets(record.reason)} and has no retries left{used}"


def _blocked(view: FleetView) -> str:
    needed = lost(view)
    if not needed:
        return f"is blocked{because(view.task.reason) or ': no reason is recorded'}"
    ends = [each for each in roots(chain(view)) if each not in needed]
    cause = f", in the end because of {_which(view, ends)}" if ends else ""
    needs = "it needs its part" if view.task.waits_for_parts else "it depends on"
    return f"is blocked: {needs} {_which(view, needed)}{cause}"


def _which(view: FleetView, names: Sequence[str]) -> str:
    return "; and ".join(f"{each}, which {seen(view, each)}" for each in names)


def _waiting(view: FleetView) -> str:
    waits = parts(view)
    closed = view.task.parts - len(waits)
    named = f", it waits for {_named(view, waits)}{_in_the_end(view, waits)}" if waits else ""
    left_ms = view.deadline_ms - view.now_ms
    limit = f"; it is blocked in {duration(left_ms)} if they are not" if left_ms > 0 else ""
    return f"is waiting for its parts: {closed} of {view.task.parts} closed{named}{limit}"


def _cancelled(view: FleetView) -> str:
    return f"is cancelled{because(view.task.reason) or ': it is no longer wanted'}"


def _orphaned(view: FleetView) -> str:
    owner = view.task.owner
    died = f"has lost its session: that of {owner} has died{in_brackets(view.task.reason)}"
    match view.assignment(owner).state:
        case assignment.State.ORPHANED:
            return f"{died}, and is being ended; its worktree is inspected then"
        case assignment.State.INSPECTING:
            return f"{died}; its worktree is being inspected"
        case assignment.State.VERIFYING:
            return f"{died}; its work is being verified{_proofs(view)}"
        case _:
            return f"has lost its session: {owner} has died, and its worktree is not inspected yet"


def _pending(view: FleetView) -> str:
    limit = f"; silence is a refusal, {in_time(view.deadline_ms - view.now_ms)}" if view.deadline_ms else ""
    whose = _because_of_its_author(view)
    how = "done and verified" if view.task.verify else "done, not verified because it has no verify"
    return f"is waiting for approval: it is {how}, and is merged after that{whose}{limit}"


def _because_of_its_author(view: FleetView) -> str:
    """Return the author, if the trust level of its agent is the cause of the approval."""
    record = view.task
    if record.always_needs_approval or not record.author:
        return ""
    return f", because {record.author} is not {record.merges.word}"


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
"""The sentence about a task, by its state."""


def _owned(view: FleetView) -> str:
    return f"{is_in(view.task.state)} with {view.task.owner}"


def _cancelled_there(view: FleetView) -> str:
    return f"is cancelled{in_brackets(view.task.reason)}"


def _blocked_there(view: FleetView) -> str:
    return f"is blocked{'' if view.task.blocked_by else in_brackets(view.task.reason)}"


_SEEN: Final[Mapping[State, Callable[[FleetView], str]]] = {
    State.CLAIMED: _owned,
    State.IN_PROGRESS: _owned,
    State.FAILED: _failed,
    State.BLOCKED: _blocked_there,
    State.CANCELLED: _cancelled_there,
}
"""The phrase about a task that another one waits for, where its state alone is not enough."""
