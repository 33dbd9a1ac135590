"""What the board of a fleet has been through: a witness, which remembers what no state of it shows."""

import msgspec

from lifefold.core.fleet.board import budget, fleet_task, worker_slot
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.kernel import State, Transition, replace
from lifefold.core.lifecycles import task


class Minutes(msgspec.Struct, frozen=True):
    """What the board has been through.

    Who has just been granted a retry (``granted``); what is not wanted any more (``cancelled``), and was given to
    somebody all the same (``unwanted``); what was tried again at once without a word (``hasty``); what was said of the
    plan (``decided``), and that its tasks were told the contrary (``contrary``); how parts were described by whoever
    split a task (``described``), and that one is another (``changed``); which places in the plan nobody has decided
    about (``planned``), and that somebody was given a task of an approved plan before a more urgent one (``early``);
    that something was settled and is asked for again by people (``reopened``), also by what they have just let be
    spent, or by whom they have just promoted (``lifted``).
    """

    granted: str = ""
    cancelled: frozenset[str] = frozenset()
    unwanted: bool = False
    hasty: bool = False
    decided: State | None = None
    contrary: bool = False
    described: tuple[tuple[str, fleet_task.Subtask], ...] = ()
    changed: bool = False
    planned: frozenset[tuple[int, int]] = frozenset()
    early: bool = False
    reopened: bool = False
    lifted: bool = False


def take_down(minutes: Minutes, transition: Transition) -> Minutes:
    """Take in what has happened on the board, and whether people have just let more be done."""
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
    """Take in who has to be decided about, and whether somebody is given something before that."""
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
