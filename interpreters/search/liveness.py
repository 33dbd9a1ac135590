"""Liveness properties: the search for a fair run on which the property fails.

Such a run ends in a part of the graph that it never leaves and in which the property does not hold. The states that it
visits for ever lie in one strongly connected component. A component has such a run if it satisfies every fairness
assumption. A *weakly* fair input is impossible somewhere in the component, or happens in it. A *strongly* fair input
is impossible everywhere in it, or happens in it. A timer is weakly fair from one start to its next. A step that
restarts it postpones it, as a state without the timer would.

If only strong fairness fails, the states in which the input is possible are removed, and the rest is searched again.
This is the emptiness check of Streett automata (E. A. Emerson, C.-L. Lei, 1987). A component of one state stands for a
run without further steps, or with a timer that restarts for ever. A step that changes nothing else is no step.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from lifefold.core.kernel import Cause, Fairness, Pattern
from lifefold.effects import Activity
from lifefold.interpreters.search.exchange import Label
from lifefold.interpreters.search.product_system import ProductSystem

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


class Lasso(msgspec.Struct, frozen=True):
    """An infinite run: the ``stem``, and then the ``cycle`` for ever. The cycle is empty if nothing more happens.

    The cycle ends where the stem does, and has that state at its beginning only if a step from there back to it
    restarts a timer. ``labels`` are those of the steps that fairness requires; -1 if any step will do.
    """

    stem: tuple[int, ...]
    cycle: tuple[int, ...]
    labels: tuple[int, ...] = ()


class Assumption(msgspec.Struct, frozen=True):
    """A fairness assumption, by the labels of its steps; ``restarts`` are the labels of steps that postpone it."""

    labels: frozenset[int]
    strong: bool
    restarts: frozenset[int] = frozenset()


def assumptions(product_system: ProductSystem, given: Iterable[Fairness]) -> list[Assumption]:
    """Return the engine's assumptions for each timer, confirmation and channel, and the given ones for each slot."""
    groups: dict[tuple[Any, ...], set[int]] = {}
    given = tuple(given)
    for number, label in enumerate(product_system.labels):
        if label.cause in {Cause.TIMER, Cause.CONFIRMATION, Cause.MESSAGE}:
            key = (label.cause, label.aggregate, label.entity, label.slot, label.sender)
            groups.setdefault((False, *key), set()).add(number)
        for index, each in enumerate(given):
            if _is_of(product_system, label, each):
                groups.setdefault((each.strong, index, label.aggregate, label.entity, label.slot), set()).add(number)
    return [
        Assumption(frozenset(labels), key[0], _restarts(product_system, *key[1:])) for key, labels in groups.items()
    ]


def _restarts(product_system: ProductSystem, kind: Cause | int | str, *of: str) -> frozenset[int]:
    """Return the labels of the steps that restart a timer; none for any other input."""
    if kind is not Cause.TIMER:
        return frozenset()
    aggregate, entity, slot, _ = of
    labels = ((number, product_system.labels[number]) for number in product_system.restarting)
    return frozenset(
        number for number, label in labels if label.aggregate == aggregate and (entity, slot) in label.restarts
    )


def _is_of(product_system: ProductSystem, label: Label, fair: Fairness) -> bool:
    if label.event is None:
        return False
    if isinstance(fair.of, Pattern):
        return type(label.event) is fair.of.event and fair.of.test(label.event)
    if issubclass(fair.of, Activity):
        machine = product_system.system.type_of(label.aggregate).machine_of(label.entity)
        over = machine is not None and type(label.event) in machine.last.get(label.slot, ())
        return label.slot == fair.of.__name__ and over
    return type(label.event) is fair.of


class Linked(Protocol):
    """Numbered states: the kept steps of a state are from ``first[state]`` to ``first[state + 1]``.

    A step is kept if it leads to another state or restarts a timer.
    """

    @property
    def count(self) -> int:
        """The number of states."""
        ...

    @property
    def first(self) -> Numbers:
        """The first step of each state, and the end of the last one's steps."""
        ...

    @property
    def targets(self) -> npt.NDArray[Any]:
        """The target of each step."""
        ...

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The label of each step."""
        ...


class Steps:
    """A graph as arrays: the sources, targets and labels of its steps."""

    def __init__(self, graph: Linked) -> None:
        """Take over a complete search."""
        self.count: Final = graph.count
        self.first: Final = graph.first
        self.targets: Final = graph.targets
        self.labels: Final = graph.labels
        self.sources: Final = np.repeat(np.arange(self.count, dtype=np.int64), np.diff(self.first))

    def of(self, labels: frozenset[int]) -> Flags:
        """Tell of each step whether it has one of these labels."""
        return np.isin(self.labels, np.fromiter(labels, dtype=np.int64, count=len(labels)))

    def has(self, chosen: Flags) -> Flags:
        """Tell of each state whether it has one of the chosen steps."""
        found = np.zeros(self.count, dtype=np.bool_)
        found[self.sources[chosen]] = True
        return found

    def reach(self, begin: Flags, within: Flags) -> Flags:
        """Tell of each state whether it can be reached from one of these without leaving ``within``."""
        found = begin & within
        usable = within[self.sources] & within[self.targets]
        sources, targets = self.sources[usable], self.targets[usable]
        while True:
            more = np.zeros(self.count, dtype=np.bool_)
            more[targets[found[sources]]] = True
            if not (more & ~found).any():
                return found
            found |= more


class _Fair(NamedTuple):
    """A fairness assumption in a graph: its steps, the steps that postpone it, and the states that enable it."""

    strong: bool
    doing: Flags
    possible: Flags


class _Components:
    """The strongly connected components of a part of a graph, by number; all other states have -1."""

    def __init__(self, steps: Steps, within: Flags) -> None:
        usable = within[steps.sources] & within[steps.targets]
        self.members: Final = np.flatnonzero(within)
        place = np.full(steps.count, -1, dtype=np.int64)
        place[self.members] = np.arange(len(self.members))
        ones = np.ones(int(usable.sum()), dtype=np.int8)
        shape = (len(self.members), len(self.members))
        links = csr_array((ones, (place[steps.sources[usable]], place[steps.targets[usable]])), shape=shape)
        self.count, numbers = connected_components(links, directed=True, connection="strong")
        self.of: Final = np.full(steps.count, -1, dtype=np.int64)
        self.of[self.members] = numbers
        sources = self.of[steps.sources]
        self._inside: Final = usable & (sources == self.of[steps.targets])
        self._sources: Final = sources

    def lacking(self, each: _Fair) -> Flags:
        """Tell of each component whether a run that takes all its steps for ever would be unfair."""
        done = self._some(self._sources[each.doing & self._inside])
        states = self.members[each.possible[self.members] == each.strong]
        some = self._some(self.of[states])
        return ~done & (some if each.strong else ~some)

    def nearest(self, chosen: Flags) -> Flags:
        """Tell of each state whether it is in the chosen component that is nearest to the opening."""
        first = self.members[chosen[self.of[self.members]]][0]
        found: Flags = self.of == self.of[first]
        return found

    def _some(self, numbers: Numbers) -> Flags:
        found = np.zeros(self.count, dtype=np.bool_)
        found[numbers] = True
        return found


def never(
    steps: Steps, due: Flags, holds: Flags, assumed: Sequence[Assumption], left_out: Callable[[frozenset[int]], Flags]
) -> Lasso | None:
    """Return a fair run on which the property is due and never holds from then on, if there is one.

    It stays within the bounds. ``left_out`` tells of each state whether a step of these labels leaves the bounds
    there. A run that stays is unfair if that step is possible and assumed to happen.
    """
    region = steps.reach(due & ~holds, ~holds)
    doing = [steps.of(each.labels) for each in assumed]
    fair = [
        _Fair(each.strong, done | steps.of(each.restarts), steps.has(done) | left_out(each.labels))
        for each, done in zip(assumed, doing, strict=True)
    ]
    within = region
    while within.any():
        components = _Components(steps, within)
        fulfilled = np.ones(components.count, dtype=np.bool_)
        hopeless = np.zeros(components.count, dtype=np.bool_)
        left = within.copy()
        for each in fair:
            lacking = components.lacking(each)
            fulfilled &= ~lacking
            if each.strong:
                left &= ~(each.possible & lacking[components.of])
            else:
                hopeless |= lacking
        if fulfilled.any():
            component = components.nearest(fulfilled)
            stem = _walk(steps, region, np.flatnonzero(due & region).tolist(), component)
            return Lasso(tuple(stem), *_round(steps, stem[-1], component, fair))
        within = left & ~hopeless[components.of]
    return None


def _round(steps: Steps, here: int, component: Flags, fair: Sequence[_Fair]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a cycle of a component from a state on which each assumption happens or is impossible somewhere.

    The labels of its steps come with it, where they matter.
    """
    inside = component[steps.sources] & component[steps.targets]
    onward = inside & (steps.sources != steps.targets)
    way, labels = [here], list[int]()

    def walk(goal: Flags) -> None:
        more = _walk(steps, component, way[-1:], goal)[1:]
        way.extend(more)
        labels.extend([_ANY] * len(more))

    for each in fair:
        idle = component & ~each.possible
        if not each.strong and idle.any():
            if not idle[way].any():
                walk(idle)
        elif (doing := np.flatnonzero(each.doing & inside)).size:
            walk(_only(component, int(steps.sources[doing[0]])))
            way.append(int(steps.targets[doing[0]]))
            labels.append(int(steps.labels[doing[0]]))
    if len(way) == 1 and onward.any():
        way.append(int(steps.targets[np.flatnonzero(onward & (steps.sources == here))[0]]))
        labels.append(_ANY)
    walk(_only(component, here))
    return tuple(way[1:]), tuple(labels)


_ANY: Final = -1
"""Instead of a label: any step with that target."""


def _only(component: Flags, state: int) -> Flags:
    found = np.zeros_like(component)
    found[state] = True
    return found


def _walk(steps: Steps, within: Flags, begin: list[int], goal: Flags) -> list[int]:
    """Return a shortest path from these states to one of the goals, as states."""
    before: dict[int, int] = dict.fromkeys(begin, -1)
    queue = deque(begin)
    while queue:
        state = queue.popleft()
        if goal[state]:
            way = [state]
            while before[way[-1]] >= 0:
                way.append(before[way[-1]])
            return way[::-1]
        for target in steps.targets[steps.first[state] : steps.first[state + 1]].tolist():
            if within[target] and target not in before:
                before[target] = state
                queue.append(target)
    message = "there is no path"
    raise AssertionError(message)
