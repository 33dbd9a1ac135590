"""Aborts of a tool, of siblings, and of whole subtrees, in a fleet that has them (document 004, E36 to E38).

Families are those of tasks. A split task is the parent of its parts as soon as it is split (E38). The session at a part
is a child of the session that split the task. The formulas in ``core.policy.abort`` decide which tasks end because of
an abort. These rules apply the result to the board.

- *Tool*: the owner of a task reports that one call of a tool was aborted. Its session goes on. No other task is
  affected, unless the fleet's policy escalates the abort (E37).
- *Siblings*: all other parts of the same task, each with everything below it. The task itself and its parent go on.
- *Session*: the task with everything below it.

An aborted task is cancelled once, and its owner is recalled as by any other cancellation (E20). A task that is over
stays as it is. A task that cannot be cancelled at the moment (E16) is marked as aborted. Its finished work is still
merged. If it is opened again, it is cancelled before any worker claims it. An operator who retries it takes the mark
away. For the parent, cancelled parts mean what they always mean (E7).

It ends: only operators and sessions request aborts, rules never do, and every task is cancelled once.
"""

from collections.abc import Iterable, Iterator
from typing import Final, cast

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.board.fleet_task import Fate, FleetTask
from lifefold.core.fleet.dispatch.locality import on_board
from lifefold.core.fleet.dispatch.task_index import CLAIMED, tasks_of, whole_of, work_of
from lifefold.core.kernel import Aggregate, Dispatch, Event, Property, Transition, always, always_step, localized, rule
from lifefold.core.lifecycles import task
from lifefold.core.policy.abort import AbortScope, Parents, Target, affected, escalated
from lifefold.core.policy.reasons import AbortReason

# The rules


@rule(on=fleet_task.machine, event=(fleet_task.ToolAborted, fleet_task.AbortWanted))
def spread(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Cancel the tasks in the scope of an abort, unclaimed tasks first, so that no worker claims one meanwhile."""
    said = cast("fleet_task.ToolAborted | fleet_task.AbortWanted", transition.event)
    record: FleetTask = transition.after.record
    fate = cast("fleet_task.Fate", record.fate)  # without one its task accepts no report of an abort
    found = affected(family(board, record.id), record.id, said.scope, fate.policy, said.abort_reason)
    reached = [each for each in found if is_to_end(board.record(f"task:{each.session}"))]
    for each in sorted(reached, key=lambda target: board.record(f"task:{target.session}").state in CLAIMED):
        yield Dispatch(
            f"task:{each.session}", fleet_task.Aborted(each.abort_reason, record.id, _why(each, record, said))
        )


@rule(on=fleet_task.machine, enters=task.State.OPEN)
def abort_when_opened(board: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Cancel a task that was aborted while it could not be cancelled, as soon as it is opened again."""
    del board
    fate = transition.after.record.fate
    if fate is not None and fate.aborted is not None:
        yield Dispatch(transition.entity, fleet_task.Aborted(fate.aborted, transition.after.record.id, fate.why))


def family(board: Aggregate, name: str) -> Parents:
    """Return the parents of all tasks with the same whole as this task, in the order of their creation."""
    return {part: board.record(f"task:{part}").parent for part in work_of(board).parts.get(whole_of(name), ())}


def is_to_end(record: FleetTask) -> bool:
    """Tell whether an abort has anything to do at a task: it is not over, nor aborted already."""
    return not fleet_task.is_over(record) and not record.is_aborted


def _why(target: Target, by: FleetTask, said: fleet_task.ToolAborted | fleet_task.AbortWanted) -> str:
    """Return the reason of an abort: its canonical name, the aborted task or tool, and the given reason."""
    what = (
        f"the tool {said.tool} was aborted at {by.id}" if isinstance(said, fleet_task.ToolAborted) else _what(by, said)
    )
    return f"{target.abort_reason}: {what}{said.reason and f': {said.reason}'}"


def _what(by: FleetTask, said: fleet_task.AbortWanted) -> str:
    return f"{by.id} was aborted" if said.scope is AbortScope.SESSION else f"the siblings of {by.id} were aborted"


# The properties


def no_agent_is_at_an_aborted_task(board: Aggregate) -> bool:
    """An aborted task is not claimed, does not wait, and is not given out."""
    return not any(each.is_aborted and each.state in fleet_task.CANCELLABLE for each in tasks_of(board))


def reaches_all_parts(board: Aggregate) -> bool:
    """All parts below an aborted task are over or aborted (E36)."""
    tasks = {each.id: each for each in tasks_of(board)}
    return all(_are_reached(tasks, each.parts_of_it()) for each in tasks.values() if each.is_aborted)


def reaches_its_scope(board: Aggregate) -> bool:
    """After an abort of siblings each is over or aborted; after a larger one the task or its parent is (E36, E37)."""
    tasks = {each.id: each for each in tasks_of(board)}
    said = [(each, each.fate) for each in tasks.values() if each.fate is not None and not fleet_task.is_over(each)]
    return all(_are_reached(tasks, _meant(tasks, each, fate)) for each, fate in said)


def _meant(tasks: dict[str, FleetTask], record: FleetTask, fate: Fate) -> Iterable[str]:
    """Return the tasks in the scope of the last abort of a task."""
    whole = tasks.get(record.parent)
    if fate.said is AbortScope.SESSION:
        return () if fate.wanted else (record.id,)
    if whole is None or fate.said is None:
        return ()
    siblings = (each for each in whole.parts_of_it() if each != record.id)
    return siblings if escalated(fate.said, fate.policy) is AbortScope.SIBLING else (whole.id, *siblings)


def _are_reached(tasks: dict[str, FleetTask], names: Iterable[str]) -> bool:
    """Tell whether all existing tasks of these are over, aborted, or retried by an operator."""
    there = (tasks[each] for each in names if each in tasks)
    return all(each.is_aborted or fleet_task.is_over(each) or bool(each.fate and each.fate.wanted) for each in there)


def is_aborted_by_its_family(step: Transition) -> bool:
    """A task that aborts its siblings, and their parent, go on: only tasks in the scope are aborted (E36)."""
    if not isinstance(step.event, fleet_task.Aborted):
        return True
    name, by, whole = step.after.record.id, step.event.by, step.event.by.rpartition("+")[0]
    reason = step.event.abort_reason
    is_kin = whole_of(name) == whole_of(by)
    if reason is AbortReason.SIBLING_ABORTED:
        return is_kin and (name != by or _again(step)) and step.after.record.parent == whole
    if reason is AbortReason.PARENT_ABORTED:
        return is_kin and bool(step.after.record.parent)
    return name in {by, whole}


def is_aborted_once(step: Transition) -> bool:
    """No task is aborted twice, or after it is over (E36). A marked task is cancelled when it is opened."""
    before: FleetTask = step.was
    return is_to_end(before) or _again(step)


def _again(step: Transition) -> bool:
    """Tell whether a task that was marked as aborted is cancelled by this step."""
    opened = step.before is not None and step.before.record.is_aborted and step.before.state in fleet_task.CANCELLABLE
    return opened and step.entered is task.State.CANCELLED


def parts_have_the_same_policy(board: Aggregate) -> bool:
    """A part is aborted as its whole would be (E37, E38)."""
    tasks = {each.id: each for each in tasks_of(board)}
    pairs = ((each.fate, tasks[each.parent].fate) for each in tasks.values() if each.parent in tasks)
    return all((part and part.policy) == (whole and whole.policy) for part, whole in pairs)


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    *localized(
        on_board,
        always("an aborted task is neither worked at nor given out", no_agent_is_at_an_aborted_task),
        always("an abort reaches all parts below a task", reaches_all_parts),
        always("an abort reaches every task in its scope", reaches_its_scope),
        always("a part has the abort policy of its whole", parts_have_the_same_policy),
    ),
    always_step("an abort of siblings spares the caller and their parent", is_aborted_by_its_family, on=Event),
    always_step("no task is aborted twice, nor after it is over", is_aborted_once, on=fleet_task.Aborted),
)
