"""The outline of a machine, from which every view is drawn: its rows as arcs, and its states as nested regions.

An *arc* is a row as it leaves one state. A row with several sources is several arcs. A row from ``ANY`` is one, whose
source is None, because the documents print it so.

A *region* is a state, or several states of one activity. An activity of Spawning, Running and Interrupting does not
begin again between them, which a statechart shows by nested regions. That works if the states of activities nest.
Where they overlap, the largest keeps its region and the others are shown in each of their states.
"""

import re
from collections.abc import Callable, Hashable, Iterable
from types import UnionType
from typing import Any, Never, Union, get_args, get_origin, get_type_hints

import msgspec

from lifefold.core.kernel import ActivityScope, After, Does, Event, Machine, Row, State


class Arc(msgspec.Struct, frozen=True):
    """A row as it leaves one state, or any (None). ``otherwise``: an earlier row may accept the same event."""

    row: Row[Any]
    source: State | None
    otherwise: bool

    @property
    def target(self) -> State | None:
        """The target of the arc; None if the state does not change."""
        return self.source if self.row.target is None else self.row.target

    @property
    def condition(self) -> str:
        """The guard in words, without the pattern, which is in the event's name; ``otherwise`` or empty if none."""
        if self.row.when is not None:
            return in_words(self.row.when)
        return "otherwise" if self.otherwise else ""

    @property
    def effects(self) -> tuple[str, ...]:
        """The effects that the row may request, as annotated: ``LogFatal``, ``CallHook(on_resume)``.

        The last one of a row that restarts timers is ``timers again``.
        """
        own = () if self.row.action is None else tuple(map(_effect_label, _annotated(self.row.action)))
        return (*own, "timers again") if self.row.restart else own

    @property
    def label(self) -> str:
        """The label of the arc: ``SessionExited(Error) [threshold reached] / LogFatal``."""
        condition = f" [{self.condition}]" if self.condition else ""
        effects = f" / {', '.join(self.effects)}" if self.effects else ""
        return f"{self.row.event_label}{condition}{effects}"


class Region(msgspec.Struct, frozen=True):
    """A state (no ``parts``) or several, with the activities and timers of exactly these states."""

    states: tuple[State, ...]
    spans: tuple[ActivityScope[Any], ...] = ()
    parts: tuple["Region", ...] = ()

    @property
    def title(self) -> str:
        """The state's name, or the activities of the region."""
        return " and ".join(span.during.slot for span in self.spans) if self.parts else str(self.states[0])


def _annotated(action: Callable[..., object]) -> tuple[object, ...]:
    """Return the effects of an action as its return annotation writes them, with what ``Annotated`` adds to them."""
    _record, effects = get_args(get_type_hints(action, include_extras=True)["return"])
    if effects is Never:
        return ()
    return get_args(effects) if get_origin(effects) in {Union, UnionType} else (effects,)


def _effect_label(effect: Any) -> str:
    added = getattr(effect, "__metadata__", ())
    name = str(get_args(effect)[0].__name__ if added else effect.__name__)
    return f"{name}({', '.join(map(str, added))})" if added else name


def arcs(machine: Machine[Any]) -> tuple[Arc, ...]:
    """Return all arcs in the order of the table, the sources of one row in the order of the states."""
    drawn: list[Arc] = []
    for row in machine.rows:
        sources = [None] if row.sources is None else [state for state in machine.states if state in row.sources]
        drawn += [Arc(row, source, any(_rivals(arc, row, source) for arc in drawn)) for source in sources]
    return tuple(drawn)


def _rivals(earlier: Arc, row: Row[Any], source: State | None) -> bool:
    """Tell whether an earlier arc accepts some of the same events in some of the same states."""
    if earlier.row.event is not row.event:
        return False
    before, now = pattern_of(earlier.row), pattern_of(row)
    same_state = earlier.source is None or source is None or earlier.source == source
    return same_state and (not before or not now or before == now)


def pattern_of(row: Row[Any]) -> str:
    """Return the variant of the row's event; empty if the row is for all variants, as with ``*``."""
    return row.pattern.label if row.pattern is not None and row.pattern.label != "*" else ""


def condition_of(row: Row[Any]) -> str:
    """Return all conditions of the row in words: ``Error and threshold reached``; empty if there are none."""
    return " and ".join(word for word in (pattern_of(row), in_words(row.when) if row.when else "") if word)


def name_of(event: type[Event]) -> str:
    """Return an event's name as logs and documents spell it."""
    return str(event.__struct_config__.tag)


def in_words(function: Callable[..., object]) -> str:
    """Return the name of a guard, an action or a duration as words."""
    return function.__name__.replace("_", " ")


def regions(machine: Machine[Any], among: Iterable[State] | None = None) -> tuple[Region, ...]:
    """Return these states of the machine (all by default) as regions, in the order of the states."""
    states = tuple(machine.states if among is None else among)
    grouped: dict[frozenset[State], list[ActivityScope[Any]]] = {}
    for span in machine.spans.values():
        grouped.setdefault(span.states & frozenset(states), []).append(span)
    kept: list[frozenset[State]] = []
    for group in sorted((each for each in grouped if len(each) > 1), key=len, reverse=True):
        if all(group < other or not group & other for other in kept):
            kept.append(group)
    loose = [span for group, spans in grouped.items() if group not in kept for span in spans]
    return _nest(states, [(group, tuple(grouped[group])) for group in kept], loose)


def _nest(
    states: tuple[State, ...],
    groups: list[tuple[frozenset[State], tuple[ActivityScope[Any], ...]]],
    loose: list[ActivityScope[Any]],
) -> tuple[Region, ...]:
    found: list[Region] = []
    for state in states:
        if any(state in region.states for region in found):
            continue
        holding = [(group, spans) for group, spans in groups if state in group]
        if holding:
            group, spans = holding[0]
            inside = tuple(each for each in states if each in group)
            parts = _nest(inside, [(g, s) for g, s in groups if g < group], loose)
            found.append(Region(inside, spans, parts))
        else:
            found.append(Region((state,), tuple(span for span in loose if state in span.states)))
    return tuple(found)


def goings_on(machine: Machine[Any], region: Region) -> tuple[str, ...]:
    """Return the lines inside a state: its activities, its timers, its postponed events."""
    parts = [span.during for span in region.spans]
    lines = [f"does {part.slot}" for part in parts if isinstance(part, Does)]
    lines += [f"after {duration(part)}: {part.slot}" for part in parts if isinstance(part, After)]
    if not region.parts:
        waiting = postponed(machine, region.states[0])
        lines += [f"postpones {', '.join(waiting)}"] if waiting else []
        lines += ["outside the table"] if region.states[0] in machine.detached else []
    return tuple(lines)


def postponed(machine: Machine[Any], state: State) -> tuple[str, ...]:
    """Return the names of the events that a state postpones, in the order of the table."""
    return tuple(name_of(event) for event in machine.events if event in machine.postponed(state))


def fixed_ms(timer: After[Any]) -> int | None:
    """Return the duration of a timer in milliseconds; None if it depends on the record."""
    # `after(5_000, Event)` wraps its number into a function of the kernel; any other function may read the record.
    constant = timer.duration_ms.__qualname__.startswith("_constant.")
    return timer.duration_ms(None) if constant else None


def duration(timer: After[Any]) -> str:
    """Return the duration of a timer: ``5 s``, or the name of its function."""
    ms = fixed_ms(timer)
    if ms is None:
        return in_words(timer.duration_ms)
    return f"{ms} ms" if ms % 1_000 else f"{ms // 1_000} s"


ANY_STATE = "any state"
"""The text of the source of rows from any state."""


def arrows(machine: Machine[Any]) -> dict[tuple[State | None, State | None], tuple[str, ...]]:
    """Return the labels of all arcs by source and target: one arrow of a picture each, with a line for each row."""
    drawn: dict[tuple[State | None, State | None], tuple[str, ...]] = {}
    for arc in arcs(machine):
        between = (arc.source, arc.target)
        drawn[between] = (*drawn.get(between, ()), arc.label)
    return drawn


class Names:
    """Makes identifiers of word characters: one for each key, all different, always the same.

    The keys given at once come first, so they keep their own spelling if that is an identifier. ``keywords``, in lower
    case, are words that the language reserves.
    """

    __slots__ = ("_given", "_keywords")

    def __init__(self, *keys: str, keywords: frozenset[str] = frozenset()) -> None:
        self._given: dict[Hashable, str] = {}
        self._keywords = keywords
        for key in keys:
            self.of(key, key)

    def __getitem__(self, key: Hashable) -> str:
        return self._given[key]

    def of(self, key: Hashable, text: str) -> str:
        """Return the identifier of ``key``: made from ``text`` at its first use."""
        if key not in self._given:
            wanted = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "x"
            wanted = f"_{wanted}" if wanted[0].isdigit() else wanted
            taken, number, free = set(self._given.values()), 1, wanted
            while free in taken or free.lower() in self._keywords:
                number += 1
                free = f"{wanted}_{number}"
            self._given[key] = free
        return self._given[key]
