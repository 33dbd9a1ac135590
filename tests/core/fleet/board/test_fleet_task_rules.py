"""What a task on a board knows after each of a fleet's own events, and whose word is believed."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.board.fleet_task import rules
from lifefold.core.kernel import Event, IllegalTransition, Step, replace
from lifefold.core.lifecycles import approval, task
from lifefold.core.lifecycles.task import Stage, State
from lifefold.core.policy.ends import WORDS, Diagnosis, Trouble, diagnosis
from lifefold.core.policy.retry import RetryPolicy, rest_ms, retry_limit

T: Final = fleet_task.FleetTask(
    id="T1", owner="w", epoch=2, kept=1, max_retries=3, limit=3, most_subtasks=5, needs_approval=True
)


def after(record: fleet_task.FleetTask, event: Event) -> fleet_task.FleetTask:
    """Return the record after a step that must be taken."""
    step = fleet_task.machine.step(record, event)
    assert isinstance(step, Step), str(step)
    taken: fleet_task.FleetTask = step.record
    return taken


def refused(record: fleet_task.FleetTask, event: Event) -> bool:
    """Tell whether an event is refused."""
    return isinstance(fleet_task.machine.step(record, event), IllegalTransition)


DONE: Final = replace(T, state=State.DONE)
AGREED: Final = replace(DONE, owner="", stage=Stage.MERGE, result=2)
PENDING: Final = replace(AGREED, state=State.PENDING_APPROVAL)
SPLIT: Final = replace(T, state=State.WAITING_FOR_SUBTASKS, owner="", parts=2, waits_for_parts=True)
PARTS: Final = (fleet_task.Subtask("one"), fleet_task.Subtask("two"))

CHANGES: Final[dict[str, tuple[fleet_task.FleetTask, Event, dict[str, Any]]]] = {
    "parked": (
        DONE, fleet_task.Parked(2),
        {"state": State.PENDING_APPROVAL, "owner": "", "stage": Stage.MERGE, "result": 2},
    ),
    "granted": (PENDING, approval.ApprovalGranted(), {"state": State.DONE}),
    "refused": (
        PENDING, approval.ApprovalRefused("no"),
        {"state": State.FAILED, "stage": Stage.WORK, "result": 0, "reason": "no", "failure": "no", "kept": 0},
    ),
    "handed": (AGREED, fleet_task.Handed("v"), {"owner": "v", "epoch": 3}),
    "returned": (replace(AGREED, owner="v"), fleet_task.Returned(2, "no disk"), {"owner": "", "reason": "no disk"}),
    "claimed": (
        replace(T, state=State.OPEN, owner="", stage=Stage.VERIFY, result=1), task.Claimed("v"),
        {"state": State.CLAIMED, "owner": "v", "epoch": 3, "stage": Stage.WORK, "result": 0},
    ),
    "split": (
        replace(T, state=State.IN_PROGRESS), fleet_task.Split(2, PARTS),
        {"state": State.WAITING_FOR_SUBTASKS, "owner": "", "parts": 2, "waits_for_parts": True},
    ),
    "split with its token": (
        replace(T, state=State.IN_PROGRESS, key="k"), fleet_task.Split(2, PARTS, replace(T, key="k").token),
        {"state": State.WAITING_FOR_SUBTASKS, "owner": "", "parts": 2, "waits_for_parts": True},
    ),
    "gathered": (
        SPLIT, task.SubtasksCompleted(), {"state": State.DONE, "stage": Stage.VERIFY, "waits_for_parts": False},
    ),
    "lost": (
        replace(T, state=State.OPEN, owner=""), fleet_task.DependencyLost("T0", "why"),
        {"state": State.BLOCKED, "blocked_by": "T0", "reason": "why"},
    ),
    "a part lost": (
        SPLIT, fleet_task.DependencyLost("T1+1", "why"),
        {"state": State.BLOCKED, "blocked_by": "T1+1", "reason": "why"},
    ),
    "back": (
        replace(T, state=State.BLOCKED, owner="", blocked_by="T0", reason="why"), fleet_task.DependencyBack("T0"),
        {"state": State.OPEN, "blocked_by": "", "reason": ""},
    ),
    "unblocked": (
        replace(T, state=State.BLOCKED, owner="", blocked_by="T0", reason="why"), task.Unblocked(),
        {"state": State.OPEN, "blocked_by": "", "reason": ""},
    ),
    "rested": (replace(T, state=State.FAILED, owner=""), fleet_task.Rested(), {"state": State.OPEN, "retries": 1}),
    "granted a retry": (
        replace(T, state=State.FAILED, owner="", retries=3),
        fleet_task.RetryGranted("x"),
        {"limit": 4, "max_retries": 4},
    ),
    "granted a retry that it has": (replace(T, state=State.FAILED, owner="", retries=1), fleet_task.RetryGranted(), {}),
}  # fmt: skip


@pytest.mark.parametrize(("before", "event", "changed"), CHANGES.values(), ids=CHANGES)
def test_an_event_changes_this_and_nothing_else(
    before: fleet_task.FleetTask, event: Event, changed: dict[str, Any]
) -> None:
    """The whole record after it."""
    assert after(before, event) == replace(before, **changed)


STALE: Final[dict[str, tuple[fleet_task.FleetTask, Event]]] = {
    "parked under another claim": (DONE, fleet_task.Parked(1)),
    "parked without need of approval": (replace(DONE, needs_approval=False), fleet_task.Parked(2)),
    "parked though it is agreed to": (replace(AGREED, owner="v"), fleet_task.Parked(2)),
    "handed though it has an owner": (DONE, fleet_task.Handed("v")),
    "returned under another claim": (replace(AGREED, owner="v"), fleet_task.Returned(1)),
    "returned though all of it is to be done": (DONE, fleet_task.Returned(2)),
    "returned though it has no owner": (AGREED, fleet_task.Returned(2)),
    "split under another claim": (replace(T, state=State.CLAIMED), fleet_task.Split(1, PARTS)),
    "split with the token of another claim": (
        replace(T, state=State.CLAIMED, key="k"),
        fleet_task.Split(2, PARTS, replace(T, key="k", epoch=1).token),
    ),
    "split without the token of the claim": (replace(T, state=State.CLAIMED, key="k"), fleet_task.Split(2, PARTS)),
    "a tool aborted with the token of another task": (
        replace(T, state=State.CLAIMED, key="k", fate=fleet_task.Fate()),
        fleet_task.ToolAborted(2, token=replace(T, key="k", id="T2").token),
    ),
    "split into nothing": (replace(T, state=State.CLAIMED), fleet_task.Split(2)),
    "split into too many": (replace(T, state=State.CLAIMED, parts=4), fleet_task.Split(2, PARTS)),
    "split though it may not be": (replace(T, state=State.CLAIMED, most_subtasks=0), fleet_task.Split(2, PARTS)),
    "given back what it does not lack": (
        replace(T, state=State.BLOCKED, blocked_by="T0"),
        fleet_task.DependencyBack("T9"),
    ),
    "retried more often than it may be": (replace(T, state=State.FAILED, retries=3), task.Retried()),
}


@pytest.mark.parametrize(("record", "event"), STALE.values(), ids=STALE)
def test_a_word_that_does_not_fit_changes_nothing(record: fleet_task.FleetTask, event: Event) -> None:
    """From any actor, at any time (E12)."""
    assert refused(record, event)


@given(most=st.integers(0, 250), parts=st.integers(0, 120), more=st.integers(0, 120))
def test_a_task_is_split_into_no_more_than_it_may_be(most: int, parts: int, more: int) -> None:
    """All attempts together, and never into more than the fleet allows at all."""
    record = replace(T, state=State.CLAIMED, most_subtasks=most, parts=parts)
    fits = more > 0 and parts + more <= min(most, fleet_task.MOST_SUBTASKS)
    assert refused(record, fleet_task.Split(2, (fleet_task.Subtask(),) * more)) is not fits


POLICIES: Final = st.builds(
    RetryPolicy,
    max_retries=st.integers(0, 5),
    transient_retries=st.integers(0, 5),
    fatal_retries=st.integers(0, 1),
    other_retries=st.integers(0, 5),
    backoff_base_ms=st.integers(0, 10_000),
    backoff_cap_ms=st.integers(0, 20_000),
)
REASONS: Final = st.sampled_from(["broken", "permission denied", "timed out"])


@given(POLICIES, REASONS, st.integers(0, 5), st.integers(0, 5))
def test_how_often_and_after_how_long_a_task_is_tried_again_is_the_policys(
    policy: RetryPolicy, reason: str, most: int, retries: int
) -> None:
    """The least of what the task says, the fleet, and the kind of failure; it rests longer each time (E5, E6)."""
    record = replace(T, state=State.IN_PROGRESS, max_retries=most, retries=min(retries, most), retry=policy)
    failed = after(record, task.Failed(2, reason))
    limit = retry_limit(most, diagnosis(reason).trouble, policy)
    assert (failed.limit, failed.allowed_retries) == (limit, limit)
    assert task.settled(failed) is (record.retries >= limit)
    assert rules.rest(failed) == (None if record.retries >= limit else rest_ms(record.retries, policy))
    assert refused(failed, task.Retried()) is (record.retries >= limit)


SAYS: Final = st.one_of(st.text(), st.sampled_from([word for each in WORDS for word in each.said]))


@given(POLICIES, SAYS, st.integers(0, 5))
def test_the_output_of_a_verification_does_not_decide_how_often_a_task_is_tried_again(
    policy: RetryPolicy, said: str, most: int
) -> None:
    """A failing test that prints "401 Unauthorized" is no login failure."""
    record = replace(T, state=State.DONE, max_retries=most, retry=policy)
    failed = after(record, task.Rejected(2, said))
    assert (failed.trouble, failed.limit) == (Trouble.OTHER, retry_limit(most, Trouble.OTHER, policy))


def test_the_diagnosis_decides_and_not_the_message() -> None:
    """Without a diagnosis, the reported reason is judged."""
    record = replace(T, state=State.IN_PROGRESS, max_retries=3)
    fatal = Diagnosis(trouble=Trouble.FATAL)
    assert after(record, task.Failed(2, "exit status 4", fatal)).limit == 0
    assert after(record, task.Failed(2, "permission denied", Diagnosis())).limit == 3
    assert after(record, task.Failed(2, "permission denied")).limit == 0


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 8))
def test_a_granted_retry_is_always_one_more_and_never_two(most: int, limit: int, retries: int) -> None:
    """Whatever the task has used up; the next failure counts against what the task may."""
    record = replace(T, state=State.FAILED, max_retries=most, limit=limit, retries=retries)
    granted = after(record, fleet_task.RetryGranted())
    opened = after(granted, task.Retried())
    assert opened.retries == retries + 1
    if retries >= min(most, limit):
        assert granted.allowed_retries == retries + 1


def test_silence_says_for_how_long_was_waited() -> None:
    """In seconds; and is for good (E41)."""
    lapsed = after(replace(PENDING, approval_ms=90_000), approval.ApprovalExpired())
    assert (lapsed.state, lapsed.reason, lapsed.failure) == (
        State.FAILED,
        "not approved within 90 s",
        lapsed.reason,
    )
    assert (lapsed.limit, lapsed.kept, task.settled(lapsed)) == (0, 0, True)


@pytest.mark.parametrize(
    ("record", "at_rest"),
    [
        (replace(T, state=State.PLANNED, owner=""), True),
        (replace(T, state=State.OPEN, owner=""), True),
        (replace(T, state=State.CLAIMED), False),
        (DONE, False),
        (AGREED, True),
        (PENDING, False),
        (SPLIT, False),
        (replace(T, state=State.CLOSED), True),
        (replace(T, state=State.FAILED), False),
        (replace(T, state=State.FAILED, retries=3), True),
    ],
    ids=lambda each: each.state.value if isinstance(each, fleet_task.FleetTask) else None,
)
def test_a_task_rests_when_nothing_need_be_done_at_once(record: fleet_task.FleetTask, at_rest: bool) -> None:  # noqa: FBT001 - drawn
    """It is settled, or waits for an operator, or for a free worker."""
    assert rules.rests(record) is at_rest


def test_the_timers_have_the_times_of_the_task() -> None:
    """Each its own."""
    record = replace(T, approval_ms=7, subtasks_ms=8)
    assert (rules.approval(record), rules.subtasks(record)) == (7, 8)


def test_the_parts_of_a_task_have_names_that_no_task_of_a_file_has() -> None:
    """One after another, from 1; parts of parts, too."""
    assert replace(T, parts=3).parts_of_it() == ("T1+1", "T1+2", "T1+3")
    assert T.parts_of_it() == ()
    assert replace(T, id="T1+2").part(1) == "T1+2+1"


@pytest.mark.parametrize("state", State, ids=lambda state: state.value)
def test_the_normal_form_forgets_only_what_nothing_depends_on(state: State) -> None:
    """The reason, which is for operators; and of a finished task, all fields that no rule reads."""
    full = replace(
        T, state=state, reason="why", failure="f", blocked_by="T0", result=1, waits_for_parts=True, commit="c"
    )
    form = full.normal_form()
    if state in {State.CLOSED, State.CANCELLED}:
        forgotten = {"owner": "", "reason": "", "failure": "", "commit": "", "kept": 0, "result": 0, "limit": 0}
        assert form == replace(full, **forgotten, blocked_by="", waits_for_parts=False, stage=Stage.WORK)
    else:
        assert form == replace(full, reason="")
