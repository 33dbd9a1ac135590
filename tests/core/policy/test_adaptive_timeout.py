"""Adaptive timeout: the formula, its bounds, and the effect of past runs."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.policy.adaptive_timeout import PastRun, Work, bucket, estimate, work

MINUTES: Final = {"small": 15, "medium": 30, "large": 60, "xl": 120}
"""The document's timeouts by scope."""


@pytest.mark.parametrize(("scope", "minutes"), MINUTES.items())
def test_a_task_of_its_scope_has_the_documents_time(scope: str, minutes: int) -> None:
    """Medium complexity, a model without a factor, no files."""
    assert estimate(Work(scope)).timeout_ms == minutes * 60_000


BY_HAND: Final = {
    Work("small", "low", "haiku"): 315_000,
    Work("small", "low", "haiku", owned_files=2): 375_000,
    Work("small", "high", "opus"): 2_025_000,
    Work("medium", "low", "sonnet", owned_files=10): 1_560_000,
    Work("medium", "high", "opus"): 4_050_000,
    Work("large", "medium", "opus"): 5_400_000,
    Work("large", "low", "haiku", owned_files=1): 1_290_000,
    Work("large", "high", "haiku"): 5_400_000,
    Work("medium", "medium", "gpt"): 1_800_000,
    Work("medium", owned_files=-3): 1_800_000,
}


@pytest.mark.parametrize(("work", "timeout_ms"), BY_HAND.items(), ids=str)
def test_the_formula_is_the_decisions(work: Work, timeout_ms: int) -> None:
    """The product of base, complexity and model, and 30 s per file, exactly (E33)."""
    assert estimate(work).timeout_ms == timeout_ms


def test_the_estimate_has_bounds() -> None:
    """300 s and 7200 s, both included (E33)."""
    assert estimate(Work("xl", "high", "opus")).timeout_ms == 7_200_000
    assert estimate(Work("medium", owned_files=10_000)).timeout_ms == 7_200_000
    assert estimate(Work("small", "low", "haiku")).timeout_ms > 300_000
    assert estimate(Work("medium"), [PastRun("", "done", 10**12)]).timeout_ms == 7_200_000


def test_extra_large_is_said_or_follows_from_what_the_task_is() -> None:
    """Large and highly complex, or one of three roles (E33)."""
    assert bucket(Work("xl")) == bucket(Work("large", "high")) == "xl"
    for role in ("architect", "security", "manager"):
        assert bucket(Work("small", "low", role=role)) == "xl"
    assert bucket(Work("large", "medium")) == "large"
    assert bucket(Work("medium", "high", role="coder")) == "medium"


@pytest.mark.parametrize(("scope", "minutes"), [("XL", 120), ("Large", 60), ("MEDIUM", 30), ("Small", 15)])
def test_words_are_understood_in_whatever_case(scope: str, minutes: int) -> None:
    """The document writes XL; so do people."""
    assert estimate(work(scope, "Medium")).timeout_ms == minutes * 60_000
    assert estimate(work("small", "low", role="Architect")).timeout_ms == estimate(Work("xl", "low")).timeout_ms
    past = [PastRun("Coder", "DONE", 2_000_000)]
    assert estimate(work("small", "low", role="coder"), past).timeout_ms == 3_000_000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("huge", "low"), "scope must be one of small, medium, large, xl, not 'huge'"),
        (("small", "strange"), "complexity must be one of low, medium, high, not 'strange'"),
    ],
)
def test_an_unknown_word_is_refused_with_those_that_are_known(given: tuple[str, str], said: str) -> None:
    """An unknown word does not count as medium."""
    with pytest.raises(ValueError, match=said):
        work(*given)


def test_history_can_only_lengthen() -> None:
    """1.5 times its mean, if that is more (E33)."""
    work = Work("small", role="coder")
    short = [PastRun("coder", "done", 60_000)]
    long = [PastRun("coder", "done", 1_200_000), PastRun("coder", "done", 800_000)]
    assert estimate(work, short).timeout_ms == 900_000
    assert estimate(work, long).timeout_ms == 1_500_000


def test_only_runs_of_the_same_role_that_were_done_count() -> None:
    """Confidence is 0.5 without any and 0.8 with some (E33)."""
    work = Work("small", role="coder")
    others = [
        PastRun("tester", "done", 7_000_000),
        PastRun("coder", "failed", 7_000_000),
        PastRun("coder", "done", 0),
    ]
    assert estimate(work, others) == estimate(work)
    assert (estimate(work).confidence, estimate(work).samples) == (0.5, 0)
    found = estimate(work, [*others, PastRun("coder", "done", 1)])
    assert (found.confidence, found.samples) == (0.8, 1)


RUNS: Final = st.lists(
    st.builds(
        PastRun, st.sampled_from(["coder", "tester"]), st.sampled_from(["done", "failed"]), st.integers(0, 10**8)
    ),
    max_size=6,
)
WORKS: Final = st.builds(
    Work,
    st.sampled_from([*MINUTES]),
    st.sampled_from(["low", "medium", "high"]),
    st.sampled_from(["haiku", "sonnet", "opus", ""]),
    st.sampled_from(["coder", "manager"]),
    st.integers(0, 500),
)


@given(WORKS, RUNS)
def test_whatever_is_known_the_estimate_is_within_bounds_and_not_below_the_one_without_history(
    work: Work, runs: list[PastRun]
) -> None:
    """And pure."""
    with_history, without = estimate(work, runs), estimate(work)
    assert 300_000 <= without.timeout_ms <= with_history.timeout_ms <= 7_200_000
    assert estimate(work, runs) == with_history
