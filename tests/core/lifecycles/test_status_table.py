"""What each state of a status makes of each event, with every guard both ways, and the order of its effects.

``test_documents`` compares the rows with document 001. ``GRID`` has an agent without an active task. A dot is an
illegal pair, ``stay`` one that changes at most other fields.
"""

from typing import Final

import pytest

from lifefold.core.kernel import Event, IllegalTransition, Machine, Record, Step, replace
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
from lifefold.effects import CallHook, Effect, EmitTelemetry, SaveState

EVENTS: Final[dict[str, Event]] = {
    "Spawn": Spawn(),
    "Stop": Stop(),
    "Drain": Stop(drain=True),
    "Force": Stop(force=True),
    "Fatal": FatalError("boom", 3),
    "Began": TaskBegan("t"),
    "Ended": TaskEnded("t"),
    "Pii": PiiDetected(),
}

GRID: Final = """
         Spawn   Stop    Drain   Force   Fatal  Began  Ended  Pii
RUNNING  .       STOPPED STOPPED STOPPED FAILED stay   .      stay
STOPPED  RUNNING stay    stay    stay    stay   .      stay   stay
FAILED   stay    stay    stay    stay    stay   stay   stay   stay
"""

BUSY: Final = """
         Spawn   Stop    Drain   Force   Fatal  Began  Ended  Pii
RUNNING  .       .       .       STOPPED FAILED .      stay   stay
"""
"""The same for an agent at work on the task t."""

MAY_DRAIN: Final = BUSY.replace("RUNNING  .       .       .   ", "RUNNING  .       .       stay")
"""The same in the profile ``draining``."""

DRAINING: Final = """
         Spawn   Stop    Drain   Force   Fatal  Began  Ended   Pii
RUNNING  .       .       stay    STOPPED FAILED .      STOPPED stay
"""
"""The same of a draining agent in the profile."""


def cells(grid: str) -> list[tuple[str, str, str]]:
    head, *lines = [line.split() for line in grid.strip().splitlines()]
    return [(line[0], column, word) for line in lines for column, word in zip(head, line[1:], strict=True)]


def an_agent(state: str, **fields: object) -> Status:
    reason = "boom" if state == "FAILED" else ""
    return replace(
        Status(agent_id="agent_1", incarnation=2, pii_detections=5, reason=reason), state=State(state), **fields
    )


def taken(record: Status, event: Event) -> Step[Status, Effect]:
    step = draining.step(record, event)
    assert isinstance(step, Step), str(step)
    return step


def must_answer(record: Status, event: Event, word: str, machine: Machine[Status] = machine) -> None:
    answer = machine.step(record, event)
    if word == ".":
        assert isinstance(answer, IllegalTransition)
    else:
        assert isinstance(answer, Step), str(answer)
        assert answer.record.state == (record.state if word == "stay" else word)
        assert all(holds(answer.record) for holds in machine.invariants)


@pytest.mark.parametrize(("state", "column", "word"), cells(GRID))
def test_every_pair_is_what_the_grid_says(state: str, column: str, word: str) -> None:
    """Three states, eight kinds of event, no active task; the profile has nothing to drain."""
    must_answer(an_agent(state), EVENTS[column], word)
    must_answer(an_agent(state), EVENTS[column], word, draining)


@pytest.mark.parametrize(("state", "column", "word"), cells(BUSY))
def test_an_agent_at_work_is_not_stopped_without_more_words(state: str, column: str, word: str) -> None:
    """The guard "no active tasks" (B2)."""
    must_answer(an_agent(state, tasks=("t",)), EVENTS[column], word)


@pytest.mark.parametrize(("state", "column", "word"), cells(MAY_DRAIN))
def test_an_agent_at_work_may_be_told_to_drain(state: str, column: str, word: str) -> None:
    """In the profile; it goes on until its tasks have ended (B2)."""
    must_answer(an_agent(state, tasks=("t",)), EVENTS[column], word, draining)


@pytest.mark.parametrize(("state", "column", "word"), cells(DRAINING))
def test_an_agent_that_drains_stops_with_its_last_task(state: str, column: str, word: str) -> None:
    """And takes no new one (B2)."""
    must_answer(an_agent(state, tasks=("t",), draining=True), EVENTS[column], word, draining)


def test_the_grid_covers_the_machine() -> None:
    """No state and no event is left out."""
    assert [state.value for state in State] == list(dict.fromkeys(state for state, _, _ in cells(GRID)))
    assert {type(event) for event in EVENTS.values()} == set(machine.events) == set(status.EVENTS)


TELL = EmitTelemetry
ACTIONS: Final[tuple[tuple[Status, Event, tuple[Effect, ...]], ...]] = (
    (
        an_agent("RUNNING"),
        Stop(),
        (
            SaveState("agent_1"),
            TELL("agent_1", "agent_stopped", {"incarnation": 2}),
            CallHook("release", ("agent_1", 2)),
        ),
    ),
    (
        an_agent("RUNNING", tasks=("t", "u")),
        Stop(force=True),
        (
            SaveState("agent_1"),
            TELL("agent_1", "agent_stopped", {"incarnation": 2, "forced": 2}),
            CallHook("release", ("agent_1", 2)),
        ),
    ),
    (
        an_agent("RUNNING"),
        FatalError("boom", 3),
        (
            SaveState("agent_1"),
            TELL("agent_1", "agent_failed", {"incarnation": 2, "reason": "boom", "exit_code": 3}),
            CallHook("release", ("agent_1", 2)),
        ),
    ),
    (
        an_agent("STOPPED"),
        Spawn(),
        (
            CallHook("launch", ("agent_1", 3), before=True),
            SaveState("agent_1"),
            TELL("agent_1", "agent_started", {"incarnation": 3}),
        ),
    ),
    (an_agent("FAILED"), Stop(), ()),
    (an_agent("FAILED"), Spawn(), ()),
    (an_agent("STOPPED"), Stop(), ()),
    (an_agent("STOPPED"), FatalError("late"), (SaveState("agent_1"),)),
    (an_agent("RUNNING"), TaskBegan("t"), (SaveState("agent_1"),)),
    (an_agent("RUNNING", tasks=("t",)), TaskEnded("t"), (SaveState("agent_1"),)),
    (an_agent("RUNNING", tasks=("t",)), Stop(drain=True), (SaveState("agent_1"),)),
    (an_agent("STOPPED"), TaskEnded("t"), ()),
    (
        an_agent("STOPPED"),
        PiiDetected(),
        (SaveState("agent_1"), TELL("agent_1", "pii_detected", {"pii_detections": 6})),
    ),
    (
        an_agent("RUNNING", tasks=("t",), draining=True),
        TaskEnded("t"),
        (
            SaveState("agent_1"),
            TELL("agent_1", "agent_stopped", {"incarnation": 2}),
            CallHook("release", ("agent_1", 2)),
        ),
    ),
    (
        an_agent("RUNNING"),
        PiiDetected(),
        (SaveState("agent_1"), TELL("agent_1", "pii_detected", {"pii_detections": 6})),
    ),
)


@pytest.mark.parametrize(("record", "event", "effects"), ACTIONS)
def test_each_line_asks_for_its_actions_in_their_order(
    record: Status, event: Event, effects: tuple[Effect, ...]
) -> None:
    """The state is saved before it is reported (B10)."""
    assert taken(record, event).effects == effects


def test_the_birth_has_the_effects_of_the_documents_first_line() -> None:
    """An agent is launched, saved and reported; its predecessor, if it has one, is named."""
    born, effects = status.spawned(Status(agent_id="agent_1"))
    assert born == Status(agent_id="agent_1")
    assert effects == (
        CallHook("launch", ("agent_1", 1), before=True),
        SaveState("agent_1"),
        EmitTelemetry("agent_1", "agent_started", {"incarnation": 1}),
    )
    _, effects = status.spawned(Status(agent_id="agent_2", replaces="agent_1"))
    assert effects[-1] == EmitTelemetry("agent_2", "agent_started", {"incarnation": 1, "replaces": "agent_1"})


@pytest.mark.parametrize(
    ("wrong", "broken"),
    [
        (an_agent("STOPPED", tasks=("t",)), "works_only_while_running"),
        (an_agent("FAILED", draining=True), "works_only_while_running"),
        (an_agent("RUNNING", draining=True), "drains_for_something"),
        (an_agent("FAILED", reason=""), "failure_is_explained"),
        (an_agent("STOPPED", reason="boom"), "failure_is_explained"),
    ],
)
def test_the_invariants_refuse_what_must_not_be(wrong: Record, broken: str) -> None:
    """Each of them detects its own violation."""
    assert isinstance(wrong, Status)
    assert broken in [holds.__name__ for holds in machine.invariants if not holds(wrong)]
