"""Operator messages for a task reach its claims, until a session with them completes."""

from collections.abc import Callable

import pytest

import aggregate_hand
from aggregate_hand import Hand
from board_hand import ask, close, fail, finish, make, opened, rest, say
from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.dispatch import task_messages
from lifefold.core.fleet.worker import assignment, mailbox
from lifefold.core.kernel import Aggregate, Created, Entity, replace
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.task import State
from lost_rules import without

BOX = "mailbox:T1"


def told(*texts: str) -> Hand:
    """Return a board with a task and the messages for it."""
    of = opened(make("T1", max_retries=1))
    of.give(BOX, Created(mailbox.Mailbox()))
    for text in texts:
        of.give(BOX, mailbox.OperatorMessageArrived(text))
    return of


def prompt(of: Hand) -> str:
    """Return the prompt that the last reaction has given to an agent with the task."""
    (found,) = [event.brief.prompt for _, _, event in of.told() if isinstance(event, assignment.Assigned)]
    return found


def passed_on(of: Hand) -> list[tuple[str, str, object]]:
    """Return the operator messages that the last reaction has sent."""
    return [each for each in of.told() if isinstance(each[2], mailbox.OperatorMessageArrived)]


def test_the_prompt_of_the_next_claim_has_the_messages_for_a_task() -> None:
    """In their order; a task without messages has its prompt alone."""
    assert prompt(ask(told("one", "two"))) == "do T1\n\nThere are messages about this task:\n- one\n- two"
    assert prompt(ask(told())) == "do T1"
    assert prompt(ask(opened(make("T1")))) == "do T1"


def test_a_message_for_a_task_at_work_goes_to_its_owner() -> None:
    """It names the task, and interrupts the session if it is urgent; without an owner it goes to no worker."""
    of = told("early")
    assert passed_on(of) == []
    ask(of)
    for started, urgent in ((False, True), (True, False)):
        if started:
            say(of, "T1", task.Started)
        of.give(BOX, mailbox.OperatorMessageArrived("late", urgent=urgent))
        expected = mailbox.OperatorMessageArrived("About T1: late", urgent=urgent)
        assert passed_on(of) == [("worker/ann", "mailbox", expected)]
    finish(of, "T1")
    of.give(BOX, mailbox.OperatorMessageArrived("done"))
    assert passed_on(of) == []


def test_a_failed_claim_has_not_delivered_its_messages() -> None:
    """The next claim has them again, those among them that were passed on."""
    of = say(ask(told("one")), "T1", task.Started)
    of.give(BOX, mailbox.OperatorMessageArrived("two"))
    assert prompt(rest(ask(fail(of, "T1")), "T1")).endswith("\n- one\n- two")


def test_a_completed_session_has_delivered_its_messages() -> None:
    """A later message waits for another claim."""
    of = finish(say(ask(told("one")), "T1", task.Started), "T1")
    assert of.record(BOX) == mailbox.Mailbox()
    of.give(BOX, mailbox.OperatorMessageArrived("two"))
    say(of, "T1", task.Rejected, reason="tests fail")
    assert prompt(rest(ask(of), "T1")).endswith("There are messages about this task:\n- two")


@pytest.mark.parametrize("end", ["closed", "cancelled"])
def test_the_mailbox_of_a_task_that_is_over_is_closed(end: str) -> None:
    """Its senders get a refusal; so do those who open one later, or for no task."""
    of = told("one") if end == "cancelled" else ask(told("one"))
    if end == "cancelled":
        of.give("task:T1", task.Cancelled("no"))
    else:
        close(say(of, "T1", task.Started), "T1")
    assert of.state(BOX) == "Closed"
    of.must_refuse(BOX, mailbox.OperatorMessageArrived("two"))
    of = opened(make("T1", state=State.CANCELLED))
    for ref in (BOX, "mailbox:T2"):
        assert of.give(ref, Created(mailbox.Mailbox())).state(ref) == "Closed"


def test_a_task_without_a_mailbox_goes_on_as_ever() -> None:
    """No rule asks for anything."""
    of = close(say(ask(opened(make("T1"))), "T1", task.Started), "T1")
    assert of.state("task:T1") == "CLOSED"
    assert BOX not in of.aggregate.entities


HELD = mailbox.Mailbox(mailbox.State.HOLDING, ("one",))


@pytest.mark.parametrize(
    ("state", "box"),
    [
        (State.CLAIMED, HELD),
        (State.IN_PROGRESS, HELD),
        (State.DONE, mailbox.Mailbox(mailbox.State.HOLDING, ("one",), 1)),
        (State.CLOSED, HELD),
        (State.OPEN, mailbox.Mailbox(mailbox.State.CLOSED)),
    ],
)
def test_a_property_finds_a_message_that_its_task_has_not(state: State, box: mailbox.Mailbox) -> None:
    """One property each: not handed over, not delivered, not closed, closed too early."""
    entities = opened(replace(make("T1"), state=state)).aggregate.entities.set(BOX, Entity(BOX, box))
    board = Aggregate("board", entities=entities)
    assert [each.holds(board) for each in task_messages.PROPERTIES].count(False) == 1


def test_the_properties_look_at_a_changed_task_and_its_mailbox_alone() -> None:
    """Either change shows both; another entity shows nothing."""
    of = told("one")
    near = [{BOX, "task:T1"}]
    assert seen(of) == near
    assert seen(ask(of)) == near
    assert seen(opened(make("T2"))) == [{"task:T2"}]
    assert seen(of.hear("worker/bob", "worker_slot:bob", worker_slot.WorkWanted())) == [set()]


def seen(of: Hand) -> list[set[str]]:
    """Return the entities that the properties look at after the last reaction, for each choice of them once."""
    parts = (
        each.localized(of.aggregate, "board", of.reaction.transitions)
        for each in task_messages.PROPERTIES
        if each.localized is not None
    )
    found = [set(part.entities) for part in parts]
    return [each for n, each in enumerate(found) if each not in found[:n]]


def claims_it(of: Hand) -> Hand:
    """Let ann claim the task."""
    return ask(of)


def is_told_at_work(of: Hand) -> Hand:
    """Let an operator send another message while ann works."""
    return ask(of).give(BOX, mailbox.OperatorMessageArrived("two"))


def finishes_it(of: Hand) -> Hand:
    """Let ann claim the task, and complete it."""
    return finish(say(ask(of), "T1", task.Started), "T1")


def closes_it(of: Hand) -> Hand:
    """Let ann claim the task, and close it."""
    return close(finishes_it(of), "T1")


def is_told_of_no_task(of: Hand) -> Hand:
    """Let an operator open the mailbox of a task that is not there."""
    return of.give("mailbox:T2", Created(mailbox.Mailbox()))


@pytest.mark.parametrize(
    ("rule", "goes_on", "name"),
    [
        ("take_messages", claims_it, "the owner of a task at work has every message for it"),
        ("pass_on_message", is_told_at_work, "the owner of a task at work has every message for it"),
        ("deliver_messages", finishes_it, "finished work has had the messages of its prompt"),
        ("close_task_mailbox", closes_it, "the mailbox of a task is closed when the task is over"),
        ("close_late_mailbox", is_told_of_no_task, "the mailbox of a task is closed when the task is over"),
    ],
)
def test_each_rule_of_these_is_missed_by_a_property(
    monkeypatch: pytest.MonkeyPatch, rule: str, goes_on: Callable[[Hand], Hand], name: str
) -> None:
    """With all rules none is broken; without the rule that one is."""
    assert broken(goes_on(told("one"))) == []
    monkeypatch.setattr(aggregate_hand, "system", without(rule, "board"))
    assert broken(goes_on(told("one"))) == [name]


def broken(of: Hand) -> list[str]:
    """Return the names of the properties that do not hold."""
    return [each.name for each in task_messages.PROPERTIES if not each.holds(of.aggregate)]
