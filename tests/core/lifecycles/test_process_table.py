"""What each state of a process makes of each event: effects, activities, and the guards both ways.

``test_documents`` compares the rows with the document. ``GRID`` has what a process does with no limit near and nothing
planned. A dot is an illegal pair, an equals sign one that leaves the state as it is.
"""

from typing import Final

import pytest

from document_tables import lines
from lifefold.core.kernel import Event, IllegalTransition, Step, replace
from lifefold.core.lifecycles import process
from lifefold.core.lifecycles.process import (
    BackoffElapsed,
    Comeback,
    Crashed,
    Drained,
    DrainElapsed,
    IdleElapsed,
    LifetimeElapsed,
    Limits,
    MoveRequested,
    Orphaned,
    Process,
    QueueEmptied,
    ResumeRequested,
    RunFailed,
    RunSucceeded,
    StartFailed,
    StartRequested,
    StartSucceeded,
    State,
    StopRequested,
    SuspendDue,
    SuspendReason,
    SuspendRequested,
    TriggerArrived,
    machine,
)
from lifefold.effects import (
    Begin,
    CancelTimer,
    DrainProcess,
    Effect,
    End,
    NotifyProcess,
    PauseTriggers,
    ResumeTriggers,
    ServeTriggers,
    StartProcess,
    StartTimer,
)

EDGES: Final = {
    (State(line.sources[0]), State(line.targets[0])) for line in lines("process") if line.events != ("Orphaned",)
}
"""The document's nineteen pairs of states."""

EVENTS: Final[tuple[Event, ...]] = (
    StartRequested(),
    StopRequested(),
    SuspendRequested(),
    ResumeRequested(),
    StartSucceeded(),
    StartFailed(),
    TriggerArrived(),
    QueueEmptied(),
    RunSucceeded(),
    RunFailed(),
    Crashed(),
    Drained(),
    SuspendDue(),
    IdleElapsed(),
    LifetimeElapsed(),
    DrainElapsed(),
    BackoffElapsed(),
    Orphaned(),
)

GRID: Final = """
          Start Stop Susp Resume Succ Fail Trigg Empty RunOk RunBad Crash Drained SuspDue Idle Life DrainEl Backoff Orph
created   start stop .    .      .    .    .     .     .     .      .     .       .       .    .    .       .       .
starting  .     ping =    .      run  fail .     .     .     .      .     .       .       .    .    .       .       fail
running   .     ping susp .      .    .    =     await =     =      fail  .       =       .    ping .       .       fail
suspended .     ping =    run    .    .    =     =     =     =      fail  .       .       .    ping .       .       fail
awaiting  .     ping run  .      .    .    run   =     =     =      fail  .       .       run  ping .       .       fail
stopping  .     =    .    .      .    .    .     .     =     =      fail  stop    .       .    .    stop    .       fail
stopped   start =    .    .      .    .    .     .     .     .      .     .       .       .    .    .       =       .
failed    start =    .    .      .    .    .     .     .     .      .     .       .       .    .    .       =       .
"""

SHORT: Final = {
    "start": "starting",
    "run": "running",
    "susp": "suspended",
    "await": "awaiting",
    "ping": "stopping",
    "stop": "stopped",
    "fail": "failed",
}

CELLS: Final[dict[tuple[State, Event], str]] = {
    (State(words[0]), event): words[0] if word == "=" else SHORT.get(word, word)
    for words in (line.split() for line in GRID.strip().splitlines()[1:])
    for event, word in zip(EVENTS, words[1:], strict=True)
}

DERIVED: Final = (Begin, End, StartTimer, CancelTimer)


def in_state(state: State, **fields: object) -> Process:
    """Return a process in this state, with something behind it, and all limits far away."""
    suspended = {"suspended_for": SuspendReason.MANUAL} if state is State.SUSPENDED else {}
    return replace(Process(state, "a", restart_count=1, consecutive_failures=1), **{**suspended, **fields})


def taken(record: Process, event: Event) -> Step[Process, Effect]:
    """Return the machine's step; the event must be accepted."""
    step = machine.step(record, event)
    assert isinstance(step, Step), str(step)
    return step


@pytest.mark.parametrize("target", State)
@pytest.mark.parametrize("source", State)
def test_a_target_may_be_asked_for_if_the_document_allows_it_and_not_otherwise(source: State, target: State) -> None:
    """All 64 pairs; a state is no target of itself (C9)."""
    answer = machine.step(in_state(source), MoveRequested(target))
    if (source, target) in EDGES:
        assert isinstance(answer, Step)
        assert answer.record.state is target
    else:
        assert isinstance(answer, IllegalTransition)


@pytest.mark.parametrize(("source", "target"), sorted(EDGES))
def test_a_move_that_expects_another_state_is_refused(source: State, target: State) -> None:
    """The guard of every edge, both ways (C2)."""
    assert isinstance(machine.step(in_state(source), MoveRequested(target, expected_from=source)), Step)
    others = [state for state in State if state is not source]
    for other in others:
        asked = MoveRequested(target, expected_from=other)
        assert isinstance(machine.step(in_state(source), asked), IllegalTransition)


def test_the_grid_has_every_state_and_every_event() -> None:
    """All pairs are compared with the machine."""
    assert {state for state, _ in CELLS} == set(State)
    assert {type(event) for event in EVENTS} | {MoveRequested} == set(machine.events)


@pytest.mark.parametrize(("state", "event"), CELLS, ids=lambda value: getattr(value, "value", type(value).__name__))
def test_a_driving_event_does_what_the_grid_says(state: State, event: Event) -> None:
    """Every pair of a state and an event, with no limit near: the target, or a refusal that says what is possible."""
    answer = machine.step(in_state(state), event)
    if CELLS[state, event] == ".":
        assert isinstance(answer, IllegalTransition)
    else:
        assert isinstance(answer, Step)
        assert answer.record.state == CELLS[state, event]


GUARDED: Final[tuple[tuple[Process, Event, State], ...]] = (
    (in_state(State.SUSPENDED, suspended_for=SuspendReason.IDLE), TriggerArrived(), State.RUNNING),
    (in_state(State.RUNNING, consecutive_failures=2), RunFailed(), State.FAILED),
    (in_state(State.SUSPENDED, consecutive_failures=2), RunFailed(), State.FAILED),
    (in_state(State.AWAITING, consecutive_failures=2), RunFailed(), State.FAILED),
    (in_state(State.RUNNING, suspended_for=SuspendReason.IDLE), QueueEmptied(), State.RUNNING),
    (in_state(State.RUNNING, suspended_for=SuspendReason.BUDGET), SuspendDue(), State.SUSPENDED),
    (in_state(State.RUNNING, suspended_for=SuspendReason.BUDGET), ResumeRequested(), State.RUNNING),
    (in_state(State.STARTING, suspended_for=SuspendReason.BUDGET), ResumeRequested(), State.STARTING),
    (in_state(State.STOPPED, comeback=Comeback.RECYCLE), BackoffElapsed(), State.STARTING),
    (in_state(State.FAILED, comeback=Comeback.RESTART), BackoffElapsed(), State.STARTING),
    (in_state(State.FAILED, comeback=Comeback.RESTART), SuspendRequested(), State.FAILED),
    (in_state(State.STOPPING, comeback=Comeback.RECYCLE), SuspendRequested(), State.STOPPING),
    (
        in_state(State.FAILED, comeback=Comeback.RESTART, suspended_for=SuspendReason.BUDGET),
        ResumeRequested(),
        State.FAILED,
    ),
)


@pytest.mark.parametrize(("record", "event", "target"), GUARDED)
def test_a_guarded_row_is_taken_when_its_guard_agrees(record: Process, event: Event, target: State) -> None:
    """The other side of every guard that the grid shows refusing."""
    assert taken(record, event).record.state is target


@pytest.mark.parametrize(
    "record",
    [
        in_state(State.FAILED, suspended_for=SuspendReason.BUDGET),
        in_state(State.FAILED, comeback=Comeback.RESTART),
    ],
)
def test_nothing_is_resumed_that_is_not_to_come_back_suspended(record: Process) -> None:
    """Both halves of the guard of a resumption of who is down."""
    assert isinstance(machine.step(record, ResumeRequested()), IllegalTransition)


NEWS: Final[tuple[tuple[State, Event, tuple[object, ...]], ...]] = (
    (State.CREATED, StopRequested(), ()),
    (State.CREATED, MoveRequested(State.STOPPED), ()),
    (State.STARTING, StartSucceeded(), (NotifyProcess("started", "", 1),)),
    (State.STARTING, StartFailed("no model"), (NotifyProcess("failed", "no model", 1),)),
    (State.STARTING, MoveRequested(State.RUNNING, "built"), (NotifyProcess("started", "built", 1),)),
    (State.RUNNING, MoveRequested(State.FAILED, "x"), (NotifyProcess("failed", "x", 1),)),
    (State.RUNNING, SuspendRequested(SuspendReason.HEALTH), (PauseTriggers(), NotifyProcess("suspended", "health", 1))),
    (State.RUNNING, MoveRequested(State.SUSPENDED), (PauseTriggers(), NotifyProcess("suspended", "manual", 1))),
    (State.RUNNING, StopRequested(), ()),
    (State.RUNNING, Orphaned(), (NotifyProcess("failed", "orphaned", 1),)),
    (State.SUSPENDED, ResumeRequested("go"), (ResumeTriggers(), NotifyProcess("resumed", "go", 1))),
    (State.AWAITING, IdleElapsed(), (PauseTriggers(),)),
    (State.STOPPING, Drained(), (NotifyProcess("stopped", "", 1),)),
    (State.STOPPING, DrainElapsed(), (NotifyProcess("stopped", "drain timeout", 1),)),
    (State.STOPPING, MoveRequested(State.STOPPED, "bye"), (NotifyProcess("stopped", "bye", 1),)),
)


@pytest.mark.parametrize(("state", "event", "effects"), NEWS)
def test_a_row_asks_for_its_own_effects(state: State, event: Event, effects: tuple[object, ...]) -> None:
    """What is told of a process, and when; a stop of one that was never started is silent."""
    own = tuple(effect for effect in taken(in_state(state), event).effects if not isinstance(effect, DERIVED))
    assert own == effects


GOES_ON: Final = {
    State.CREATED: set[str](),
    State.STARTING: {"StartProcess"},
    State.RUNNING: {"ServeTriggers", "LifetimeElapsed"},
    State.SUSPENDED: {"ServeTriggers", "LifetimeElapsed"},
    State.AWAITING: {"ServeTriggers", "LifetimeElapsed", "IdleElapsed"},
    State.STOPPING: {"DrainProcess", "DrainElapsed"},
    State.STOPPED: set[str](),
    State.FAILED: set[str](),
}


MAY_BE = {"SuspendDue", "BackoffElapsed"}
"""Timers that are there only if the record has a reason for them; to cancel one that is not there does nothing."""


@pytest.mark.parametrize(("source", "target"), sorted(EDGES))
def test_work_and_timers_begin_and_end_with_the_states_they_belong_to(source: State, target: State) -> None:
    """Every edge: what is derived from the change of state. No row can forget to end anything."""
    lasting = in_state(source, limits=Limits(idle_timeout_ms=1_000, max_lifetime_ms=1_000))
    derived = [e for e in taken(lasting, MoveRequested(target)).effects if isinstance(e, DERIVED)]
    ended = {effect.slot for effect in derived if isinstance(effect, End | CancelTimer)} - MAY_BE
    begun = {effect.slot for effect in derived if isinstance(effect, Begin | StartTimer)}
    assert ended == GOES_ON[source] - GOES_ON[target]
    assert begun == GOES_ON[target] - GOES_ON[source]


def test_activities_are_told_what_they_need() -> None:
    """The numbers of the limits reach the work that they limit; a process to be suspended serves nothing."""
    limits = Limits(concurrency=7, queue_limit=8)
    starting = taken(in_state(State.FAILED, restart_count=2), StartRequested())
    running = taken(in_state(State.STARTING, limits=limits), StartSucceeded())
    paused = taken(in_state(State.STARTING, suspended_for=SuspendReason.BUDGET), StartSucceeded())
    stopping = taken(in_state(State.RUNNING), StopRequested())
    activities = [
        effect.activity
        for step in (starting, running, paused, stopping)
        for effect in step.effects
        if isinstance(effect, Begin)
    ]
    assert activities == [StartProcess(2), ServeTriggers(7, 8), ServeTriggers(1, 1_000, paused=True), DrainProcess()]


def test_by_hand_nothing_happens_but_what_is_asked_for() -> None:
    """The profile of the document's interface has the table, the orphan of a crash, and neither timers nor work."""
    assert set(process.by_hand.events) == {MoveRequested, Orphaned}
    assert process.by_hand.spans == {}
    assert process.by_hand.rows[:19] == process.TABLE


@pytest.mark.parametrize("state", State)
def test_a_process_that_is_met_in_a_state_keeps_the_invariants(state: State) -> None:
    """A restored process begins with a record that the reducer could have reached."""
    record = process.found(state)
    assert record.state is state
    assert [holds.__name__ for holds in machine.invariants if not holds(record)] == []
