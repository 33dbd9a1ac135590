"""Whether what should follow does follow: the search for a fair run on which it never does.

Such a run ends in a part of the graph that it never leaves and in which what should follow is not so. Whatever it does
there again and again lies in one strongly connected component, and a component has such a run if it satisfies all that
is assumed to be fair: what is *weakly* fair is impossible somewhere in it, or done in it; what is *strongly* fair is
impossible everywhere in it, or done in it. A timer is weakly fair from one start to its next: a step in which it is
begun again puts it off, as a state without it would. Where only the last fails, the states in which it is possible
are taken away and what is left is looked at again (the emptiness of Streett automata: E. A. Emerson, C.-L. Lei, 1987).
A component of one state stands for a run that does nothing any more, or restarts a timer for ever: a step that changes
nothing else is no step.
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
from lifefold.interpreters.search.component import Label
from lifefold.interpreters.search.product_system import ProductSystem

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


class Lasso(msgspec.Struct, frozen=True):
    """A run for ever: through the ``stem``, and then round and round the ``cycle``, which is empty if nothing happens.

    The cycle ends where the stem does, and has that state at its beginning only if a step from there back to it
    restarts a timer. ``labels`` are those of its steps that something fair has to do there; -1 if any step will do.
    """

    stem: tuple[int, ...]
    cycle: tuple[int, ...]
    labels: tuple[int, ...] = ()


class Assumption(msgspec.Struct, frozen=True):
    """What is fair, by the labels of the steps that it is about; ``restarts`` are of those that put it off."""

    labels: frozenset[int]
    strong: bool
    restarts: frozenset[int] = frozenset()


def assumptions(product_system: ProductSystem, given: Iterable[Fairness]) -> list[Assumption]:
    """Return what the engine sees to, for each timer, confirmation and channel, and what is given, for each slot."""
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
    """Return the labels of the steps that begin a timer again; none for what is no timer."""
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
    """Numbered states: the steps of a state that are kept are from ``first[state]`` to ``first[state + 1]``.

    Those are kept that lead elsewhere, or restart a timer.
    """

    @property
    def count(self) -> int:
        """How many states there are."""
        ...

    @property
    def first(self) -> Numbers:
        """Where the steps of each state begin, and where the last one's end."""
        ...

    @property
    def targets(self) -> npt.NDArray[Any]:
        """Where each step leads."""
        ...

    @property
    def labels(self) -> npt.NDArray[Any]:
        """What happens in it."""
        ...


class Steps:
    """A graph as arrays: the steps' sources, targets and labels."""

    def __init__(self, graph: Linked) -> None:
        """Take over what has been met, which is everything."""
        self.count: Final = graph.count
        self.first: Final = graph.first
        self.targets: Final = graph.targets
        self.labels: Final = graph.labels
        self.sources: Final = np.repeat(np.arange(self.count, dtype=np.int64), np.diff(self.first))

    def of(self, labels: frozenset[int]) -> Flags:
        """Tell of each step whether it bears one of these labels."""
        return np.isin(self.labels, np.fromiter(labels, dtype=np.int64, count=len(labels)))

    def has(self, chosen: Flags) -> Flags:
        """Tell of each state whether one of the chosen steps leaves it."""
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
    """What is fair, in a graph: the steps that do it or put it off, and the states in which it is possible."""

    strong: bool
    doing: Flags
    possible: Flags


class _Components:
    """The strongly connected components of a part of a graph, by number; everywhere else the number is -1."""

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
        """Tell of each component whether a run that does everything in it again and again would not be fair."""
        done = self._some(self._sources[each.doing & self._inside])
        states = self.members[each.possible[self.members] == each.strong]
        some = self._some(self.of[states])
        return ~done & (some if each.strong else ~some)

    def nearest(self, chosen: Flags) -> Flags:
        """Tell of each state whether it is in that of the chosen components that is nearest to the beginning."""
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
    """Return a fair run on which something is due and never holds from then on, if there is one.

    It stays within the bounds. ``left_out`` tells of each state whether a step of these labels leads out of them from
    there: whoever stays although it is possible, and assumed to happen, is not fair.
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
    """Return a way through a component, from a state back to it, on which what is fair is done, or not possible.

    With it come the labels of its steps, where they matter.
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
"""In place of a label: whatever leads there."""


def _only(component: Flags, state: int) -> Flags:
    found = np.zeros_like(component)
    found[state] = True
    return found


def _walk(steps: Steps, within: Flags, begin: list[int], goal: Flags) -> list[int]:
    """Return the shortest way from these states to one of the goal, by its states."""
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
    message = "there is no way"
    raise AssertionError(message)
