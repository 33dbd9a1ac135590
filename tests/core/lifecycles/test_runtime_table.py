"""What the rows of a runtime do: hooks, fields, timers; and its numbers.

``test_documents`` compares the rows with the document.
"""

from typing import Final

import pytest

from document_tables import quoted
from lifefold.core.kernel import ActivityScope, After, Event, IllegalTransition, Machine, Step, replace
from lifefold.core.lifecycles import runtime, runtime_profiles
from lifefold.core.lifecycles.runtime import (
    AT_WORK,
    SDK,
    SEED,
    Complete,
    CompleteRecovery,
    DeadlinePassed,
    Fail,
    FailRecovery,
    InitTimedOut,
    Limits,
    PreemptionForced,
    PreemptionRequested,
    Ready,
    Recover,
    RecoveryTimedOut,
    ResourceTimedOut,
    Resume,
    Run,
    Runtime,
    Schedule,
    SectionEntered,
    SectionLeft,
    Shutdown,
    ShutdownTimedOut,
    Start,
    State,
    Suspend,
    SuspendTimedOut,
    Wait,
    WaitResources,
    machine,
)
from lifefold.core.lifecycles.runtime_preemption import Preemption, Section
from lifefold.effects import (
    CallHook,
    CancelTimer,
    Effect,
    LogFailure,
    ReportTaskFailed,
    SignalPreemption,
    StartTimer,
)
from lifefold.interpreters.facades.moves import open_targets
from lifefold.interpreters.views.outline import arcs

CELLS: Final = quoted(machine, "runtime")
EDGES: Final = {(source, target) for (source, _), targets in CELLS.items() for target in targets if target != source}
BESIDE: Final = {"PreemptionRequested", "SectionEntered", "SectionLeft"}
"""What every state takes, and stays as it is."""

EVENTS: Final[dict[str, Event]] = {
    type(event).__name__: event
    for event in (
        Start(), InitTimedOut(), Schedule("T2"), Run(), Wait(), WaitResources(), Suspend(), Complete(), Fail("why"),
        DeadlinePassed(), Shutdown(), ResourceTimedOut(), Resume(), SuspendTimedOut(), Ready(), Recover(),
        ShutdownTimedOut(), CompleteRecovery(), FailRecovery("why"), RecoveryTimedOut(), PreemptionRequested("now"),
        PreemptionForced("now"), SectionEntered(2, 10), SectionLeft(1),
    )
}  # fmt: skip

OVERDUE: Final = Preemption(
    requested=True, reason="soon", asked_ms=0, since_ms=0, signalled_ms=0, sections=(Section(1, 50),)
)
BEFORE: Final = Runtime(agent_id="a", at_ms=90_000, task_id="T1", recoveries=2, preemption=OVERDUE)
"""An agent whose every guard agrees: its grace is over, section 1 is being executed, and section 2 is not."""

FAILED: Final = {"failure_reason": "it broke", "error_code": "code"}


def in_state(name: str, **fields: object) -> Runtime:
    state = State(name)
    failed = FAILED if state in {State.FAILED, State.RECOVERING} else {}
    return replace(BEFORE, state=state, **failed, **fields)


def taken(record: Runtime, event: Event, by: Machine[Runtime] = machine) -> Step[Runtime, Effect]:
    step = by.step(record, event)
    assert isinstance(step, Step), str(step)
    return step


def own(step: Step[Runtime, Effect]) -> tuple[Effect, ...]:
    return tuple(effect for effect in step.effects if not isinstance(effect, StartTimer | CancelTimer))


TARGET: Final = {pair: target for pair, targets in CELLS.items() for target in targets if target != pair[0]}
"""Where each state and event of the document leads, by an agent whose every guard agrees."""

LEGAL: Final = list(TARGET)


@pytest.mark.parametrize("event", sorted(BESIDE))
@pytest.mark.parametrize("source", State)
def test_what_stands_beside_the_state_changes_in_every_state_and_leaves_it(source: State, event: str) -> None:
    """Preemption is asked for, and deferred, whatever the agent is doing (A15); only a task's request is kept."""
    record = in_state(source)
    step = taken(record, EVENTS[event])
    assert step.record.state is source
    assert replace(step.record, preemption=record.preemption) == record
    kept = event != "PreemptionRequested" or source in AT_WORK
    assert (step.record.preemption != record.preemption) == kept


EFFECTS: Final[dict[tuple[str, str], tuple[Effect, ...]]] = {
    ("INITIALIZING", "Start"): (CallHook("on_startup", (), before=True),),
    ("INITIALIZING", "InitTimedOut"): (LogFailure("init_timeout", "INITIALIZING lasted too long"),),
    ("RUNNABLE", "Schedule"): (CallHook("on_scheduled", ("T2",)),),
    ("RUNNING", "Suspend"): (CallHook("on_suspend", (), before=True),),
    ("RUNNING", "DeadlinePassed"): (LogFailure("forced_preemption", "preemption was forced: soon"),),
    ("RUNNING", "Shutdown"): (CallHook("on_shutdown", (), before=True),),
    ("WAITING_RESOURCES", "ResourceTimedOut"): (LogFailure("resource_timeout", "WAITING_RESOURCES lasted too long"),),
    ("SUSPENDED", "Resume"): (CallHook("on_resume"),),
    ("SUSPENDED", "SuspendTimedOut"): (LogFailure("suspend_timeout", "SUSPENDED lasted too long"),),
    ("FAILED", "Recover"): (CallHook("on_recovery_start"),),
    ("SHUTTING_DOWN", "ShutdownTimedOut"): (LogFailure("agent_shutdown_timeout", "SHUTTING_DOWN lasted too long"),),
    ("RECOVERING", "CompleteRecovery"): (
        CallHook("on_recovery_complete", (True,)),
        ReportTaskFailed("T1", "it broke", "code"),
    ),
    ("RECOVERING", "FailRecovery"): (CallHook("on_recovery_complete", (False,)),),
    ("RECOVERING", "Fail"): (CallHook("on_recovery_complete", (False,)),),
    ("RECOVERING", "RecoveryTimedOut"): (
        LogFailure("recovery_timeout", "RECOVERING lasted too long"),
        CallHook("on_recovery_complete", (False,)),
    ),
    ("RECOVERING", "Shutdown"): (
        CallHook("on_shutdown", (), before=True),
        CallHook("on_recovery_complete", (False,)),
        ReportTaskFailed("T1", "it broke", "code"),
    ),
}


def test_the_table_prints_the_hooks_that_are_called() -> None:
    """A page can be held beside the document's column of hooks: what it says is what the rows ask for."""
    moving = [arc for arc in arcs(machine) if arc.row.target is not None]
    printed = {(str(arc.source), arc.row.event.__name__): set(arc.effects) for arc in moving}
    for source, event in LEGAL:
        asked = EFFECTS.get((source, event), ())
        called = {f"CallHook({e.name})" if isinstance(e, CallHook) else type(e).__name__ for e in asked}
        assert printed[source, event] == called
    assert {arc.effects for arc in arcs(machine) if arc.row.event is PreemptionRequested} == {
        ("CallHook(on_preempt_request)",)
    }


@pytest.mark.parametrize("timer", machine.spans.values(), ids=lambda timer: timer.during.slot)
def test_a_timeout_has_a_name_and_a_description(timer: ActivityScope[Runtime]) -> None:
    """Every duration has a name and a line about it, for tables to print (A6)."""
    assert isinstance(timer.during, After)
    assert timer.during.duration_ms.__name__.endswith("_timeout_ms")
    assert (timer.during.duration_ms.__doc__ or "").startswith("Return the time limit of ")


@pytest.mark.parametrize(("source", "event"), LEGAL)
def test_a_listed_pair_asks_for_the_documents_hooks(source: str, event: str) -> None:
    """The hooks of the reference table, before or after as the document says; wait, run and so on have none."""
    assert own(taken(in_state(source), EVENTS[event])) == EFFECTS.get((source, event), ())


RELIEVED: Final[dict[str, object]] = {
    "task_id": None,
    "failure_reason": None,
    "error_code": "",
    "preemption": Preemption(),
}
SPARED: Final = replace(OVERDUE, signalled_ms=None, spared_ms=90_000)
CHANGES: Final[dict[tuple[str, str], dict[str, object]]] = {
    ("INITIALIZING", "InitTimedOut"): {
        "failure_reason": "INITIALIZING lasted too long",
        "error_code": "init_timeout",
    },
    ("RUNNABLE", "Schedule"): {"task_id": "T2"},
    ("SCHEDULED", "Run"): {"preemption": SPARED},
    ("WAITING", "Run"): {"preemption": SPARED},
    ("WAITING_RESOURCES", "Run"): {"preemption": SPARED},
    ("RESUMED", "Run"): {"preemption": SPARED},
    ("RUNNING", "Suspend"): {"preemption": Preemption(sections=OVERDUE.sections)},
    ("RUNNING", "Complete"): {"recoveries": 0, "task_id": None},
    ("RUNNING", "Fail"): {"failure_reason": "why"},
    ("RUNNING", "DeadlinePassed"): {
        "failure_reason": "preemption was forced: soon",
        "error_code": "forced_preemption",
    },
    ("WAITING_RESOURCES", "ResourceTimedOut"): {
        "failure_reason": "WAITING_RESOURCES lasted too long",
        "error_code": "resource_timeout",
    },
    ("SUSPENDED", "SuspendTimedOut"): {
        "failure_reason": "SUSPENDED lasted too long",
        "error_code": "suspend_timeout",
    },
    ("COMPLETED", "Ready"): RELIEVED,
    ("FAILED", "Recover"): {"recoveries": 3},
    ("SHUTTING_DOWN", "ShutdownTimedOut"): {
        "failure_reason": "SHUTTING_DOWN lasted too long",
        "error_code": "agent_shutdown_timeout",
    },
    ("SHUTTING_DOWN", "Fail"): {"failure_reason": "why"},
    ("RECOVERING", "CompleteRecovery"): RELIEVED,
    ("RECOVERING", "FailRecovery"): {"failure_reason": "why", "error_code": ""},
    ("RECOVERING", "Fail"): {"failure_reason": "why", "error_code": ""},
    ("RECOVERING", "RecoveryTimedOut"): {
        "failure_reason": "RECOVERING lasted too long",
        "error_code": "recovery_timeout",
    },
    ("RECOVERING", "Shutdown"): {"task_id": None},
}


@pytest.mark.parametrize(("source", "event"), LEGAL)
def test_a_listed_pair_changes_these_fields_and_no_others(source: str, event: str) -> None:
    """The whole record after every legal pair."""
    record = in_state(source)
    expected = replace(record, state=State(TARGET[source, event]), **CHANGES.get((source, event), {}))
    assert taken(record, EVENTS[event]).record == expected


TIMERS: Final = {
    "INITIALIZING": ("InitTimedOut", 60_000),
    "WAITING_RESOURCES": ("ResourceTimedOut", 300_000),
    "SUSPENDED": ("SuspendTimedOut", 3_600_000),
    "RECOVERING": ("RecoveryTimedOut", 120_000),
    "SHUTTING_DOWN": ("ShutdownTimedOut", 30_000),
}


@pytest.mark.parametrize(("source", "event"), LEGAL)
def test_the_timeout_of_a_state_runs_while_it_holds(source: str, event: str) -> None:
    """Every legal pair: entering such a state starts its timer, leaving it by another event cancels it (A6)."""
    target = TARGET[source, event]
    step = taken(in_state(source), EVENTS[event])
    derived = [effect for effect in step.effects if isinstance(effect, StartTimer | CancelTimer)]
    left = [CancelTimer(TIMERS[source][0])] if source in TIMERS and TIMERS[source][0] != event else []
    entered = [StartTimer(*TIMERS[target])] if target in TIMERS else []
    assert derived == [*left, *entered]


def test_an_agent_begins_in_initializing_with_its_timer() -> None:
    """The limits are those of the document's system; every agent begins without a name and without a task."""
    assert machine.initial == Runtime(state=State.INITIALIZING)
    assert machine.entering(machine.initial) == (StartTimer("InitTimedOut", 60_000),)
    assert machine.final == frozenset()


@pytest.mark.parametrize(
    ("signalled_ms", "due_ms", "goes"),
    [(None, 90_001, None), (None, 90_000, "RUNNING"), (85_001, 90_001, None), (85_000, 90_000, "FAILED")],
)
def test_a_deadline_counts_from_its_very_millisecond_on(
    signalled_ms: int | None, due_ms: int, goes: str | None
) -> None:
    """The guards of DeadlinePassed, both ways: too early for the signal, in time, too early for the end, in time."""
    since_ms = 0 if signalled_ms else due_ms - 30_000
    waiting = Preemption(requested=True, asked_ms=0, since_ms=since_ms, signalled_ms=signalled_ms)
    record = in_state("RUNNING", preemption=waiting)
    assert runtime.due_ms(record) == due_ms
    answer = machine.step(record, DeadlinePassed())
    assert (answer.record.state.value if isinstance(answer, Step) else None) == goes


def test_a_section_is_entered_once_and_left_once() -> None:
    """The guards of the sections, the other way: the key is there already, or it is not."""
    record = in_state("RUNNING")
    assert isinstance(machine.step(record, SectionEntered(1)), IllegalTransition)
    assert isinstance(machine.step(record, SectionLeft(2)), IllegalTransition)


def test_forced_preemption_is_for_an_agent_that_runs() -> None:
    """It asks at once, and only once."""
    calm = in_state("RUNNING", preemption=Preemption())
    step = taken(calm, PreemptionForced("memory"))
    assert own(step) == (SignalPreemption("memory", 5_000),)
    assert step.record.preemption == Preemption(requested=True, reason="memory", asked_ms=90_000, signalled_ms=90_000)
    again = taken(replace(step.record, at_ms=91_000), PreemptionForced("still"))
    assert again.record.preemption == replace(step.record.preemption, reason="still")
    assert own(again) == ()


# Profiles


def test_the_profile_of_the_cited_source_has_no_timers_and_ends_with_its_task() -> None:
    """COMPLETED is final there (A1)."""
    assert runtime_profiles.agentpy.final == {State.COMPLETED}
    assert not runtime_profiles.agentpy.spans


def test_an_agent_of_the_graceful_profile_completes_its_shutdown() -> None:
    """It is over then, without a failure (A4)."""
    completed = in_state("COMPLETED", recoveries=0, is_over=True, task_id=None)
    assert taken(in_state("SHUTTING_DOWN", **FAILED), Complete(), runtime_profiles.graceful).record == completed


@pytest.mark.parametrize("state", State)
def test_the_targets_of_a_state_are_those_of_its_edges(state: State) -> None:
    """Asked of the reducer, not of the table."""
    expected = [other for other in State if (state.value, other.value) in EDGES]
    assert list(open_targets(machine, in_state(state))) == expected


# Numbers


def test_the_document_numbers_its_states_from_zero() -> None:
    """The names are identity; the reference table's column "Value" (A19)."""
    column = (
        "INITIALIZING RUNNABLE SCHEDULED RUNNING WAITING WAITING_RESOURCES SUSPENDED RESUMED COMPLETED FAILED"
        " SHUTTING_DOWN RECOVERING"
    ).split()
    assert [state.value for state in State] == column
    assert [SEED.number(state) for state in State] == list(range(12))
    assert [SEED.state(number) for number in range(12)] == list(State)


def test_the_later_numbering_keeps_zero_for_unspecified() -> None:
    """From 1 to 12 (A19)."""
    assert [SDK.number(state) for state in State] == list(range(1, 13))
    assert [SDK.state(number) for number in range(14)] == [None, *State, None]
    assert [SEED.state(-1), SEED.state(12)] == [None, None]


@pytest.mark.parametrize("field", Limits.__struct_fields__[:-1])
def test_a_limit_that_could_never_work_is_refused_by_name(field: str) -> None:
    """Times and counts; the retry strategy has its own."""
    with pytest.raises(ValueError, match=f"{field} must be at least"):
        Limits(**{field: -1})  # type: ignore[arg-type] # a time or a count, by name
