"""Reasons: the document's words, and the meaning of an exit status."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.policy.reasons import AbortReason, TransitionReason, Verdict, abort_reason_of, claude_verdict

TRANSITION: Final = """
completed aborted retry prompt_too_long max_output_tokens max_turns provider_413 provider_529 compaction_failed
stop_hook_blocked permission_denied sibling_aborted orphan_recovered
"""
ABORT: Final = """
user_interrupt shutdown_signal timeout oom permission_denied provider_error bash_error sibling_aborted parent_aborted
compact_failure unknown
"""


def test_the_reasons_are_the_documents() -> None:
    """Thirteen and eleven, spelled and ordered as there."""
    assert [reason.value for reason in TransitionReason] == TRANSITION.split()
    assert [reason.value for reason in AbortReason] == ABORT.split()
    assert (len(TransitionReason), len(AbortReason)) == (13, 11)


STATUS: Final[dict[int | None, str | None]] = {
    0: None,
    124: "timeout",
    126: "permission_denied",
    130: "user_interrupt",
    -2: "user_interrupt",
    137: "oom",
    -9: "oom",
    143: "shutdown_signal",
    -15: "shutdown_signal",
    1: "unknown",
    125: "unknown",
    255: "unknown",
    -1: "unknown",
    -11: "unknown",
    None: "unknown",
}


@pytest.mark.parametrize(("status", "reason"), STATUS.items())
def test_an_exit_status_is_classified_by_a_pure_function(status: int | None, reason: str | None) -> None:
    """A shell's 128 + n and the system's -n mean the same; 0 is no abort (E39)."""
    assert abort_reason_of(status) == reason


@given(st.none() | st.integers(-64, 255), st.sampled_from(AbortReason))
def test_if_we_ended_the_process_our_cause_wins(status: int | None, cause: AbortReason) -> None:
    """Whatever came of it, 0 included: what was stopped is no success (E39, BloopAI/vibe-kanban#2547)."""
    assert abort_reason_of(status, cause) is cause


CLAUDE: Final[dict[int | None, tuple[str, str | None, bool]]] = {
    0: ("completed", None, False),
    1: ("retry", "provider_error", True),
    2: ("aborted", "user_interrupt", False),
    130: ("aborted", "user_interrupt", False),
    3: ("prompt_too_long", "compact_failure", True),
    4: ("permission_denied", "permission_denied", False),
    137: ("retry", "oom", True),
    143: ("retry", "shutdown_signal", True),
    129: ("retry", "unknown", True),
    255: ("retry", "unknown", True),
    5: ("retry", "unknown", True),
    -9: ("retry", "unknown", True),
    None: ("retry", "unknown", True),
}


@pytest.mark.parametrize(("status", "words"), CLAUDE.items())
def test_a_status_of_claude_has_a_table_of_its_own(status: int | None, words: tuple[str, str | None, bool]) -> None:
    """What a transition carries, and whether to try again."""
    transition, abort, retry = words
    expected = Verdict(TransitionReason(transition), None if abort is None else AbortReason(abort), retry=retry)
    assert claude_verdict(status) == expected
