"""The fleet's small machines: each table held against its transcription, pair by pair."""

from typing import Any

import pytest

from lifefold.core.fleet.board import intake, worker_slot
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.system import plan_change
from lifefold.core.fleet.worker import assignment, desired_state, mailbox
from lifefold.core.kernel import Event, IllegalTransition, Machine, Record, Step, replace
from lifefold.core.lifecycles import task
from lifefold.core.policy.access import Trust
from lifefold.effects import Begin, CheckOutWork, Effect, End, MergeWork, ParkWork, VerifyWork, WatchBranch

TABLES: dict[str, tuple[Machine[Any], str]] = {
    "worker_slot": (
        worker_slot.machine.starting(worker_slot.WorkerSlot(trust=Trust())),
        """
        Away    WorkWanted -> Waiting
        Waiting TaskGiven     -> Working
        Working WorkWanted -> Waiting
        Away    WorkerGone -> Gone
        Waiting WorkerGone -> Gone
        Working WorkerGone -> Gone
        Away    Succeeded  -> Away
        Waiting Succeeded  -> Waiting
        Working Succeeded  -> Working
        Away    Promoted   -> Away
        Waiting Promoted   -> Waiting
        Working Promoted   -> Working
        Away    Demoted    -> Away
        Waiting Demoted    -> Waiting
        Working Demoted    -> Working
        Away    Violated   -> Away
        Waiting Violated   -> Waiting
        Working Violated   -> Working
        Away    WorkLeft   -> Away
        Working WorkLeft   -> Away
        Away    RestartWanted -> Away
        Away    RestartDone   -> Away
        Working RestartWanted -> Working
        Working RestartDone   -> Working
        Away    Reassigned -> Away
        Waiting Reassigned -> Waiting
        Working Reassigned -> Working
        Away    Dismissed -> Away
        Waiting Dismissed -> Waiting
        Working Dismissed -> Working
        """,
    ),
    "desired_state": (
        desired_state.machine,
        """
        Run   PauseWanted  -> Pause
        Run   HoldWanted   -> Hold
        Pause ResumeWanted -> Run
        Hold  PauseWanted  -> Pause
        Hold  RunWanted    -> Run
        Run   StopWanted   -> Stop
        Pause StopWanted   -> Stop
        Hold  StopWanted   -> Stop
        Run   DrainWanted  -> Drain
        Pause DrainWanted  -> Drain
        Hold  DrainWanted  -> Hold
        Drain HoldWanted   -> Hold
        Drain Drained      -> Stop
        Drain StopWanted   -> Stop
        Run   KillWanted   -> Stop
        Pause KillWanted   -> Stop
        Hold  KillWanted   -> Stop
        Drain KillWanted   -> Stop
        Stop  KillWanted   -> Stop
        """,
    ),
    "mailbox": (
        mailbox.machine,
        """
        Empty   OperatorMessageArrived    -> Holding
        Holding OperatorMessageArrived    -> Holding
        Holding MessagesTaken     -> Holding
        Holding MessagesDelivered -> Empty
        Empty   MailboxClosed    -> Closed
        Holding MailboxClosed    -> Closed
        """,
    ),
    "assignment": (
        assignment.machine.starting(assignment.Assignment(guarded=True, found="bad")),
        """
        Idle      WorkRequested  -> Wanting
        Wanting   Assigned       -> Preparing
        Preparing CheckedOut     -> Working
        Preparing CheckoutFailed -> Idle
        Working   Prompted       -> Working
        Working   WorkContinued  -> Working
        Working   WorkFinished   -> Inspecting
        Working   WorkFailed     -> Idle
        Orphaned  SessionGone         -> Inspecting
        Inspecting Inspected     -> Verifying
        Orphaned  Recalled       -> Idle
        Inspecting Recalled      -> Idle
        Verifying Verified       -> Merging
        Verifying Rejected       -> Idle
        Merging   Merged         -> Idle
        Merging   Conflicted     -> Idle
        Merging   Collected      -> Merging
        Merging   Displaced      -> Disputed
        Disputed  BranchBack     -> Merging
        Disputed  BranchAccepted -> Merging
        Disputed  Recalled       -> Idle
        Wanting   Dropped        -> Idle
        Preparing Dropped        -> Idle
        Working   Dropped        -> Idle
        Preparing Recalled       -> Idle
        Working   Recalled       -> Idle
        Verifying Recalled       -> Idle
        Parking   Recalled       -> Idle
        Parking   Parked         -> Idle
        Parking   ParkingFailed  -> Idle
        Preparing  Rebriefed     -> Preparing
        Working    Rebriefed     -> Working
        Orphaned   Rebriefed     -> Orphaned
        Inspecting Rebriefed     -> Inspecting
        Verifying  Rebriefed     -> Verifying
        Parking    Rebriefed     -> Parking
        Merging    Rebriefed     -> Merging
        Disputed   Rebriefed     -> Disputed
        Idle       VerifyTimeoutChanged -> Idle
        Wanting    VerifyTimeoutChanged -> Wanting
        Preparing  VerifyTimeoutChanged -> Preparing
        Working    VerifyTimeoutChanged -> Working
        Orphaned   VerifyTimeoutChanged -> Orphaned
        Inspecting VerifyTimeoutChanged -> Inspecting
        Verifying  VerifyTimeoutChanged -> Verifying
        Parking    VerifyTimeoutChanged -> Parking
        Merging    VerifyTimeoutChanged -> Merging
        Disputed   VerifyTimeoutChanged -> Disputed
        """,
    ),
    "plan": (
        plan_approval.machine,
        """
        Proposed PlanApproved -> Approved
        Proposed PlanDeclined -> Declined
        """,
    ),
    "change": (
        plan_change.machine,
        """
        Draft    ChangeAccepted -> Accepted
        Accepted ChangeEnforced -> InForce
        Accepted ChangeRefused  -> Refused
        """,
    ),
    "intake": (
        intake.machine,
        """
        Open LastTaskIn -> Closed
        """,
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_pair_is_taken_if_and_only_if_the_table_has_it(name: str) -> None:
    """Every state with every event: its target, or a refusal."""
    machine, text = TABLES[name]
    table = {tuple(line.split()[:2]): line.split()[3] for line in text.strip().splitlines()}
    assert machine.name == name
    for state in machine.states:
        for kind in machine.events:
            record: Record = replace(machine.initial, state=state)
            step = machine.step(record, kind.examples()[0])
            target = table.get((state.value, kind.__name__))
            assert isinstance(step, IllegalTransition) is (target is None), (state, kind)
            if isinstance(step, Step):
                assert step.record.state.value == target


FINAL: dict[str, set[str]] = {
    "worker_slot": {"Gone"},
    "desired_state": {"Stop"},
    "mailbox": {"Closed"},
    "plan": {"Approved", "Declined"},
    "intake": {"Closed"},
}


@pytest.mark.parametrize(("name", "final"), FINAL.items(), ids=FINAL)
def test_what_is_final_is_declared(name: str, final: set[str]) -> None:
    """Only an assignment goes round for ever."""
    assert {state.value for state in TABLES[name][0].final} == final
    assert assignment.machine.final == frozenset()


def after(machine: Machine[Any], record: Record, event: Event) -> Any:
    """Return the record after a step that must be taken."""
    step = machine.step(record, event)
    assert isinstance(step, Step)
    return step.record


def test_the_intake_may_stay_open_for_ever() -> None:
    """No operator needs to finish the intake."""
    assert intake.machine.settled(intake.Intake())


def test_a_full_mailbox_refuses_another_message() -> None:
    """So that its sender knows; there is a limit on everything. What a prompt has counts until it is delivered."""
    full = mailbox.Mailbox(mailbox.State.HOLDING, ("x",) * mailbox.MESSAGES_LIMIT, mailbox.MESSAGES_LIMIT)
    assert isinstance(mailbox.machine.step(full, mailbox.OperatorMessageArrived("y")), IllegalTransition)
    room = replace(full, messages=full.messages[1:], taken=0)
    assert len(after(mailbox.machine, room, mailbox.OperatorMessageArrived("y")).messages) == mailbox.MESSAGES_LIMIT


def test_a_mailbox_refuses_a_message_that_makes_its_prompt_too_long() -> None:
    """Counted in bytes of UTF-8, as prompts are; no sooner, whether it is one message or several."""
    long = "é" * (mailbox.MESSAGES_BYTES // 2)
    assert len(long.encode()) == mailbox.MESSAGES_BYTES
    empty = mailbox.Mailbox()
    assert isinstance(mailbox.machine.step(empty, mailbox.OperatorMessageArrived(f"{long}x")), IllegalTransition)
    full = after(mailbox.machine, empty, mailbox.OperatorMessageArrived(long))
    assert isinstance(mailbox.machine.step(full, mailbox.OperatorMessageArrived("x")), IllegalTransition)
    almost = after(mailbox.machine, empty, mailbox.OperatorMessageArrived(long[1:]))
    assert after(mailbox.machine, almost, mailbox.OperatorMessageArrived("é")).messages == (long[1:], "é")
    assert isinstance(mailbox.machine.step(almost, mailbox.OperatorMessageArrived("éx")), IllegalTransition)


def test_the_refusal_of_a_message_names_the_limits_and_the_remedy() -> None:
    """Both limits as they are, and both ways out."""
    for words in (f"{mailbox.MESSAGES_LIMIT} messages", f"{mailbox.MESSAGES_BYTES} bytes", "shorten", "send it again"):
        assert words in mailbox.FULL


def test_the_bound_in_bytes_takes_any_text() -> None:
    """Also one that no encoding has: a guard never fails."""
    assert after(mailbox.machine, mailbox.Mailbox(), mailbox.OperatorMessageArrived("\ud800")).messages == ("\ud800",)


BRIEF = task.Brief("T1", 2, "Title of the work\nand what else there is to say", (("make", "test"),))


@pytest.mark.parametrize(
    ("state", "event", "effects"),
    [
        ("Wanting", assignment.Assigned(BRIEF), (Begin("CheckOutWork", CheckOutWork("T1", 2)),)),
        ("Preparing", assignment.CheckedOut(), ()),
        ("Preparing", assignment.Dropped(), (End("CheckOutWork"),)),
        ("Working", assignment.WorkFinished(), (Begin("VerifyWork", VerifyWork("T1", 2, (("make", "test"),), 9)),)),
        ("Verifying", assignment.Verified(), (Begin("MergeWork", MergeWork("T1", 2, "Title of the work")),)),
        ("Verifying", assignment.Rejected(), ()),
        ("Preparing", assignment.Recalled("T1", 2), (End("CheckOutWork"),)),
        ("Working", assignment.Recalled("T1", 2), ()),
        ("Verifying", assignment.Recalled("T1", 2), (End("VerifyWork"),)),
        ("Merging", assignment.Merged(), ()),
        ("Merging", assignment.Displaced("f"), (Begin("WatchBranch", WatchBranch("T1", "f")),)),
        ("Disputed", assignment.BranchBack(), (Begin("MergeWork", MergeWork("T1", 2, "Title of the work")),)),
        ("Disputed", assignment.Recalled("T1", 2), (End("WatchBranch"),)),
        ("Parking", assignment.Parked(), ()),
        ("Parking", assignment.ParkingFailed(), ()),
        ("Parking", assignment.Recalled("T1", 2), (End("ParkWork"),)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_goes_on_for_a_task_belongs_to_the_states_of_its_assignment(
    state: str, event: Event, effects: tuple[Effect, ...]
) -> None:
    """Each of these activities is over by itself, and has what it needs to know."""
    record = assignment.Assignment(assignment.State(state), BRIEF, 1, 9, guarded=True)
    step = assignment.machine.step(record, event)
    assert isinstance(step, Step)
    assert step.effects == effects


DISPUTED = assignment.Assignment(
    assignment.State.DISPUTED, BRIEF, 1, 9, guarded=True, collected="c", found="f", accepted=""
)


def test_the_commit_that_is_merged_is_known_before_it_is_merged() -> None:
    """The activity that goes on knows it from the log, and one that begins again is told."""
    merging = replace(DISPUTED, state=assignment.State.MERGING, collected="", found="")
    collected = assignment.machine.step(merging, assignment.Collected("c"))
    assert isinstance(collected, Step)
    assert (collected.record, collected.effects) == (replace(merging, collected="c"), ())
    displaced = after(assignment.machine, collected.record, assignment.Displaced("f", "why"))
    assert displaced == DISPUTED
    again = assignment.machine.step(displaced, assignment.BranchBack())
    assert isinstance(again, Step)
    assert again.effects == (Begin("MergeWork", MergeWork("T1", 2, "Title of the work", commit="c")),)
    parked = after(
        assignment.machine,
        assignment.Assignment(assignment.State.WANTING, collected="older", found="f", accepted="f"),
        assignment.Assigned(replace(BRIEF, stage=task.Stage.MERGE, result=1, collected="p")),
    )
    assert (parked.collected, parked.found, parked.accepted) == ("p", "", "")


def test_the_operator_accepts_the_branch_where_it_was_found_and_nowhere_else() -> None:
    """A word on a commit that is not there any more is refused; one that counted does not count for the next commit."""
    assert isinstance(assignment.machine.step(DISPUTED, assignment.BranchAccepted("other")), IllegalTransition)
    step = assignment.machine.step(DISPUTED, assignment.BranchAccepted("f"))
    assert isinstance(step, Step)
    merge = MergeWork("T1", 2, "Title of the work", commit="c", accepted="f")
    assert step.effects == (End("WatchBranch"), Begin("MergeWork", merge))
    again = after(assignment.machine, step.record, assignment.Displaced("g"))
    assert (again.found, again.accepted) == ("g", "")


def test_a_fleet_without_a_repository_has_no_branch_to_be_moved() -> None:
    """What is said of one is refused."""
    merging = assignment.Assignment(assignment.State.MERGING, BRIEF)
    for event in (assignment.Collected(), assignment.Displaced()):
        assert isinstance(assignment.machine.step(merging, event), IllegalTransition)
        assert event.examples_for(merging) == ()
        assert event.examples_for(replace(merging, guarded=True)) == (event,)
    assert assignment.BranchAccepted.examples_for(merging) == ()
    assert len(assignment.BranchAccepted.examples_for(DISPUTED)) == 2


ASKS = replace(BRIEF, needs_approval=True)
VERIFY, MERGE = replace(ASKS, stage=task.Stage.VERIFY), replace(ASKS, stage=task.Stage.MERGE, result=1)
TITLE = "Title of the work"


@pytest.mark.parametrize(
    ("brief", "course"),
    {
        BRIEF: "Preparing Working Verifying Merging Idle",
        ASKS: "Preparing Working Verifying Parking Idle",
        VERIFY: "Preparing Verifying Parking Idle",
        replace(VERIFY, needs_approval=False): "Preparing Verifying Merging Idle",
        MERGE: "Merging Idle",
    }.items(),
    ids=["all of it", "to be agreed to", "whole, to be agreed to", "whole", "agreed to"],
)
def test_an_assignment_does_what_is_left_of_its_task_and_nothing_else(brief: task.Brief, course: str) -> None:
    """What a person has to agree to is parked; what is agreed to is merged at once, with no place and no session."""
    said: dict[str, Event] = {
        "Preparing": assignment.CheckedOut(),
        "Working": assignment.WorkFinished(),
        "Verifying": assignment.Verified(),
        "Parking": assignment.Parked(),
        "Merging": assignment.Merged(),
    }
    record = after(assignment.machine, assignment.Assignment(assignment.State.WANTING), assignment.Assigned(brief))
    seen = [record.state.value]
    while record.state is not assignment.State.IDLE:
        record = after(assignment.machine, record, said[record.state.value])
        seen.append(record.state.value)
    assert seen == course.split()


def test_what_is_parked_and_merged_later_is_known_by_the_claim_that_has_done_it() -> None:
    """The worker that merges it has another number (E12)."""
    verifying = assignment.Assignment(assignment.State.VERIFYING, ASKS)
    parked = assignment.machine.step(verifying, assignment.Verified())
    assert isinstance(parked, Step)
    assert parked.effects == (Begin("ParkWork", ParkWork("T1", 2, TITLE)),)
    wanting = assignment.Assignment(assignment.State.WANTING)
    merged = assignment.machine.step(wanting, assignment.Assigned(replace(MERGE, epoch=3, result=2)))
    assert isinstance(merged, Step)
    assert merged.effects == (Begin("MergeWork", MergeWork("T1", 3, TITLE, 2)),)


def test_the_title_of_a_merge_is_short() -> None:
    """The prompt's first line, at most 72 characters of it."""
    record = assignment.Assignment(assignment.State.VERIFYING, replace(BRIEF, prompt="x" * 100))
    step = assignment.machine.step(record, assignment.Verified())
    assert isinstance(step, Step)
    assert step.effects == (Begin("MergeWork", MergeWork("T1", 2, "x" * 72)),)


@pytest.mark.parametrize("name", TABLES)
def test_every_event_has_examples_of_its_own_type(name: str) -> None:
    """A world that makes events up can make these."""
    for event in TABLES[name][0].events:
        assert {type(example) for example in event.examples()} == {event}
