"""What a fleet has cost: every session is counted once, for its agent and for its task."""

from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.fleet.worker import assignment, conversation
from lifefold.core.kernel import Created, Entity, Event, Transition
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


def test_events_of_the_board_cost_nothing() -> None:
    """Only workers have sessions."""
    assert happened(Spending(), "board", SessionExited(Success(), Usage(7))) == Spending()


def test_a_total_of_a_conversation_counts_by_its_difference() -> None:
    """As budgets are charged; the report of the session itself is not counted a second time."""
    worker, first = "worker/ann", conversation.Conversation(resumes=True, task="T1", named="C1")
    begun = Entity(conversation.REF, first)
    spending = spend(Spending(), worker, Transition(conversation.REF, None, begun, Created(first), 0, "", ()))
    spending = happened(spending, worker, assignment.Assigned(Brief("T1")))
    for charged, total in ((0, 30), (30, 50), (50, 50)):
        spending = happened(spending, worker, SessionExited(Success(), Usage(total), "C1", is_total=True))
        was = Entity(conversation.REF, conversation.Conversation(resumes=True, named="C1", charged=Usage(charged)))
        ended = conversation.SessionEnded("C1", Usage(total), is_total=True)
        spending = spend(spending, worker, Transition(conversation.REF, was, was, ended, 0, "", ()))
    assert spending.of_task("T1") == spending.total == Usage(50)
