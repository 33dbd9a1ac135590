"""A task keeps the last conversation about it: the same agent resumes it under its next claim, another one does not."""

import pytest

from aggregate_hand import Hand
from board_hand import ask, fail, finish, make, opened, park, rest, say
from lifefold.core.fleet import AgentPlan, Plan, Talks, TaskPlan, opening
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system.plan import fleet_task_of
from lifefold.core.fleet.worker import assignment, conversation
from lifefold.core.kernel import Opened
from lifefold.core.lifecycles import approval, task
from lifefold.core.lifecycles.session import Usage
from lifefold.core.lifecycles.task import KeptConversation

OF_ANN = KeptConversation("ann", "C1", Usage(30))


def at_work(**fields: object) -> Hand:
    """Return a board whose task is at work with ann, who has reported a conversation."""
    of = say(ask(opened(make("T1", max_retries=2, **fields))), "T1", task.Started)
    return report(of, 1, OF_ANN)


def report(of: Hand, epoch: int, kept: KeptConversation | None, agent: str = "ann") -> Hand:
    """Let an agent report its conversation."""
    return of.hear(f"worker/{agent}", "task:T1", fleet_task.ConversationKept(epoch, agent, kept))


def handed(of: Hand) -> KeptConversation | None:
    """Return the conversation that the last reaction has given to an agent with the task."""
    (found,) = [e.conversation for _, _, e in of.told() if isinstance(e, assignment.Assigned)]
    return found


def test_a_retry_by_the_same_agent_resumes_the_conversation() -> None:
    """With what it was charged."""
    assert handed(rest(ask(fail(at_work(), "T1")), "T1")) == OF_ANN


def test_another_agent_begins_its_own_conversation() -> None:
    """The kept one stays until the other agent reports one; then the first agent begins anew, too."""
    of = rest(ask(fail(at_work(), "T1"), "bob"), "T1")
    assert (of.record("task:T1").owner, handed(of)) == ("bob", None)
    assert of.record("task:T1").conversation == OF_ANN
    report(of, 2, KeptConversation("bob", "C2"), "bob")
    assert handed(rest(ask(fail(of, "T1")), "T1")) is None


def test_refused_work_and_a_failed_verification_keep_the_conversation() -> None:
    """The agent is told why in the conversation in which it has done the work."""
    of = finish(at_work(), "T1")
    say(of, "T1", task.Rejected, reason="make check: 1 failed")
    assert handed(rest(ask(of), "T1")) == OF_ANN
    of = park(at_work(needs_approval=True), "T1")
    of.give("task:T1", approval.ApprovalRefused("not like that"))
    assert handed(rest(ask(of), "T1")) == OF_ANN


def test_a_task_that_was_given_back_is_resumed_where_it_was() -> None:
    """After a preemption, or by an agent that was paused; no attempt has failed."""
    for anew in (False, True):
        of = say(at_work(anew=anew), "T1", task.Released, reason="preempted")
        assert handed(ask(of)) == OF_ANN


def test_a_retry_begins_a_new_conversation_if_the_plan_says_so() -> None:
    """The conversation ends with the failure."""
    of = fail(at_work(anew=True), "T1")
    assert of.record("task:T1").conversation is None
    assert handed(rest(ask(of), "T1")) is None


def test_the_late_report_of_an_earlier_claim_counts_as_long_as_its_conversation_is_kept() -> None:
    """Its session ended after the claim. It replaces no conversation of another agent."""
    of = say(at_work(), "T1", task.Released, reason="preempted")
    ask(of, "bob")
    later = KeptConversation("ann", "C1", Usage(45))
    assert report(of, 1, later).record("task:T1").conversation == later
    of_bob = KeptConversation("bob", "C2", Usage(1))
    report(of, 2, of_bob, "bob")
    late = fleet_task.ConversationKept(1, "ann", KeptConversation("ann", "C1", Usage(50)))
    assert of.dismiss("worker/ann", "task:T1", late).kind == "illegal"
    assert of.record("task:T1").conversation == of_bob


def test_a_lost_conversation_is_forgotten() -> None:
    """The next claim does not try it again."""
    of = report(at_work(), 1, None)
    assert handed(rest(ask(fail(of, "T1")), "T1")) is None


@pytest.mark.parametrize(("fleet", "own", "anew"), [(False, None, False), (True, None, True), (True, False, False)])
def test_a_task_decides_about_its_retries_or_leaves_that_to_the_fleet(
    fleet: bool,  # noqa: FBT001 - a parameter of the table
    own: bool | None,  # noqa: FBT001
    anew: bool,  # noqa: FBT001
) -> None:
    """Also whether they begin anew."""
    planned = TaskPlan("T1", "do it", anew=own)
    assert fleet_task_of(planned, 0, Plan("small", (), (planned,), anew=fleet)).anew is anew


def test_only_an_agent_whose_program_keeps_conversations_has_one() -> None:
    """And its sessions may name them."""
    agents = (AgentPlan("ann", talks=Talks(chooses=True, resumes=False)), AgentPlan("ben"))
    opened_by = dict(opening(Plan("small", agents, ()), 0))
    ann, ben = (opened_by[f"worker/{name}"].event for name in ("ann", "ben"))
    assert isinstance(ann, Opened)
    assert isinstance(ben, Opened)
    assert ann.records[conversation.REF] == conversation.Conversation(chooses=True, resumes=False)
    assert conversation.REF not in ben.records
    assert [getattr(each.records["session"], "talks", None) for each in (ann, ben)] == [True, False]
