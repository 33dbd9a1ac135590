"""The meaning of an agent's end: a table of words and statuses, and an event for every canonical reason."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Event
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.lifecycles.session_yielding import YieldWanted
from lifefold.core.policy import ends
from lifefold.core.policy.ends import WORDS, Diagnosis, Program, Trouble, by_status, diagnosis
from lifefold.core.policy.reasons import AbortReason, TransitionReason

SAID: Final[dict[str, tuple[str, str, str]]] = {
    "HTTP 429: rate limit exceeded": ("retry", "provider_error", "transient"),
    "API Error: Request rejected (429) · This request would exceed your account's rate limit.": (
        "retry", "provider_error", "transient",
    ),
    "You've hit your usage limit. Visit the settings to purchase more credits or try again at 12:30 PM.": (
        "retry", "provider_error", "transient",
    ),
    "Provider OVERLOADED (529)": ("provider_529", "provider_error", "transient"),
    "connection reset": ("retry", "unknown", "transient"),
    "Permission denied: /etc": ("permission_denied", "permission_denied", "fatal"),
    "invalid API key, try again": ("permission_denied", "provider_error", "fatal"),
    "401 Unauthorized": ("permission_denied", "provider_error", "fatal"),
    "Invalid API key · Please run /login": ("permission_denied", "provider_error", "fatal"),
    "Credit balance is too low": ("aborted", "provider_error", "fatal"),
    "billing_error: your credit is used up": ("aborted", "provider_error", "fatal"),
    "see billing.": ("aborted", "provider_error", "fatal"),
    "no such model: o9": ("aborted", "provider_error", "fatal"),
    "Prompt is too long": ("prompt_too_long", "compact_failure", "other"),
    "API Error: 400 context_length_exceeded": ("prompt_too_long", "compact_failure", "other"),
    "Compaction failed: no summary": ("compaction_failed", "compact_failure", "other"),
    "API Error: (413) request_too_large": ("provider_413", "provider_error", "other"),
    "response exceeded the 32000 output token maximum": ("max_output_tokens", "unknown", "other"),
    "Error: Reached max turns (20)": ("max_turns", "unknown", "other"),
    "Stop hook blocked: lint fails": ("stop_hook_blocked", "unknown", "other"),
    "tool Bash failed: exit 2": ("retry", "bash_error", "other"),
    "test_billing failed": ("retry", "unknown", "other"),
    "src/billing/api.py does not compile": ("retry", "unknown", "other"),
    "billing.py: 3 errors": ("retry", "unknown", "other"),
    "tests fail": ("retry", "unknown", "other"),
    "": ("retry", "unknown", "other"),
}  # fmt: skip


@pytest.mark.parametrize("said", SAID)
def test_an_agents_last_words_tell_why_it_ended(said: str) -> None:
    """Whatever their case; what cannot pass is fatal, also if it looks transient."""
    transition, abort, trouble = SAID[said]
    assert diagnosis(said) == Diagnosis(TransitionReason(transition), AbortReason(abort), Trouble(trouble))


@pytest.mark.parametrize("words", [word for row in WORDS for word in row.said])
def test_every_word_of_the_table_decides(words: str) -> None:
    """None of them is hidden by a row before its own."""
    (row,) = [each for each in WORDS if words in each.said]
    assert diagnosis(f"Error: {words}") == row.means


def test_what_cannot_pass_is_looked_for_first() -> None:
    """A login failure that says "try again" does not pass."""
    fatal = [each.means.trouble is Trouble.FATAL for each in WORDS]
    assert all(before or not after for before, after in pairwise(fatal))
    assert all(word == word.lower() for each in WORDS for word in each.said)


STATUS: Final[dict[int | None, tuple[str, str, str]]] = {
    0: ("retry", "unknown", "other"),
    1: ("retry", "unknown", "other"),
    124: ("retry", "timeout", "other"),
    126: ("permission_denied", "permission_denied", "fatal"),
    130: ("retry", "user_interrupt", "other"),
    137: ("retry", "oom", "other"),
    -9: ("retry", "oom", "other"),
    143: ("retry", "shutdown_signal", "other"),
    None: ("retry", "unknown", "other"),
}
OF_CLAUDE: Final[dict[int | None, tuple[str, str, str]]] = {
    1: ("retry", "provider_error", "other"),
    2: ("aborted", "user_interrupt", "fatal"),
    3: ("prompt_too_long", "compact_failure", "other"),
    4: ("permission_denied", "permission_denied", "fatal"),
    137: ("retry", "oom", "other"),
    None: ("retry", "unknown", "other"),
}
BY_PROGRAM: Final = [
    *((Program.ANY, status, means) for status, means in STATUS.items()),
    *((Program.COOPERATIVE, status, means) for status, means in STATUS.items()),
    *((Program.CLAUDE, status, means) for status, means in OF_CLAUDE.items()),
]


@pytest.mark.parametrize(("program", "status", "means"), BY_PROGRAM)
def test_without_words_the_exit_status_decides_by_the_programs_table(
    program: Program, status: int | None, means: tuple[str, str, str]
) -> None:
    """``claude`` has one of its own in document 004: its 4 is not worth another try (E39)."""
    transition, abort, trouble = means
    expected = Diagnosis(TransitionReason(transition), AbortReason(abort), Trouble(trouble))
    assert by_status(status, program) == diagnosis("tests fail", status, program) == expected


@given(st.text(), st.none() | st.integers(-64, 255), st.sampled_from(Program))
def test_every_end_means_something(said: str, status: int | None, program: Program) -> None:
    """Whatever is printed, and whatever the status is."""
    assert isinstance(diagnosis(said, status, program), Diagnosis)


def ended(*outcomes: session.Success | session.Error | session.Timeout | session.Suspended) -> Iterator[Event]:
    """Yield the ends of sessions."""
    return (session.SessionExited(each) for each in outcomes)


EVENTS: Final[tuple[Event, ...]] = (
    *ended(session.Success(), session.Timeout(), session.Suspended(asked=True), session.Suspended()),
    *ended(*(session.Error("", row.means) for row in WORDS)),
    *ended(*(session.Error("", by_status(status)) for status in STATUS)),
    *ended(*(session.Error("", by_status(status, Program.CLAUDE)) for status in OF_CLAUDE)),
    session.UrgentMessage(), session.GraceExceeded(), session.OperatorStop(), session.FatalError("no disk"),
    YieldWanted(), session_profiles.Stalled(60_000),
    assignment.WorkFailed("", ends.TIMED_OUT), assignment.SessionDied("", ends.TIMED_OUT),
    task.Failed(1, "", ends.TIMED_OUT), task.Orphaned(1, "", ends.TIMED_OUT), task.Completed(1), task.Verified(1),
    task.Retried(), task.Salvaged(1), task.Cancelled(), fleet_task.RetryGranted(), fleet_task.AbortWanted(),
    fleet_task.ToolAborted(1, "Bash"), fleet_task.ToolAborted(1, "browser"),
    *(fleet_task.Aborted(each) for each in AbortReason),
)  # fmt: skip
"""The ending events of a fleet's machines, each with all of its reasons."""


def test_every_reason_of_the_document_is_given_by_something_in_a_fleet() -> None:
    """All thirteen reasons of a transition and all eleven of an abnormal end (document 004)."""
    given_: set[object] = {getattr(each, "transition_reason", None) for each in EVENTS}
    assert given_ - {None} == set(TransitionReason)
    aborted: set[object] = {
        getattr(each, "abort_reason", None) for each in EVENTS if not isinstance(each, fleet_task.Aborted)
    }
    cascading = {AbortReason.SIBLING_ABORTED, AbortReason.PARENT_ABORTED}
    assert (aborted - {None}) | cascading == set(AbortReason)


ABNORMAL: Final = (session.Error("exit status 1"), session.Error(), session.Timeout(), session.Suspended(asked=True))


@pytest.mark.parametrize("outcome", ABNORMAL)
def test_every_abnormal_end_of_a_session_has_its_reasons(outcome: session.Error | session.Timeout) -> None:
    """For the journal, and for what follows of it."""
    exited = session.SessionExited(outcome)
    assert exited.abort_reason is not None
    assert exited.transition_reason is not None
    assert session_profiles.diagnosed(exited) == exited.diagnosis


def test_what_ends_well_or_suspends_itself_was_not_aborted() -> None:
    """A suspended session goes on; its end has no reason."""
    good = session.SessionExited(session.Success())
    assert (good.transition_reason, good.abort_reason) == (TransitionReason.COMPLETED, None)
    kept = session.SessionExited(session.Suspended())
    assert (kept.transition_reason, kept.abort_reason) == (None, None)
    assert session_profiles.diagnosed(kept) == Diagnosis()
    assert session_profiles.diagnosed(session_profiles.Stalled()) == ends.TIMED_OUT
    assert (task.Failed(1).transition_reason, task.Failed(1).abort_reason) == (None, None)


@pytest.mark.parametrize("reason", AbortReason)
def test_a_task_is_aborted_for_its_siblings_sake_or_because_it_was_wanted(reason: AbortReason) -> None:
    """The reason of the transition follows from that of the abort."""
    siblings = reason is AbortReason.SIBLING_ABORTED
    expected = TransitionReason.SIBLING_ABORTED if siblings else TransitionReason.ABORTED
    assert fleet_task.Aborted(reason).transition_reason is expected


@pytest.mark.parametrize(("status", "reports_error"), [(0, True), (1, False), (1, True), (None, False)])
def test_a_session_succeeds_only_with_status_0_and_without_a_reported_error(
    status: int | None,
    reports_error: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """Programs report an error in their result, and exit with 0."""
    assert ends.is_success(0, reports_error=False)
    assert not ends.is_success(status, reports_error=reports_error)


def test_the_statuses_of_a_program_that_could_not_be_started_are_in_words() -> None:
    """All others say nothing but their number."""
    assert [status for status in range(256) if ends.in_words(status)] == [126, 127]
    assert ends.in_words(None) == ""


def test_last_words_are_telling_only_if_they_name_a_known_trouble() -> None:
    """The agent may have said why nothing came of it; other words explain nothing."""
    assert ends.telling("Rate limit exceeded") == "Rate limit exceeded"
    for work in ("I have looked at it", "Added connection pooling", "Renamed 1503 files", "Fixed test 5294"):
        assert ends.telling(work) == ""
