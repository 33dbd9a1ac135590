"""The items of `lifefold watch`: each decision that a fleet waits for has keys, and each key is a command."""

import pytest

from lifefold.interpreters.cli.grammar import parser
from lifefold.interpreters.cli.watch_items import Item, Key, decision, readable
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
