"""A disagreement between the reduced search and the unreduced rules, as a trace.

A record declares its identifiers, its timestamps and the texts that no rule reads. A search relies on these
declarations. If one is wrong, the search and the rules give different answers about a property, or about the steps of
a state.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from lifefold.core.kernel import Aggregate, SystemStep
from lifefold.interpreters.report.trace import Attempt, Trace, placed

CAUSE: Final = (
    "a record declares too much as identifiers, timestamps, opaque or horizon_ms, or its normal_form drops too much"
)
"""The cause of every disagreement, unless the checker itself is wrong."""

DIFFERENCES_SHOWN: Final = 4
"""The most differing fields that are named."""


class Unsound(Exception):
    """The reduced search and the unreduced rules disagree; ``trace`` leads to the disagreement and describes it."""

    def __init__(self, trace: Trace) -> None:
        super().__init__("" if trace.attempt is None else trace.attempt.said)
        self.trace: Final = trace


def disagreement(happened: Sequence[SystemStep], said: str, differing: str = "") -> Trace:
    """Return the trace to a disagreement: its steps, the subject, the differing fields, and the cause."""
    differences = f" {differing}." if differing else ""
    return Trace(tuple(happened), None, Attempt(f"{said}.{differences} The cause: {CAUSE}."))


def differing(rules: Sequence[Aggregate], search: Sequence[Aggregate]) -> str:
    """Return the fields of records that differ between a state by the rules and the same state in the search."""
    found = list(_differing(rules, search))
    more = len(found) - DIFFERENCES_SHOWN
    return "; ".join(found[:DIFFERENCES_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _differing(rules: Sequence[Aggregate], search: Sequence[Aggregate]) -> Iterator[str]:
    for one, other in zip(rules, search, strict=True):
        for ref, entity in sorted(one.entities.items()):
            form = other.entities.get(ref)
            if form is None or type(form.record) is not type(entity.record):
                yield f"{placed(one.name, ref)} is missing in the search"
                continue
            for field in entity.record.__struct_fields__:
                here, there = getattr(entity.record, field), getattr(form.record, field)
                if here != there:
                    yield f"{placed(one.name, ref)}.{field} is {here!r} by the rules and {there!r} in the search"
