"""A log, folded three ways: by the ledger, by ``react``, and, step by step, by ``reduce``. All must agree."""

from collections.abc import Sequence
from typing import Any

from returns.result import Success

from lifefold.core.kernel import (
    Aggregate,
    Codec,
    Machine,
    Reaction,
    System,
    Transition,
    react,
    replace,
    written,
)
from lifefold.interpreters.engine import Ledger
from lifefold.interpreters.store import Entry


def fold_with_react(system: System, entries: Sequence[Entry]) -> list[Aggregate]:
    """Return the aggregate after each entry, as ``react`` alone has it; outcomes and reductions must agree."""
    codec = Codec(system)
    aggregates: dict[str, Aggregate] = {}
    states: list[Aggregate] = []
    for entry in entries:
        name, of = entry.stream, system.type_of(entry.stream)
        before, envelope = aggregates.get(name) or of.start(name), codec.decode(name, entry.envelope)
        reaction = react(of, before, envelope)
        assert isinstance(reaction, Reaction)
        assert written(before, envelope, reaction) == entry.outcome
        assert reaction.aggregate.version == entry.version
        for transition in reaction.transitions:
            machine = of.machine_of(transition.entity)
            assert machine is not None
            reduce_again(machine, transition)
        aggregates[name] = reaction.aggregate
        states.append(reaction.aggregate)
    return states


def reduce_again(machine: Machine[Any], transition: Transition) -> None:
    """Let the pure reducer take a transition of its own: the record must become what it became."""
    if transition.before is None or type(transition.event) not in machine.events:
        return  # the kernel's own: a creation, a confirmed end
    record = transition.before.record
    if machine.clocked:
        record = replace(record, at_ms=transition.at_ms)
    match machine.reduce(record, transition.event):
        case Success(step):
            assert step.record == transition.after.record
            assert machine.step(record, transition.event) == step
            assert machine.plain_step(record, transition.event) == step
        case refused:
            raise AssertionError(refused)


def fold_with_ledger(system: System, entries: Sequence[Entry]) -> list[Aggregate]:
    """Return the aggregate after each entry, as a replay of the log has it."""
    return [decision.reaction.aggregate for decision in Ledger(system).fold(entries)]
