"""Document 004 through its own interface: its two tables by status, its terminal states, its metadata, its names."""

from typing import Final

import pytest

from lifefold.interpreters.facades.governance import (
    AbortReason,
    AgentSession,
    AgentStatus,
    IllegalTransitionError,
    LifecycleEvent,
    Task,
    TaskStatus,
    TransitionReason,
    add_listener,
    remove_listener,
    transition_agent,
    transition_task,
)

TASKS: Final = """
planned              -> open cancelled
open                 -> claimed waiting_for_subtasks cancelled
claimed              -> in_progress open done failed cancelled waiting_for_subtasks blocked
in_progress          -> done failed blocked waiting_for_subtasks open cancelled orphaned
orphaned             -> done failed open
blocked              -> open cancelled
waiting_for_subtasks -> done blocked cancelled
failed               -> open
done                 -> closed failed
"""
"""Document 004, "Task Transition Table", by source."""

AGENTS: Final = """
starting -> working dead
working  -> idle dead
idle     -> working dead
"""
"""Document 004, "Agent Transition Table", by source."""


def edges(text: str) -> set[tuple[str, str]]:
    """Return the pairs of a table."""
    lines = [line.split(" -> ") for line in text.strip().splitlines()]
    return {(source.strip(), target) for source, targets in lines for target in targets.split()}


def test_the_tables_have_as_many_edges_as_the_document() -> None:
    """Thirty, and six."""
    assert (len(edges(TASKS)), len(edges(AGENTS))) == (30, 6)


@pytest.mark.parametrize("source", TaskStatus)
@pytest.mark.parametrize("target", TaskStatus)
def test_a_task_moves_if_and_only_if_the_document_has_the_edge(source: TaskStatus, target: TaskStatus) -> None:
    """Document 004, "Task Transition Table (exhaustive)": all 144 pairs; the same state is none (E1, E15, E17)."""
    task = Task("T1", source)
    if (source.value, target.value) in edges(TASKS):
        event = transition_task(task, target, actor="test")
        assert (event.from_status, event.to_status, task.status) == (source.value, target.value, target)
    else:
        text = f"Illegal task transition: '{source.value}' -> '{target.value}' \\(entity T1\\)"
        with pytest.raises(IllegalTransitionError, match=text):
            transition_task(task, target)
        assert task.status is source


@pytest.mark.parametrize("source", AgentStatus)
@pytest.mark.parametrize("target", AgentStatus)
def test_an_agent_moves_if_and_only_if_the_document_has_the_edge(source: AgentStatus, target: AgentStatus) -> None:
    """Document 004, "Agent Transition Table (exhaustive)": all 16 pairs (E22)."""
    session = AgentSession("S1", source)
    if (source.value, target.value) in edges(AGENTS):
        event = transition_agent(session, target)
        assert (event.entity_type, event.entity_id, event.to_status) == ("agent", "S1", session.status)
    else:
        with pytest.raises(IllegalTransitionError, match="Illegal agent transition: "):
            transition_agent(session, target)
        assert session.status is source


def test_terminal_states_have_no_way_out() -> None:
    """Document 004, "Terminal States": computed from the table."""
    sources = {source for source, _ in edges(TASKS)}
    assert {status.value for status in TaskStatus} - sources == {"closed", "cancelled", "pending_approval"}


def test_the_words_of_an_error_are_the_documents() -> None:
    """Document 004: any transition not in the table raises IllegalTransitionError."""
    with pytest.raises(IllegalTransitionError) as raised:
        transition_task(Task("T1"), TaskStatus.DONE)
    assert str(raised.value) == "Illegal task transition: 'open' -> 'done' (entity T1)"


def test_every_transition_yields_the_documents_nine_fields_in_order() -> None:
    """Document 004, "Transition Metadata"; whatever else there is stands in the metadata (E44)."""
    names = "timestamp entity_type entity_id from_status to_status actor reason transition_reason abort_reason metadata"
    assert LifecycleEvent.__struct_fields__ == tuple(names.split())
    session = AgentSession("S1", "working", clock=lambda: 1_767_268_800_500)
    event = transition_agent(
        session,
        "dead",
        actor="spawner",
        reason="killed by the kernel",
        transition_reason=TransitionReason.ABORTED,
        abort_reason=AbortReason.OOM,
    )
    assert event == LifecycleEvent(
        1_767_268_800.5,
        "agent",
        "S1",
        "working",
        "dead",
        "spawner",
        "killed by the kernel",
        TransitionReason.ABORTED,
        AbortReason.OOM,
        {"event": "Died", "version": 2},
    )
    assert session.record.abort_reason is AbortReason.OOM


def test_a_task_goes_the_documents_way() -> None:
    """Document 004, "Task State Diagram": from plan to merge, with a call of the listeners for each step."""
    told: list[LifecycleEvent] = []
    add_listener(told.append)
    try:
        task = Task("T1", TaskStatus.PLANNED)
        transition_task(task, TaskStatus.OPEN, actor="plan_approval")
        transition_task(task, TaskStatus.CLAIMED, actor="task_store")
        transition_task(task, TaskStatus.IN_PROGRESS, actor="spawner")
        transition_task(task, TaskStatus.DONE, actor="agent", transition_reason="completed")
        transition_task(task, TaskStatus.CLOSED, actor="janitor", reason="merged")
    finally:
        remove_listener(told.append)
    assert [event.to_status for event in told] == ["open", "claimed", "in_progress", "done", "closed"]
    assert [event.actor for event in told] == ["plan_approval", "task_store", "spawner", "agent", "janitor"]
    assert told[3].transition_reason is TransitionReason.COMPLETED
