"""What the documents call a transition: a move from a state to another one, looked up in a machine's own table.

Several of the documents' interfaces name the target, not the event. Which targets there are, and which rows lead there,
is answered here for any machine; a handle then sends the event of such a row. The table says where a state may lead;
where a record may go now is for the guards to say, too.
"""

from typing import Any

from returns.result import Success

from lifefold.core.kernel import Machine, Record, Row, State


def moves(machine: Machine[Any], state: State, target: State) -> tuple[Row[Any], ...]:
    """Return the rows that lead from a state to a target, in the order of the table; rows that stay do not."""
    return tuple(
        row
        for row in machine.rows
        if row.target is target and (state in row.sources if row.sources is not None else state not in machine.detached)
    )


def targets(machine: Machine[Any], state: State) -> tuple[State, ...]:
    """Return the states that some row leads to from this one, in the order of the states."""
    return tuple(target for target in machine.states if moves(machine, state, target))


def open_targets(machine: Machine[Any], record: Record) -> tuple[State, ...]:
    """Return the states that some event would take this record to now, itself excepted, in the order of the states."""
    answers = (machine.reduce(record, event) for kind in machine.events for event in kind.examples_for(record))
    reached = {answer.unwrap().record.state for answer in answers if isinstance(answer, Success)} - {record.state}
    return tuple(state for state in machine.states if state in reached)
