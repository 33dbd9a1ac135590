"""The kernel: what every lifecycle has and none implements. See ``docs/design.md`` for the theory."""

from lifefold.core.kernel.aggregate import (
    Aggregate,
    AggregateType,
    Create,
    Dispatch,
    Rule,
    System,
    View,
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
from lifefold.core.kernel.environment import Cause, Possible, alone, late, possible, possible_of, restarted
from lifefold.core.kernel.failure import DecisionError, EntityQuarantined, EntityReleased, HandlerFailed
from lifefold.core.kernel.journal import LifecycleEvent, describe, journal
from lifefold.core.kernel.machine import Machine, Span, anywhere
from lifefold.core.kernel.property import (
    Fairness,
    Overview,
    Property,
    Scene,
    Temper,
    always,
    always_step,
    eventually,
    leads_to,
    near,
    seeing,
    sometimes,
    strongly,
    subject_of,
    takes,
    weakly,
)
from lifefold.core.kernel.reaction import Asked, Reaction, decide, react
from lifefold.core.kernel.record import Event, Record, State, replace
from lifefold.core.kernel.row import ANY, STAY, After, Does, Pattern, Row, after, does, row
from lifefold.core.kernel.step import IllegalTransition, Step
from lifefold.core.kernel.validation import InvalidMachine

__all__ = [
    "ANY", "STAY", "Advance", "After", "Aggregate", "AggregateType", "Asked", "Cause", "Codec", "Create", "Created",
    "DecisionError", "Dispatch", "Does", "Elapsed", "Ended", "Entity", "EntityQuarantined",
    "EntityReleased", "Envelope", "Event", "Fairness", "HandlerFailed", "IllegalTransition",
    "InvalidMachine", "LifecycleEvent", "Machine", "Opened", "Overview", "Pattern", "Phase", "Possible", "Property",
    "Reaction", "Record", "Recovered", "Refusal", "Row", "Rule", "Running", "Scene", "Span", "State", "Step", "System",
    "Temper", "Transition", "UnreadableEntry", "View", "advance", "after", "alone", "always", "always_step", "anywhere",
    "create", "decide", "describe", "digest", "does", "encode", "eventually", "journal", "late", "leads_to", "near",
    "possible", "possible_of", "react", "replace", "restarted", "row", "rule", "seeing", "sometimes", "strongly",
    "subject_of", "takes", "weakly",
]  # fmt: skip
