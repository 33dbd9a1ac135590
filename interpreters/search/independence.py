"""Independent aggregates: each takes its steps alone, and is searched by itself.

Aggregates are *independent* if there are several, none sends a message to another one, and operator commands have no
limit. Then a step of the system is a step of one aggregate, and it is possible in all states of the others. So the
distance of a state of the system is the sum of the distances of its aggregates, and traces can be joined in any order.

Liveness is also decided for each aggregate alone. Each fairness assumption is about one aggregate (see
``liveness.assumptions``), and its steps are possible regardless of the others. Hence a run of the system is fair
exactly if the run of each aggregate in it is fair. A run of one aggregate alone satisfies the assumptions about the
others: their steps are never possible in it. So a liveness property of one aggregate fails in the system under two
conditions. It fails in that aggregate alone, and every other aggregate has a fair run within the bounds. The order of
their steps does not matter, and no state of the system is needed.
"""

from collections.abc import Container, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from lifefold.core.kernel import Property, PropertyKind
from lifefold.interpreters.search.component import Component, Move
from lifefold.interpreters.search.configuration import Subject
from lifefold.interpreters.search.liveness import Assumption, Flags, Lasso, Steps, assumptions, never
from lifefold.interpreters.search.product_system import ProductSystem

Numbers = npt.NDArray[np.int64]

_LOCAL_BITS: Final = 32
"""The number of bits for each aggregate in the number of a state."""


def number(locals_: Sequence[int]) -> int:
    """Return the number of a state of the system from the states of its aggregates. The opening is number 0."""
    return sum(local << (_LOCAL_BITS * place) for place, local in enumerate(locals_))


def locals_of(state: int, components: int) -> tuple[int, ...]:
    """Return the states of the aggregates from the number of a state."""
    return tuple((state >> (_LOCAL_BITS * place)) & ((1 << _LOCAL_BITS) - 1) for place in range(components))


def may_be(product_system: ProductSystem) -> bool:
    """Tell whether aggregates may be independent, as far as that is known before the first step.

    A property of the system needs states of the system, so with one they are not.
    """
    judge = product_system.judge
    together = any(judge.properties[prop].property.property_kind in _OF_ALL for prop in judge.of_system)
    if len(product_system.components) == 1 or product_system.bounds.commands is not None or together:
        return False
    return not any(product_system.initial())


_OF_ALL: Final = frozenset({PropertyKind.ALWAYS, PropertyKind.SOMETIMES, PropertyKind.LEADS_TO})


class Alone:
    """One aggregate, searched by itself, level by level."""

    def __init__(self, component: Component) -> None:
        """Begin with its first state."""
        self.component: Final = component
        self.level: list[int] = [0]
        """The states of the last level: all at the same distance from the opening."""
        self.steps: Final[dict[int, int]] = {}
        """By explored state: the number of its steps."""
        self.links: Final[set[tuple[int, int]]] = set()
        """The pairs of states with a step from the first to the second."""
        self.broken: Final[dict[int, tuple[int, int]]] = {}
        """By transition property: the step that breaks it, as a pair of states."""
        self._came: Final[dict[int, tuple[int, int]]] = {0: (-1, -1)}
        """By reached state: the state before it, and the number of the input."""

    @property
    def ends(self) -> list[int]:
        """The explored states without a step."""
        left = {source for source, _ in self.links}
        return [local for local in self.steps if local not in left]

    def look(self) -> bool:
        """Take all steps from the last level; return False if one of them sends a message."""
        level, self.level = self.level, []
        for local in level:
            steps = self.component.steps(local)
            if any(step.sent for step in steps):
                return False
            self.steps[local] = len(steps)
            self.links.update((local, step.to) for step in steps if step.to != local)
            for step in steps:
                for prop in step.wrong:
                    self.broken.setdefault(prop, (local, step.to))
                if step.to not in self._came:
                    self._came[step.to] = (local, step.choice)
                    self.level.append(step.to)
        return True

    def way(self, local: int) -> list[Move]:
        """Return a shortest trace to a state."""
        moves: list[Move] = []
        while local:
            local, choice = self._came[local]
            moves.append(Move(self.component.number, choice))
        return moves[::-1]

    def links_by_state(self, restarting: Container[int]) -> "Links":
        """Return all steps to another state or with a restarted timer, as arrays, after a complete search."""
        component = self.component
        every = [(local, step) for local in sorted(self.steps) for step in component.steps(local)]
        kept = ((local, step) for local, step in every if step.to != local or step.label in restarting)
        steps = [(local, step.to, step.label) for local, step in kept]
        sources, targets, labels = np.array(steps, dtype=np.int64).reshape(-1, 3).T
        count = len(component.states)
        return Links(count, np.searchsorted(sources, np.arange(count + 1)), targets, labels)


class Links(msgspec.Struct, frozen=True):
    """The steps of an aggregate, as ``liveness.Linked``."""

    count: int
    first: Numbers
    targets: Numbers
    labels: Numbers


class Liveness:
    """Checks liveness properties of independent aggregates after a complete search."""

    def __init__(self, product_system: ProductSystem, alone: Sequence[Alone]) -> None:
        """Take over the searched aggregates."""
        self._product = product_system
        self._alone = alone
        self._steps: list[Steps] = []

    def lasso(self, prop: int, declared: Property[object]) -> tuple[bool, Lasso | None]:
        """Return whether the property was ever due, and a run on which it fails."""
        restarting = self._product.restarting
        self._steps = self._steps or [Steps(each.links_by_state(restarting)) for each in self._alone]
        fair = assumptions(self._product, declared.given)
        ever, at_first = False, declared.when is None
        for subject in self._product.judge.truths:
            if subject.prop == prop:
                due, holds = self._truths(subject, at_first=at_first)
                ever = ever or bool(due.any())
                found = self._never(subject.component, due, holds, fair)
                if found is not None:
                    runs = [self._some(component, fair, at_first=at_first) for component in range(len(self._alone))]
                    runs[subject.component] = found
                    complete = [run for run in runs if run is not None]
                    if len(complete) == len(runs):
                        return True, _joined(subject.component, complete)
        return ever, None

    def _truths(self, subject: Subject, *, at_first: bool) -> tuple[Flags, Flags]:
        due, holds = self._flags(subject.component), self._flags(subject.component)
        for local, (is_due, does_hold) in self._product.judge.truths[subject].items():
            due[local], holds[local] = is_due, does_hold
        return (self._begin(subject.component) if at_first else due & self._met(subject.component)), holds

    def _some(self, component: int, fair: Sequence[Assumption], *, at_first: bool) -> Lasso | None:
        """Return a fair run of an aggregate, with any behaviour."""
        begin = self._begin(component) if at_first else self._met(component)
        return self._never(component, begin, self._flags(component), fair)

    def _never(self, component: int, due: Flags, holds: Flags, fair: Sequence[Assumption]) -> Lasso | None:
        def left_out(labels: frozenset[int]) -> Flags:
            found = self._flags(component)
            found[[local for local, left in self._product.components[component].left_out.items() if left & labels]] = (
                True
            )
            return found

        return never(self._steps[component], due, holds, fair, left_out)

    def _met(self, component: int) -> Flags:
        met = self._flags(component)
        met[list(self._alone[component].steps)] = True
        return met

    def _flags(self, component: int) -> Flags:
        return np.zeros(self._steps[component].count, dtype=np.bool_)

    def _begin(self, component: int) -> Flags:
        begin = self._flags(component)
        begin[0] = True
        return begin


def _joined(first: int, runs: Sequence[Lasso]) -> Lasso:
    """Return a run of the system: all stems one after the other, and then all cycles, over and over."""
    order = [first, *(component for component in range(len(runs)) if component != first)]
    here = [run.stem[0] for run in runs]
    stem, cycle = [number(here)], list[int]()
    for states, ways in ((stem, [run.stem[1:] for run in runs]), (cycle, [run.cycle for run in runs])):
        for component in order:
            for local in ways[component]:
                here[component] = local
                states.append(number(here))
    return Lasso(tuple(stem), tuple(cycle), tuple(label for component in order for label in runs[component].labels))
