"""Decisions about document 001 where it is silent or contradicts itself, one test each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import Event, Step, encode
from lifefold.core.lifecycles import status
from lifefold.core.lifecycles.status import (
    FatalError,
    PiiDetected,
    State,
    Status,
    Stop,
    TaskBegan,
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


def test_whatever_is_told_was_kept_before() -> None:
    """In every step with a report, SaveState comes first (B10, I4)."""
    records = (after(), after(TaskBegan("t")), after(Stop()), after(TaskBegan("t"), Stop(drain=True)))
    for record in records:
        for event in (each for kind in machine.events for each in kind.examples()):
            step = draining.step(record, event)
            kinds = [type(effect) for effect in step.effects] if isinstance(step, Step) else []
            assert EmitTelemetry not in kinds or kinds.index(SaveState) < kinds.index(EmitTelemetry)


def test_a_failure_without_a_reason_still_has_one() -> None:
    """A failure without a reason is of no use to an operator (B14)."""
    assert after(FatalError()).reason == "unknown"
    assert after(Stop(), FatalError()).last_late_report == "unknown"


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
