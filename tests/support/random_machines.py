"""Small machines at random, of all that a machine can have: guards, activities, timers, postponed events, loops.

Some rows begin the timers again.

They are well formed by construction: a ring of ``Go`` rows leads everywhere, and whatever may be said is taken.
"""

from typing import Any, Final, Never

from hypothesis import strategies as st

from lifefold.core.kernel import After, Event, Machine, Record, Row, State, Step, after, does, replace, row
from lifefold.effects import Activity

_kinds: Any = State
RINGS: Final[dict[int, list[Any]]] = {
    size: list(_kinds("Ring", {f"S{n}": f"S{n}" for n in range(size)})) for size in range(2, 6)
}


class Go(Event, frozen=True):
    """An operator continues it."""


class Push(Event, frozen=True):
    """An operator pushes."""


class Done(Event, frozen=True):
    """The work is done."""


class Noted(Event, frozen=True):
    """The work goes well."""


class Tick(Event, frozen=True):
    """Time has passed."""


class Work(Activity, frozen=True):
    """Some work."""

    count: int


class Ring(Record, frozen=True):
    """A record with something to count."""

    state: Any
    count: int = 0


def is_even(r: Ring, _e: Event) -> bool:
    """The count is even."""
    return r.count % 2 == 0


def is_high(r: Ring, _e: Event) -> bool:
    """The count is as high as it gets."""
    return r.count == 2


def up(r: Ring, _e: Event) -> Step[Ring, Never]:
    """Count, round and round."""
    return Step(replace(r, count=(r.count + 1) % 3))


def zero(r: Ring, _e: Event) -> Step[Ring, Never]:
    """Begin to count anew."""
    return Step(replace(r, count=0))


def work(r: Ring) -> Work:
    """Return the work."""
    return Work(r.count)


ACTIONS: Final = st.sampled_from([None, up, zero])
GUARDS: Final = st.sampled_from([None, is_even, is_high])


@st.composite
def _rows(draw: st.DrawFn, state: Any, event: type[Event], targets: list[Any]) -> tuple[Row[Ring], ...]:
    """Draw what an event does in a state: whatever the count is, it is taken."""
    guard, target = draw(GUARDS), st.sampled_from(targets)
    guarded = () if guard is None else (row(state, event, draw(target), draw(ACTIONS), when=guard),)
    return (*guarded, row(state, event, draw(target), draw(ACTIONS), restart=draw(st.booleans())))


@st.composite
def machines(draw: st.DrawFn) -> Machine[Any]:
    """Draw a machine."""
    states = RINGS[draw(st.integers(2, 5))]
    some = st.frozensets(st.sampled_from(states), max_size=len(states) - 1)
    working, timed = draw(some), draw(some)
    waiting = draw(some)
    rows: list[Row[Ring]] = []
    for state, following in zip(states, [*states[1:], states[0]], strict=True):
        if draw(st.booleans()):
            rows.append(row(state, Go, draw(st.sampled_from(states)), draw(ACTIONS), when=is_even))
        rows.append(row(state, Go, following, draw(ACTIONS)))
        if state in working:
            rows += draw(_rows(state, Done, [each for each in states if each not in working]))
            rows += draw(_rows(state, Noted, states))
        if state in timed:
            rows += draw(_rows(state, Tick, [each for each in states if each not in timed]))
        if state not in waiting:
            rows += draw(_rows(state, Push, states))
    ticking: After[Ring] = after(draw(st.sampled_from([0, 10])), Tick)
    during: dict[Any, Any] = {}
    for where, part in ((working, does(work, yields=Noted, last=Done)), (timed, ticking)):
        if where:
            during[where] = (*during.get(where, ()), part)
    postpone: dict[Any, Any] = {waiting: Push} if waiting else {}
    return Machine("ring", Ring(states[0]), rows=rows, during=during, postpone=postpone)
