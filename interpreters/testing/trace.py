"""What has happened in a test, input by input, as a table for people: when, what, what it changed, what it asked for.

A trace is printed wherever something fails, with the difference that each step has made: a field before and after, an
activity that begins or ends, an event that waits.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

import msgspec

from lifefold.core.kernel import (
    ActivityEnded,
    Aggregate,
    Created,
    Entity,
    Envelope,
    Opened,
    Phase,
    Reaction,
    Refusal,
    RequestedEffect,
    RunnerRecovered,
    Running,
    SystemState,
    TimerFired,
)
from lifefold.effects import Begin, CancelTimer, Effect, End, StartTimer

CELL: Final = 60
"""How many characters a line of a cell has; what is longer goes on below."""

DERIVED: Final = (Begin, End, StartTimer, CancelTimer)
"""The effects that say what goes on, and that the kernel derives."""

_NO_MESSAGES: Final[tuple[Any, ...]] = ()


class Taken(msgspec.Struct, frozen=True):
    """One input to one aggregate, and what came of it. ``before`` is the aggregate as it was."""

    before: Aggregate
    envelope: Envelope
    outcome: Reaction | Refusal

    @property
    def aggregate(self) -> str:
        """The name of the aggregate."""
        return self.before.name

    @property
    def after(self) -> Aggregate:
        """The aggregate as it became; as it was, if it refused."""
        return self.outcome.aggregate if isinstance(self.outcome, Reaction) else self.before

    @property
    def effects(self) -> tuple[RequestedEffect, ...]:
        """What it asked for, in order."""
        return self.outcome.effects if isinstance(self.outcome, Reaction) else ()


class Trace(msgspec.Struct, frozen=True):
    """Inputs in order, each with what came of it, and the messages that have not arrived. Prints as a table."""

    steps: tuple[Taken, ...] = ()
    in_flight: tuple[tuple[str, str, str, Any], ...] = _NO_MESSAGES

    @property
    def scene(self) -> SystemState:
        """The whole, as it is at the end."""
        return SystemState(self.aggregates, self.in_flight)

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """The aggregates by name, as they are at the end."""
        return {each.aggregate: each.after for each in self.steps}

    @property
    def entity(self) -> Entity[Any]:
        """The only entity, as it is at the end. Raises ``ValueError`` if there are several."""
        (aggregate,) = self.aggregates.values()
        (entity,) = aggregate.entities.values()
        return entity

    def first_difference(self, other: "Trace") -> list[str]:
        """Return the tables of both, from the first step on in which they are not alike; nothing if there is none."""
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
    """Yield what is not as it was in an entity, in a line each; of a new one, its state and what begins."""
    for name, (was, now) in changes(before, after).items():
        yield f"{name} {now}" if before is None else f"{name} {shown(was)} → {shown(now)}"
    old, new = {} if before is None else going_on(before), going_on(after)
    yield from (f"- {each}" for each in old if each not in new)
    yield from (f"+ {each}" for each in new if each not in old)
    was_waiting = () if before is None else before.postponed
    if was_waiting != after.postponed:
        yield f"waiting {_events(was_waiting)} → {_events(after.postponed)}"


def changes(before: Entity[Any] | None, after: Entity[Any]) -> dict[str, tuple[Any, Any]]:
    """Return the fields of the record that are not as they were, each before and after; of a new one, its state."""
    if before is None:
        return {"state": (None, after.state)}
    names = after.record.__struct_fields__
    pairs = {name: (getattr(before.record, name), getattr(after.record, name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def going_on(entity: Entity[Any]) -> dict[str, Running]:
    """Return what goes on for an entity, by how it is shown: the slot, and its phase unless it is live."""
    return {shown_part(part): part for part in entity.running}


def shown_part(part: Running) -> str:
    """Return how something that goes on is shown."""
    phase = "" if part.phase is Phase.LIVE else f" ({part.phase})"
    return f"{part.slot}{phase} #{part.generation}"


def shown(value: object) -> str:
    """Return a value as people read it: a state by its name."""
    return str(value) if isinstance(value, str) and type(value) is not str else repr(value)


def place(aggregate: str, ref: str) -> str:
    """Return how an entity of an aggregate is named: by the aggregate alone, if it bears its kind's name."""
    return aggregate if ref in {"", aggregate.partition("/")[0]} else f"{aggregate} {ref}"


def what(envelope: Envelope) -> str:
    """Return what an input is, and whose."""
    match envelope.event:
        case TimerFired(slot=slot):
            return f"{slot} elapses"
        case ActivityEnded(slot=slot):
            return f"{slot} has ended"
        case RunnerRecovered():
            return "the runner comes back"
        case Created() | Opened():
            return "begins"
        case event:
            return f"{envelope.sender or envelope.slot or envelope.actor} says {event!r}"


def said(effect: Effect) -> str:
    """Return what an effect asks for, without what the kernel numbers it with."""
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
