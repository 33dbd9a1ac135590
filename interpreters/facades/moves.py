"""Moves: transitions from a state to a named target, looked up in a machine's table.

Several of the documents' interfaces name the target state, not the event. This module returns the targets of a state,
and the rows that lead there, for any machine. A facade then sends the event of such a row. The table shows possible
targets of a state. Guards restrict them for a given record.
"""

from typing import Any

from returns.result import Success

from lifefold.core.kernel import Machine, Record, Row, State


def moves(machine: Machine[Any], state: State, target: State) -> tuple[Row[Any], ...]:
    """Return the rows that lead from a state to a target, in the order of the table; rows without a target do not."""
    return tuple(
        row
        for row in machine.rows
        if row.target is target and (state in row.sources if row.sources is not None else state not in machine.detached)
    )


def targets(machine: Machine[Any], state: State) -> tuple[State, ...]:
    """Return the states to which a row leads from this one, in the order of the states."""
    return tuple(target for target in machine.states if moves(machine, state, target))


def open_targets(machine: Machine[Any], record: Record) -> tuple[State, ...]:
    """Return the other states that this record can reach by one event now, in the order of the states."""
    answers = (machine.reduce(record, event) for kind in machine.events for event in kind.examples_for(record))
    reached = {answer.unwrap().record.state for answer in answers if isinstance(answer, Success)} - {record.state}
    return tuple(state for state in machine.states if state in reached)
