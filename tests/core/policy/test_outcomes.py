"""Outcomes of sessions have diagnoses, and words of programs have outcomes."""

import pytest

from lifefold.core.policy import ends
from lifefold.core.policy.ends import Program, Trouble
from lifefold.core.policy.outcomes import DIAGNOSES, Outcome, by_diagnosis, diagnosis_of
from lifefold.core.policy.reasons import AbortReason, TransitionReason

BY_STATUS = {Outcome.FAILED, Outcome.CRASHED}


def test_every_outcome_but_success_has_a_diagnosis_or_is_judged_by_its_status() -> None:
    assert {*DIAGNOSES, *BY_STATUS, Outcome.SUCCESS} == set(Outcome)
    assert diagnosis_of(Outcome.SUCCESS) is None


@pytest.mark.parametrize("outcome", sorted(BY_STATUS))
def test_an_outcome_without_reasons_of_its_own_is_judged_by_its_status(outcome: Outcome) -> None:
    assert diagnosis_of(outcome, -9) == ends.by_status(-9)
    assert diagnosis_of(outcome, 126) == ends.by_status(126)


@pytest.mark.parametrize(
    ("outcome", "trouble"),
    [
        (Outcome.DENIED, Trouble.FATAL),
        (Outcome.LOGIN_REFUSED, Trouble.FATAL),
        (Outcome.OUT_OF_CREDIT, Trouble.FATAL),
        (Outcome.MODEL_UNKNOWN, Trouble.FATAL),
        (Outcome.REFUSED_COMMAND, Trouble.FATAL),
        (Outcome.LIMITED, Trouble.TRANSIENT),
        (Outcome.OVERLOADED, Trouble.TRANSIENT),
        (Outcome.PROMPT_TOO_LONG, Trouble.OTHER),
        (Outcome.TURN_LIMIT, Trouble.OTHER),
        (Outcome.BUDGET_SPENT, Trouble.OTHER),
        (Outcome.CONVERSATION_LOST, Trouble.LOST),
        (Outcome.NOTHING_DONE, Trouble.OTHER),
    ],
)
def test_only_an_outcome_that_passes_by_itself_is_transient(outcome: Outcome, trouble: Trouble) -> None:
    diagnosis = diagnosis_of(outcome, 1)
    assert diagnosis is not None
    assert diagnosis.trouble is trouble


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("permission denied", Outcome.DENIED),
        ("invalid api key", Outcome.LOGIN_REFUSED),
        ("credit balance is too low", Outcome.OUT_OF_CREDIT),
        ("prompt is too long", Outcome.PROMPT_TOO_LONG),
        ("request too large", Outcome.PROMPT_TOO_LONG),
        ("reached max turns", Outcome.TURN_LIMIT),
        ("overloaded", Outcome.OVERLOADED),
        ("temporarily unavailable", Outcome.OVERLOADED),
        ("something else", None),
        ("connection reset", None),
    ],
)
def test_the_last_words_of_a_program_mean_an_outcome(words: str, outcome: Outcome | None) -> None:
    assert by_diagnosis(ends.diagnosis(words)) is outcome


def test_a_diagnosis_leads_back_to_its_outcome_where_the_reasons_are_its_own() -> None:
    own = {Outcome.DENIED, Outcome.LOGIN_REFUSED, Outcome.OUT_OF_CREDIT, Outcome.PROMPT_TOO_LONG, Outcome.TURN_LIMIT}
    for outcome in own | {Outcome.OVERLOADED}:
        assert by_diagnosis(DIAGNOSES[outcome]) is outcome
    assert DIAGNOSES[Outcome.LIMITED].transition_reason is TransitionReason.RETRY
    assert DIAGNOSES[Outcome.LIMITED].abort_reason is AbortReason.PROVIDER_ERROR


def test_the_last_words_of_a_command_tell_more_than_its_outcome() -> None:
    """Without known words the outcome counts, and then the exit status."""
    large = diagnosis_of(Outcome.PROMPT_TOO_LONG, 1, "API Error: (413) request_too_large")
    assert large is not None
    assert large.transition_reason is TransitionReason.PROVIDER_413
    assert diagnosis_of(Outcome.PROMPT_TOO_LONG, 1, "no known words") is DIAGNOSES[Outcome.PROMPT_TOO_LONG]
    assert diagnosis_of(Outcome.CRASHED, 4, "", Program.CLAUDE) == ends.by_status(4, Program.CLAUDE)
