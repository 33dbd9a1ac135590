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
    words = (*key.words, "a text") if key.takes_text else key.words
    return bool(parser().parse_args([*words, "--db", "fleet.db"]).command)


@pytest.mark.parametrize("about", Awaited)
def test_each_decision_has_an_item_whose_keys_are_commands(about: Awaited) -> None:
    """No kind of decision is left out, and no key gives a command that would be refused for its form."""
    item = decision(WAITING[about])
    assert item.text
    assert item.id
    assert all(accepted(key) for key in item.keys)
    assert len({key.key for key in item.keys}) == len(item.keys)
    assert bool(item.keys) == (about is not Awaited.BUDGET)


def labels(item: Item) -> str:
    return readable(item.keys)


def test_a_question_in_words_is_answered_and_a_permission_is_approved() -> None:
    """Both can be rejected, with a reason."""
    asked = Waiting(Awaited.QUESTION, ("ann/Q3",), "answer", 0, reason="ann asks: which?")
    assert labels(decision(asked)) == "w answer  r reject  o output  s show"
    assert labels(decision(WAITING[Awaited.QUESTION])) == "a approve  r reject  o output  s show"
    assert labels(decision(WAITING[Awaited.TASK])) == "a approve  r reject  d diff  o output  s show"
