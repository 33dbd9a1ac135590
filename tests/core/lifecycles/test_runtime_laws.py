"""What holds of every agent's preemption, whatever happens: laws over arbitrary sequences of events."""

import itertools
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from lifefold.core.kernel import EntityStep, Event
from lifefold.core.lifecycles import runtime, runtime_profiles
from lifefold.core.lifecycles.runtime import (
    Complete,
    CompleteRecovery,
    DeadlinePassed,
    Fail,
    FailRecovery,
    PreemptionForced,
    PreemptionRequested,
    Ready,
    Recover,
    Resume,
    Run,
    Schedule,
    SectionEntered,
    SectionLeft,
    Shutdown,
    Start,
    State,
    Suspend,
    Wait,
    WaitResources,
    due_ms,
    safe_point,
)
from runtime_life import AgentLife

EVENTS: Final = st.one_of(
    st.sampled_from([
        Start(), Schedule("T1"), Run(), Wait(), WaitResources(), Suspend(), Resume(), Complete(), Ready(), Fail("x"),
        Shutdown(), Recover(), CompleteRecovery(), FailRecovery("x"), DeadlinePassed(), DeadlinePassed(),
        PreemptionRequested("now"), PreemptionForced("low"),
    ]),
    st.builds(SectionEntered, st.integers(1, 3), st.none() | st.integers(0, 60_000)),
    st.builds(SectionLeft, st.integers(1, 3)),
)  # fmt: skip
MOVES: Final = st.lists(st.tuples(EVENTS, st.sampled_from([0, 1, 5_000, 30_000])), max_size=60)
CONSUMES: Final = {State.SUSPENDED, State.RUNNABLE}


@given(MOVES)
def test_a_request_is_lost_only_by_suspending_or_with_its_task(moves: list[tuple[Event, int]]) -> None:
    """From the request on it stands, through sections, waits and failures (A15, A16)."""
    life = AgentLife().take(Start(), Schedule("T1"), Run())
    for event, ms in moves:
        asked, before = life.record.preemption.requested, life.state
        life.wait(ms).give(event)
        if asked and not life.record.preemption.requested:
            assert life.state in CONSUMES
            assert life.state is not before


@given(MOVES)
def test_a_safe_point_asks_exactly_if_there_is_a_request_and_no_section(moves: list[tuple[Event, int]]) -> None:
    """The sections that are being executed are those that were entered and not left, in a model of this test (A15)."""
    life, inside = AgentLife().take(Start(), Schedule("T1"), Run()), set[int]()
    for event, ms in moves:
        before = life.state
        if isinstance(life.wait(ms).give(event), EntityStep):
            if isinstance(event, SectionEntered):
                inside.add(event.key)
            elif isinstance(event, SectionLeft):
                inside.remove(event.key)
            if life.state is State.RUNNABLE and before is not State.RUNNABLE:
                inside.clear()
        assert {section.key for section in life.record.preemption.sections} == inside
        assert safe_point(life.record) == (life.record.preemption.requested and not inside)


@given(MOVES)
def test_force_comes_after_a_signal_and_its_whole_grace_and_never_within_a_section_declared_before_it(
    moves: list[tuple[Event, int]],
) -> None:
    """No agent is failed without having been told (A17)."""
    life, signalled_ms = AgentLife().take(Start(), Schedule("T1"), Run()), -1
    for event, ms in moves:
        before = life.record
        taken = isinstance(life.wait(ms).give(event), EntityStep)
        if taken and isinstance(event, PreemptionForced | DeadlinePassed):
            if life.state is State.FAILED:
                assert life.now_ms >= signalled_ms + 5_000
                inside = before.preemption.entered_by(signalled_ms)
                limits = [section.until_ms for section in inside if section.until_ms is not None]
                assert min(limits, default=0) <= life.now_ms
            elif before.preemption.signalled_ms is None:
                signalled_ms = life.now_ms


@given(MOVES)
def test_an_agent_is_signalled_or_failed_exactly_when_it_is_due(moves: list[tuple[Event, int]]) -> None:
    """``due_ms`` is all that the keeper of the time has to know (A17)."""
    life = AgentLife().take(Start(), Schedule("T1"), Run())
    for event, ms in moves:
        life.give(event)
        due = due_ms(life.record)
        life.wait(ms)
        record = life.record
        assert life.deadline() == (due is not None and due <= life.now_ms)
        assert due is None or record.state is State.RUNNING


BUSY: Final = st.lists(
    st.one_of(
        st.sampled_from([Wait(), WaitResources(), Run(), PreemptionRequested("still")]),
        st.builds(SectionEntered, st.integers(1, 3), st.integers(0, 10_000)),
        st.builds(SectionLeft, st.integers(1, 3)),
    ),
    min_size=1,
    max_size=8,
)
"""What an agent may go on with that never yields: it waits, resumes, and declares sections of up to ten seconds."""


@given(BUSY, st.integers(1_000, 4_900))
def test_no_agent_evades_preemption_by_keeping_busy(moves: list[Event], ms: int) -> None:
    """Whatever it goes on with, over and over: after the timeout, two graces and two sections it is failed (A17)."""
    life, ran_ms = AgentLife().take(Start(), Schedule("T1"), Run(), PreemptionRequested("now")), 0
    for event in itertools.islice(itertools.cycle([*moves, Run()]), 500):
        life.give(event)
        while life.deadline():
            pass
        ran_ms += ms if life.state is State.RUNNING else 0
        life.wait(ms)
    assert life.state is State.FAILED or ran_ms < 30_000 + 2 * 5_000 + 2 * 10_000 + ms


@given(MOVES)
def test_every_profile_keeps_its_invariants(moves: list[tuple[Event, int]]) -> None:
    """Whatever is sent, in whatever order."""
    for machine in (
        runtime.machine,
        runtime_profiles.agentpy,
        runtime_profiles.graceful,
        runtime_profiles.supervised,
        runtime_profiles.watched,
    ):
        life = AgentLife(machine)
        working = (Start(), Schedule("T1"), Run())
        for event, ms in [*((event, 0) for event in working), *moves]:
            life.wait(ms).give(event)
            assert [holds.__name__ for holds in machine.invariants if not holds(life.record)] == []
