"""The error sentences of agents mean outcomes."""

import pytest

from lifefold.core.policy.outcomes import Outcome
from lifefold.interpreters.adapters.verdicts import verdict


@pytest.mark.parametrize(
    ("sentence", "outcome"),
    [
        ("Claude usage limit reached. Your limit will reset at 5pm", Outcome.LIMITED),
        ("You've hit your weekly limit · resets Monday", Outcome.LIMITED),
        ("exceeded retry limit, last status: 429 Too Many Requests", Outcome.LIMITED),
        ("You exceeded your current quota, please check your plan and billing details.", Outcome.OUT_OF_CREDIT),
        ("Your credit balance is too low to access the Anthropic API.", Outcome.OUT_OF_CREDIT),
        ("There's an issue with the selected model (x). It may not exist", Outcome.MODEL_UNKNOWN),
        ("The model `gpt-9` does not exist or you do not have access to it.", Outcome.MODEL_UNKNOWN),
        ("unexpected status 401 Unauthorized", Outcome.LOGIN_REFUSED),
        ("Not logged in · Please run /login", Outcome.LOGIN_REFUSED),
        ("Selected model is at capacity.", Outcome.OVERLOADED),
        ("503 Service temporarily unavailable", Outcome.OVERLOADED),
        ("prompt is too long: 210000 tokens > 200000 maximum", Outcome.PROMPT_TOO_LONG),
        ("Reached maximum number of turns (3)", Outcome.TURN_LIMIT),
        ("Error: thread/resume failed: no rollout found for thread id", Outcome.CONVERSATION_LOST),
        ("port 4010 is in use", Outcome.FAILED),
        ("", Outcome.FAILED),
    ],
)
def test_a_sentence_means_an_outcome(sentence: str, outcome: Outcome) -> None:
    assert verdict(sentence) is outcome
