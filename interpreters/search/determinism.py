"""A check that the rules are deterministic: the search repeats some of its inputs and compares the outcomes.

A reducer that draws a random number or reads a clock makes new states for ever, so a search proves nothing about it. A
repetition costs as much as the input. So the first inputs of each kind (a machine's state, an event's type) are
repeated, and later ones more and more rarely.
"""

from collections import Counter
from typing import Any, Final

from lifefold.core.kernel import Aggregate, AggregateType, Entity, Envelope, Event, Reaction, Refusal, react
from lifefold.interpreters.search.rule_error import Place, RuleError

REPEATABLE: Final = "the same input has the same outcome"

FIRST: Final = 8
"""The number of inputs of a kind that are all repeated."""

DIFFERENCES_SHOWN: Final = 3


class Repeats:
    """Repeats inputs of the aggregates of one type."""

    def __init__(self, of: AggregateType) -> None:
        """Begin without inputs."""
        self._of: Final = of
        self._seen: Final[Counter[tuple[str, str, type[Event]]]] = Counter()

    def see(self, aggregate: Aggregate, envelope: Envelope, came: Reaction | Refusal, place: Place) -> None:
        """Repeat an input, if it is due. Raises ``RuleError`` if the outcome differs."""
        entity = aggregate.entities.get(envelope.entity)
        kind = (envelope.entity.partition(":")[0], "" if entity is None else str(entity.state), type(envelope.event))
        self._seen[kind] += 1
        if self._seen[kind] > FIRST and self._seen[kind].bit_count() > 1:
            return
        again = react(self._of, aggregate, envelope)
        said = _difference(came, again)
        if said:
            raise RuleError(REPEATABLE, place, f"is not deterministic, the same input gave {said}")


def _difference(came: Reaction | Refusal, again: Reaction | Refusal) -> str:
    """Return the difference between two outcomes of one input; empty if there is none."""
    if isinstance(came, Refusal) or isinstance(again, Refusal):
        return "" if type(came) is type(again) else "a refusal, and then an acceptance, or the reverse"
    if came == again:
        return ""
    fields = [
        f"{ref}.{field} {was!r} and {now!r}"
        for ref in came.changed
        for field, was, now in _fields(came.aggregate.entities[ref], again.aggregate.entities.get(ref))
    ]
    if came.effects != again.effects:
        fields.append(f"the effects {_effects(came)} and {_effects(again)}")
    return "; then ".join(fields[:DIFFERENCES_SHOWN]) or "two outcomes"


def _fields(was: Entity[Any], now: Entity[Any] | None) -> list[tuple[str, object, object]]:
    if now is None or type(was.record) is not type(now.record):
        return [("record", was.record, None if now is None else now.record)]
    names: tuple[str, ...] = was.record.__struct_fields__
    pairs = [(name, getattr(was.record, name), getattr(now.record, name)) for name in names]
    return [(name, one, other) for name, one, other in pairs if one != other]


def _effects(came: Reaction) -> str:
    return "[" + ", ".join(repr(asked.effect) for asked in came.effects) + "]"
