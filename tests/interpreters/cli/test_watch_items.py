"""The items of `lifefold watch`: each decision that a fleet waits for has keys, and each key is a command."""

from pathlib import Path

import pytest

from fleet_log import FleetLog, folded
from lifefold.core.fleet import TaskPlan
from lifefold.core.fleet.board import fleet_task
from lifefold.core.lifecycles import approval, task
from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.cli.watch_items import Item, Key, decision, items, readable
from lifefold.interpreters.cli.watch_keys import Screen, settled
from lifefold.interpreters.explain import task_status
from lifefold.interpreters.explain.pending import Awaited, Waiting

WAITING = {
    Awaited.QUESTION: Waiting(Awaited.QUESTION, ("ann/Q3",), "approve", 0, 1_000, "ann asks: may it run `make`?"),
    Awaited.PLAN: Waiting(Awaited.PLAN, ("T1", "T2"), "approve", 0),
    Awaited.TASK: Waiting(Awaited.TASK, ("T1",), "approve", 0, 1_000, commit="c0ffee"),
    Awaited.AGENT: Waiting(Awaited.AGENT, ("ann",), "resume", 0, reason="lunch"),
    Awaited.BUDGET: Waiting(Awaited.BUDGET, ("T1", "T2"), "budget --add-usd 1", 0, reason="the budget is spent"),
    Awaited.ACCOUNT: Waiting(Awaited.ACCOUNT, ("claude",), "resume --account claude", 0, 1_000, "five_hour"),
    Awaited.TRUST: Waiting(Awaited.TRUST, ("T1",), "trust ann --promote", 0, reason="needs an agent of level ELEVATED"),
    Awaited.TASKS: Waiting(Awaited.TASKS, (), "task add", 0),
}


def accepted(key: Key) -> bool:
    """Tell whether the grammar accepts the command of a key, with a text if it takes one."""
    text = "2" if key.key == "b" else "a text"
    words = (*key.words, text) if key.takes_text else key.words
    return bool(parser().parse_args([*words, "--db", "fleet.db"]).command)


@pytest.mark.parametrize("about", Awaited)
def test_each_decision_has_an_item_whose_keys_are_commands(about: Awaited) -> None:
    """No kind of decision is left out, and no key gives a command that would be refused for its form."""
    item = decision(WAITING[about])
    assert item.text
    assert item.id
    assert all(accepted(key) for key in item.keys)
    assert len({key.key for key in item.keys}) == len(item.keys)
    assert item.keys


@pytest.mark.parametrize("about", Awaited)
def test_the_keys_of_a_decision_fit_a_line_of_eighty_characters(about: Awaited) -> None:
    """With the keys that every item has."""
    assert len(f"{readable(decision(WAITING[about]).keys)}  ↑↓ choose  q quit") <= 80


def test_a_spent_budget_is_raised_and_an_agent_promoted_by_what_is_typed() -> None:
    """The amount, and the reason; the command line has the same commands."""
    (more,) = decision(WAITING[Awaited.BUDGET]).keys
    assert (more.words, more.asks) == (("budget", "--add-usd"), "raise by how many usd (at least 1)")
    promote = decision(WAITING[Awaited.TRUST]).keys[0]
    assert (promote.words, promote.takes_text) == (("trust", "ann", "--promote", "--reason"), True)
    nobody = Waiting(Awaited.TRUST, ("T1",), "trust", 0, reason="needs an agent")
    assert "u" not in {each.key for each in decision(nobody).keys}


def labels(item: Item) -> str:
    return readable(item.keys)


def test_a_question_in_words_is_answered_and_a_permission_is_approved() -> None:
    """Both can be rejected, with a reason."""
    asked = Waiting(Awaited.QUESTION, ("ann/Q3",), "answer", 0, reason="ann asks: which?")
    assert labels(decision(asked)) == "w answer  r reject  o output  s show"
    assert labels(decision(WAITING[Awaited.QUESTION])) == "a approve  r reject  o output  s show"
    assert labels(decision(WAITING[Awaited.TASK])) == "a approve  r reject  d diff  o output  s show"


def listed(log: FleetLog) -> tuple[Item, ...]:
    """Return the list of a fleet as its log is now."""
    there = folded(log.path).aggregates
    return items(there, task_status.tasks(there))


def test_after_a_decision_the_cursor_is_on_the_next_one(tmp_path: Path) -> None:
    """It does not follow the task to the end of the list, so several decisions are made one after the other."""
    approved = [TaskPlan(each, "do it", needs_approval=True) for each in ("one", "two")]
    log = FleetLog(tmp_path / "fleet.db", TaskPlan("bad", "do it", max_retries=0), *approved).failed("bad")
    for each in approved:
        epoch = log.claimed(each.id).task(each.id).epoch
        log.happens("board", f"task:{each.id}", task.Completed(epoch), fleet_task.Parked(epoch, "0" * 40))
    screen = settled(Screen(), listed(log))
    assert screen == Screen("approval one", 0)
    log.happens("board", "task:one", approval.ApprovalGranted(""))
    assert settled(screen, listed(log)) == Screen("approval two", 0)
    failed = settled(Screen("failure bad"), listed(log))
    assert failed == Screen("failure bad", 1)
    log.happens("board", "task:bad", fleet_task.RetryGranted())
    retried = settled(failed, listed(log))
    assert (retried.place, retried.at) == (1, "agent ann")
