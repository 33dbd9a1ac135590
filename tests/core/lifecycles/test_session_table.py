"""The session's table against its document: all 88 pairs of a state and an event, and the rows as they are printed.

``DOCUMENT`` and ``GLOBAL`` are the document's own lines. ``GRID`` was filled in from them by hand: what each state
makes of each event. A dot is an illegal pair, ``wait`` one that is postponed (decision D14). The tests hold the lines
against the grid, so that a slip in either shows, and the machine against both.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec
import pytest

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

DOCUMENT: Final = (
    "Initializing | WorktreeReady | BuildingPrompt | None",
    "BuildingPrompt | PromptReady(prompt) | Spawning | StorePrompt(prompt)",
    "Spawning | SessionStarted(seq) | Running { session_seq: seq } | None (resets consecutive_errors to 0)",
    "Spawning | SessionExited(Error) | CoolingDown or Stopped | None or LogFatal (if threshold reached)",
    "Spawning | SessionExited(Timeout) | CoolingDown or Stopped | None or LogFatal (if threshold reached)",
    "Running | SessionExited(Success) | SessionComplete | None (resets consecutive_errors to 0)",
    "Running | SessionExited(Error) | CoolingDown or Stopped | None or LogFatal (if threshold reached)",
    "Running | SessionExited(Timeout) | CoolingDown or Stopped | None or LogFatal (if threshold reached)",
    "Running | UrgentMessage | Interrupting { session_seq } | CancelSession",
    "Interrupting | SessionExited(*) | BuildingPrompt | None (no error increment)",
    "Interrupting | GraceExceeded | BuildingPrompt | ForceStopSession",
    "SessionComplete | WorktreeReady | BuildingPrompt | IncrementSession (bumps session_seq)",
    "CoolingDown | BackoffElapsed | BuildingPrompt | None",
)

GLOBAL: Final = (
    "OperatorStop | Stopped | CancelSession if currently Running or Interrupting; None otherwise",
    "FatalError(msg) | Stopped | LogFatal(msg)",
)

EVENTS: Final[dict[str, Event]] = {
    "WorktreeReady": WorktreeReady(),
    "PromptReady": PromptReady("the prompt"),
    "SessionStarted": SessionStarted(3),
    "Success": SessionExited(Success()),
    "Error": SessionExited(Error("exit status 1")),
    "Timeout": SessionExited(Timeout()),
    "UrgentMessage": UrgentMessage(),
    "GraceExceeded": GraceExceeded(),
    "BackoffElapsed": BackoffElapsed(),
    "OperatorStop": OperatorStop(),
    "FatalError": FatalError("the message"),
}

GRID: Final = """
                Worktree Prompt   Session                    Urgent  Grace    Backoff Operator Fatal
                Ready    Ready    Started Success Error   Timeout Message Exceeded TimerFired Stop     Error
Initializing    Building .        .       .       .       .       .       .        .       Stopped  Stopped
BuildingPrompt  .        Spawning .       .       .       .       .       .        .       Stopped  Stopped
Spawning        .        .        Running .       Cooling Cooling wait    .        .       Stopped  Stopped
Running         .        .        .       Complete Cooling Cooling Interr  .       .       Stopped  Stopped
Interrupting    .        .        .       Building Building Building .    Building .       Stopped  Stopped
SessionComplete Building .        .       .       .       .       .       .        .       Stopped  Stopped
CoolingDown     .        .        .       .       .       .       .       .        Building Stopped Stopped
Stopped         .        .        .       .       .       .       .       .        .       Stopped  Stopped
"""

SHORT: Final = {
    "Building": "BuildingPrompt",
    "Spawning": "Spawning",
    "Running": "Running",
    "Complete": "SessionComplete",
    "Interr": "Interrupting",
    "Cooling": "CoolingDown",
    "Stopped": "Stopped",
}

CELLS: Final = {
    (words[0], event): SHORT.get(word, word)
    for words in (line.split() for line in GRID.splitlines()[3:])
    for event, word in zip(EVENTS, words[1:], strict=True)
}
"""The target of each state and event, below every threshold."""

LEGAL: Final = {pair: target for pair, target in CELLS.items() if target not in {".", "wait"}}
ILLEGAL: Final = [pair for pair, target in CELLS.items() if target == "."]

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


def lines() -> Iterator[tuple[str, str, str, str]]:
    """Yield the document's lines, a global one once for every state: source, event, target, side effect."""
    for line in DOCUMENT:
        source, event, target, effect = line.split(" | ")
        yield source, event, target, effect
    for line in GLOBAL:
        event, target, effect = line.split(" | ")
        for state in State:
            yield state.value, event, target, effect


def columns(label: str) -> list[str]:
    """Return the columns of the grid that an event of the document means."""
    name, variant = (re.match(r"(\w+)(?:\((.+)\))?", label) or [label]).groups()  # type: ignore[union-attr]
    if name != "SessionExited":
        return [name]
    return ["Success", "Error", "Timeout"] if variant == "*" else [variant]


def test_the_grid_has_eight_states_and_eleven_events() -> None:
    """All 88 pairs are compared with the machine."""
    assert [state.value for state in State] == [line.split()[0] for line in GRID.splitlines()[3:]]
    assert len(CELLS) == 88
    assert {type(event) for event in EVENTS.values()} == set(machine.events)


def test_the_grid_says_what_the_document_says() -> None:
    """Each line fills its cells of the grid, and no other cell has a target (D18: 57 pairs are unlisted)."""
    listed = {(source, column): target.split()[0] for source, event, target, _ in lines() for column in columns(event)}
    assert listed == LEGAL
    assert len(CELLS) - len(listed) == 57


def own_effects_of_the_document(source: str, column: str) -> tuple[Effect, ...]:
    """Return the side effects that the document writes in a pair's line, below every threshold."""
    (words,) = {effect for state, event, _, effect in lines() if state == source and column in columns(event)}
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
    return meaning[words.partition(" (")[0]]


@pytest.mark.parametrize(("source", "column"), LEGAL, ids=lambda word: word)
def test_a_listed_pair_goes_where_the_document_says_with_its_side_effects(source: str, column: str) -> None:
    """Every legal pair, below every threshold: the target and the row's own effects."""
    step = taken(in_state(source), EVENTS[column])
    assert step.record.state == LEGAL[source, column]
    assert own(step) == own_effects_of_the_document(source, column)


CHANGES: Final[dict[tuple[str, str], dict[str, object]]] = {
    ("BuildingPrompt", "PromptReady"): {"prompt": "the prompt", "attempt": 5},
    ("Spawning", "SessionStarted"): {"consecutive_errors": 0},
    ("Spawning", "Error"): {"consecutive_errors": 2, "total_errors": 3},
    ("Spawning", "Timeout"): {"consecutive_errors": 2, "total_errors": 3},
    ("Running", "Success"): {"consecutive_errors": 0},
    ("Running", "Error"): {"consecutive_errors": 2, "total_errors": 3},
    ("Running", "Timeout"): {"consecutive_errors": 2, "total_errors": 3},
    ("SessionComplete", "WorktreeReady"): {"session_seq": 4},
}


@pytest.mark.parametrize(("source", "column"), LEGAL, ids=lambda word: word)
def test_a_listed_pair_changes_the_counters_that_the_document_names_and_nothing_else(source: str, column: str) -> None:
    """Every legal pair, below every threshold: the whole record after it."""
    step = taken(in_state(source), EVENTS[column])
    assert step.record == in_state(LEGAL[source, column], **CHANGES.get((source, column), {}))


@pytest.mark.parametrize(("source", "column"), ILLEGAL, ids=lambda word: word)
def test_an_unlisted_pair_is_illegal_and_changes_nothing(source: str, column: str) -> None:
    """Every pair that the document does not list is refused, with the events that the state would take (D18)."""
    record = in_state(source)
    before = msgspec.json.encode(record)
    answer = machine.step(record, EVENTS[column])
    possible = [type(EVENTS[c]).__name__ for s, c in CELLS if s == source and CELLS[s, c] != "."]
    assert isinstance(answer, IllegalTransition)
    assert (answer.machine, answer.state, answer.event) == ("session", source, EVENTS[column])
    assert set(answer.allowed) == set(possible) == set(machine.allowed(State(source)))
    assert msgspec.json.encode(record) == before


def test_an_urgent_message_waits_while_the_session_is_spawning() -> None:
    """The one pair that is neither taken nor refused (D14)."""
    assert [pair for pair, target in CELLS.items() if target == "wait"] == [("Spawning", "UrgentMessage")]
    step = taken(in_state("Spawning"), UrgentMessage())
    assert step == Step(in_state("Spawning"), (Postpone(UrgentMessage()),))
    assert {state: machine.postponed(state) for state in State if machine.postponed(state)} == {
        State.SPAWNING: frozenset({UrgentMessage})
    }


@pytest.mark.parametrize("seq", [0, 2, 4])
def test_a_start_of_another_session_is_illegal(seq: int) -> None:
    """The guard of SessionStarted: only the spawned session's number counts (D17)."""
    assert isinstance(machine.step(in_state("Spawning"), SessionStarted(seq)), IllegalTransition)


@pytest.mark.parametrize("column", ["Error", "Timeout"])
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
    last = {"Error": "Error(exit status 1)", "Timeout": "Timeout"}[column]
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
        "PromptReady": {"BuildPrompt"},
        **{outcome: {"RunSession"} for outcome in ("Success", "Error", "Timeout")},
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


PRINTED: Final = (
    ("Initializing", "WorktreeReady", "BuildingPrompt", ""),
    ("BuildingPrompt", "PromptReady(prompt)", "Spawning", "StorePrompt"),
    ("Spawning", "SessionStarted(seq)", "Running", ""),
    ("Spawning", "SessionExited(Error)", "Stopped", "LogFatal"),
    ("Spawning", "SessionExited(Error)", "CoolingDown", ""),
    ("Spawning", "SessionExited(Timeout)", "Stopped", "LogFatal"),
    ("Spawning", "SessionExited(Timeout)", "CoolingDown", ""),
    ("Running", "SessionExited(Success)", "SessionComplete", ""),
    ("Running", "SessionExited(Error)", "Stopped", "LogFatal"),
    ("Running", "SessionExited(Error)", "CoolingDown", ""),
    ("Running", "SessionExited(Timeout)", "Stopped", "LogFatal"),
    ("Running", "SessionExited(Timeout)", "CoolingDown", ""),
    ("Running", "UrgentMessage", "Interrupting", "CancelSession"),
    ("Interrupting", "SessionExited(*)", "BuildingPrompt", ""),
    ("Interrupting", "GraceExceeded", "BuildingPrompt", "ForceStopSession"),
    ("SessionComplete", "WorktreeReady", "BuildingPrompt", "IncrementSession"),
    ("CoolingDown", "BackoffElapsed", "BuildingPrompt", ""),
    ("Interrupting | Running", "OperatorStop", "Stopped", "CancelSession"),
    ("ANY", "OperatorStop", "Stopped", ""),
    ("ANY", "FatalError(msg)", "Stopped", "LogFatal"),
)


def test_the_rows_are_printed_as_the_document_spells_them() -> None:
    """Source, event, target and effects of every row, in the document's order and words."""
    printed = [
        (row.source_label, row.event_label, row.target_label, ", ".join(effect.__name__ for effect in row.effects))
        for row in machine.rows
    ]
    assert printed == list(PRINTED)


def test_the_printed_rows_come_to_the_documents_lines() -> None:
    """Two rows for each ``CoolingDown or Stopped``; otherwise a row for every line of the first table, in its order."""
    merged: dict[tuple[str, str], tuple[str, str]] = {}
    for source, event, target, effect in reversed(PRINTED[:17]):
        before = merged.get((source, event))
        line = (target, effect or "None")
        merged[source, event] = line if before is None else (f"{before[0]} or {line[0]}", f"{before[1]} or {line[1]}")
    rendered = [(source, event, *merged[source, event]) for source, event in reversed(merged)]
    document = [
        (source, event, target.partition(" {")[0], effect.partition(" (")[0].partition("(")[0])
        for source, event, target, effect in (line.split(" | ") for line in DOCUMENT)
    ]
    assert rendered == document


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
