"""Graduated access: how levels are earned and lost, and the rights of each."""

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.policy.access import (
    CAPABILITIES,
    SUCCESSES,
    AccessLevel,
    Capabilities,
    Trust,
    demoted,
    may,
    promoted,
    succeeded,
    violated,
)

UNTRUSTED, PROBATIONARY, TRUSTED, ELEVATED = AccessLevel


def after(trust: Trust, successes: int) -> Trust:
    """Return the record after so many successes more."""
    for _ in range(successes):
        trust = succeeded(trust)
    return trust


def test_levels_are_reached_at_one_three_and_ten_successes() -> None:
    """From UNTRUSTED, the first level of every agent (E34)."""
    levels = [after(Trust(), n).level for n in range(12)]
    assert levels == [0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3]
    assert list(SUCCESSES.values()) == [0, 1, 3, 10]


def test_one_success_promotes_by_one_level_at_most() -> None:
    """Also if the record would do for more."""
    assert succeeded(Trust(UNTRUSTED, 50)) == Trust(PROBATIONARY, 51)
    assert succeeded(Trust(ELEVATED, 50)) == Trust(ELEVATED, 51)


def test_a_violation_demotes_by_one_level() -> None:
    """No agent falls below the lowest (E34)."""
    assert violated(Trust(TRUSTED, 5)) == Trust(PROBATIONARY, 5, 1)
    assert violated(violated(violated(Trust(TRUSTED, 5)))) == Trust(UNTRUSTED, 5, 3)


def test_a_violation_blocks_promotion_until_a_promotion_by_hand() -> None:
    """The promotion clears the violation (E35)."""
    fallen = violated(Trust(TRUSTED, 5))
    assert after(fallen, 100).level is PROBATIONARY
    forgiven = promoted(fallen)
    assert forgiven == Trust(TRUSTED, 5, 0)
    assert after(forgiven, 5).level is ELEVATED


def test_by_hand_one_goes_up_and_down_by_one() -> None:
    """And stops at the ends; demoting by hand is no violation."""
    assert [promoted(Trust(level)).level for level in AccessLevel] == [1, 2, 3, 3]
    assert [demoted(Trust(level, 4, 1)) for level in (ELEVATED, UNTRUSTED)] == [
        Trust(TRUSTED, 4, 1),
        Trust(UNTRUSTED, 4, 1),
    ]


CAN: Final = {
    UNTRUSTED: Capabilities(write=False, network=False, max_files=0, folders=("docs/",)),
    PROBATIONARY: Capabilities(write=True, network=False, max_files=5, folders=("src/", "tests/", "docs/")),
    TRUSTED: Capabilities(write=True, network=True, max_files=20, folders=("src/", "tests/", "docs/", "scripts/")),
    ELEVATED: Capabilities(write=True, network=True, max_files=100, folders=None),
}


@pytest.mark.parametrize("level", AccessLevel)
def test_a_level_can_do_what_is_written_here_once_more(level: AccessLevel) -> None:
    """Writing, network, files, folders (E34)."""
    assert CAPABILITIES[level] == CAN[level]


def test_without_a_map_nothing_is_gated() -> None:
    """Every level may perform every transition (E34)."""
    assert all(may(level, "done", "closed", {}) for level in AccessLevel)


def test_a_map_says_which_transition_needs_which_level() -> None:
    """A higher level may do what a lower one may; what is not listed needs none (E34)."""
    gates = {("done", "closed"): TRUSTED}
    assert [may(level, "done", "closed", gates) for level in AccessLevel] == [False, False, True, True]
    assert may(UNTRUSTED, "done", "failed", gates)


@given(st.lists(st.sampled_from([succeeded, violated, promoted, demoted]), max_size=40))
def test_a_level_changes_by_one_at_most(changes: list[Callable[[Trust], Trust]]) -> None:
    """For all histories; and a violation blocks promotion by success."""
    trust = Trust()
    for change in changes:
        now = change(trust)
        assert abs(now.level - trust.level) <= 1
        if change is succeeded and trust.violations:
            assert now.level is trust.level
        trust = now
