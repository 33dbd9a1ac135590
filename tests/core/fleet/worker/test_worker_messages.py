"""What people say to a worker: every prompt repeats it, until a session that was told succeeds."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregate_hand import Hand
from fleet_driver import Driver
from fleet_worker import (
    MessageWatch,
    cooling,
    exit_with,
    interrupting,
    merging,
    next_task,
    opened,
    preparing,
    prompt_of,
    running,
    spawning,
    start,
    states,
    verifying,
    wanting,
)
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan
from lifefold.core.fleet.worker import assignment, desired_state, mailbox
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session import Limits
from lifefold.effects import CancelSession
from lifefold.interpreters.explain import status

# On its way


def test_an_urgent_message_interrupts_and_comes_with_the_next_prompt() -> None:
    """The work is not given back: the agent goes on from where it was (D14)."""
    of = running().give("mailbox", mailbox.OperatorMessageArrived("look"))
    assert states(of) == ("Interrupting", "Working")
    assert of.effects(CancelSession) == [CancelSession()]
    exit_with(of, session.Error("cancelled"))
    assert states(of) == ("Spawning", "Working")
    text = prompt_of(of)
    assert text.startswith("do it")
    assert "Your last session was interrupted." in text
    assert text.endswith("You have messages:\n- look")


def test_a_message_that_can_wait_interrupts_no_session() -> None:
    """It comes with the next prompt, whenever that is written."""
    of = running().give("mailbox", mailbox.OperatorMessageArrived("by the way", urgent=False))
    assert states(of) == ("Running", "Working")
    assert of.record("mailbox").messages == ("by the way",)


def test_an_urgent_message_while_spawning_interrupts_right_after_the_start() -> None:
    """Once, however many messages come (D14)."""
    of = spawning()
    for text in ("one", "two", "three"):
        of.give("mailbox", mailbox.OperatorMessageArrived(text))
    assert states(of) == ("Spawning", "Working")
    start(of)
    assert of.state("session") == "Interrupting"
    exit_with(of, session.Success())
    assert prompt_of(of).endswith("- one\n- two\n- three")


@pytest.mark.parametrize("make", [opened, wanting, preparing, interrupting, verifying, merging, cooling])
def test_an_urgent_message_where_nothing_runs_waits_in_the_mailbox(make: Callable[[], Hand]) -> None:
    """Nothing else changes: CoolingDown keeps its backoff, a merge goes on (D14)."""
    of = make()
    before = states(of)
    of.give("mailbox", mailbox.OperatorMessageArrived("later"))
    assert states(of) == before
    assert of.record("mailbox").messages[-1] == "later"


def test_a_message_that_came_before_the_task_is_in_its_first_prompt() -> None:
    """And is done with when that session succeeds."""
    of = preparing().give("mailbox", mailbox.OperatorMessageArrived("be quick"))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    assert prompt_of(of) == "do it\n\nYou have messages:\n- be quick"
    start(of)
    exit_with(of, session.Success())
    assert (of.state("mailbox"), of.record("mailbox").messages) == ("Empty", ())


def test_a_stopped_workers_mailbox_is_closed_and_senders_are_told() -> None:
    """A message to a stopped agent is refused (D14). What was taken before, and not delivered, stays where it is."""
    of = running().give("mailbox", mailbox.OperatorMessageArrived("by the way", urgent=False))
    of.give("desired_state", desired_state.StopWanted("enough"))
    assert (of.state("mailbox"), of.record("mailbox").messages) == ("Closed", ("by the way",))
    assert of.must_refuse("mailbox", mailbox.OperatorMessageArrived("hello?")).kind == "illegal"


def test_the_status_tells_messages_that_wait_from_those_of_a_stopped_agent() -> None:
    """A message to an agent that has stopped for good is shown as never delivered."""
    of = running().give("mailbox", mailbox.OperatorMessageArrived("by the way", urgent=False))
    shown = status.agent_status(of.aggregate)
    assert (shown.messages, shown.undelivered) == (1, 0)
    of.give("desired_state", desired_state.StopWanted("enough"))
    shown = status.agent_status(of.aggregate)
    assert (shown.messages, shown.undelivered) == (0, 1)


# Until a session succeeds


def told(*texts: str) -> Hand:
    """Return a worker whose session runs and was told this."""
    of = preparing()
    for text in texts:
        of.give("mailbox", mailbox.OperatorMessageArrived(text))
    return start(of.report("assignment", "CheckOutWork", assignment.CheckedOut()))


def test_a_message_interrupted_by_another_one_comes_again_before_it() -> None:
    """The next session remembers nothing of the one before: it is told everything, and what is not new."""
    of = exit_with(told("one").give("mailbox", mailbox.OperatorMessageArrived("two")), session.Error("cancelled"))
    _task, _interrupted, repeated, messages = prompt_of(of).split("\n\n")
    assert repeated == "An earlier session had the first of your messages too; it was not completed."
    assert messages == "You have messages:\n- one\n- two"
    start(of).give("mailbox", mailbox.OperatorMessageArrived("three"))
    exit_with(of, session.Error("cancelled"))
    assert "had the first 2 of your messages too" in prompt_of(of)
    assert prompt_of(of).endswith("You have messages:\n- one\n- two\n- three")


@pytest.mark.parametrize("outcome", [session.Error("exit status 1"), session.Timeout()])
def test_a_message_of_a_failed_session_comes_again(outcome: session.Error | session.Timeout) -> None:
    """With the next prompt of this agent, whichever task it is for."""
    of = next_task(exit_with(told("one"), outcome).elapse("session", "BackoffElapsed"))
    assert prompt_of(of).endswith("You have messages:\n- one")


def test_a_message_of_a_session_that_never_starts_comes_again() -> None:
    """Its prompt was written, and no session has read it."""
    of = preparing().give("mailbox", mailbox.OperatorMessageArrived("one"))
    exit_with(of.report("assignment", "CheckOutWork", assignment.CheckedOut()), session.Error("no such program"))
    of = next_task(of.elapse("session", "BackoffElapsed"))
    assert prompt_of(of).endswith("You have messages:\n- one")


def test_a_message_interrupted_by_a_hold_comes_again_after_it() -> None:
    """Ctrl-C, a crash of the runner and a resumption lose nothing that was accepted."""
    of = told("one").give("desired_state", desired_state.HoldWanted())
    exit_with(of, session.Error("cancelled")).crash().give("desired_state", desired_state.RunWanted())
    assert prompt_of(of).endswith("You have messages:\n- one")


def test_an_interrupted_session_that_ends_well_has_not_completed() -> None:
    """An agent may end with status 0 when it is asked to end: it is told again what it was told."""
    of = exit_with(told("one").give("desired_state", desired_state.HoldWanted()), session.Success())
    of.give("desired_state", desired_state.RunWanted())
    assert prompt_of(of).endswith("You have messages:\n- one")


def test_a_message_is_done_with_when_a_session_that_had_it_succeeds() -> None:
    """Whatever its verification says: that is told by the next prompt in words of its own."""
    of = exit_with(told("one"), session.Success()).report("assignment", "VerifyWork", assignment.Rejected("tests fail"))
    assert prompt_of(next_task(of)) == "do it"


def test_a_message_that_came_after_the_prompt_outlives_the_success_of_that_session() -> None:
    """It is the first of the next prompt, and new there."""
    of = told("one").give("mailbox", mailbox.OperatorMessageArrived("two", urgent=False))
    exit_with(of, session.Success()).report("assignment", "VerifyWork", assignment.Rejected("tests fail"))
    assert prompt_of(next_task(of)) == "do it\n\nYou have messages:\n- two"


LIMITS = Limits(max_consecutive_errors=1_000, max_total_errors=1_000, grace_ms=5_000)
MESSAGES = st.lists(st.tuples(st.one_of(st.integers(0, 50), st.integers(0, 200_000)), st.booleans()), max_size=12)


@given(MESSAGES, st.lists(st.integers(0, 23), max_size=300), st.booleans())
def test_no_accepted_message_is_missing_from_the_prompt_of_the_session_that_succeeds(
    messages: list[tuple[int, bool]],
    script: list[int],
    people: bool,  # noqa: FBT001 - drawn
) -> None:
    """Nor from any prompt before: over messages of both kinds at any time, and sessions that end in any way."""
    plan = Plan("plan", (AgentPlan("ann", LIMITS),), tuple(TaskPlan(f"T{n}", "do it") for n in range(4)))
    driver = Driver(plan, script, people=people)
    for number, (at_ms, urgent) in enumerate(messages):
        driver.post("worker/ann", "mailbox", mailbox.OperatorMessageArrived(f"message {number}", urgent), at_ms)
    driver.watch = watch = MessageWatch()
    driver.run()
    assert watch.followed > 0
