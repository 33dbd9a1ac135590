"""The trace of a test, input by input, as a table: the time, the input, the changes, the effects.

A failure prints the trace, with the difference of each step: a field before and after, an activity that begins or
ends, a postponed event.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

import msgspec

from lifefold.core.kernel import (
    Aggregate,
    Created,
    Entity,
    Envelope,
    Opened,
    Phase,
    Reaction,
    Refusal,
    RequestedEffect,
    Running,
    SystemState,
)
from lifefold.effects import Begin, CancelTimer, Effect, End, StartTimer
from lifefold.interpreters.report.trace import kernel_words

CELL: Final = 60
"""The width of a cell in characters; a longer text continues below."""

DERIVED: Final = (Begin, End, StartTimer, CancelTimer)
"""The effects of activities and timers, which the kernel derives."""

_NO_MESSAGES: Final[tuple[Any, ...]] = ()


class Taken(msgspec.Struct, frozen=True):
    """One input of one aggregate, with its outcome. ``before`` is the aggregate before it."""

    before: Aggregate
    envelope: Envelope
    outcome: Reaction | Refusal

    @property
    def aggregate(self) -> str:
        """The name of the aggregate."""
        return self.before.name

    @property
    def after(self) -> Aggregate:
        """The aggregate after it; the same, if it refused."""
        return self.outcome.aggregate if isinstance(self.outcome, Reaction) else self.before

    @property
    def effects(self) -> tuple[RequestedEffect, ...]:
        """The requested effects, in order."""
        return self.outcome.effects if isinstance(self.outcome, Reaction) else ()


class Trace(msgspec.Struct, frozen=True):
    """Inputs in order, each with its outcome, and the messages in flight. Prints as a table."""

    steps: tuple[Taken, ...] = ()
    in_flight: tuple[tuple[str, str, str, Any], ...] = _NO_MESSAGES

    @property
    def system_state(self) -> SystemState:
        """The final system state."""
        return SystemState(self.aggregates, self.in_flight)

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """The final aggregates by name."""
        return {each.aggregate: each.after for each in self.steps}

    @property
    def entity(self) -> Entity[Any]:
        """The only entity in its final state. Raises ``ValueError`` if there are several."""
        (aggregate,) = self.aggregates.values()
        (entity,) = aggregate.entities.values()
        return entity

    def first_difference(self, other: "Trace") -> list[str]:
        """Return the tables of both, from the first different step on; nothing if there is none."""
        both = zip_longest(self.steps, other.steps)
        number = next((number for number, (mine, others) in enumerate(both) if mine != others), None)
        if number is None:
            return [] if self.in_flight == other.in_flight else [f"{self.in_flight!r} or {other.in_flight!r} in flight"]
        mine, others = table(self.steps[: number + 1], number)[1:], table(other.steps[: number + 1], number)[1:]
        return [f"they differ from step {number} on; one has", *mine, "the other has", *others]

    def __str__(self) -> str:
        """Return the table."""
        return "\n".join(table(self.steps))

    def __repr__(self) -> str:
        """Return the table as well: a failure shows it."""
        return f"\n{self}\n"


def table(steps: Sequence[Taken], first: int = 0) -> list[str]:
    """Return the lines of the table of these steps, from the ``first`` on."""
    alone = len({(each.aggregate, ref) for each in steps for ref in each.after.entities}) <= 1
    head = ("", "  at ms", "input", "difference", "asks for")
    rows = [_row(number, each, alone=alone) for number, each in enumerate(steps) if number >= first]
    cells = [[[text] for text in head], *([_wrapped(lines) for lines in each] for each in rows)]
    widths = [max(len(line) for row in cells for line in row[column] or [""]) for column in range(len(head))]
    return [line for row in cells for line in _lines(row, widths)]


def _row(number: int, taken: Taken, *, alone: bool) -> tuple[list[str], ...]:
    at_ms = taken.envelope.at_ms
    to = "" if alone else f"{place(taken.aggregate, taken.envelope.entity)}: "
    asked = [
        said(each.effect) if alone else f"{place(taken.aggregate, each.entity)}: {said(each.effect)}"
        for each in taken.effects
    ]
    return (
        [f"{number:>2}"],
        [f"{at_ms:>7,}"],
        [f"{to}{what(taken.envelope)}"],
        list(_differences(taken, alone=alone)),
        asked,
    )


def _differences(taken: Taken, *, alone: bool) -> Iterator[str]:
    if isinstance(taken.outcome, Refusal):
        yield f"refused, {taken.outcome.kind}: {taken.outcome.reason}"
        return
    for ref in taken.outcome.changed:
        where = "" if alone else f"{place(taken.aggregate, ref)}: "
        for line in difference(taken.before.entities.get(ref), taken.after.entities[ref]):
            yield where + line
    for refusal in taken.outcome.refusals:
        yield f"refused, {refusal.kind}: {refusal.reason}"


def difference(before: Entity[Any] | None, after: Entity[Any]) -> Iterator[str]:
    """Yield the changes of an entity, a line each; of a new one, its state and its activities."""
    for name, (was, now) in changes(before, after).items():
        yield f"{name} {now}" if before is None else f"{name} {shown(was)} → {shown(now)}"
    old, new = {} if before is None else going_on(before), going_on(after)
    yield from (f"- {each}" for each in old if each not in new)
    yield from (f"+ {each}" for each in new if each not in old)
    was_waiting = () if before is None else before.postponed
    if was_waiting != after.postponed:
        yield f"waiting {_events(was_waiting)} → {_events(after.postponed)}"


def changes(before: Entity[Any] | None, after: Entity[Any]) -> dict[str, tuple[Any, Any]]:
    """Return the changed fields of the record, each before and after; of a new one, its state."""
    if before is None:
        return {"state": (None, after.state)}
    names = after.record.__struct_fields__
    pairs = {name: (getattr(before.record, name), getattr(after.record, name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def going_on(entity: Entity[Any]) -> dict[str, Running]:
    """Return the activities and timers of an entity, by their names in a table: the slot, and any special phase."""
    return {shown_part(part): part for part in entity.running}


def shown_part(part: Running) -> str:
    """Return the name of an activity or a timer in a table."""
    phase = "" if part.phase is Phase.LIVE else f" ({part.phase})"
    return f"{part.slot}{phase} #{part.generation}"


def shown(value: object) -> str:
    """Return a value as text: a state by its name."""
    return str(value) if isinstance(value, str) and type(value) is not str else repr(value)


def place(aggregate: str, ref: str) -> str:
    """Return the name of an entity in a table: the aggregate alone, if the entity has the name of its kind."""
    return aggregate if ref in {"", aggregate.partition("/")[0]} else f"{aggregate} {ref}"


def what(envelope: Envelope) -> str:
    """Return an input in words, with its source."""
    event = envelope.event
    if isinstance(event, Created | Opened):
        return "begins"
    return kernel_words(event) or f"{envelope.sender or envelope.slot or envelope.actor} says {event!r}"


def said(effect: Effect) -> str:
    """Return an effect in words, without the numbers of the kernel."""
    match effect:
        case Begin(activity=activity, resumed=resumed):
            return f"{'resume' if resumed else 'begin'} {activity!r}"
        case End(slot=slot):
            return f"end {slot}"
        case StartTimer(slot=slot, delay_ms=delay_ms):
            return f"{slot} in {delay_ms:,} ms"
        case CancelTimer(slot=slot):
            return f"cancel {slot}"
        case _:
            return repr(effect)


def _events(waiting: Sequence[Envelope]) -> str:
    return f"[{', '.join(repr(each.event) for each in waiting)}]"


def _wrapped(lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, CELL, subsequent_indent="  ") or [""]]


def _lines(row: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    for number in range(max(len(cell) for cell in row)):
        texts = [cell[number] if number < len(cell) else "" for cell in row]
        padded = [text.ljust(width) for text, width in zip(texts, widths, strict=True)]
        yield "  ".join(padded).rstrip()
