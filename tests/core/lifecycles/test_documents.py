"""Each lifecycle against its document, edge by edge. The documents are quoted in ``tests/documents``, once."""

from typing import Final

import pytest

from document_tables import lines, quoted, written
from lifefold.core.kernel import Event, IllegalTransition, Record, Step, replace
from lifefold.core.lifecycles import agent, runtime, session, task, turn
from lifefold.core.lifecycles.runtime_preemption import Preemption, Section
from lifefold.interpreters.views import machines

DOCUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "session": ("session",),
    "session-windowed": ("session",),
    "session-prompt-failures": ("session", "session-prompt-failures"),
    "process-by-hand": ("process",),
    "process-by-hand-1.5": ("process", "process-by-hand-1.5"),
    "process": ("process", "process"),
    "process-promptise-1.5": ("process", "process", "process-by-hand-1.5", "process-promptise-1.5"),
    "runtime": ("runtime",),
    "runtime-sw4rm-agentpy": ("runtime", "runtime-sw4rm-agentpy"),
    "runtime-graceful": ("runtime", "runtime-graceful"),
    "runtime-supervised": ("runtime", "runtime-supervised"),
    "runtime-watched": ("runtime", "runtime-watched"),
    "status": ("status",),
    "status-draining": ("status", "status-draining"),
    "lease": ("lease",),
    "task": ("task",),
    "task-bernstein-1.9": ("task", "task-bernstein-1.9"),
    "task-governed": ("task", "task-governed"),
    "agent": ("agent",),
    "agent-supervised": ("agent", "agent-supervised"),
    "turn": ("turn", "turn"),
    "turn-completing-fails": ("turn", "turn", "turn-completing-fails"),
}
"""By lifecycle: the document, and the sections of it that hold for a profile."""

MACHINES: Final = machines()
PAIRS: Final = {
    "task": 30,
    "task-bernstein-1.9": 34,
    "task-governed": 30,
    "agent": 6,
    "runtime": 22,
    "process-by-hand": 19,
    "lease": 6,
}
"""The number of different edges, from state to state, of the documents that count them."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_rows_are_the_documents_lines_and_no_more(name: str) -> None:
    """Every state and event of the document has its targets, and no other pair is in the table (A1, B19, C4, C5)."""
    machine = MACHINES[name]
    cells = quoted(machine, *DOCUMENTS[name])
    assert written(machine, {label for _, label in cells}) == cells
    assert {state for state, _ in cells} <= set(machine.states)


@pytest.mark.parametrize("name", [name for name, of in DOCUMENTS.items() if name == of[0]])
def test_the_rows_stand_in_the_documents_order(name: str) -> None:
    """The table can be compared with the document line by line; a line from several states may be several rows."""
    moving = [line for line in lines(name) if len(line.sources) == len(line.events) == 1 and line.targets != ("=",)]
    document = [(line.sources[0], line.events[0]) for line in moving if line.sources != ("ANY",)]
    labels = {label for _, label in document}
    named = ((row.source_label, row.event_label, row.event.label().partition("(")[0]) for row in MACHINES[name].rows)
    rows = dict.fromkeys((source, label if label in labels else short) for source, label, short in named)
    assert [pair for pair in rows if pair in document] == document


@pytest.mark.parametrize(("name", "count"), PAIRS.items())
def test_the_quote_has_as_many_edges_as_the_document_says(name: str, count: int) -> None:
    """A slip in the quote shows."""
    cells = quoted(MACHINES[name], *DOCUMENTS[name])
    pairs = {(source, target) for (source, _), targets in cells.items() for target in targets}
    assert len({(source, target) for source, target in pairs if source != target}) == count


TASK: Final = task.Task(id="T1", prompt="do it", owner="worker", epoch=2, reason="before")
OVERDUE: Final = Preemption(
    requested=True, reason="soon", asked_ms=0, since_ms=0, signalled_ms=0, sections=(Section(1, 50),)
)
RECORDS: Final[dict[str, Record]] = {
    "session": session.Session(session_seq=3),
    "task": TASK,
    "agent": agent.Agent(id="A1", task="T1", at_ms=5_000),
    "turn": turn.Turn(),
    "runtime": runtime.Runtime(agent_id="a", at_ms=90_000, task_id="T1", preemption=OVERDUE),
}
"""Records for which the guards agree: the expected session, the present claim, an overdue agent in section 1."""

SAMPLES: Final[dict[str, tuple[Event, ...]]] = {
    "session": (
        *(session.WorktreeReady(), session.PromptReady("do it"), session.SessionStarted(3), session.UrgentMessage()),
        *(session.SessionExited(each) for each in (session.Success(), session.Error("x"), session.Timeout())),
        *(session.GraceExceeded(), session.BackoffElapsed(), session.OperatorStop(), session.FatalError("x")),
    ),
    "task": (
        *(task.Approved(), task.Declined("no"), task.Claimed("w"), task.Decomposed(2), task.Cancelled("no")),
        *(task.Started(2), task.Released(2), task.Completed(2), task.Failed(2, "x"), task.Blocked("x", 2)),
        *(task.Orphaned(2), task.Salvaged(2), task.Unblocked(), task.SubtasksCompleted(), task.SubtasksOverdue()),
        *(task.Retried(), task.Verified(2, "c0ffee"), task.Rejected(2, "tests fail")),
    ),
    "agent": tuple(kind() for kind in MACHINES["agent"].events),
    "turn": tuple(kind() for kind in turn.EVENTS),
    "runtime": (
        *(runtime.Start(), runtime.InitTimedOut(), runtime.Schedule("T2"), runtime.Run(), runtime.Wait()),
        *(runtime.WaitResources(), runtime.Suspend(), runtime.Complete(), runtime.Fail("x"), runtime.Shutdown()),
        *(runtime.DeadlinePassed(), runtime.ResourceTimedOut(), runtime.Resume(), runtime.SuspendTimedOut()),
        *(runtime.Ready(), runtime.Recover(), runtime.ShutdownTimedOut(), runtime.CompleteRecovery()),
        *(runtime.FailRecovery("x"), runtime.RecoveryTimedOut(), runtime.PreemptionRequested("x")),
        *(runtime.PreemptionForced("x"), runtime.SectionEntered(2, 10), runtime.SectionLeft(1)),
    ),
}
"""An event of each kind and variant, for those records."""


def targets(name: str, state: str, event: Event) -> set[str]:
    """Return the targets that the document has for an event in a state, by its name or its variant."""
    short = type(event).label().partition("(")[0]
    variant = type(getattr(event, "outcome", event)).__name__
    cells = quoted(MACHINES[name], name)
    spelled = {short, f"{short}({variant})", f"{short}(*)", type(event).label()}
    return {target for label in spelled for target in cells.get((state, label), ())}


def placed(name: str, state: str, event: Event) -> tuple[Record, Event]:
    """Return the record in a state; an open task is split by no owner, and an idle agent has no task."""
    machine = MACHINES[name]
    record = replace(RECORDS[name], state=next(each for each in machine.states if each == state))
    return record, task.Decomposed(0) if state == "OPEN" and isinstance(event, task.Decomposed) else event


STATES: Final = [(name, str(state)) for name in SAMPLES for state in MACHINES[name].states]


@pytest.mark.parametrize(("name", "state"), STATES)
def test_a_pair_is_accepted_if_and_only_if_the_document_has_it(name: str, state: str) -> None:
    """Every event in every state, where the guards agree: a target of the document, or a refusal (A12, D18, E28)."""
    machine = MACHINES[name]
    assert {type(event) for event in SAMPLES[name]} == set(machine.events)
    for event in SAMPLES[name]:
        record, sample = placed(name, state, event)
        answer, expected = machine.step(record, sample), targets(name, state, event)
        if type(event) in machine.postponed(record.state):
            continue
        assert isinstance(answer, Step) == bool(expected), (state, event)
        if isinstance(answer, Step):
            assert answer.record.state in expected, (state, event)
        else:
            assert isinstance(answer, IllegalTransition)
            assert (answer.machine, answer.state, answer.event) == (name, state, sample)
