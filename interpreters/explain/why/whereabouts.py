"""The work of an agent, and the reasons why it does not take a ready task: tables of phrases by state."""

from collections.abc import Mapping
from typing import Final

from lifefold.core.fleet.board import account, budget, worker_slot
from lifefold.core.fleet.dispatch import accounts, budgets
from lifefold.core.fleet.system import board
from lifefold.core.fleet.worker import desired_state, supervisor
from lifefold.core.kernel import Entity
from lifefold.core.lifecycles import turn
from lifefold.core.lifecycles.session import State as SessionState
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.explain.why.fleet_view import FleetView
from lifefold.interpreters.explain.why.phrases import count, in_brackets, in_time


def empty_budget(view: FleetView, agent: str = "") -> Entity[budget.Budget] | None:
    """Return a budget without a share left, of those that the task needs or of the agent's own; None without one.

    A done task reserves nothing, so it needs no budget.
    """
    entities = view.aggregates[board.NAME].entities
    needed = [budgets.of_agent(agent)] if agent else [budgets.FLEET, budgets.of_task(view.name)]
    found = (entities.get(ref) for ref in needed if view.task.state is State.OPEN)
    return next((each for each in found if each is not None and each.state not in budget.ADMITS), None)


def refill(view: FleetView, spent: Entity[budget.Budget]) -> str:
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


def limited(view: FleetView, of: Entity[account.Account]) -> str:
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
    if wanted.state in RESTS:
        return f"{agent} {RESTS[wanted.state]}{in_brackets(wanted.reason)}"
    if slot.state is worker_slot.State.WORKING:
        preempted_for = view.work.preempted.get(agent)
        return f"{agent} is preempted for {preempted_for}" if preempted_for else f"{agent} is at {slot.task}"
    spent = empty_budget(view, agent)
    if spent is not None:
        return f"{agent}'s own budget {budgets.shortage_of(spent)}{refill(view, spent)}"
    resting = resting_account(view, agent)
    if resting is not None:
        return f"{agent}'s {limited(view, resting)}"
    doing = DOING[view.session(agent).state]
    return f"{agent} {doing}" if slot.state is worker_slot.State.AWAY and doing else f"{agent} waits for work"


RESTS: Final[Mapping[desired_state.State, str]] = {
    desired_state.State.PAUSE: "is paused",
    desired_state.State.HOLD: "is held until a runner is at work",
    desired_state.State.DRAIN: "is draining, and stops then",
}


DOING: Final[Mapping[SessionState, str]] = {
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


def works(view: FleetView, agent: str) -> str:
    """Return what the running session of an agent does, as its output tells; empty if it tells nothing."""
    now = view.turn(agent)
    if now is None:
        return ""
    if now.wanted:
        return f"asks for leave to use {now.wanted}"
    return f"{_PHASES[now.state]}{in_brackets(', '.join(dict.fromkeys(now.doing)))}" if now.state in _PHASES else ""


_PHASES: Final[Mapping[str, str]] = {turn.State.TOOL_USE: "uses a tool", turn.State.COMPACTING: "shortens its context"}
"""The phases of a turn that say more than the state of its task."""
