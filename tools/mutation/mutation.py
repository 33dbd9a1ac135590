"""Mutants of a machine: copies with one deliberate mistake, made without knowledge of the machine.

The folder ``tools/mutation`` holds the mutation framework of lifecycles and of the fleet's rules. Its results are in
``tests/mutants/results`` and on the page ``docs/mutants.md``; ``make mutants`` runs it.

A row is lost, also in one of its states, or has another target. A guard is lost or negated. An action does nothing,
does not record a field or sets it one too high. An effect is lost or repeated. Two rows change places. An event is not
postponed. An activity or a timer is not started, not in one of its states, or not ended. A final state is not final.
Thresholds that are off by one are in ``mutation_limits``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, wraps
from inspect import signature
from itertools import combinations
from typing import Any, NamedTuple

from declared import rebuilt
from lifefold.core.kernel import Machine, Record, Row, State, Step, replace
from lifefold.core.kernel.row import Pattern
from lifefold.effects import Effect
from mutation_limits import off_by_one, wrong_durations
from tabulated import Tabulated

Make = Callable[[], Machine[Any]]
Action = Callable[[Any, Any], Step[Any, Any]]


class Mutant(NamedTuple):
    """A mutant: its kind, its name, and how to make the machine, which may be refused."""

    kind: str
    name: str
    make: Make


def mutants(table: Tabulated, base: Machine[Any] | None = None) -> tuple[Mutant, ...]:
    """Return every mutant of a machine, each with a unique name.

    A profile with a ``base`` has only the mutants of its own rows and activities, and of its thresholds if it has
    another type of record.
    """
    machine = table.machine
    own = Own(machine, base)
    found: dict[str, Mutant] = {}
    for each in (*_of_rows(table, own), *_of_order(machine, own), *_of_states(machine, own), *_of_limits(table, own)):
        name, again = each.name, 1
        while name in found:
            again += 1
            name = f"{each.name} ({again})"
        found[name] = each._replace(name=name)
    return tuple(found.values())


class Own:
    """The parts of a profile that its base does not have."""

    def __init__(self, machine: Machine[Any], base: Machine[Any] | None) -> None:
        """Compare the profile with its base."""
        inherited = frozenset[Row[Any]]() if base is None else frozenset(base.rows)
        self.rows = frozenset(row for row in machine.rows if row not in inherited)
        spans: Mapping[str, object] = {} if base is None else base.spans
        self.slots = frozenset(slot for slot, span in machine.spans.items() if spans.get(slot) != span)
        self.postpone = base is None or machine.postpone != base.postpone
        self.final = machine.final - (frozenset[State]() if base is None else base.final)
        self.record = base is None or machine.record is not base.record


def _of_rows(table: Tabulated, own: Own) -> Iterator[Mutant]:
    machine = table.machine
    for place, row in enumerate(machine.rows):
        if row not in own.rows:
            continue
        variants = (
            _lost(machine, row), _guarded(row), _redirected(machine, row), _idle(table, row), _telling(row),
        )  # fmt: skip
        for kind, what, news in (each for group in variants for each in group):
            yield Mutant(kind, f"{row}: {what}", _with(machine, place, news))


Variant = tuple[str, str, tuple[Row[Any], ...]]
"""The kind of a mutant of a row, its description, and the rows that replace it."""


def _with(machine: Machine[Any], place: int, news: Iterable[Row[Any]]) -> Make:
    return lambda: rebuilt(machine, rows=(*machine.rows[:place], *news, *machine.rows[place + 1 :]))


def _lost(machine: Machine[Any], row: Row[Any]) -> Iterator[Variant]:
    yield "row lost", "is not there", ()
    sources = machine.sources(row)
    for state in sorted(sources) if len(sources) > 1 else ():
        is_any = row.sources is None  # such a row keeps all its states: the operator commands depend on it
        new = replace(row, when=_elsewhere(row, state)) if is_any else replace(row, sources=sources - {state})
        yield "row lost in a state", f"is not taken in {state}", (new,)


def _elsewhere(row: Row[Any], state: State) -> Callable[[Any, Any], bool]:
    def elsewhere(record: Any, event: Any) -> bool:
        return record.state is not state and (row.when is None or row.when(record, event))

    return elsewhere


def _guarded(row: Row[Any]) -> Iterator[Variant]:
    if row.when is not None:
        yield "guard lost", "its guard is not asked", (replace(row, when=None),)
        yield "guard turned round", "its guard is turned round", (replace(row, when=_not(row.when)),)
    if row.pattern is not None:
        yield "pattern lost", f"takes every {row.event.__name__}", (replace(row, pattern=None),)
        other = Pattern(row.event, f"not {row.pattern.label}", _other(row.pattern.test))
        yield "pattern turned round", f"takes every other {row.event.__name__}", (replace(row, pattern=other),)


def _not(when: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    @wraps(when)
    def turned(record: Any, event: Any) -> bool:
        return not when(record, event)

    return turned


def _other(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda event: not test(event)


def _redirected(machine: Machine[Any], row: Row[Any]) -> Iterator[Variant]:
    """Yield the row with every other target, and without one."""
    sources: frozenset[object] = machine.sources(row)
    for state in machine.states:
        if state is not row.target and state not in machine.detached and set(sources) != {state}:
            yield "target swapped", f"leads to {state}", (replace(row, target=state),)
    if row.target is not None and set(sources) != {row.target}:
        yield "target swapped", "leads nowhere", (replace(row, target=None),)


def _idle(table: Tabulated, row: Row[Any]) -> Iterator[Variant]:
    if row.action is None:
        return
    changed = _changed(table, row)
    if changed or row.effects:
        yield "action lost", "does nothing", (replace(row, action=None),)
    if changed and row.effects:
        yield "record forgotten", "records nothing", (replace(row, action=_keeping(row.action, changed)),)
    for name in changed if len(changed) > 1 else ():
        yield "record forgotten", f"does not record {name}", (replace(row, action=_keeping(row.action, (name,))),)
    for name in changed:
        if type(getattr(table.machine.initial, name)) is int:
            yield "count off by one", f"makes {name} one higher", (replace(row, action=_higher(row.action, name)),)


def _changed(table: Tabulated, row: Row[Any]) -> tuple[str, ...]:
    """Return the fields that the action of a row changes in some state."""
    found: set[str] = set()
    for record, event in table.asked.get(row.event, ()):
        if row.action is not None and _fits(table.machine, row, record, event):
            after = row.action(record, event).record
            found.update(name for name in record.__struct_fields__ if getattr(after, name) != getattr(record, name))
    return tuple(name for name in table.machine.record.__struct_fields__ if name in found and name != "state")


def _fits(machine: Machine[Any], row: Row[Any], record: Any, event: Any) -> bool:
    return (
        record.state in machine.sources(row)
        and (row.pattern is None or row.pattern.test(event))
        and (row.when is None or row.when(record, event))
    )


def _keeping(action: Action, names: tuple[str, ...]) -> Action:
    @wraps(action)
    def keeping(record: Record, event: Any) -> Step[Any, Any]:
        done = action(record, event)
        return Step(replace(done.record, **{name: getattr(record, name) for name in names}), done.effects)

    return keeping


def _higher(action: Action, name: str) -> Action:
    @wraps(action)
    def higher(record: Record, event: Any) -> Step[Any, Any]:
        done = action(record, event)
        return Step(replace(done.record, **{name: getattr(done.record, name) + 1}), done.effects)

    return higher


def _telling(row: Row[Any]) -> Iterator[Variant]:
    if row.action is None:
        return
    for kind in dict.fromkeys(row.effects):
        name = kind.__name__
        yield "effect lost", f"does not ask for {name}", (replace(row, action=_times(row.action, kind, 0)),)
        yield "effect doubled", f"asks twice for {name}", (replace(row, action=_times(row.action, kind, 2)),)


def _times(action: Action, kind: type[Effect], times: int) -> Action:
    @wraps(action)
    def telling(record: Record, event: Any) -> Step[Any, Any]:
        done = action(record, event)
        effects = [each for each in done.effects for _ in range(times if isinstance(each, kind) else 1)]
        return Step(done.record, tuple(effects))

    return telling


def _of_order(machine: Machine[Any], own: Own) -> Iterator[Mutant]:
    """Yield a mutant for each two rows that can both fit an input."""
    for (first, one), (second, other) in combinations(enumerate(machine.rows), 2):
        if own.rows & {one, other} and one.event is other.event and machine.sources(one) & machine.sources(other):
            rows = list(machine.rows)
            rows[first], rows[second] = other, one
            yield Mutant("rows swapped", f"{other}: stands before {one}", _rebuilding(machine, rows=tuple(rows)))


def _rebuilding(machine: Machine[Any], **changes: Any) -> Make:
    return lambda: rebuilt(machine, **changes)


def _of_states(machine: Machine[Any], own: Own) -> Iterator[Mutant]:
    for where, events in machine.postpone.items() if own.postpone else ():
        for event in events:
            for state in sorted(where):
                name = f"{event.__name__} does not wait in {state}"
                yield Mutant("not postponed", name, _rebuilding(machine, postpone=_impatient(machine, state, event)))
    for slot, span in machine.spans.items():
        if slot not in own.slots:
            continue
        yield Mutant("activity lost", f"{slot} is not begun", _lasting(machine, slot, frozenset()))
        for state in sorted(span.states) if len(span.states) > 1 else ():
            name = f"{slot} does not go on in {state}"
            yield Mutant("activity lost in a state", name, _lasting(machine, slot, span.states - {state}))
        yield Mutant("activity not ended", f"{slot} is not ended", partial(_unending, machine, slot))
    for state in sorted(own.final):
        yield Mutant("not final", f"{state} is not final", _rebuilding(machine, final=machine.final - {state}))


def _impatient(machine: Machine[Any], state: State, event: type[Any]) -> dict[Any, Any]:
    """Return the postponed events by states, without one event in one state."""
    waiting: dict[Any, Any] = {}
    for where, events in machine.postpone.items():
        for each in events:
            kept = where - {state} if each is event else where
            if kept:
                waiting[kept] = (*waiting.get(kept, ()), each)
    return waiting


def _lasting(machine: Machine[Any], slot: str, states: frozenset[State]) -> Make:
    """Return the construction of a machine in which the activity of a slot lasts in these states."""
    during: dict[Any, Any] = {}
    for where, parts in machine.during.items():
        for part in parts:
            there = states if part.slot == slot else where
            if there:
                during[there] = (*during.get(there, ()), part)
    return _rebuilding(machine, during=during)


def _unending(machine: Machine[Any], slot: str) -> Machine[Any]:
    """Return a machine that does not end the activity of a slot when its states are left."""

    class Unending(Machine[Any]):
        __slots__ = ()

        def _ends(self, before: State, now: State, by: Row[Any]) -> tuple[Effect, ...]:
            return tuple(each for each in super()._ends(before, now, by) if getattr(each, "slot", "") != slot)

    return Unending(**{part: getattr(machine, part) for part in signature(Machine).parameters})


def _of_limits(table: Tabulated, own: Own) -> Iterator[Mutant]:
    for place, row, what in off_by_one(table):
        if not own.record and table.machine.rows[place] not in own.rows:
            continue
        name = f"{table.machine.rows[place]}: {what}"
        yield Mutant("threshold off by one", name, _with(table.machine, place, (row,)))
    for slot, timer, what in wrong_durations(table):
        if not own.record and slot not in own.slots:
            continue
        during = {
            where: tuple(timer if part.slot == slot else part for part in parts)
            for where, parts in table.machine.during.items()
        }
        yield Mutant("threshold off by one", f"{slot} {what}", _rebuilding(table.machine, during=during))
