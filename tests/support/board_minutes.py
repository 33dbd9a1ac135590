"""A witness of the board: it remembers facts that no state of the board shows."""

import msgspec

from lifefold.core.fleet.board import budget, fleet_task, worker_slot
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.kernel import State, Transition, replace
from lifefold.core.lifecycles import task


class Minutes(msgspec.Struct, frozen=True):
    """The past of the board."""

    granted: str = ""
    """The task that has just got a retry."""
    cancelled: frozenset[str] = frozenset()
    """The cancelled tasks."""
    unwanted: bool = False
    """A cancelled task was assigned."""
    hasty: bool = False
    """A task was tried again without a retry."""
    decided: State | None = None
    """The decision about the plan."""
    contrary: bool = False
    """A task of the plan got another decision."""
    described: tuple[tuple[str, fleet_task.Subtask], ...] = ()
    """The parts, as they were described when their task was split."""
    changed: bool = False
    """A part differs from its description."""
    planned: frozenset[tuple[int, int]] = frozenset()
    """The places in the plan without a decision."""
    early: bool = False
    """A task of an approved plan was assigned before a more urgent one."""
    reopened: bool = False
    """Operators have asked again for a settled task."""
    lifted: bool = False
    """Operators have just raised a budget, or promoted an agent."""


def take_down(minutes: Minutes, transition: Transition) -> Minutes:
    """Take in a transition of the board."""
    if not transition.actor.startswith("rule:"):
        minutes = replace(minutes, lifted=isinstance(transition.event, worker_slot.Promoted | budget.Raise))
    return _taken_down(minutes, transition)


def _taken_down(minutes: Minutes, transition: Transition) -> Minutes:
    if transition.machine == plan_approval.machine.name:
        return replace(minutes, decided=transition.entered)
    if transition.machine != fleet_task.machine.name:
        return minutes
    of: fleet_task.FleetTask = transition.after.record
    minutes = _decided(minutes, of, transition)
    if transition.before is None:
        wished = dict(minutes.described).get(of.id)
        is_other = wished is not None and wished != fleet_task.Subtask(of.prompt, of.verify, of.files)
        return replace(minutes, changed=minutes.changed or is_other)
    by_rule, now = transition.actor.startswith("rule:"), minutes
    match transition.event:
        case fleet_task.Split(tasks=tasks):
            first = transition.before.record.parts + 1
            now = replace(minutes, described=tuple((of.part(n), each) for n, each in enumerate(tasks, first)))
        case fleet_task.RetryGranted():
            now = replace(minutes, granted=of.id)
        case task.Cancelled():
            now = replace(minutes, cancelled=minutes.cancelled | {of.id})
        case task.Retried():
            by_itself = by_rule and minutes.granted != of.id
            now = replace(minutes, granted="", hasty=minutes.hasty or by_itself)
        case task.Claimed() if transition.before.state is task.State.OPEN:
            wholes = {of.id.rsplit("+", places)[0] for places in range(1, of.id.count("+") + 1)}
            now = replace(minutes, unwanted=minutes.unwanted or bool(wholes & minutes.cancelled))
        case task.Approved() | task.Declined() if by_rule:
            approved = minutes.decided is plan_approval.State.APPROVED
            contrary = approved is not isinstance(transition.event, task.Approved)
            now = replace(minutes, contrary=minutes.contrary or contrary)
        case _:
            pass
    return now


def _decided(minutes: Minutes, of: fleet_task.FleetTask, transition: Transition) -> Minutes:
    """Take in the tasks that wait for a decision, and the assignments before it."""
    place = (of.priority, of.ordinal)
    others = minutes.planned - {place}
    left = others | {place} if of.state is task.State.PLANNED else others
    is_given = transition.entered is task.State.CLAIMED and minutes.decided is plan_approval.State.APPROVED
    again = transition.before is not None and task.settled(transition.before.record) and not task.settled(of)
    return replace(
        minutes,
        planned=left,
        early=minutes.early or (is_given and any(each < place for each in left)),
        reopened=minutes.reopened or (again and (minutes.lifted or not transition.actor.startswith("rule:"))),
    )
