"""Tasks: what the document's thirty rows change, ownership by epoch, retries, and the settled tasks.

``test_documents`` compares the rows with the document.
"""

from typing import Final

import msgspec
import pytest

from document_tables import lines
from lifefold.core.fleet.board import fleet_task
from lifefold.core.kernel import Event, IllegalTransition, Record, Step, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.task import (
    Approved,
    Blocked,
    Brief,
    Cancelled,
    Claimed,
    Completed,
    Declined,
    Decomposed,
    Failed,
    Orphaned,
    Rejected,
    Released,
    Retried,
    Salvaged,
    Started,
    State,
    SubtasksCompleted,
    SubtasksOverdue,
    Task,
    Unblocked,
    Verified,
    machine,
)

EVENTS: Final[tuple[Event, ...]] = (
    *(Approved(), Declined("not wanted"), Claimed("w"), Cancelled("no"), Started(2), Released(2, "given back")),
    *(Completed(2), Failed(2, "broken"), Decomposed(2), Blocked("no key", 2), Orphaned(2), Salvaged(2), Unblocked()),
    *(SubtasksCompleted(), SubtasksOverdue(), Retried(), Verified(2, "c0ffee"), Rejected(2, "tests fail")),
)

NAMED: Final = {type(event).__name__: event for event in EVENTS}

TRIGGERS: Final[dict[tuple[str, str], Event]] = {
    (line.sources[0], line.targets[0]): Decomposed(0)
    if line[:2] == (("OPEN",), ("Decomposed",))
    else NAMED[line.events[0]]
    for line in lines("task")
}
"""By the document's states, from and to: the event, of the second claim."""

CHANGES: Final[dict[str, dict[str, object]]] = {
    "Claimed": {"owner": "w", "epoch": 3, "reason": "", "kept": 3},
    "Cancelled": {"owner": "", "reason": "no"},
    "Declined": {"owner": "", "reason": "not wanted"},
    "Released": {"owner": "", "reason": "given back"},
    "Failed": {"owner": ""},
    "Rejected": {"owner": "", "reason": "tests fail", "failure": "tests fail"},
    "Blocked": {"owner": "", "reason": "no key"},
    "Unblocked": {"reason": ""},
    "SubtasksOverdue": {"owner": "", "reason": "its subtasks take too long"},
    "Verified": {"owner": "", "reason": "", "commit": "c0ffee"},
    "Retried": {"retries": 1},
}

TASK: Final = Task(id="T1", prompt="do it", owner="worker", epoch=2, reason="before")


def in_state(state: str) -> Task:
    """Return a task in this state, in its second claim."""
    return replace(TASK, state=State(state))


def taken(record: Task, event: Event) -> Task:
    """Return the record after an accepted step without effects."""
    step = machine.step(record, event)
    assert isinstance(step, Step), str(step)
    assert step.effects == ()
    return step.record


@pytest.mark.parametrize(("source", "target"), TRIGGERS, ids=lambda word: word)
def test_each_trigger_leads_where_the_document_says_and_changes_what_it_must(source: str, target: str) -> None:
    """The whole record after each of the thirty transitions."""
    event = TRIGGERS[source, target]
    after = taken(in_state(source), event)
    changed = dict(CHANGES.get(type(event).__name__, {}))
    if isinstance(event, Failed):
        changed["reason"] = changed["failure"] = event.reason
    assert after == replace(in_state(target), **changed)


def test_everything_that_carries_an_epoch_is_fenced() -> None:
    """On a fleet's board, too (E12)."""
    rows = (*machine.rows, *fleet_task.machine.rows)
    assert [row for row in rows if "epoch" in row.event.__struct_fields__ and row.unguarded] == []


def test_a_former_owner_cannot_split_a_task_that_it_gave_back() -> None:
    """Only a process that is no owner can: a planner, or the board (E12)."""
    given_back = taken(taken(replace(Task(id="T1"), state=State.OPEN), Claimed("a")), Released(1, "slow"))
    assert isinstance(machine.step(given_back, Decomposed(1)), IllegalTransition)
    assert isinstance(machine.step(given_back, Decomposed(0)), Step)


@pytest.mark.parametrize("state", ["CLAIMED", "IN_PROGRESS"])
def test_a_process_that_is_no_owner_can_block_a_task_at_work(state: str) -> None:
    """Another process may know first that something is missing; it reports that without a claim's number."""
    after = taken(in_state(state), Blocked("no key"))
    assert (after.state, after.reason, after.owner) == (State.BLOCKED, "no key", "")


def test_work_that_waits_for_a_persons_word_is_blocked_and_goes_on_when_it_is_said() -> None:
    """That is no approval of finished work, as in PENDING_APPROVAL; the reason of the wait is dropped then (E4)."""
    waiting = taken(in_state("IN_PROGRESS"), Blocked("ada is to approve the migration", 2))
    assert (waiting.state, waiting.reason) == (State.BLOCKED, "ada is to approve the migration")
    after = taken(waiting, Unblocked())
    assert (after.state, after.reason, after.failure) == (State.OPEN, "", "")


def test_what_an_orphan_has_left_counts_only_when_it_was_verified() -> None:
    """No report of success leads from ORPHANED to DONE, an empty one least of all; else it is open or lost (E40)."""
    orphaned = in_state("ORPHANED")
    assert isinstance(machine.step(orphaned, Completed(2)), IllegalTransition)
    assert [row.event for row in machine.rows if row.source_label == "ORPHANED"] == [Salvaged, Failed, Released]
    assert taken(orphaned, Salvaged(2)).state is State.DONE


def test_a_failed_task_is_opened_again_while_it_has_retries() -> None:
    """``max_retries`` is 3 by default; the history of the reasons stays with the task (E5)."""
    record = replace(Task(id="T1"), state=State.OPEN)
    for attempt in range(1, 5):
        record = taken(taken(record, Claimed("w")), Failed(attempt, f"reason {attempt}"))
        assert record.reason == f"reason {attempt}"
        if attempt < 4:
            assert not task.settled(record)
            record = taken(record, Retried())
            assert (record.state, record.retries, record.reason) == (State.OPEN, attempt, f"reason {attempt}")
    assert task.settled(record)
    assert isinstance(machine.step(record, Retried()), IllegalTransition)


def test_the_reason_of_an_earlier_claim_is_not_the_present_ones() -> None:
    """A task at work has no reason; the reason of its last failed attempt stays its failure."""
    failed = taken(taken(taken(in_state("OPEN"), Claimed("w")), Failed(3, "tests fail")), Retried())
    assert (failed.reason, failed.failure) == ("tests fail", "tests fail")
    claimed = taken(failed, Claimed("w"))
    for record in (claimed, taken(claimed, Started(4))):
        assert (record.reason, record.failure) == ("", "tests fail")


def test_a_release_neither_is_a_failure_nor_hides_one() -> None:
    """The reason is that of the release, the failure that of the last failed attempt."""
    record = taken(taken(in_state("OPEN"), Claimed("w")), Released(3, "stopped"))
    assert (record.reason, record.failure) == ("stopped", "")
    failed = taken(taken(taken(record, Claimed("w")), Failed(4, "tests fail")), Retried())
    given_back = taken(taken(failed, Claimed("w")), Released(5, "stopped again"))
    assert (given_back.reason, given_back.failure) == ("stopped again", "tests fail")


@pytest.mark.parametrize("state", State, ids=lambda state: state.value)
def test_settled_is_not_a_state(state: State) -> None:
    """CLOSED, CANCELLED and BLOCKED are settled; FAILED is when its retries are used up; all others are not (E18)."""
    fresh, used = replace(TASK, state=state), replace(TASK, state=state, retries=3)
    always = state in {State.CLOSED, State.CANCELLED, State.BLOCKED}
    assert task.settled(fresh) is always
    assert task.settled(used) is (always or state is State.FAILED)
    assert task.settled(replace(used, max_retries=4)) is always


def test_every_event_has_examples_of_its_own_type() -> None:
    """An owner's report has one of the first claim, one of a claim that never was, and one of the second."""
    for event in machine.events:
        assert {type(example) for example in event.examples()} == {event}
    assert Started.examples() == (Started(1), Started(0), Started(2))
    assert Blocked.examples() == (Blocked(), Blocked(epoch=1), Blocked(epoch=-1))


def test_a_report_of_a_log_without_epochs_is_read_as_one_of_no_claim() -> None:
    """Logs that were written before can be read."""
    assert msgspec.json.decode(b'{"type":"Blocked","reason":"no key"}', type=Blocked) == Blocked("no key", 0)


def test_a_brief_says_what_a_worker_needs_to_know() -> None:
    """It knows nothing about other tasks and other workers."""
    known = (
        "task",
        "epoch",
        "prompt",
        "verify",
        "failure",
        "kept",
        "needs_approval",
        "stage",
        "result",
        "share",
        "orphaned",
        "timeout_ms",
        "token",
        "collected",
        "on_nothing",
    )
    assert Brief.__struct_fields__ == known
    assert isinstance(machine.initial, Record)


def test_what_a_claim_has_kept_is_the_next_ones_until_the_work_was_done() -> None:
    """Both after a release and after a failure; after a rejection the next attempt starts afresh (D28)."""
    record = Task(state=State.OPEN, max_retries=9)
    lost: tuple[Event, ...] = (Claimed("ann"), Released(1), Claimed("bob"), Failed(2, "x"), Retried(), Claimed("ann"))
    for event in lost:
        record = taken(record, event)
    assert (record.epoch, record.kept) == (3, 1)
    rejected: tuple[Event, ...] = (Completed(3), Rejected(3, "tests fail"), Retried(), Claimed("bob"))
    for event in rejected:
        record = taken(record, event)
    assert (record.epoch, record.kept) == (4, 4)
