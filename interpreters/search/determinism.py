"""Whether the rules give the same input the same outcome: some inputs of a search are given to them a second time.

A reducer that draws a random number, or looks at a clock, makes new states for ever, and no search of it says anything.
A second time costs as much as the first. So of each kind of input (a machine's state, an event's type) the first ones
are repeated, and then one in twice as many.
"""

from collections import Counter
from typing import Any, Final

from lifefold.core.kernel import Aggregate, AggregateType, Entity, Envelope, Event, Reaction, Refusal, react
from lifefold.interpreters.search.rule_error import Place, RuleError

REPEATABLE: Final = "the same input has the same outcome"

FIRST: Final = 8
"""How many inputs of a kind are repeated before they are repeated more rarely."""

DIFFERENCES_SHOWN: Final = 3


class Repeats:
    """Repeats inputs of the aggregates of one type."""

    def __init__(self, of: AggregateType) -> None:
        """Begin with nothing seen."""
        self._of: Final = of
        self._seen: Final[Counter[tuple[str, str, type[Event]]]] = Counter()

    def see(self, aggregate: Aggregate, envelope: Envelope, came: Reaction | Refusal, place: Place) -> None:
        """Give an input once more, if it is its turn. Raises ``RuleError`` if something else comes of it than before."""
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
    """Return how two outcomes of one input differ; empty if they do not."""
    if isinstance(came, Refusal) or isinstance(again, Refusal):
        return "" if type(came) is type(again) else "a refusal, and then none, or the other way round"
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
