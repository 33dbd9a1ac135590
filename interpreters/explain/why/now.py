"""The state of a task in a sentence: tables of sentences by state, for a task and for those that it waits for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lifefold.core.fleet.board import account, budget, worker_slot
from lifefold.core.fleet.dispatch import accounts, budgets
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import assignment, desired_state, supervisor
from lifefold.core.kernel import Entity
from lifefold.core.lifecycles import task, turn
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
from lifefold.interpreters.explain.why.fleet_view import FleetView
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


def sentence(view: FleetView) -> str:
    """Return the state of a task, and why it is in it."""
    said = SENTENCES[view.task.state](view)
    aborted = f" {_aborted(view)}" if view.task.is_doomed and view.task.state is not State.CANCELLED else ""
    return f"{view.name} {said}{'' if said.endswith(('…', '?')) else '.'}{aborted}"


def _aborted(view: FleetView) -> str:
    """Return that an aborted task is cancelled when it is opened again."""
    why = "" if view.task.fate is None else view.task.fate.why
    return "" if task.settled(view.task) else f"If it is not done now, it is cancelled: it was aborted{because(why)}."


def seen(view: FleetView, name: str) -> str:
    """Return the state of another task, as a reason: ``has FAILED (...) and has no retries left``."""
    if name not in view.tasks:
        return f"is {MISSING} to the board"
    other = view.about(name)
    state = other.task.state
    return _SEEN[state](other) if state in _SEEN else f"is {state}"


def _planned(_view: FleetView) -> str:
    return "is PLANNED: it waits for an operator to approve the plan"


def _open(view: FleetView) -> str:
    waits, busy = unmet(view), rivals(view)
    if waits:
        return f"is OPEN: it waits for {_named(view, waits)}{_in_the_end(view, waits)}"
    if busy:
        change = "which changes" if len(busy) == 1 else "which change"
        return f"is OPEN: it waits for {_named(view, busy)}, {change} the same files"
    ready = [name for name in view.tasks if is_ready(view.about(name))]
    place = f", the {ordinal(ready.index(view.name) + 1)} of {len(ready)} ready tasks" if len(ready) > 1 else ""
    again = f". It is open again{because(view.task.reason)}" if view.task.reason else ""
    return f"is OPEN and ready{place}: {_no_agent(view)}{again}"


def is_ready(view: FleetView) -> bool:
    """Tell whether a task is open and waits for no other task."""
    return view.task.state is State.OPEN and not waits_for(view)


def _named(view: FleetView, names: tuple[str, ...]) -> str:
    return enumerated([f"{each} ({state_of(view, each)})" for each in names])


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
    return f"{whose} budget {budgets.shortage_of(found)}{_refill(view, found)}"


def empty_budget(view: FleetView, agent: str = "") -> Entity[budget.Budget] | None:
    """Return a budget without a share left, of those that the task needs or of the agent's own; None without one.

    A done task reserves nothing, so it needs no budget.
    """
    entities = view.aggregates[board.NAME].entities
    needed = [budgets.of_agent(agent)] if agent else [budgets.FLEET, budgets.of_task(view.name)]
    found = (entities.get(ref) for ref in needed if view.task.state is State.OPEN)
    return next((each for each in found if each is not None and each.state not in budget.ADMITS), None)


def _refill(view: FleetView, spent: Entity[budget.Budget]) -> str:
    """Return when a budget is refilled, if it is."""
    left_ms = refill_ms(view, spent)
    return "" if left_ms is None else f", and is refilled {in_time(left_ms)}"


def refill_ms(view: FleetView, spent: Entity[budget.Budget]) -> int | None:
    """Return the milliseconds until a budget is refilled; None if it is not."""
    timer = spent.find(budget.Refilled.__name__)
    return max(0, timer.deadline_ms - view.now_ms) if timer is not None and timer.deadline_ms else None


def resting_account(view: FleetView, agent: str) -> Entity[account.Account] | None:
    """Return the account of an agent, if it admits the agent to no open task now; None otherwise.

    Work that is done needs no account.
    """
    of = view.aggregates[board.NAME]
    is_needed = view.task.state is State.OPEN and not accounts.admits(of, agent)
    return accounts.account_of(of, agent) if is_needed else None


def _limited(view: FleetView, of: Entity[account.Account]) -> str:
    """Return how long an account rests, or which agent tries it."""
    name, left_ms = of.ref.partition(":")[2], rest_left_ms(view, of)
    if left_ms is None:
        return f"account {name} is tried again by {of.record.probe}"
    return f"account {name} rests{in_brackets(accounts.reason_of(of.record))}, and resumes {in_time(left_ms)}"


def rest_left_ms(view: FleetView, of: Entity[account.Account]) -> int | None:
    """Return the milliseconds until the rest of an account is over; None if it does not rest."""
    timer = of.find(account.RestOver.__name__)
    return None if timer is None else max(0, timer.deadline_ms - view.now_ms)


def whereabouts(view: FleetView, agent: str) -> str:
    """Return what an agent is doing."""
    slot, wanted = view.worker_slots[agent], view.desired_state(agent)
    if slot.state is worker_slot.State.GONE:
        errors = view.session(agent).consecutive_errors if wanted.state is not desired_state.State.STOP else 0
        quarantined = view.supervisor(agent).state is supervisor.State.QUARANTINED
        reason = f"{count(errors, 'error')} in a row" if errors and not quarantined else slot.reason
        return f"{agent} has stopped{in_brackets(reason)}"
    if wanted.state in _RESTS:
        return f"{agent} {_RESTS[wanted.state]}{in_brackets(wanted.reason)}"
    if slot.state is worker_slot.State.WORKING:
        preempted_for = view.work.preempted.get(agent)
        return f"{agent} is preempted for {preempted_for}" if preempted_for else f"{agent} is at {slot.task}"
    spent = empty_budget(view, agent)
    if spent is not None:
        return f"{agent}'s own budget {budgets.shortage_of(spent)}{_refill(view, spent)}"
    resting = resting_account(view, agent)
    if resting is not None:
        return f"{agent}'s {_limited(view, resting)}"
    doing = _DOING[view.session(agent).state]
    return f"{agent} {doing}" if slot.state is worker_slot.State.AWAY and doing else f"{agent} waits for work"


_RESTS: Final[Mapping[desired_state.State, str]] = {
    desired_state.State.PAUSE: "is paused",
    desired_state.State.HOLD: "is held until a runner is at work",
    desired_state.State.DRAIN: "is draining, and stops then",
}

_DOING: Final[Mapping[SessionState, str]] = {
    SessionState.INITIALIZING: "prepares its worktree",
    SessionState.BUILDING_PROMPT: "",
    SessionState.SPAWNING: "starts a session",
    SessionState.RUNNING: "",
    SessionState.INTERRUPTING: "is being interrupted",
    SessionState.COOLING_DOWN: "pauses before its next session",
    SessionState.SESSION_COMPLETE: "ends its last session",
    SessionState.STOPPED: "has stopped",
}
"""What an agent is doing when it neither works nor waits for work."""


def _claimed(view: FleetView) -> str:
    return f"is CLAIMED: {view.task.owner} has had it for {_age(view)}, under claim {view.task.epoch}{_at(view)}"


def _in_progress(view: FleetView) -> str:
    sessions = f"in session {view.sessions} of claim" if view.sessions else "under claim"
    worked = f"{view.task.owner} began with it {_age(view)} ago"
    return f"is IN_PROGRESS: {worked}, {sessions} {view.task.epoch}{_at(view)}"


def _age(view: FleetView) -> str:
    return duration(view.now_ms - view.entity.entered_ms)


def _at(view: FleetView) -> str:
    """Return what the owner is doing, unless it simply works."""
    owner = view.task.owner
    wanted = view.desired_state(owner)
    if wanted.state in desired_state.RESTS:
        return f"; {owner} {_RESTS[wanted.state]}{in_brackets(wanted.reason)}"
    if view.assignment(owner).state is assignment.State.PREPARING:
        return "; its worktree is being prepared"
    if asked := view.questions(owner):
        return f"; {asked[0].sentence()}"
    does = _DOING[view.session(owner).state] or _works(view, owner)
    doing = enumerated([each for each in (does, view.conversing(owner)) if each])
    return f"; {owner} {doing}" if doing else ""


def _works(view: FleetView, agent: str) -> str:
    """Return what the running session of an agent does, as its output tells; empty if it tells nothing."""
    now = view.turn(agent)
    if now is None:
        return ""
    if now.wanted:
        return f"asks for leave to use {now.wanted}"
    return f"{_PHASES[now.state]}{in_brackets(', '.join(dict.fromkeys(now.doing)))}" if now.state in _PHASES else ""


_PHASES: Final[Mapping[str, str]] = {
    turn.State.TOOL_USE: "uses a tool",
    turn.State.COMPACTING: "shortens its context",
}
"""The phases of a turn that say more than the state of its task."""


def _done(view: FleetView) -> str:
    record = view.task
    if not record.owner:
        what = f"{_LEFT_BECAUSE[record.stage]}, and it waits for an agent to {_left(record.stage)} it"
        return f"is DONE: {what}{because(record.reason)}"
    return f"is DONE: {_on_its_way(view)} by {record.owner}, for {_age(view)}"


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
            return "it is not merged, because an agent has moved the target branch: it is held"
        case assignment.State.PARKING:
            return "it is being parked"
        case _:
            return "it is being finished"


def _proofs(view: FleetView) -> str:
    """Return the verification commands of a task, in brackets."""
    proofs = [f"`{' '.join(each)}`" for each in view.task.verify]
    return f" ({brief(enumerated(proofs))})" if proofs else ""


def _closed(view: FleetView) -> str:
    commit = view.task.commit
    return f"is CLOSED: {f'merged as {commit[:10]}' if commit else 'it is done, and there was nothing to merge'}"


def _failed(view: FleetView) -> str:
    record = view.task
    if not task.settled(record) and view.is_over:
        used = f"({record.retries} of {record.allowed_retries} retries used)"
        return f"has FAILED{in_brackets(record.reason)}, and no agent is left to try it again {used}"
    if not task.settled(record):
        when = f" in {duration(view.deadline_ms - view.now_ms)}" if view.deadline_ms > view.now_ms else ""
        tried = f"and is tried again{when} (retry {record.retries + 1} of {record.allowed_retries})"
        return f"has FAILED{in_brackets(record.reason)} {tried}"
    if record.retries < record.max_retries:
        return f"has FAILED{in_brackets(record.reason)} and is not tried again by itself: such a failure is permanent"
    used = f" ({record.retries} of {record.max_retries} used)" if record.max_retries else ""
    return f"has FAILED{in_brackets(record.reason)} and has no retries left{used}"


def _blocked(view: FleetView) -> str:
    needed = lost(view)
    if not needed:
        return f"is BLOCKED{because(view.task.reason) or ': no reason is recorded'}"
    ends = [each for each in roots(chain(view)) if each not in needed]
    cause = f", in the end because of {_which(view, ends)}" if ends else ""
    needs = "it needs its part" if view.task.waits_for_parts else "it depends on"
    return f"is BLOCKED: {needs} {_which(view, needed)}{cause}"


def _which(view: FleetView, names: Sequence[str]) -> str:
    return "; and ".join(f"{each}, which {seen(view, each)}" for each in names)


def _waiting(view: FleetView) -> str:
    waits = parts(view)
    closed = view.task.parts - len(waits)
    named = f", it waits for {_named(view, waits)}{_in_the_end(view, waits)}" if waits else ""
    left_ms = view.deadline_ms - view.now_ms
    limit = f"; it is blocked in {duration(left_ms)} if they are not" if left_ms > 0 else ""
    return f"is WAITING_FOR_SUBTASKS: {closed} of {count(view.task.parts, 'subtask')} closed{named}{limit}"


def _cancelled(view: FleetView) -> str:
    return f"is CANCELLED{because(view.task.reason) or ': it is no longer wanted'}"


def _orphaned(view: FleetView) -> str:
    owner = view.task.owner
    died = f"is ORPHANED: the session of {owner} has died{in_brackets(view.task.reason)}"
    match view.assignment(owner).state:
        case assignment.State.ORPHANED:
            return f"{died}, and is being ended; its worktree is inspected then"
        case assignment.State.INSPECTING:
            return f"{died}; its worktree is being inspected"
        case assignment.State.VERIFYING:
            return f"{died}; its work is being verified{_proofs(view)}"
        case _:
            return f"is ORPHANED: {owner} has died, and its worktree is not inspected yet"


def _pending(view: FleetView) -> str:
    limit = f"; silence is a refusal, {in_time(view.deadline_ms - view.now_ms)}" if view.deadline_ms else ""
    whose = _because_of_its_author(view)
    how = "done and verified" if view.task.verify else "done, not verified because it has no verify"
    return f"is PENDING_APPROVAL: it is {how}, and waits for approval before its merge{whose}{limit}"


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
    return f"is {view.task.state} with {view.task.owner}"


def _cancelled_there(view: FleetView) -> str:
    return f"is CANCELLED{in_brackets(view.task.reason)}"


def _blocked_there(view: FleetView) -> str:
    return f"is BLOCKED{'' if view.task.blocked_by else in_brackets(view.task.reason)}"


_SEEN: Final[Mapping[State, Callable[[FleetView], str]]] = {
    State.CLAIMED: _owned,
    State.IN_PROGRESS: _owned,
    State.FAILED: _failed,
    State.BLOCKED: _blocked_there,
    State.CANCELLED: _cancelled_there,
}
"""The phrase about a task that another one waits for, where its state alone is not enough."""
