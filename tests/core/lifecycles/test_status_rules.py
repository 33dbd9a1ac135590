"""Decisions about document 001 where it is silent or contradicts itself, one test each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import Event, IllegalTransition, Step, encode, replace
from lifefold.core.lifecycles import status
from lifefold.core.lifecycles.status import (
    FatalError,
    PiiDetected,
    Spawn,
    State,
    Status,
    Stop,
    TaskBegan,
    TaskEnded,
    draining,
    machine,
)
from lifefold.effects import EmitTelemetry, SaveState


def after(*events: Event) -> Status:
    """Return an agent after these events, all of them accepted."""
    record = Status(agent_id="agent_1", name="coder", budget_microusd=70, lease_ms=9)
    for event in events:
        step = draining.step(record, event)
        assert isinstance(step, Step), str(step)
        record = step.record
    return record


def is_refused(record: Status, event: Event) -> bool:
    return isinstance(draining.step(record, event), IllegalTransition)


def test_a_busy_agent_is_not_stopped() -> None:
    """Tasks are active, so the stop is refused (B2)."""
    assert is_refused(after(TaskBegan("t")), Stop())
    assert after(TaskBegan("t"), TaskEnded("t"), Stop()).state is State.STOPPED


def test_a_busy_agent_is_stopped_by_force() -> None:
    """Its tasks are gone with it (B2)."""
    assert after(TaskBegan("t"), Stop(force=True)) == replace(after(), state=State.STOPPED)


def test_a_draining_agent_stops_when_its_work_is_done_and_takes_no_new() -> None:
    """The last task ends the drain, not any (B2)."""
    told = after(TaskBegan("t"), TaskBegan("u"), Stop(drain=True))
    assert is_refused(told, TaskBegan("v"))
    assert after(TaskBegan("t"), TaskBegan("u"), Stop(drain=True), TaskEnded("t")).state is State.RUNNING
    stopped = after(TaskBegan("t"), TaskBegan("u"), Stop(drain=True), TaskEnded("t"), TaskEnded("u"))
    assert stopped == replace(after(), state=State.STOPPED)


def test_draining_is_a_profile() -> None:
    """The document's own table has no row for it: any unforced stop of an agent at work is refused (B2)."""
    assert isinstance(machine.step(after(TaskBegan("t")), Stop(drain=True)), IllegalTransition)
    idle = draining.step(after(), Stop(drain=True))
    forced = draining.step(after(TaskBegan("t")), Stop(drain=True, force=True))
    for step in (idle, forced):
        assert isinstance(step, Step)
        assert step.record == replace(after(), state=State.STOPPED)


def test_what_is_reported_after_a_forced_stop_is_taken() -> None:
    """The end of a task that was cut off changes nothing; personal data that was found counts (B2, B15)."""
    stopped = after(TaskBegan("t"), Stop(force=True))
    assert draining.step(stopped, TaskEnded("t")) == Step(stopped)
    assert after(TaskBegan("t"), Stop(force=True), PiiDetected()) == replace(stopped, pii_detections=1)


def test_a_task_begins_and_ends_once() -> None:
    """The same name twice is refused, and so is one that is not there."""
    assert is_refused(after(TaskBegan("t")), TaskBegan("t"))
    assert is_refused(after(TaskBegan("t")), TaskEnded("u"))


def test_stopping_a_stopped_agent_is_not_reported() -> None:
    """No second ``agent_stopped`` (B3)."""
    assert machine.step(after(Stop()), Stop()) == Step(after(Stop()))


@given(st.sampled_from([event for kind in machine.events for event in kind.examples()]))
def test_failed_takes_everything_and_makes_nothing_of_it(event: Event) -> None:
    """Neither a stop nor a restart overwrites it (B4, B8; GoogleCloudPlatform/scion#354: the exit code stays)."""
    failed = after(FatalError("boom", 137))
    assert machine.step(failed, event) == Step(failed)
    assert failed.exit_code == 137


def test_a_restart_keeps_the_id_counts_the_incarnation_and_carries_counters_over() -> None:
    """Dashboards follow the agent, and nothing that it has done is forgotten (B6, B7)."""
    again = after(PiiDetected(), Stop(), Spawn())
    assert again == replace(after(PiiDetected()), incarnation=2)


def test_a_successor_has_a_new_id_and_begins_at_zero() -> None:
    """It has the same settings and names the one that it replaces (B7, B8)."""
    old = after(PiiDetected(), FatalError("boom"))
    assert status.successor(old, "agent_2") == Status(
        agent_id="agent_2", name="coder", replaces="agent_1", budget_microusd=70, lease_ms=9
    )


def test_only_an_agent_that_does_not_run_is_replaced() -> None:
    """Two of one agent would run (B8, B9)."""
    assert not status.is_replaceable(after())
    assert status.is_replaceable(after(Stop()))
    assert status.is_replaceable(after(FatalError()))


def test_a_running_agent_is_not_spawned_again() -> None:
    """The document does not say; it is refused (B9)."""
    assert is_refused(after(), Spawn())


def test_whatever_is_told_was_kept_before() -> None:
    """In every step with a report, SaveState comes first (B10, I4)."""
    records = (after(), after(TaskBegan("t")), after(Stop()), after(TaskBegan("t"), Stop(drain=True)))
    for record in records:
        for event in (each for kind in machine.events for each in kind.examples()):
            step = draining.step(record, event)
            kinds = [type(effect) for effect in step.effects] if isinstance(step, Step) else []
            assert EmitTelemetry not in kinds or kinds.index(SaveState) < kinds.index(EmitTelemetry)


def test_failed_has_a_producer_with_a_reason_and_an_exit_code() -> None:
    """They stand in the record and in ``agent_failed`` (B13, B14, B20; elizaOS/eliza#13771)."""
    step = machine.step(after(TaskBegan("t")), FatalError("out of memory", 137))
    assert isinstance(step, Step)
    assert (step.record.state, step.record.reason, step.record.exit_code) == (State.FAILED, "out of memory", 137)
    told: dict[str, str | int | None] = {"incarnation": 1, "reason": "out of memory", "exit_code": 137}
    assert EmitTelemetry("agent_1", "agent_failed", told) in step.effects


def test_a_failure_without_a_reason_still_has_one() -> None:
    """A failure without a reason is of no use to an operator (B14)."""
    assert after(FatalError()).reason == "unknown"
    assert after(Stop(), FatalError()).last_late_report == "unknown"


def test_a_late_fatal_error_is_counted_and_changes_nothing_else() -> None:
    """The agent has stopped as it was asked to (B15; gastownhall/gascity#76: an intended stop is no failure)."""
    late = after(Stop(), FatalError("killed", 137), FatalError("again"))
    assert late == replace(after(Stop()), late_reports=2, last_late_report="again")


def test_there_is_no_idle() -> None:
    """The document's purpose mentions it, its table does not (B18)."""
    assert [state.value for state in State] == ["RUNNING", "STOPPED", "FAILED"]


@given(st.lists(st.sampled_from([event for kind in machine.events for event in kind.examples()]), max_size=30))
def test_an_agent_has_one_status_and_only_a_running_one_works(events: list[Event]) -> None:
    """For all sequences of events (I1, I2); a refused event has changed nothing."""
    record = Status(agent_id="agent_1")
    for event in events:
        step, before = draining.step(record, event), encode(record)
        record = step.record if isinstance(step, Step) else record
        assert isinstance(step, Step) or encode(record) == before
        assert record.state in State
        assert all(holds(record) for holds in machine.invariants)


@pytest.mark.parametrize("events", [(Stop(),), (FatalError(),)])
def test_a_status_is_told_with_its_agent(events: tuple[Event, ...]) -> None:
    """Each entry into a state is reported once, with the agent's id (I3)."""
    step = machine.step(after(), *events)
    assert isinstance(step, Step)
    told = [effect for effect in step.effects if isinstance(effect, EmitTelemetry)]
    assert [(each.agent_id, each.event.removeprefix("agent_")) for each in told] == [
        ("agent_1", step.record.state.value.lower())
    ]
