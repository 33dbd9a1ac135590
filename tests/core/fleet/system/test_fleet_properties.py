"""What the fleet promises holds in every state that a small one can reach, and finds mistakes in its rules."""

from collections.abc import Iterable
from typing import Any, Final

import pytest
from pyrsistent import pmap

from declared import COMPARED, must_hold
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening, system
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.dispatch import claims
from lifefold.core.fleet.dispatch.task_index import TaskIndex, fold
from lifefold.core.fleet.system import fleet_properties, worker
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.fleet.worker.mailbox import Mailbox, OperatorMessageArrived
from lifefold.core.kernel import Aggregate, AggregateType, Dispatch, Event, Rule, System, Transition, replace, rule
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.session import Limits
from lifefold.effects import Tell
from lifefold.interpreters.check import Bounds, Report, check
from witnessed_fleet import MERGED, OUTCOME, witnessed

NEAR: Final = Limits(max_consecutive_errors=2, max_total_errors=2)


def one_undelivered(box: Mailbox) -> bool:
    """Tell whether a mailbox has no more than one message."""
    return len(box.messages) <= 1


STOP: Final = {"desired_state": (desired_state.StopWanted,)}
FEW: Final = Bounds(within={"mailbox": one_undelivered}, commands=5, compared=COMPARED)


def planned(agents: int, tasks: int, *, max_retries: int = 1) -> Any:
    """Return what opens a fleet of so many agents with so many tasks."""
    return list(
        opening(
            Plan(
                "small",
                tuple(AgentPlan(f"a{n}", NEAR) for n in range(agents)),
                tuple(TaskPlan(f"T{n}", "do it", max_retries=max_retries) for n in range(tasks)),
            ),
            0,
        )
    )


def told(of: AggregateType, rules: Iterable[Rule] | None = None, **commands: tuple[type[Event], ...]) -> AggregateType:
    """Return a type with other rules, to which people say only this."""
    every = dict.fromkeys(of.machines, ()) | commands
    kept = of.rules if rules is None else rules
    return AggregateType(
        of.kind, machines=of.machines.values(), rules=kept, views=of.views, commands=every, properties=of.properties
    )


def without(of: AggregateType, name: str, *instead: Rule) -> list[Rule]:
    """Return the rules of a type without those of a name, and with others in their place."""
    place = next(number for number, each in enumerate(of.rules) if each.name == name)
    left = [each for each in of.rules if each.name != name]
    return [*left[:place], *instead, *left[place:]]


@pytest.mark.campaign
def test_a_fleet_of_one_agent_and_one_task_has_all_its_properties() -> None:
    """Whatever its agent, its git and its people do, in whatever order and however late."""
    report = must_hold(system, FEW, opening=planned(1, 1, max_retries=0))
    assert report.coverage["states"][0] >= 31


def test_what_is_closed_was_merged() -> None:
    """Whatever people do: under the very claim that has closed it. A worker that remembers what it merged says so."""
    people = {
        "desired_state": (desired_state.StopWanted, desired_state.HoldWanted, desired_state.RunWanted),
        "mailbox": (OperatorMessageArrived,),
        "task": (task.Cancelled, task.Unblocked),
    }
    report = check(witnessed(people), opening=planned(1, 1, max_retries=0), bounds=FEW)
    assert not report.truncated
    assert {each.name for each in report.broken()} == {NO_ORPHANS}


def test_two_agents_never_get_in_each_others_way() -> None:
    """Nor is anything of one task lost between them, without operators and when one worker is stopped."""
    report = check(witnessed(STOP), opening=planned(2, 1, max_retries=0), bounds=Bounds(states=20_000))
    assert not report.broken(), report


@rule(on=assignment.machine)
def _says_nothing(of: Aggregate, transition: Transition) -> Any:
    """Report all but the failures of work."""
    for wish in worker.report(of, transition):
        if not isinstance(transition.event, assignment.WorkFailed):
            yield wish


@rule(on=worker.agent)
def _keeps_work(of: Aggregate, transition: Transition) -> Any:
    """Give nothing up when the agent stops."""
    for wish in worker.work_ends(of, transition):
        if not (isinstance(wish, Dispatch) and isinstance(wish.event, assignment.Dropped)):
            yield wish


@rule(on=desired_state.machine)
def _is_deaf(of: Aggregate, transition: Transition) -> Any:
    """Hold, and do not stop."""
    del of, transition
    return ()


@rule(on=fleet_task.machine)
def _hands_over_without_slot(of: Aggregate, transition: Transition) -> Any:
    """Hand the task over without taking the worker slot."""
    for wish in claims.hand_over(of, transition):
        if isinstance(wish, Tell):
            yield wish


@rule(on=fleet_task.machine)
def _old_number(of: Aggregate, transition: Transition) -> Any:
    """Hand the task over under the number of the claim before."""
    for wish in claims.hand_over(of, transition):
        if isinstance(wish, Tell) and isinstance(wish.event, assignment.Assigned):
            brief = replace(wish.event.brief, epoch=wish.event.brief.epoch - 1)
            yield replace(wish, event=assignment.Assigned(brief))
        else:
            yield wish


@rule(on=assignment.machine)
def _gives_back_and_keeps(of: Aggregate, transition: Transition) -> Any:
    """Give a task back as soon as a session is at it, and go on with it."""
    yield from worker.report(of, transition)
    if isinstance(transition.event, assignment.Prompted):
        brief = transition.after.record.brief
        yield Tell("board", f"task:{brief.task}", task.Released(brief.epoch))


@rule(on=assignment.machine)
def _takes_a_conflict_for_a_merge(of: Aggregate, transition: Transition) -> Any:
    """Say that a task is home when its merge has failed."""
    for wish in worker.report(of, transition):
        if isinstance(wish, Tell) and isinstance(transition.event, assignment.Conflicted):
            yield replace(wish, event=task.Verified(transition.after.record.brief.epoch))
        else:
            yield wish


@rule(on=fleet_task.machine)
def _hands_over_to_both(of: Aggregate, transition: Transition) -> Any:
    """Hand the task over to its owner, and to another one."""
    for wish in claims.hand_over(of, transition):
        yield wish
        if isinstance(wish, Tell):
            yield replace(wish, aggregate={"worker/a0": "worker/a1", "worker/a1": "worker/a0"}[wish.aggregate])


BOARD, WORKER = system.aggregates["board"], system.aggregates["worker"]

MISTAKES: Final[dict[str, tuple[str, list[Rule] | None, list[Rule] | None]]] = {
    "no worker is stopped": ("a fleet without tasks left ends", without(BOARD, "stop_workers"), None),
    "the task of who is gone stays his": ("every owner is at its task", without(BOARD, "release"), None),
    "a failure is not told": ("every task is settled at last", None, without(WORKER, "report", _says_nothing)),
    "a stopped agent keeps its work": ("has no work to do", None, without(WORKER, "work_ends", _keeps_work)),
    "a stop is not obeyed": ("take effect at once", None, without(WORKER, "obey", _is_deaf)),
    "who leaves does not say so": ("a fleet without tasks left ends", None, without(WORKER, "leave")),
    "a stopped agent takes messages": ("while an agent may read", None, without(WORKER, "close_mailbox")),
    "a task is given to an empty worker slot": (
        "every owner is at its task",
        without(BOARD, "hand_over", _hands_over_without_slot),
        None,
    ),
    "a task is given under an old number": ("was made by the board", without(BOARD, "hand_over", _old_number), None),
    "a task is given back and kept": ("holds the task it owns", None, without(WORKER, "report", _gives_back_and_keeps)),
    "a ready task is given to nobody": ("no worker waits beside", without(BOARD, "match"), None),
    "the next round is never opened": ("every task is settled at last", None, without(WORKER, "next_round")),
}


def mistaken(of_board: list[Rule] | None, of_worker: list[Rule] | None) -> Report:
    """Check a fleet with other rules, in which people only stop agents and take tasks back."""
    fleet = System(
        "fleet",
        told(BOARD, of_board, task=(task.Cancelled,)),
        told(WORKER, of_worker, desired_state=(desired_state.StopWanted,)),
        properties=fleet_properties.PROPERTIES,
    )
    left = {each.name for each in (*(of_board or BOARD.rules), *(of_worker or WORKER.rules))}
    retries = int("next_round" not in left)
    return check(fleet, opening=planned(1, 1, max_retries=retries), bounds=Bounds(states=20_000, compared=0))


@pytest.mark.no_cover
@pytest.mark.parametrize(("words", "of_board", "of_worker"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_rules_of_a_fleet_breaks_a_property(
    words: str, of_board: list[Rule] | None, of_worker: list[Rule] | None
) -> None:
    """Each of these was planted."""
    broken = [each.name for each in mistaken(of_board, of_worker).broken()]
    assert any(words in each for each in broken), f"{words!r} does not find it; broken are {broken}"


@pytest.mark.no_cover
def test_a_task_handed_to_two_workers_breaks_ownership() -> None:
    """Under one claim."""
    twice = witnessed(STOP, {"board": without(BOARD, "hand_over", _hands_over_to_both)})
    assert "no two workers hold the same claim" in broken(twice, planned(2, 1, max_retries=0))


@pytest.mark.no_cover
def test_what_is_closed_without_a_merge_is_found() -> None:
    """By the witnesses of merges alone: all others rely on the report of the worker."""
    rules = {"worker": without(WORKER, "report", _takes_a_conflict_for_a_merge)}
    assert broken(witnessed(STOP, rules), planned(1, 1, max_retries=0)) - NEVER_HERE == {MERGED, OUTCOME}


NO_ORPHANS: Final = "no task stays an orphan, if inspections and verifications end"
"""What is promised of orphans is never due in a fleet whose tasks want none."""

NEVER_HERE: Final = {
    NO_ORPHANS,
    "messages wait to be delivered",
    "a worker whose task was taken learns it, if merges end",
}
"""Properties of messages and of recalls: neither occurs where operators only stop agents."""


def _forgets_what_is_closed(work: TaskIndex, transition: Transition) -> TaskIndex:
    return replace(fold(work, transition), closed=work.closed)


def _has_them_in_the_order_of_the_plan(work: TaskIndex, transition: Transition) -> TaskIndex:
    now = fold(work, transition)
    places = {role: tuple(sorted(them, key=lambda place: place[1])) for role, them in now.ready.items()}
    return replace(now, ready=pmap(places))


@pytest.mark.no_cover
@pytest.mark.parametrize("fold", [_forgets_what_is_closed, _has_them_in_the_order_of_the_plan])
def test_a_view_that_is_not_what_the_tasks_are_is_found(fold: Any) -> None:
    """Also where no rule looks at it before all is over."""
    tasks = (TaskPlan("T0", "do it"), TaskPlan("T1", "do that", priority=1))
    plan = Plan("small", (AgentPlan("a0", NEAR),), tasks)
    assert "the task index agrees with tasks and worker slots" in broken(
        witnessed({}, fold=fold), list(opening(plan, 0)), 2_000
    )


def broken(fleet: System, begins: Any, states: int = 20_000) -> set[str]:
    """Return the properties that a fleet does not keep, as far as it is looked at."""
    return {each.name for each in check(fleet, opening=begins, bounds=Bounds(states=states, compared=0)).broken()}
