"""What a fleet has cost: every session is counted once, for its agent and for its task."""

from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.fleet.worker import assignment, conversation
from lifefold.core.kernel import Entity, Event, Transition, replace
from lifefold.core.lifecycles.session import Session, SessionExited, Success, Usage
from lifefold.core.lifecycles.task import Brief
from lifefold.interpreters.explain.spending import Spending, spend

USAGES = st.builds(Usage, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
AGENTS, TASKS = st.sampled_from("ab"), st.sampled_from(["T1", "T2"])


def happened(spending: Spending, aggregate: str, event: Event) -> Spending:
    """Let an event be taken."""
    entity = Entity("session", Session())
    return spend(spending, aggregate, Transition("session", entity, entity, event, 0, "", ()))


@given(st.lists(st.tuples(AGENTS, st.one_of(TASKS, USAGES)), max_size=30))
def test_agents_and_tasks_add_up_to_the_same(course: list[tuple[str, str | Usage]]) -> None:
    """Whatever agents are given and report, in any order, all of it is counted for one agent and for one task."""
    spending, reported = Spending(), Usage()
    for agent, what in course:
        if isinstance(what, Usage):
            reported = reported.plus(what)
            spending = happened(spending, f"worker/{agent}", SessionExited(Success(), what))
        else:
            spending = happened(spending, f"worker/{agent}", assignment.Assigned(Brief(what)))
    by_task = Usage()
    for each in spending.tasks.values():
        by_task = by_task.plus(each)
    assert spending.total == by_task == reported


def test_a_session_is_counted_for_the_task_of_its_agent() -> None:
    """And not for the one that another agent has, nor for the one that the agent had before."""
    spending = Spending()
    for agent, task in (("ann", "T1"), ("ben", "T2"), ("ann", "T3")):
        spending = happened(spending, f"worker/{agent}", assignment.Assigned(Brief(task)))
    spending = happened(spending, "worker/ann", SessionExited(Success(), Usage(7, 2, 1)))
    assert (spending.of_task("T3"), spending.of_agent("ann")) == (Usage(7, 2, 1), Usage(7, 2, 1))
    assert [spending.of_task(each) for each in ("T1", "T2", "T4")] == [Usage()] * 3
    assert spending.of_agent("ben") == Usage()


def test_the_total_of_a_resumed_conversation_is_counted_once() -> None:
    """A session reports 3 and then the conversation 10: it has cost 10, and a session without a total adds its cost."""
    spending = happened(Spending(), "worker/ann", assignment.Assigned(Brief("T1")))
    record = conversation.Conversation(resumes=True, state=conversation.State.BEGUN, named="C1")
    claimed = Entity("conversation", conversation.Conversation(resumes=True))
    began = conversation.ClaimBegan("T1", 1)
    spending = spend(spending, "worker/ann", Transition("conversation", claimed, claimed, began, 0, "", ()))
    for charged, usage, is_total in ((0, 3, True), (3, 10, True), (10, 5, False)):
        exited = SessionExited(Success(), Usage(usage), "C1", is_total=is_total)
        ended = conversation.SessionEnded("C1", Usage(usage), is_total=is_total)
        kept = Entity("conversation", replace(record, charged=Usage(charged)))
        spending = happened(spending, "worker/ann", exited)
        spending = spend(spending, "worker/ann", Transition("conversation", kept, kept, ended, 0, "", ()))
    assert spending.of_task("T1") == spending.of_agent("ann") == Usage(15)


def test_events_of_the_board_cost_nothing() -> None:
    """Only workers have sessions."""
    assert happened(Spending(), "board", SessionExited(Success(), Usage(7))) == Spending()
