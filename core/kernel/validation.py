"""The problems that a machine can have, found when it is built; each names its row or its state."""

import typing
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from lifefold.core.kernel.evolution import problems_of
from lifefold.core.kernel.record import Event, State
from lifefold.core.kernel.row import After, Does, Row

if TYPE_CHECKING:
    from lifefold.core.kernel.machine import Machine


class InvalidMachine(ValueError):
    """The machine cannot be built; ``problems`` has the reasons, a line each."""

    def __init__(self, name: str, wrong: tuple[str, ...]) -> None:
        """Take the machine's name and the problems found."""
        super().__init__("\n".join([f"machine {name!r} is not well formed:", *(f"- {line}" for line in wrong)]))
        self.problems = wrong


def problems(machine: "Machine[Any]") -> tuple[str, ...]:
    """Return the problems of a machine as sentences; empty if it has none."""
    misnamed = (*_mutable(machine), *_unknown_states(machine), *_without_states(machine))
    # Wrong states and types would make all other checks report consequences of the same mistake.
    if misnamed:
        return misnamed
    finders = (
        _outside, _slots, _shadowed, _unreachable, _dead_ends, _left_final, _postponed, _yields, _timers, _last,
        problems_of,
    )  # fmt: skip
    return tuple(line for find in finders for line in find(machine))


def _mutable(machine: "Machine[Any]") -> Iterator[str]:
    """Check that records and events cannot change once they are made, and that their types are precise."""
    for kind in (machine.record, *dict.fromkeys(row.event for row in machine.rows)):
        yield from _loose(cast("Hashable", kind))


@lru_cache(maxsize=2048)  # machines are made of machines, and every process of lifefold makes all of them
def _loose(kind: Any) -> tuple[str, ...]:
    """Return the problems of one record or event."""
    lines = [
        f"{kind.__name__}.{field.name} is of type {found}; accepted: {_INSTEAD[found]}"
        for field in msgspec.structs.fields(kind)
        if (found := next(_changeable(field.type), None)) is not None
    ]
    if kind.__struct_config__.frozen:
        return tuple(lines)
    return (f"{kind.__name__} is not frozen: class {kind.__name__}({kind.__mro__[1].__name__}, frozen=True)", *lines)


_INSTEAD: Final = {
    **dict.fromkeys(("list", "deque", "Sequence", "MutableSequence", "Collection", "Iterable"), "tuple[..., ...]"),
    **dict.fromkeys(("set", "MutableSet"), "a tuple, or a frozenset that no log holds"),
    **dict.fromkeys(("dict", "Mapping", "MutableMapping"), "a tuple of pairs, or a frozen struct"),
    "bytearray": "bytes",
    "object": "the type that it has",
}
"""The accepted types in place of mutable ones, among them the types that a log is read back as."""


def _changeable(kind: Any) -> Iterator[str]:
    """Yield the names of the mutable or unspecific types within a field's type."""
    name = getattr(typing.get_origin(kind) or kind, "__name__", "")
    if name in _INSTEAD:
        yield name
    for each in typing.get_args(kind):
        yield from _changeable(each)


def _named(row: Row[Any]) -> tuple[State, ...]:
    """Return the states that a row names. No set: states of two machines may be spelled the same."""
    return (*(row.sources or ()), *(() if row.target is None else (row.target,)))


def _takes(machine: "Machine[Any]", state: State, event: type[Event]) -> bool:
    return any(row.event is event and state in machine.sources(row) for row in machine.rows)


def _surely_takes(machine: "Machine[Any]", state: State, event: type[Event]) -> bool:
    return any(row.event is event and row.unguarded and state in machine.sources(row) for row in machine.rows)


def _keys(machine: "Machine[Any]") -> Iterator[tuple[str, frozenset[State]]]:
    for part, keys in (("during", machine.during), ("postpone", machine.postpone)):
        yield from ((f"{part} {', '.join(sorted(key))}", key) for key in keys)


def _unknown_states(machine: "Machine[Any]") -> Iterator[str]:
    named: list[tuple[str, Iterable[State]]] = [(str(r), _named(r)) for r in machine.rows]
    named += [*_keys(machine), ("final", machine.final), ("detached", machine.detached)]
    for place, found in named:
        for state in sorted(s for s in found if not _is_of(machine, s)):
            yield f"{place}: unknown state {state!r}; the states are {', '.join(machine.states)}"
    for name, count in Counter(str(state) for state in machine.states).items():
        if count > 1:
            yield f"added: {name!r} is the name of {count} states; accepted: names that no other state has"


def _is_of(machine: "Machine[Any]", state: State) -> bool:
    """Tell whether a state is this machine's own: states of two machines may be spelled the same."""
    return any(state is each for each in machine.states)


def _without_states(machine: "Machine[Any]") -> Iterator[str]:
    """Check that every declaration has a state: an empty source means none."""
    for row in machine.rows:
        if not machine.sources(row):
            yield f"{row} has no source"
    yield from (f"{place.strip()}: no state is named" for place, key in _keys(machine) if not key)


def _outside(machine: "Machine[Any]") -> Iterator[str]:
    """Check that served activities exist, and that no row enters or leaves a detached state."""
    activities = {slot for slot, span in machine.spans.items() if isinstance(span.during, Does)}
    for slot in sorted(machine.served - activities):
        yield f"serving: there is no activity {slot}; there are {', '.join(sorted(activities))}"
    for row in machine.rows:
        for state in sorted(machine.detached.intersection(_named(row))):
            yield f"{row} enters or leaves {state}, which is declared detached"


def _slots(machine: "Machine[Any]") -> Iterator[str]:
    seen: set[str] = set()
    for parts in machine.during.values():
        for part in parts:
            if part.slot in seen:
                yield f"during: {part.slot} is declared twice; give its states in one key"
            seen.add(part.slot)


def _shadowed(machine: "Machine[Any]") -> Iterator[str]:
    """Check that no row is shadowed in all of its states by an earlier row that is taken whenever it would be."""
    before: dict[tuple[object, ...], Row[Any]] = {}
    for row in machine.rows:
        places = [(state, row.event) for state in sorted(machine.sources(row))]
        weaker = ((None, None), (row.pattern, None), (None, row.when), (row.pattern, row.when))
        first = [next((before[*at, *key] for key in weaker if (*at, *key) in before), None) for at in places]
        if first[0] is not None and None not in first:
            why = "has no guard" if first[0].unguarded else "has no guard that this one lacks"
            yield f"{row} can never be taken: {first[0]} comes first and {why}"
        for at in places:
            before.setdefault((*at, row.pattern, row.when), row)


def _reached(machine: "Machine[Any]", start: State) -> frozenset[State]:
    """Return the states that rows lead to from one state, itself included."""
    reached, frontier = {start}, [start]
    while frontier:
        state = frontier.pop()
        new = {row.goes(state) for row in machine.rows if state in machine.sources(row)} - reached
        reached |= new
        frontier += new
    return frozenset(reached)


def _unreachable(machine: "Machine[Any]") -> Iterator[str]:
    reached = _reached(machine, machine.initial.state)
    for state in machine.states:
        if state not in reached | machine.detached:
            rows = ", ".join(str(r) for r in machine.rows if r.sources is not None and state in r.sources) or "no row"
            yield f"state {state} cannot be reached from {machine.initial.state} (it is the source of {rows})"


def _dead_ends(machine: "Machine[Any]") -> Iterator[str]:
    for state in machine.states:
        left = any(state in machine.sources(row) and row.goes(state) != state for row in machine.rows)
        if not left and state not in machine.final | machine.detached:
            rows = ", ".join(str(r) for r in machine.rows if r.target == state) or "no row"
            yield f"state {state} can never be left and is not declared final (it is the target of {rows})"


def _left_final(machine: "Machine[Any]") -> Iterator[str]:
    for row in machine.rows:
        for state in sorted(machine.final & machine.sources(row)):
            if row.goes(state) != state:
                yield f"{row} leaves {state}, which is declared final"


def _postponed(machine: "Machine[Any]") -> Iterator[str]:
    for where, events in machine.postpone.items():
        for event in events:
            for state in sorted(where):
                yield from (f"postpone {state}: {line}" for line in _postponed_without_effect(machine, state, event))


def _postponed_without_effect(machine: "Machine[Any]", state: State, event: type[Event]) -> Iterator[str]:
    if not any(_takes(machine, later, event) for later in _reached(machine, state) - {state}):
        yield f"no later state has a row for {event.__name__}"
    if _surely_takes(machine, state, event):
        yield f"{event.__name__} never waits, because a row takes it there"
    for slot, span in machine.spans.items():
        if isinstance(span.during, Does) and state in span.states and event in machine.last[slot]:
            yield f"{event.__name__} cannot wait: it ends {slot}"


def _yields(machine: "Machine[Any]") -> Iterator[str]:
    for slot, span in machine.spans.items():
        for event in span.during.yields if isinstance(span.during, Does) else ():
            if not any(_takes(machine, state, event) for state in span.states):
                where = ", ".join(sorted(span.states))
                yield f"during {where}: {slot} yields {event.__name__}, for which there is no row in {where}"


def _timers(machine: "Machine[Any]") -> Iterator[str]:
    """Check that a timer, which fires once in a stay, is accepted in each of its states, or soon after."""
    for slot, span in machine.spans.items():
        if not isinstance(span.during, After):
            continue
        event = span.during.event
        if any(field.required for field in msgspec.structs.fields(event)):
            yield f"during {', '.join(sorted(span.states))}: {event.__name__} has fields that no timer can fill"
        accepting = {state for state in span.states if _surely_takes(machine, state, event)}
        # A postponed firing is accepted later, if some state of the timer accepts it at all.
        waits = {
            state for where, events in machine.postpone.items() if accepting and event in events for state in where
        }
        for state in sorted(span.states - accepting - waits):
            yield f"during {state}: {slot} fires once, and {state} has no unguarded row for it"


def _last(machine: "Machine[Any]") -> Iterator[str]:
    """Check that an activity that ends by itself leaves its states: otherwise it would be missing in them."""
    for slot, span in machine.spans.items():
        if not isinstance(span.during, Does):
            continue
        for event in span.during.last:
            for state in sorted(span.states):
                if not _takes(machine, state, event):
                    yield f"during {state}: {slot} ends with {event.__name__}, for which {state} has no row"
            for row in machine.rows:
                if row.event is event and any(row.goes(s) in span.states for s in span.states & machine.sources(row)):
                    yield f"{row} stays where {slot} is declared to run, but {event.__name__} is its last event"
