"""The cross-check: a search compares its reductions with the unreduced semantics.

A prefix of the same system is explored without reductions, level by level, up to the bound on states. State by state
the two must be *bisimilar*. The steps of a state lead to the canonical forms of the search, no more and no fewer.
Every property has the same truth in a state and in its form. With symmetry, the representative of the form was
reached, and the system's properties have the same truth there.

A property on which they disagree is set aside, and the comparison continues. If the steps disagree, the comparison
ends: the search has explored another system.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lifefold.core.kernel import Aggregate, PropertyKind, SystemState, SystemStep, World, subject_of
from lifefold.interpreters.report.trace import Trace
from lifefold.interpreters.search.disagreement import Unsound, differing, disagreement
from lifefold.interpreters.search.findings import Findings
from lifefold.interpreters.search.graph import Graph
from lifefold.interpreters.search.product_system import ProductSystem, StateRow
from lifefold.interpreters.search.unreduced import Unreduced

Opinion = Mapping[tuple[int, str], tuple[bool, bool]]


class Comparison(NamedTuple):
    """The number of compared states, the depth, and the traces to disagreements between the search and the rules."""

    states: int
    depth: int
    properties: Mapping[int, Trace]
    """By the number of a property: the trace to a state in which its truth differs."""
    steps: Trace | None
    """The trace to a state whose steps differ; None if there is none."""


def cross_check(product_system: ProductSystem, graph: Findings) -> Comparison:
    """Compare the search with the unreduced semantics, within the bounds."""
    return _Gate(product_system, graph).pass_through()


class _Gate:
    def __init__(self, product_system: ProductSystem, graph: Findings) -> None:
        self._product = product_system
        self._graph = graph
        self._plain = Unreduced(product_system)
        self._opinions: dict[tuple[int, int], Opinion] = {}
        self._steps: dict[StateRow, set[StateRow]] = {}
        self._came: dict[World, tuple[World, SystemStep] | None] = {}
        self._properties: dict[int, Trace] = {}
        self._depth = 0

    def pass_through(self) -> Comparison:
        differs: Trace | None = None
        try:
            self._walk()
        except Unsound as unsound:
            differs = unsound.trace
        return Comparison(len(self._came), self._depth, self._properties, differs)

    def _walk(self) -> None:
        """Explore level by level, up to the bound on states. Raises ``Unsound``."""
        most = self._product.bounds.compared
        level = [self._plain.initial()]
        self._came[level[0]] = None
        while level and len(self._came) < most:
            new: dict[World, tuple[World, SystemStep]] = {}
            for world in level:
                for after, happened in self._after(world):
                    if after not in self._came:
                        new.setdefault(after, (world, happened))
            level = list(new)[: most - len(self._came)]
            self._came.update((world, new[world]) for world in level)
            self._depth += bool(level)
        for world in level:
            self._after(world)

    def _after(self, world: World) -> list[tuple[World, SystemStep]]:
        """Return the next states, whose forms must be the next states of its form. Raises ``Unsound``."""
        form = self._product.form(world)
        self._compare(world, form)
        self._represented(world, form)
        after = list(self._plain.steps(world))
        for to, happened in after:
            self._judge(world, to, happened)
        self._compare_steps(world, form, after)
        return after

    def _compare_steps(self, world: World, form: StateRow, after: Sequence[tuple[World, SystemStep]]) -> None:
        if form not in self._steps:
            self._steps[form] = {to for _, to, _ in self._product.successors(form)}
        forms = [self._product.form(to) for to, _ in after]
        if set(forms) == self._steps[form]:
            return
        fields = self._fields(world)
        for (_, happened), to in zip(after, forms, strict=True):
            if to not in self._steps[form]:
                said = "The unreduced rules take this last step, and the reduced search does not"
                raise Unsound(disagreement([*self._way(world), happened], said, fields))
        said = "The reduced search takes a step from here that the unreduced rules do not take"
        raise Unsound(disagreement(self._way(world), said, fields))

    def _represented(self, world: World, form: StateRow) -> None:
        """Check that the representative of a state was reached. Raises ``Unsound``."""
        if form in self._steps or not isinstance(self._graph, Graph) or self._graph.symmetry is None:
            return
        for_it = self._graph.symmetry.of(form)
        if for_it not in self._graph.seen:
            raise Unsound(disagreement(self._way(world), "The search has not reached the representative of this state"))
        self._compare_system_states(world, self._product.system_state(form), self._product.system_state(for_it))

    def _judge(self, world: World, after: World, happened: SystemStep) -> None:
        """Check that the search has found every property that a step breaks."""
        of = self._product.system.type_of(happened.aggregate)
        for number in self._product.judge.step(of, happened.reaction):
            if number not in self._graph.broken and number not in self._properties:
                fields = self._fields(after)
                said = "This step breaks the property by the unreduced rules, and not in the reduced search"
                self._properties[number] = disagreement([*self._way(world), happened], said, fields)

    def _compare(self, world: World, form: StateRow) -> None:
        """Check that every property has the same truth in a state and in its form."""
        judge = self._product.judge
        for component, aggregate, local in zip(self._product.components, world.aggregates.values(), form, strict=False):
            key = (component.number, local)
            if key not in self._opinions:
                self._opinions[key] = judge.opinion(component.of, component.states[local])
            for (number, ref), truth in judge.opinion(component.of, aggregate).items():
                if truth != self._opinions[key].get((number, ref)):
                    self._differs(number, world, (aggregate,), (component.states[local],))
        self._compare_system_states(world, world.system_state(), self._product.system_state(form))

    def _compare_system_states(self, world: World, here: SystemState, there: SystemState) -> None:
        judge = self._product.judge
        for number in judge.of_system:
            prop = judge.properties[number]
            if prop.property.property_kind is PropertyKind.ALWAYS_STEP:
                continue
            one, other = (subject_of(prop.property, system_state) for system_state in (here, there))
            if (prop.is_due(one), prop.holds(one)) != (prop.is_due(other), prop.holds(other)):
                names = tuple(here.aggregates)
                rules, search = ([system_state.aggregates[name] for name in names] for system_state in (here, there))
                self._differs(number, world, rules, search)

    def _differs(self, number: int, world: World, rules: Sequence[Aggregate], search: Sequence[Aggregate]) -> None:
        said = "The property has another truth in this state by the unreduced rules than in the reduced search"
        if number not in self._properties:
            self._properties[number] = disagreement(self._way(world), said, differing(rules, search))

    def _fields(self, world: World) -> str:
        """Return the fields that differ between a state and its form; an empty text if the form was not reached."""
        form = self._product.form(world)[: len(self._product.components)]
        if -1 in form:
            return ""
        known = [component.states[local] for component, local in zip(self._product.components, form, strict=True)]
        return differing([*world.aggregates.values()], known)

    def _way(self, world: World) -> list[SystemStep]:
        """Return the steps to a state."""
        found: list[SystemStep] = []
        while (came := self._came[world]) is not None:
            world, happened = came
            found.append(happened)
        return found[::-1]
