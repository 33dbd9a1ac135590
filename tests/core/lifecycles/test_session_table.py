"""What the rows of a session do: effects, counters, thresholds, and the work that begins and ends with a state.

``test_documents`` compares the rows with the document.
"""

import re
from typing import Final

import pytest

from document_tables import Line, lines
from lifefold import effects
from lifefold.core.kernel import Event, IllegalTransition, Record, Step, replace
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.session import (
    BackoffElapsed,
    Error,
    FatalError,
    GraceExceeded,
    Limits,
    OperatorStop,
    PromptReady,
    Session,
    SessionExited,
    SessionStarted,
    State,
    Success,
    Timeout,
    UrgentMessage,
    WorktreeReady,
    machine,
)
from lifefold.effects import (
    Begin,
    CancelSession,
    CancelTimer,
    Effect,
    End,
    ForceStopSession,
    IncrementSession,
    LogFatal,
    Postpone,
    StartTimer,
    StorePrompt,
)

EVENTS: Final[dict[str, Event]] = {
    "WorktreeReady": WorktreeReady(),
    "PromptReady(prompt)": PromptReady("the prompt"),
    "SessionStarted(seq)": SessionStarted(3),
    "SessionExited(Success)": SessionExited(Success()),
    "SessionExited(Error)": SessionExited(Error("exit status 1")),
    "SessionExited(Timeout)": SessionExited(Timeout()),
    "UrgentMessage": UrgentMessage(),
    "GraceExceeded": GraceExceeded(),
    "BackoffElapsed": BackoffElapsed(),
    "OperatorStop": OperatorStop(),
    "FatalError(msg)": FatalError("the message"),
}

OUTCOMES: Final = [label for label in EVENTS if label.startswith("SessionExited")]

EFFECTS: Final = {
    (source, event): (line.targets[0], line.effect.partition(" (")[0])
    for line in lines("session")
    for source in (State if line.sources == ("ANY",) else line.sources)
    for event in (OUTCOMES if line.events == ("SessionExited(*)",) else line.events)
}
"""By state and event of the document: the target below every threshold, and the words for the effects."""

LEGAL: Final = {pair: target for pair, (target, _) in EFFECTS.items()}

DERIVED: Final = (Begin, End, StartTimer, CancelTimer)
BEFORE: Final = Session(
    name="a", session_seq=3, attempt=4, prompt="the last prompt", consecutive_errors=1, total_errors=2
)


def in_state(state: str, **fields: object) -> Session:
    """Return a session in this state, with errors behind it and all thresholds far away."""
    return replace(BEFORE, state=State(state), **fields)


def taken(record: Session, event: Event) -> Step[Session, Effect]:
    """Return the machine's step; the event must be accepted."""
    step = machine.step(record, event)
    assert isinstance(step, Step), str(step)
    return step


def own(step: Step[Session, Effect]) -> tuple[Effect, ...]:
    """Return the effects of the row itself, without those derived from the change of state."""
    return tuple(effect for effect in step.effects if not isinstance(effect, DERIVED))


def own_effects_of_the_document(source: str, column: str) -> tuple[Effect, ...]:
    """Return the side effects that the document writes in a pair's line, below every threshold."""
    meaning: dict[str, tuple[Effect, ...]] = {
        "None": (),
        "None or LogFatal": (),
        "StorePrompt(prompt)": (StorePrompt("the prompt"),),
        "CancelSession": (CancelSession(),),
        "ForceStopSession": (ForceStopSession(),),
        "IncrementSession": (IncrementSession(4),),
        "CancelSession if currently Running or Interrupting; None otherwise": (
            (CancelSession(),) if source in {"Running", "Interrupting"} else ()
        ),
        "LogFatal(msg)": (LogFatal("the message"),),
    }
    return meaning[EFFECTS[source, column][1]]


@pytest.mark.parametrize(("source", "column"), LEGAL, ids=lambda word: word)
def test_a_listed_pair_goes_where_the_document_says_with_its_side_effects(source: str, column: str) -> None:
    """Every legal pair, below every threshold: the target and the row's own effects."""
    step = taken(in_state(source), EVENTS[column])
    assert step.record.state == LEGAL[source, column]
    assert own(step) == own_effects_of_the_document(source, column)


CHANGES: Final[dict[tuple[str, str], dict[str, object]]] = {
    ("BuildingPrompt", "PromptReady(prompt)"): {"prompt": "the prompt", "attempt": 5},
    ("Spawning", "SessionStarted(seq)"): {"consecutive_errors": 0},
    ("Spawning", "SessionExited(Error)"): {"consecutive_errors": 2, "total_errors": 3},
    ("Spawning", "SessionExited(Timeout)"): {"consecutive_errors": 2, "total_errors": 3},
    ("Running", "SessionExited(Success)"): {"consecutive_errors": 0},
    ("Running", "SessionExited(Error)"): {"consecutive_errors": 2, "total_errors": 3},
    ("Running", "SessionExited(Timeout)"): {"consecutive_errors": 2, "total_errors": 3},
    ("SessionComplete", "WorktreeReady"): {"session_seq": 4},
}


@pytest.mark.parametrize(("source", "column"), LEGAL, ids=lambda word: word)
def test_a_listed_pair_changes_the_counters_that_the_document_names_and_nothing_else(source: str, column: str) -> None:
    """Every legal pair, below every threshold: the whole record after it."""
    step = taken(in_state(source), EVENTS[column])
    assert step.record == in_state(LEGAL[source, column], **CHANGES.get((source, column), {}))


def test_an_urgent_message_waits_while_the_session_is_spawning() -> None:
    """The one pair that is neither taken nor refused (D14)."""
    step = taken(in_state("Spawning"), UrgentMessage())
    assert step == Step(in_state("Spawning"), (Postpone(UrgentMessage()),))
    assert {state: machine.postponed(state) for state in State if machine.postponed(state)} == {
        State.SPAWNING: frozenset({UrgentMessage})
    }


@pytest.mark.parametrize("seq", [0, 2, 4])
def test_a_start_of_another_session_is_illegal(seq: int) -> None:
    """The guard of SessionStarted: only the spawned session's number counts (D17)."""
    assert isinstance(machine.step(in_state("Spawning"), SessionStarted(seq)), IllegalTransition)


@pytest.mark.parametrize("column", ["SessionExited(Error)", "SessionExited(Timeout)"])
@pytest.mark.parametrize("source", ["Spawning", "Running"])
@pytest.mark.parametrize(
    ("consecutive", "total", "named"),
    [
        (3, 18, None),
        (4, 18, "5 errors in a row (max_consecutive_errors = 5)"),
        (3, 19, "20 errors in all (max_total_errors = 20)"),
        (4, 19, "5 errors in a row (max_consecutive_errors = 5), 20 errors in all (max_total_errors = 20)"),
    ],
    ids=["neither", "consecutive", "total", "both"],
)
def test_an_error_cools_down_below_the_thresholds_and_stops_at_one(
    source: str, column: str, consecutive: int, total: int, named: str | None
) -> None:
    """The guard of each ``CoolingDown or Stopped`` line, both ways, and the text of LogFatal (D1, D4)."""
    step = taken(in_state(source, consecutive_errors=consecutive, total_errors=total), EVENTS[column])
    target = "CoolingDown" if named is None else "Stopped"
    last = "Timeout" if "Timeout" in column else "Error(exit status 1)"
    assert step.record == in_state(target, consecutive_errors=consecutive + 1, total_errors=total + 1)
    assert own(step) == (() if named is None else (LogFatal(f"{named}; the last was {last}"),))


@pytest.mark.parametrize(("source", "column"), LEGAL, ids=lambda word: word)
def test_work_begins_and_ends_with_the_states_it_belongs_to(source: str, column: str) -> None:
    """Every legal pair: the derived effects, after the row's own effects (D9, D10, D23)."""
    goes_on = {
        "Initializing": {"PrepareWorktree"},
        "BuildingPrompt": {"BuildPrompt"},
        "Spawning": {"RunSession"},
        "Running": {"RunSession"},
        "Interrupting": {"RunSession", "GraceExceeded"},
        "SessionComplete": {"RefreshWorktree"},
        "CoolingDown": {"BackoffElapsed"},
        "Stopped": set[str](),
    }
    last = {
        "WorktreeReady": {"PrepareWorktree", "RefreshWorktree"},
        "PromptReady(prompt)": {"BuildPrompt"},
        **{outcome: {"RunSession"} for outcome in OUTCOMES},
    }
    over = last.get(column, {column})
    target = LEGAL[source, column]
    step = taken(in_state(source), EVENTS[column])
    derived = [effect for effect in step.effects if isinstance(effect, DERIVED)]
    timers = {"GraceExceeded", "BackoffElapsed"}
    expected = {("cancel" if slot in timers else "end", slot) for slot in goes_on[source] - goes_on[target] - over}
    expected |= {("start" if slot in timers else "begin", slot) for slot in goes_on[target] - goes_on[source]}
    words = {Begin: "begin", End: "end", StartTimer: "start", CancelTimer: "cancel"}
    assert {(words[type(effect)], effect.slot) for effect in derived} == expected
    assert len(derived) == len(expected)
    assert step.effects == own(step) + tuple(derived)


@pytest.mark.parametrize("line", lines("session"), ids=str)
def test_the_table_prints_the_side_effects_of_the_document(line: Line) -> None:
    """They come from the annotations of the actions, so a page can be compared with the document."""
    rows = [row for row in machine.rows if line.events == (row.event_label,)]
    from_here = [row for row in rows if line.sources in {("ANY",), (row.source_label,)}]
    printed = {effect.__name__ for row in from_here for effect in row.effects}
    assert printed == {word for word in re.findall(r"[A-Z]\w+", line.effect) if word in vars(effects)}
    assert from_here


def test_only_the_thresholds_and_the_expected_start_are_conditions() -> None:
    """Everything else depends on the state and the outcome alone."""
    assert {(row.event_label, row.when) for row in machine.rows if row.when} == {
        ("SessionStarted(seq)", session.is_expected),
        ("SessionExited(Error)", session.threshold_reached),
        ("SessionExited(Timeout)", session.threshold_reached),
    }


@pytest.mark.parametrize("event", machine.events, ids=lambda event: event.__name__)
def test_every_events_examples_are_of_its_type_and_take_a_row_somewhere(event: type[Event]) -> None:
    """A search that makes up events reaches a transition with each type of event."""
    examples = event.examples()
    assert {type(example) for example in examples} == {event}
    starts: list[Record] = [replace(in_state(state), session_seq=0) for state in State]
    assert any(isinstance(machine.step(r, e), Step) for r in starts for e in examples if isinstance(r, Session))


def test_the_machine_begins_in_initializing_with_the_documents_limits() -> None:
    """Five errors in a row and twenty in all are the document's defaults; Stopped is the only final state."""
    assert machine.initial == Session(state=State.INITIALIZING)
    assert (Limits().max_consecutive_errors, Limits().max_total_errors) == (5, 20)
    assert (Limits().backoff_base_ms, Limits().backoff_cap_ms) == (2_000, 60_000)
    assert machine.final == {State.STOPPED}
    assert machine.name == session.machine.name == "session"
