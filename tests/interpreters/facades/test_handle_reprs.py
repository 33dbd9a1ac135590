"""The representation of facades in a shell, a log, and a failing test; and the attributes of their errors."""

import copy
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from lifefold.core.lifecycles.approval import PlanConflict
from lifefold.interpreters.facades import cooperative, governance, process, status
from lifefold.interpreters.facades.cooperative.agent import record_of


def handles(folder: Path) -> dict[str, Any]:
    """Return a handle of every kind, each in a state that is worth showing."""
    agent = cooperative.Agent("ann")
    agent.start()
    agent.schedule("T1")
    lifecycle = process.ProcessLifecycle(process_id="web")
    lifecycle.move(process.ProcessState.STARTING)
    chain = governance.AbortChain()
    chain.register_child("a", "b")
    access = governance.GraduatedAccess()
    access.record_success("ann")
    store = status.MemoryStateManager()
    runtime = status.Runtime(store)
    runtime.spawn_agent()
    file = status.SqliteStateManager(folder / "agents.db")
    turn = governance.AgentTurnStateMachine("ann")
    turn.transition("task_claimed")
    return {
        "<Agent 'ann': SCHEDULED, task 'T1'>": agent,
        "<ProcessLifecycle 'web': starting, 1 transitions>": lifecycle,
        "<Task 'T1': open>": governance.Task("T1"),
        "<AgentSession 'S1': starting>": governance.AgentSession("S1"),
        "<AgentTurnStateMachine 'ann': turn 1, CLAIMING>": turn,
        "<Governance: 0 listeners, 0 gates>": governance.Governance(),
        f"<AbortChain: 1 children, {chain.policy}>": chain,
        "<GraduatedAccess: 1 agents, 0 gates>": access,
        "<Runtime over <MemoryStateManager: 1 agents>>": runtime,
        f"<SqliteStateManager: {str(folder / 'agents.db')!r}>": file,
    }


def test_every_facade_shows_its_type_its_id_and_its_state(tmp_path: Path) -> None:
    """In one short line, without an address in memory."""
    found = handles(tmp_path)
    assert [repr(each) for each in found.values()] == list(found)
    found[f"<SqliteStateManager: {str(tmp_path / 'agents.db')!r}>"].close()


def test_a_refused_move_carries_the_state_and_the_target() -> None:
    """A program need not read the text; the error can be copied and pickled."""
    lifecycle = process.ProcessLifecycle()
    with pytest.raises(process.StateError) as caught:
        lifecycle.move(process.ProcessState.RUNNING)
    error = caught.value
    assert (error.current, error.target) == (process.ProcessState.CREATED, "running")
    assert error.target is process.ProcessState.RUNNING
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 - pickled here
        assert (str(again), again.current, again.target) == (str(error), error.current, error.target)


def test_a_process_that_cannot_be_removed_carries_its_state_and_no_target() -> None:
    """Removal is no state of the table."""
    lifecycle = process.ProcessLifecycle(process.ProcessState.RUNNING)
    with pytest.raises(process.StateError) as caught:
        lifecycle.remove()
    assert (caught.value.current, caught.value.target) == (process.ProcessState.RUNNING, None)


def test_an_id_that_was_used_for_something_else_is_in_the_error() -> None:
    """With the entity that it belongs to (E14)."""
    kernel, task = governance.Governance(), governance.Task("T1")
    kernel.transition_task(task, "claimed", "ann", transition_id="x")
    with pytest.raises(governance.DuplicateTransitionError) as caught:
        kernel.transition_task(task, "in_progress", "ann", transition_id="x")
    assert (caught.value.transition_id, caught.value.entity_id) == ("x", "T1")


STATES: Final = ("T1", "open", "closed")
ERRORS: Final[tuple[Exception, ...]] = (
    cooperative.StateTransitionError(0, 2, ("RUNNABLE",)),
    cooperative.HookError("on_startup"),
    cooperative.AgentRetiredError("ann", "old"),
    process.StateError("no", process.ProcessState.CREATED, process.ProcessState.RUNNING),
    process.SnapshotError("no state"),
    governance.IllegalTransitionError("task", *STATES, "claim 1 is over"),
    governance.DuplicateTransitionError("used", "x", "T1"),
    governance.AccessDeniedError("ann", *STATES),
    governance.PlanConflictError(PlanConflict(("T1",), "decided")),
    status.NotFound("ann", "there is no such agent"),
    status.AgentBusy("ann", ("T1",)),
    status.AlreadyRunning("ann", "runs"),
    status.NotRunning("ann", "does not run"),
    status.AgentFailed("ann", "no disk", 3),
    status.TaskRefused("ann", "has it"),
    status.BudgetRefused("ann", "call", 9, status.Verdict.EXCEEDED, 1),
    status.RefreshRefused("ann", None),
    status.NotReserved("ann", "call"),
    status.VersionConflict("ann", 3),
    status.StoreUnavailable("no disk"),
    status.UnreadableState("not JSON"),
)
"""One of each error that handles raise."""


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: type(each).__name__)
def test_an_error_is_the_same_after_it_was_copied_or_pickled(error: Exception) -> None:
    """With its text and all that it carries: a pool of processes hands it on."""
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 - pickled here
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_every_error_that_handles_raise_is_tried() -> None:
    """An error that is exported has its example; bases are not raised."""
    bases = {cooperative.AgentError, status.AgentError, status.StoreError}
    exported = (getattr(each, name) for each in (cooperative, governance, process, status) for name in each.__all__)
    errors = {each for each in exported if isinstance(each, type) and issubclass(each, Exception)}
    assert errors - bases == {type(each) for each in ERRORS}


def test_the_error_of_missing_trust_names_the_actor_and_the_entity() -> None:
    """A program need not read the text."""
    error = governance.AccessDeniedError("ann", *STATES)
    assert (error.actor, error.entity_id, error.from_status, error.to_status) == ("ann", *STATES)


def test_a_transition_without_a_timestamp_is_of_now() -> None:
    """The document's dataclass is made of its two states."""
    before = datetime.now(UTC)
    made = process.ProcessTransition(process.ProcessState.CREATED, process.ProcessState.STARTING)
    assert before <= made.timestamp <= datetime.now(UTC)
    assert made.timestamp.tzinfo is UTC


OWN: Final = "record"


class Keeper(cooperative.Agent):
    """A user's agent, with an attribute that is a property in the base class."""

    def __init__(self, agent_id: str) -> None:
        super().__init__(agent_id)
        setattr(self, OWN, ["what it has done"])


def test_a_subclass_may_keep_a_record_of_its_own() -> None:
    """Its machine goes on all the same, and what runs it in a fleet still reads the machine's record."""
    agent = Keeper("ann")
    agent.start()
    assert agent.state_name == "RUNNABLE"
    assert getattr(agent, OWN) == ["what it has done"]
    assert record_of(agent).state == "RUNNABLE"
