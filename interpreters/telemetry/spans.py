"""Spans as plain values, and a span while its log is folded. Times are Unix time in milliseconds."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from lifefold.core.kernel import Entity, Event, Phase, Running, Transition
from lifefold.interpreters.telemetry.identifiers import Place

Value: TypeAlias = str | bool | int | float
"""The value of an attribute."""

UNFINISHED: Final = "lifefold.unfinished"
"""The attribute of a span that has not ended in the log; its end is the time of the last entry."""

REASON_CHARS: Final = 200
"""The most characters of a reason in an attribute; it is its first line."""


class SpanEvent(msgspec.Struct, frozen=True):
    """Something that happened during a span."""

    name: str
    at_ms: int
    attributes: Mapping[str, Value] = {}


class Link(msgspec.Struct, frozen=True):
    """A span that is a cause of another one, and why."""

    to: Place
    why: str


class Span(msgspec.Struct, frozen=True):
    """A span. Without ``parent`` it is the root of its trace. ``error`` is the reason of a failure, else None."""

    place: Place
    name: str
    start_ms: int
    end_ms: int
    parent: str = ""
    attributes: Mapping[str, Value] = {}
    events: tuple[SpanEvent, ...] = ()
    links: tuple[Link, ...] = ()
    error: str | None = None


class Draft:
    """A span that has not ended yet."""

    __slots__ = ("attributes", "error", "events", "links", "name", "parent", "place", "start_ms")

    def __init__(self, place: Place, name: str, start_ms: int, parent: str = "") -> None:
        """Begin a span."""
        self.place: Final = place
        self.name: Final = name
        self.start_ms: Final = start_ms
        self.parent: Final = parent
        self.attributes: Final[dict[str, Value]] = {}
        self.events: Final[list[SpanEvent]] = []
        self.links: Final[dict[Place, str]] = {}
        self.error: str | None = None

    def link(self, to: Place | None, why: str) -> None:
        """Add a cause, each span once; None and the span itself are none."""
        if to is not None and to != self.place:
            self.links.setdefault(to, why)

    def note(self, name: str, at_ms: int, attributes: Mapping[str, Value] | None = None) -> None:
        """Add an event."""
        self.events.append(SpanEvent(name, at_ms, attributes or {}))

    def ended(self, at_ms: int, *, is_whole: bool = True) -> Span:
        """Return the span with its end. One that is not whole has not ended in the log."""
        attributes = self.attributes if is_whole else {**self.attributes, UNFINISHED: True}
        links = tuple(Link(to, why) for to, why in self.links.items())
        return Span(
            self.place, self.name, self.start_ms, at_ms, self.parent, attributes, tuple(self.events), links, self.error
        )


def moved(stream: str, step: Transition) -> SpanEvent:
    """Return a transition as an event of a span: the states, the actor, and the reason if its event has one."""
    attributes: dict[str, Value] = {
        "lifefold.aggregate": stream,
        "lifefold.entity": step.entity,
        "lifefold.state.before": "" if step.before is None else str(step.before.state),
        "lifefold.state": str(step.after.state),
        "lifefold.actor": step.actor,
    }
    for name in ("transition_reason", "abort_reason"):
        if (value := getattr(step.event, name, None)) is not None:
            attributes[f"lifefold.{name}"] = str(value)
    if reason := reason_of(step.event):
        attributes["lifefold.reason"] = reason
    return SpanEvent(type(step.event).__name__, step.at_ms, attributes)


def reason_of(event: Event) -> str:
    """Return the first line of an event's reason; empty if it has none. Prompts and outputs are no reasons."""
    reason = getattr(event, "reason", "")
    return str(reason).strip().partition("\n")[0][:REASON_CHARS] if reason else ""


def activities(entity: Entity[Any] | None) -> dict[tuple[str, int], Running]:
    """Return the activities that have begun, by slot and generation; timers are none."""
    if entity is None:
        return {}
    return {
        (each.slot, each.generation): each
        for each in entity.running
        if each.activity is not None and each.phase is not Phase.WAITING
    }


def unfinished(drafts: Iterable[Draft], at_ms: int) -> Iterator[Span]:
    """Yield open spans as they are at the end of a log."""
    for each in drafts:
        yield each.ended(at_ms, is_whole=False)
