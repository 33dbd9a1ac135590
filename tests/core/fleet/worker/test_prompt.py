"""Prompts: what an agent is told."""

from lifefold.core.fleet.worker.prompt import compose
from lifefold.core.lifecycles.task import Brief


def test_a_first_prompt_is_the_tasks_own_words() -> None:
    """Nothing is added where there is nothing to add."""
    assert compose(Brief(prompt="do it"), (), continued=False) == "do it"


def test_a_prompt_has_the_last_failure_the_kept_work_and_the_operator_messages() -> None:
    """In this order, each in a paragraph of its own."""
    text = compose(Brief(prompt="do it", failure="tests fail"), ("mind the gap", "hurry"), continued=True)
    text_of_task, failure, interrupted, messages = text.split("\n\n")
    assert text_of_task == "do it"
    assert failure == "An earlier attempt at this task failed: tests fail"
    assert interrupted.startswith("Your last session was interrupted.")
    assert messages == "You have messages:\n- mind the gap\n- hurry"


def test_another_conversation_is_told_of_the_session_that_it_does_not_remember() -> None:
    """It was not interrupted, and it has no last session."""
    text = compose(Brief(prompt="do it"), (), continued=True, anew=True)
    assert text.startswith("do it\n\nAn earlier session at this task has ended")
    assert "this is a new one" in text
    assert "interrupted" not in text
    assert compose(Brief(prompt="do it"), (), continued=False, anew=True) == "do it"


def test_each_addition_stands_alone() -> None:
    """None of them needs another."""
    assert "earlier attempt" in compose(Brief(failure="x"), (), continued=False)
    assert "interrupted" in compose(Brief(), (), continued=True)
    assert "- hurry" in compose(Brief(), ("hurry",), continued=False)


def test_messages_of_an_earlier_session_are_marked() -> None:
    """It may have done something about it. The messages are one list, in order, at the end."""
    messages = ("mind the gap", "hurry")
    said = [compose(Brief(prompt="do it"), messages, continued=False, repeated=n).split("\n\n") for n in range(3)]
    assert [parts[1:-1] for parts in said] == [
        [],
        ["An earlier session had the first of your messages too; it was not completed."],
        ["An earlier session had the first 2 of your messages too; it was not completed."],
    ]
    assert {parts[-1] for parts in said} == {"You have messages:\n- mind the gap\n- hurry"}
