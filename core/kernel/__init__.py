"""The kernel: what every lifecycle has and none implements. See ``docs/design.md`` for the theory."""

from lifefold.core.kernel.aggregate import (
    Aggregate,
    AggregateType,
    Asked,
    Create,
    Dispatch,
    Reaction,
    Rule,
    System,
    View,
    react,
    rule,
)
from lifefold.core.kernel.codec import Codec, UnreadableEntry, digest, encode
from lifefold.core.kernel.entity import (
    Advance,
    Created,
    Elapsed,
    Ended,
    Entity,
    Envelope,
    Opened,
    Phase,
    Recovered,
    Refusal,
    Running,
    Transition,
    advance,
    create,
)
from lifefold.core.kernel.journal import LifecycleEvent, describe, journal
from lifefold.core.kernel.machine import Machine, Span
from lifefold.core.kernel.problems import InvalidMachine
from lifefold.core.kernel.record import Event, Record, State, replace
from lifefold.core.kernel.row import ANY, STAY, After, Does, Pattern, Row, after, does, row
from lifefold.core.kernel.step import IllegalTransition, Step

__all__ = [
    "ANY", "STAY", "Advance", "After", "Aggregate", "AggregateType", "Asked", "Codec", "Create", "Created",
    "Dispatch", "Does", "Elapsed", "Ended", "Entity", "Envelope", "Event", "IllegalTransition", "InvalidMachine",
    "LifecycleEvent", "Machine", "Opened", "Pattern", "Phase", "Reaction", "Record", "Recovered", "Refusal",
    "Row", "Rule", "Running", "Span", "State", "Step", "System", "Transition", "UnreadableEntry", "View",
    "advance", "after", "create", "describe", "digest", "does", "encode", "journal", "react", "replace", "row",
    "rule",
]  # fmt: skip
