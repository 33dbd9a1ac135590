"""The laws that hold for every lifecycle there is, by itself and inside an aggregate with a log.

Each machine is put through what its table says may happen: inputs of people, reports of what goes on, timers,
confirmations. Nothing here knows any of the machines.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.result import Failure, Success

from agreement import fold_with_ledger, fold_with_react
from alone import NAME, alone, birth, next_inputs
from lifefold.core.fleet.board import fleet_task, notifier, worker_slot
from lifefold.core.fleet.service import inbox
from lifefold.core.fleet.worker import assignment, question, stall_detector
from lifefold.core.kernel import Aggregate, Codec, Event, IllegalTransition, Machine, Record, Row, Step, encode
from lifefold.core.lifecycles import process, runtime, session, session_profiles, session_windowed
from lifefold.core.policy import access
from lifefold.interpreters.engine import Decision, Ledger
from lifefold.interpreters.store import Entry
from lifefold.interpreters.targets.openings import TERMS
from lifefold.interpreters.views import machines

MACHINES = machines()
SOON = session.Limits(max_consecutive_errors=2, max_total_errors=2)
RESTARTING = process.Process(limits=process.Limits(restart_policy="always", max_restarts=1, max_consecutive_failures=2))
NEAR: dict[str, Record] = {
    "session": session.Session(limits=SOON),
    "session-windowed": session_windowed.WindowedSession(limits=SOON),
    "session-prompt-failures": session.Session(limits=SOON),
    "session-in-fleet": session.Session(limits=SOON),
    "session-supervised": session_profiles.SupervisedSession(limits=SOON, supervised=True),
    "task-in-fleet": fleet_task.FleetTask(
        max_retries=1,
        limit=1,
        needs_approval=True,
        most_subtasks=2,
        merges=access.AccessLevel.TRUSTED,
        fate=fleet_task.Fate(),
    ),
    "assignment": assignment.Assignment(guarded=True),
    "worker_slot": worker_slot.WorkerSlot(trust=access.Trust()),
    "inbox": inbox.Inbox(takes_messages=True),
    "stall_detector": stall_detector.StallDetector(limits=stall_detector.Limits(nudge_ms=90_000)),
    "questions": question.Questions(terms=TERMS),
    "notifier": msgspec.structs.replace(notifier.machine.initial, most_waiting=2),
    "process": RESTARTING,
    "process-promptise-1.5": RESTARTING,
    **{
        name: runtime.Runtime(limits=runtime.Limits(preemption_grace_ms=0))
        for name in MACHINES
        if name.partition("-")[0] == "runtime"
    },
}
"""Initial records whose limits are near, for machines that would need many events to come to theirs."""

OTHERS: dict[str, Record] = {
    "session-supervised": session_profiles.SupervisedSession(limits=SOON, account="claude"),
}
"""Further initial records of machines that differ by a part of their record."""

EXPLORED = 1_500
"""How many records of a machine are visited at most, nearest first."""

EXAMPLES = settings().max_examples // 4
"""How many courses each machine is put through: there are many machines."""


def explored(machine: Machine[Any]) -> list[Record]:
    """Return records that the reducer can reach by the events' examples, nearest first."""
    found = [machine.initial, *([OTHERS[machine.name]] if machine.name in OTHERS else [])]
    seen = {encode(each) for each in found}
    for record in found:
        for event in (each for kind in machine.events for each in kind.examples()):
            step = machine.step(record, event)
            if isinstance(step, Step) and encode(step.record) not in seen and len(found) < EXPLORED:
                seen.add(encode(step.record))
                found.append(step.record)
    return found


@pytest.fixture(params=MACHINES, scope="module")
def machine(request: pytest.FixtureRequest) -> Machine[Any]:
    machine = MACHINES[str(request.param)]
    return machine.starting(NEAR.get(str(request.param), machine.initial))


@pytest.fixture(scope="module")
def records(machine: Machine[Any]) -> list[Record]:
    return explored(machine)


def test_every_event_in_every_record_has_one_answer(machine: Machine[Any], records: list[Record]) -> None:
    """Totality and determinism; the compiled reducers give the answers of the plain one, and nothing given changes."""
    for record in records:
        before = encode(record)
        for event in (each for kind in machine.events for each in kind.examples()):
            answer = machine.step(record, event)
            assert isinstance(answer, Step | IllegalTransition)
            assert machine.plain_step(record, event) == answer
            assert machine.takes(record, event) == isinstance(answer, Step)
            assert machine.reduce(record, event) == (Success(answer) if isinstance(answer, Step) else Failure(answer))
        assert encode(record) == before


def test_invariants_hold_in_every_record(machine: Machine[Any], records: list[Record]) -> None:
    """From the initial record on, whatever happens."""
    for record in records:
        assert [holds.__name__ for holds in machine.invariants if not holds(record)] == []


@pytest.mark.no_cover
def test_final_states_absorb(machine: Machine[Any], records: list[Record]) -> None:
    """No event leads out of one, and no event leads into or out of a detached one."""
    for record in records:
        assert record.state not in machine.detached
        for event in (each for kind in machine.events for each in kind.examples()):
            step = machine.step(record, event)
            if isinstance(step, Step) and record.state in machine.final:
                assert step.record.state is record.state


def taken(machine: Machine[Any], record: Record, event: Event) -> Row[Any] | None:
    """Return the row that is taken, found in the table as it is written."""
    for row in machine.rows:
        at_home = record.state in (machine.states if row.sources is None else row.sources)
        meant = row.event is type(event) and (row.pattern is None or row.pattern.test(event))
        if at_home and meant and (row.when is None or row.when(record, event)):
            return row
    return None


@pytest.mark.no_cover
def test_every_state_and_every_row_is_reached_by_the_examples(machine: Machine[Any], records: list[Record]) -> None:
    """The examples of the events are enough to take every branch, so that what explores a machine misses nothing."""
    assert {record.state for record in records} == set(machine.states) - machine.detached
    examples = [each for kind in machine.events for each in kind.examples()]
    rows = {id(taken(machine, record, event)) for record in records for event in examples}
    assert [str(row) for row in machine.rows if id(row) not in rows] == []


def test_records_and_events_can_be_written_and_read(machine: Machine[Any], records: list[Record]) -> None:
    """What is read is what was written."""
    for record in records[:: max(1, len(records) // 50)]:
        assert msgspec.json.decode(encode(record), type=machine.record) == record
    for event in (each for kind in machine.events for each in kind.examples()):
        assert msgspec.json.decode(encode(event), type=type(event)) == event


@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_the_fold_of_the_log_is_the_state(machine: Machine[Any], data: st.DataObject) -> None:
    """The ledger that decided, a replay of its log, and the reducers alone agree on every state on the way."""
    system = alone(machine)
    ledger, codec = Ledger(system), Codec(system)
    envelope, now_ms = birth(machine), 0
    entries: list[Entry] = []
    states: list[Aggregate] = []
    for _ in range(data.draw(st.integers(1, 25), label="inputs")):
        assert codec.decode(NAME, encode(envelope)) == envelope
        decision = ledger.decide(NAME, envelope)
        if isinstance(decision, Decision):
            entries.append(decision.entry)
            states.append(decision.reaction.aggregate)
            assert all(holds(ledger.record(NAME, machine.name)) for holds in machine.invariants)
        now_ms = max(now_ms, envelope.at_ms) + data.draw(st.integers(0, 5_000), label="ms later")
        entity = ledger.aggregates[NAME].entities[machine.name]
        envelope = data.draw(st.sampled_from(list(next_inputs(machine, entity, now_ms))), label="input")
    assert fold_with_react(system, entries) == states
    assert fold_with_ledger(system, entries) == states
