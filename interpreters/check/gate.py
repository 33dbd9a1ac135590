"""Whether the search has left nothing out by looking at one form for all that mean the same.

A part of the same system is walked through with nothing renumbered and nothing forgotten, level by level, as far as the
bound on states allows. State by state the two must agree (they are *bisimilar*): the steps of a state lead to what the
steps of its form lead to, no more and no less, and every promise says the same of a state and of its form. With
symmetry, what stands for the form was met, too, and the promises of the whole say the same of it.
"""

from collections.abc import Mapping

from lifefold.core.kernel import Scene, Temper, subject_of
from lifefold.interpreters.check.findings import Findings
from lifefold.interpreters.check.graph import Graph
from lifefold.interpreters.check.house import House, World
from lifefold.interpreters.check.plain import Happening, Plain, PlainWorld


class Unsound(AssertionError):
    """The search has left something out, or has found what is not there.

    It is a mistake of the checker, or of what a record says of its ``serials``, ``moments`` or ``horizon_ms``,
    or of what is ``opaque`` or in its ``normal_form``.
    """


def gate(house: House, graph: Findings) -> tuple[int, int]:
    """Compare, within the bounds; return how many states were walked through as they are, and how deep.

    Raises ``Unsound``.
    """
    return _Gate(house, graph).pass_through()


class _Gate:
    def __init__(self, house: House, graph: Findings) -> None:
        self._house = house
        self._graph = graph
        self._plain = Plain(house)
        self._opinions: dict[tuple[int, int], Mapping[tuple[int, str], tuple[bool, bool]]] = {}
        self._steps: dict[World, set[World]] = {}

    def pass_through(self) -> tuple[int, int]:
        begin = self._plain.initial()
        seen: set[PlainWorld] = {begin}
        level: list[PlainWorld] = [begin]
        depth = 0
        while level and len(seen) < self._house.bounds.compared:
            after = dict.fromkeys(each for world in level for each in self._after(world))
            level = [world for world in after if world not in seen][: self._house.bounds.compared - len(seen)]
            seen.update(level)
            depth += bool(level)
        for world in level:
            self._after(world)
        return len(seen), depth

    def _after(self, world: PlainWorld) -> list[PlainWorld]:
        """Return where the steps of a state lead, which must be where those of its form lead."""
        form = self._house.form(world)
        self._compare(world, form)
        self._represented(form)
        after = [self._judged(*step) for step in self._plain.steps(world)]
        if form not in self._steps:
            self._steps[form] = {to for _, to, _ in self._house.successors(form)}
        if {self._house.form(each) for each in after} != self._steps[form]:
            raise Unsound(f"the search has taken other steps than there are, from what stands for {world}")
        return after

    def _represented(self, form: World) -> None:
        """See to it that what stands for a state was met."""
        if form in self._steps or not isinstance(self._graph, Graph) or self._graph.symmetry is None:
            return
        for_it = self._graph.symmetry.of(form)
        if for_it not in self._graph.seen:
            raise Unsound(f"the search has not met what stands for {self._house.scene(form)}")
        self._compare_scenes(self._house.scene(form), self._house.scene(for_it))

    def _judged(self, after: PlainWorld, happened: Happening) -> PlainWorld:
        """Return where a step leads; whatever promise it breaks, the search must have seen broken."""
        of = self._house.system.type_of(happened.aggregate)
        for number in self._house.judge.step(of, happened.reaction):
            if number not in self._graph.broken:
                raise Unsound(f"the search has not seen that a step breaks a promise: {self._words(number)}")
        return after

    def _compare(self, world: PlainWorld, form: World) -> None:
        """See to it that all promises say the same of a state and of its form."""
        judge = self._house.judge
        for part, aggregate, local in zip(self._house.parts, world.aggregates, form, strict=False):
            key = (part.number, local)
            if key not in self._opinions:
                self._opinions[key] = judge.opinion(part.of, part.states[local])
            for (number, ref), said in judge.opinion(part.of, aggregate).items():
                if said != self._opinions[key][number, ref]:
                    which = aggregate.entities[ref].record if ref else aggregate
                    raise Unsound(f"a promise can tell apart what the search does not: {self._words(number)}: {which}")

        self._compare_scenes(self._plain.scene(world), self._house.scene(form))

    def _compare_scenes(self, here: Scene, there: Scene) -> None:
        judge = self._house.judge
        for number in judge.of_system:
            promise = judge.promises[number]
            if promise.property.temper is Temper.ALWAYS_STEP:
                continue
            one, other = (subject_of(promise.property, scene) for scene in (here, there))
            if (promise.is_due(one), promise.holds(one)) != (promise.is_due(other), promise.holds(other)):
                raise Unsound(f"a promise can tell apart what the search does not: {self._words(number)}: {one}")

    def _words(self, number: int) -> str:
        promise = self._house.judge.promises[number]
        return f"{promise.owner}, {promise.property.name!r}"
