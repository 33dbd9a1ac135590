"""The fleet's small machines: each table held against its transcription, pair by pair."""

from typing import Any

import pytest

from lifefold.core import task
from lifefold.core.fleet import assignment, intent, mailbox, seat
from lifefold.core.kernel import Event, IllegalTransition, Machine, Record, Step, replace
from lifefold.effects import Begin, CheckOutWork, Effect, End, MergeWork, VerifyWork

TABLES: dict[str, tuple[Machine[Any], str]] = {
    "seat": (
        seat.machine,
        """
        Away    WorkWanted -> Waiting
        Waiting Seated     -> Working
        Working WorkWanted -> Waiting
        Away    WorkerGone -> Gone
        Waiting WorkerGone -> Gone
        Working WorkerGone -> Gone
        """,
    ),
    "intent": (
        intent.machine,
        """
        Run  HoldWanted -> Hold
        Hold RunWanted  -> Run
        Run  StopWanted -> Stop
        Hold StopWanted -> Stop
        """,
    ),
    "mailbox": (
        mailbox.machine,
        """
        Empty   LetterArrived    -> Holding
        Holding LetterArrived    -> Holding
        Holding LettersTaken     -> Holding
        Holding LettersDelivered -> Empty
        Empty   MailboxClosed    -> Closed
        Holding MailboxClosed    -> Closed
        """,
    ),
    "assignment": (
        assignment.machine,
        """
        Idle      Asked          -> Wanting
        Wanting   Assigned       -> Preparing
        Preparing CheckedOut     -> Working
        Preparing CheckoutFailed -> Idle
        Working   Prompted       -> Working
        Working   WorkFinished   -> Verifying
        Working   WorkFailed     -> Idle
        Verifying Verified       -> Merging
        Verifying Rejected       -> Idle
        Merging   Merged         -> Idle
        Merging   Conflicted     -> Idle
        Wanting   Dropped        -> Idle
        Preparing Dropped        -> Idle
        Working   Dropped        -> Idle
        Preparing Recalled       -> Idle
        Working   Recalled       -> Idle
        Verifying Recalled       -> Idle
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


@pytest.mark.parametrize(("name", "final"), [("seat", {"Gone"}), ("intent", {"Stop"}), ("mailbox", {"Closed"})])
def test_what_is_final_is_declared(name: str, final: set[str]) -> None:
    """Only an assignment goes round for ever."""
    assert {state.value for state in TABLES[name][0].final} == final
    assert assignment.machine.final == frozenset()


def after(machine: Machine[Any], record: Record, event: Event) -> Any:
    """Return the record after a step that must be taken."""
    step = machine.step(record, event)
    assert isinstance(step, Step)
    return step.record


def test_a_seat_remembers_its_task_while_it_works() -> None:
    """It forgets it when the worker wants another or is gone."""
    working = after(seat.machine, seat.Seat(seat.State.WAITING), seat.Seated("T1"))
    assert working == seat.Seat(seat.State.WORKING, "T1")
    assert after(seat.machine, working, seat.WorkWanted()) == seat.Seat(seat.State.WAITING)
    assert after(seat.machine, working, seat.WorkerGone("stopped")) == seat.Seat(seat.State.GONE, "", "stopped")


def test_an_intent_to_stop_says_why() -> None:
    """The reason is kept."""
    assert after(intent.machine, intent.Intent(), intent.StopWanted("enough")) == intent.Intent(
        intent.State.STOP, "enough"
    )


def test_letters_are_kept_in_order_until_they_are_delivered() -> None:
    """That a prompt takes them along is not enough; they are forgotten when the mailbox is closed."""
    box = mailbox.Mailbox()
    for text in ("one", "two"):
        box = after(mailbox.machine, box, mailbox.LetterArrived(text))
    assert box == mailbox.Mailbox(mailbox.State.HOLDING, ("one", "two"))
    box = after(mailbox.machine, box, mailbox.LettersTaken())
    assert box == mailbox.Mailbox(mailbox.State.HOLDING, ("one", "two"), 2)
    assert after(mailbox.machine, box, mailbox.LettersDelivered()) == mailbox.Mailbox()
    assert after(mailbox.machine, box, mailbox.MailboxClosed()) == mailbox.Mailbox(mailbox.State.CLOSED)


def test_only_what_a_prompt_took_along_is_delivered_with_its_session() -> None:
    """What came later is kept for the next prompt."""
    box = mailbox.Mailbox(mailbox.State.HOLDING, ("one", "two"), 2)
    box = after(mailbox.machine, box, mailbox.LetterArrived("three"))
    left = after(mailbox.machine, box, mailbox.LettersDelivered())
    assert left == mailbox.Mailbox(mailbox.State.HOLDING, ("three",))


def test_a_full_mailbox_refuses_one_more_letter() -> None:
    """So that its sender knows; there is a limit on everything. What a prompt has counts until it is delivered."""
    full = mailbox.Mailbox(mailbox.State.HOLDING, ("x",) * mailbox.LETTERS_LIMIT, mailbox.LETTERS_LIMIT)
    assert isinstance(mailbox.machine.step(full, mailbox.LetterArrived("y")), IllegalTransition)
    room = replace(full, letters=full.letters[1:], taken=0)
    assert len(after(mailbox.machine, room, mailbox.LetterArrived("y")).letters) == mailbox.LETTERS_LIMIT


def test_a_mailbox_refuses_a_letter_that_makes_it_too_long_to_repeat() -> None:
    """Counted in bytes of UTF-8, as prompts are; no sooner, whether it is one letter or several."""
    long = "é" * (mailbox.LETTERS_BYTES // 2)
    assert len(long.encode()) == mailbox.LETTERS_BYTES
    empty = mailbox.Mailbox()
    assert isinstance(mailbox.machine.step(empty, mailbox.LetterArrived(f"{long}x")), IllegalTransition)
    full = after(mailbox.machine, empty, mailbox.LetterArrived(long))
    assert isinstance(mailbox.machine.step(full, mailbox.LetterArrived("x")), IllegalTransition)
    almost = after(mailbox.machine, empty, mailbox.LetterArrived(long[1:]))
    assert after(mailbox.machine, almost, mailbox.LetterArrived("é")).letters == (long[1:], "é")
    assert isinstance(mailbox.machine.step(almost, mailbox.LetterArrived("éx")), IllegalTransition)


def test_the_sender_of_a_refused_letter_can_be_told_the_limits_and_what_to_do() -> None:
    """Both limits as they are, and both ways out."""
    for words in (f"{mailbox.LETTERS_LIMIT} letters", f"{mailbox.LETTERS_BYTES} bytes", "shorter", "send it again"):
        assert words in mailbox.FULL


def test_the_bound_in_bytes_takes_any_text() -> None:
    """Also one that no encoding has: a guard never fails."""
    assert after(mailbox.machine, mailbox.Mailbox(), mailbox.LetterArrived("\ud800")).letters == ("\ud800",)


def test_an_assignment_takes_its_brief_and_counts_its_sessions() -> None:
    """The count begins again with every task."""
    brief = task.Brief("T1", 2, "do it")
    wanting = assignment.Assignment(assignment.State.WANTING, sessions=4)
    taken = after(assignment.machine, wanting, assignment.Assigned(brief))
    assert taken == assignment.Assignment(assignment.State.PREPARING, brief, 0)
    working = replace(taken, state=assignment.State.WORKING)
    assert after(assignment.machine, working, assignment.Prompted()).sessions == 1


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
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_goes_on_for_a_task_belongs_to_the_states_of_its_assignment(
    state: str, event: Event, effects: tuple[Effect, ...]
) -> None:
    """Preparing, verifying and merging are activities that are over by themselves, each with what it needs to know."""
    record = assignment.Assignment(assignment.State(state), BRIEF, 1, 9)
    step = assignment.machine.step(record, event)
    assert isinstance(step, Step)
    assert step.effects == effects


def test_the_title_of_a_merge_is_short() -> None:
    """The prompt's first line, at most 72 characters of it."""
    record = assignment.Assignment(assignment.State.VERIFYING, replace(BRIEF, prompt="x" * 100))
    step = assignment.machine.step(record, assignment.Verified())
    assert isinstance(step, Step)
    assert step.effects == (Begin("MergeWork", MergeWork("T1", 2, "x" * 72)),)


def test_a_merge_that_has_begun_is_never_given_up() -> None:
    """Whether work is in the fleet's branch does not depend on when somebody said stop, or wanted the task no more."""
    merging = assignment.Assignment(assignment.State.MERGING, BRIEF)
    for event in (assignment.Dropped(), assignment.Recalled("T1", 2)):
        assert isinstance(assignment.machine.step(merging, event), IllegalTransition)


def test_a_verification_that_has_begun_is_not_given_up_with_its_agent() -> None:
    """What is done is brought home, whoever stops: only a recall of the task ends it."""
    verifying = assignment.Assignment(assignment.State.VERIFYING, BRIEF)
    assert isinstance(assignment.machine.step(verifying, assignment.Dropped()), IllegalTransition)


@pytest.mark.parametrize("recall", [assignment.Recalled("T1", 1), assignment.Recalled("T2", 2)])
def test_the_recall_of_another_claim_is_refused(recall: assignment.Recalled) -> None:
    """A claim is known by its task and its epoch (E12)."""
    working = assignment.Assignment(assignment.State.WORKING, BRIEF)
    assert isinstance(assignment.machine.step(working, recall), IllegalTransition)


@pytest.mark.parametrize("name", TABLES)
def test_every_event_has_examples_of_its_own_type(name: str) -> None:
    """A world that makes events up can make these."""
    for event in TABLES[name][0].events:
        assert {type(example) for example in event.examples()} == {event}
