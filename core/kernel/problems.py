"""What can be wrong with a machine, found when it is built, each problem named with the row or the state it is in."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from lifefold.core.kernel.record import State
from lifefold.core.kernel.row import AnyState, Does, Row, states

if TYPE_CHECKING:
    from lifefold.core.kernel.machine import Machine


class InvalidMachine(ValueError):
    """The machine cannot be built; ``problems`` says why, a line each."""

    def __init__(self, name: str, wrong: tuple[str, ...]) -> None:
        """Take the machine's name and the problems found."""
        super().__init__("\n".join([f"machine {name!r} is not well formed:", *(f"- {line}" for line in wrong)]))
        self.problems = wrong


def problems(machine: "Machine[Any]") -> tuple[str, ...]:
    """Return what is wrong with a machine, in words; empty if nothing is."""
    unknown = tuple(_unknown_states(machine))
    if unknown:
        return unknown
    finders = (_outside, _slots, _shadowed, _unreachable, _dead_ends, _left_final, _postponed, _yields, _last)
    return tuple(line for find in finders for line in find(machine))


def _sources(machine: "Machine[Any]", row: Row[Any]) -> frozenset[State]:
    return frozenset(machine.states) if row.sources is None else row.sources


def _named(row: Row[Any]) -> tuple[State, ...]:
    return (*(row.sources or ()), *(() if row.target is None else (row.target,)))


def _takes(machine: "Machine[Any]", state: State, event: type) -> bool:
    return any(row.event is event and state in _sources(machine, row) for row in machine.rows)


def _unknown_states(machine: "Machine[Any]") -> Iterator[str]:
    known = frozenset(machine.states)
    named: list[tuple[str, Iterable[State]]] = [(str(r), _named(r)) for r in machine.rows]
    named += [
        (f"during {key!s}", states(key) or frozenset()) for key in machine.during if not isinstance(key, AnyState)
    ]
    named += [
        (f"postpone {key!s}", states(key) or frozenset()) for key in machine.postpone if not isinstance(key, AnyState)
    ]
    named.append(("final", machine.final))
    for place, found in named:
        for state in sorted(s for s in found if type(s) is not type(machine.initial.state) or s not in known):
            yield f"{place}: unknown state {state!r}; the states are {', '.join(machine.states)}"


def _outside(machine: "Machine[Any]") -> Iterator[str]:
    """Check that served activities exist, and that nothing leads into or out of detached states."""
    for slot in sorted(machine.served - machine.spans.keys()):
        yield f"serving: there is no activity {slot}; there are {', '.join(sorted(machine.spans))}"
    for row in machine.rows:
        for state in sorted(machine.detached.intersection(_named(row))):
            yield f"{row} enters or leaves {state}, which is declared detached"


def _slots(machine: "Machine[Any]") -> Iterator[str]:
    seen: set[str] = set()
    for parts in machine.during.values():
        for part in parts if isinstance(parts, tuple) else (parts,):
            if part.slot in seen:
                yield f"during: {part.slot} is declared twice; give its states in one key"
            seen.add(part.slot)


def _shadowed(machine: "Machine[Any]") -> Iterator[str]:
    closed: dict[tuple[State, type], Row[Any]] = {}
    for row in machine.rows:
        pairs = [(state, row.event) for state in sorted(_sources(machine, row))]
        if pairs and all(pair in closed for pair in pairs):
            yield f"{row} can never be taken: {closed[pairs[0]]} comes first and has no guard"
        if row.guard is None:
            closed |= {pair: row for pair in pairs if pair not in closed}


def _unreachable(machine: "Machine[Any]") -> Iterator[str]:
    reached = {machine.initial.state}
    frontier = list(reached)
    while frontier:
        state = frontier.pop()
        new = {row.goes(state) for row in machine.rows if state in _sources(machine, row)} - reached
        reached |= new
        frontier += new
    for state in machine.states:
        if state not in reached | machine.detached:
            rows = ", ".join(str(r) for r in machine.rows if r.sources is not None and state in r.sources) or "no row"
            yield f"state {state} cannot be reached from {machine.initial.state} (it is the source of {rows})"


def _dead_ends(machine: "Machine[Any]") -> Iterator[str]:
    for state in machine.states:
        left = any(state in _sources(machine, row) and row.goes(state) != state for row in machine.rows)
        if not left and state not in machine.final | machine.detached:
            rows = ", ".join(str(r) for r in machine.rows if r.target == state) or "no row"
            yield f"state {state} can never be left and is not declared final (it is the target of {rows})"


def _left_final(machine: "Machine[Any]") -> Iterator[str]:
    for row in machine.rows:
        for state in sorted(machine.final & _sources(machine, row)):
            if row.goes(state) != state:
                yield f"{row} leaves {state}, which is declared final"


def _postponed(machine: "Machine[Any]") -> Iterator[str]:
    for source, events in machine.postpone.items():
        sources = machine.states if isinstance(source, AnyState) else states(source) or ()
        for event in events if isinstance(events, tuple) else (events,):
            if not any(_takes(machine, state, event) for state in machine.states if state not in sources):
                yield f"postpone {', '.join(sorted(sources))}: no later state has a row for {event.__name__}"
            for state in sorted(sources):
                if any(r.event is event and r.guard is None and state in _sources(machine, r) for r in machine.rows):
                    yield f"postpone {state}: {event.__name__} never waits, because a row takes it there"


def _yields(machine: "Machine[Any]") -> Iterator[str]:
    for slot, span in machine.spans.items():
        for event in span.during.yields:
            if not any(_takes(machine, state, event) for state in span.states):
                where = ", ".join(sorted(span.states))
                yield f"during {where}: {slot} yields {event.__name__}, for which there is no row in {where}"


def _last(machine: "Machine[Any]") -> Iterator[str]:
    """Check that an activity that is over by itself leaves its states: nothing would go on in them."""
    for slot, span in machine.spans.items():
        if not isinstance(span.during, Does):
            continue
        for event in span.during.last:
            for state in sorted(span.states):
                if not _takes(machine, state, event):
                    yield f"during {state}: {slot} ends with {event.__name__}, for which {state} has no row"
            for row in machine.rows:
                if row.event is event and any(row.goes(s) in span.states for s in span.states & _sources(machine, row)):
                    yield f"{row} stays where {slot} is declared to go on, but {event.__name__} is its last event"
