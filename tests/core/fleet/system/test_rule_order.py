"""Where the order of a fleet's rules matters: each of these rules comes before another one, and says so."""

from typing import Final

import pytest

from aggregate_hand import Hand
from board_hand import ask, assigned, go, make, opened, say, states
from fleet_worker import merging
from lifefold.core.fleet import system
from lifefold.core.fleet.board import budget, worker_slot
from lifefold.core.fleet.dispatch import budgets
from lifefold.core.fleet.worker import assignment, desired_state
from lifefold.core.kernel import AggregateType, Envelope
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.budget.account import Account
from lifefold.core.lifecycles.budget.amounts import Resource
from service_hand import send, serving

ONE_SESSION: Final = budget.Budget(lines=(budget.Line(Resource.SESSIONS, 1, Account(cap=1)),))


def names(of: AggregateType, machine: str) -> list[str]:
    """Return the names of the rules on a machine, in order."""
    return [each.name for each in of.rules if each.on == machine]


def swapped(of: AggregateType, machine: str, earlier: str, later: str) -> AggregateType:
    """Return a type in which the later of two rules on a machine comes right before the earlier one."""
    rules = list(of.rules)
    moved = next(each for each in rules if (each.on, each.name) == (machine, later))
    rules.remove(moved)
    place = next(number for number, each in enumerate(rules) if (each.on, each.name) == (machine, earlier))
    return AggregateType(
        of.kind,
        machines=of.machines.values(),
        rules=[*rules[:place], moved, *rules[place:]],
        views=of.views,
        commands=of.commands,
    ).among(system.aggregates)


def before(of: Hand) -> Hand:
    """Return a board on which a worker asks for work whose last task had a budget for one claim at a time."""
    return say(ask(of), "T1", task.Released)


def test_a_task_is_given_out_before_a_budget_is_settled() -> None:
    """Settling makes another task ready, which would be given to the same worker, too."""
    tasks = (make("T1", priority=1), make("T2", priority=2))

    def asked_again(kind: AggregateType) -> list[tuple[str, str]]:
        of = before(opened(*tasks, worker_slots=("ann",), **{"budget:task/T1": ONE_SESSION}))
        of.of = kind
        of.offer(of.message("worker/ann", "worker_slot:ann", worker_slot.WorkWanted()))
        return assigned(of)

    board = system.aggregates["board"]
    assert asked_again(board) == [("worker/ann", "T2")]
    assert asked_again(swapped(board, "worker_slot", "match", "settle")) == [("worker/ann", "T1"), ("worker/ann", "T2")]


def test_a_share_is_reserved_before_the_next_task_is_given_out() -> None:
    """The worker that gets a task is no longer free, so the next pair is sought: with what is left of the budget."""
    tasks = tuple(make(name) for name in ("T1", "T2", "T3"))

    def left_by_cat(kind: AggregateType) -> Hand:
        of = ask(
            opened(*tasks, worker_slots=("cat", "ann", "bob"), **{budgets.FLEET: ONE_SESSION}), "cat", "ann", "bob"
        )
        say(of, "T1", task.Released)
        of.of = kind
        return of

    board = system.aggregates["board"]
    of = go(left_by_cat(board), "cat")
    assert sorted(states(of, "T1", "T2", "T3")) == ["CLAIMED", "OPEN", "OPEN"]
    assert budgets.workers_have_their_share(of.aggregate)
    wrong = left_by_cat(swapped(board, "task", "reserve", "hand_over"))
    wrong.offer(wrong.message("worker/cat", "worker_slot:cat", worker_slot.WorkerGone()))
    assert not budgets.workers_have_their_share(wrong.aggregate)


@pytest.mark.parametrize("later", ["next_round", "go_on"])
def test_the_board_hears_the_outcome_of_a_claim_before_anything_else(later: str) -> None:
    """A request for work that came first would be one of a worker that still has a task."""
    worker = system.aggregates["worker"]
    rules = names(worker, "assignment")
    assert rules.index("report") < rules.index(later)
    of = merging().report("assignment", "MergeWork", assignment.Merged("c0ffee"))
    assert [type(event).__name__ for _, _, event in of.told()] == ["Verified", "WorkWanted"]


def test_a_worker_that_went_on_before_its_report_would_ask_for_work_too_early() -> None:
    """The same, with the two rules swapped."""
    wrong = merging()
    wrong.of = swapped(system.aggregates["worker"], "assignment", "report", "next_round")
    wrong.report("assignment", "MergeWork", assignment.Merged("c0ffee"))
    assert [type(event).__name__ for _, _, event in wrong.told()] == ["WorkWanted", "Verified"]


def test_a_run_is_finished_before_a_draining_service_stops() -> None:
    """A service that stopped first could not close its inbox, with the run still in it, and would keep it open."""

    def drained(kind: AggregateType) -> Hand:
        of = send(serving(), "one").hear("board", "desired_state", desired_state.DrainWanted("no work is left"))
        of.report("invocation", "RunSession", session.SessionStarted(of.record("invocation").session_seq))
        of.of = kind
        run = of.part("invocation", "RunSession")
        over = Envelope(
            "invocation",
            session.SessionExited(session.Success()),
            0,
            "runner",
            slot=run.slot,
            generation=run.generation,
        )
        of.offer(over)
        return of

    service = system.aggregates["service"]
    assert happened_to(drained(service), "inbox") == ["Finished", "InboxClosed"]
    wrong = drained(swapped(service, "invocation", "end", "drained"))
    assert (happened_to(wrong, "inbox"), wrong.state("process"), wrong.state("inbox")) == (
        ["Finished"],
        "stopped",
        "Open",
    )


def happened_to(of: Hand, ref: str) -> list[str]:
    """Return what has happened to an entity in the last reaction, by the names of the events."""
    return [type(step.event).__name__ for step in of.reaction.transitions if step.entity == ref]
