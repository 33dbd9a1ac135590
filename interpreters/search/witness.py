"""Replays the findings of a search by the unreduced rules, so that their traces are sound."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from lifefold.core.kernel import START_MS, Aggregate, PropertyKind, Record, SystemStep, World, replace, subject_of
from lifefold.interpreters.report.finding import Message, Outcome, Verdict
from lifefold.interpreters.report.trace import Attempt, Trace, placed
from lifefold.interpreters.search.component import Move
from lifefold.interpreters.search.dead_messages import Vain
from lifefold.interpreters.search.disagreement import Unsound, differing, disagreement
from lifefold.interpreters.search.exchange import Refused
from lifefold.interpreters.search.findings import BrokenAt, Findings
from lifefold.interpreters.search.graph import Graph
from lifefold.interpreters.search.liveness import Lasso
from lifefold.interpreters.search.product_system import ProductSystem, StateRow
from lifefold.interpreters.search.rule_error import Place, RuleError
from lifefold.interpreters.search.unreduced import Unreduced


class Witness:
    """Makes the traces of findings."""

    def __init__(self, product_system: ProductSystem, found: Findings) -> None:
        """Take a search and its findings."""
        self.unreduced: Final = Unreduced(product_system)
        self._product = product_system
        self._found = found
        begin = product_system.beginning
        self._begin_ms: Final = begin.now_ms if isinstance(begin, World) else START_MS

    def trace(self, moves: Sequence[Move], cycle: Sequence[Move] | None = None) -> Trace:
        """Return the trace of these moves, with a cycle. Raises ``Unsound``."""
        _, walked = self._walk([*moves, *(cycle or ())])
        happened, rounds = walked[: len(moves)], walked[len(moves) :]
        return Trace(
            tuple(happened), None if cycle is None else tuple(rounds), None, self._begins(happened), self._begin_ms
        )

    def _walk(self, moves: Sequence[Move]) -> tuple[World, list[SystemStep]]:
        """Make moves from the opening by the unreduced rules. Raises ``Unsound`` if one is not possible."""
        world = self.unreduced.initial()
        happened: list[SystemStep] = []
        for move in moves:
            try:
                world, happening = self.unreduced.go(world, move)
            except (IndexError, Refused) as error:
                said = "The reduced search takes a step from here that the unreduced rules do not take"
                raise Unsound(disagreement(happened, said)) from error
            happened.append(happening)
        return world, happened

    def _begins(self, happened: Sequence[SystemStep]) -> tuple[tuple[str, Record], ...]:
        """Return the records of the opening, if the trace has no steps."""
        return (
            ()
            if happened
            else tuple(
                (placed(aggregate.name, ref), entity.record)
                for aggregate in self.unreduced.initial().aggregates.values()
                for ref, entity in sorted(aggregate.entities.items())
            )
        )

    def finding(self, found: BrokenAt, prop: int) -> Trace:
        """Return the trace to a broken property; a transition property is broken by the last step.

        Raises ``Unsound``, with that trace, if the unreduced rules keep the property.
        """
        moves = self._found.way(found.state)
        if (
            found.after is None
            and self._product.judge.properties[prop].property.property_kind is PropertyKind.ALWAYS_STEP
        ):
            return self.trace(moves)  # the opening breaks it
        if found.after is None:
            return self._believed(found.state, prop, holds=False)
        to = self._found.world(found.after)
        steps = self._product.successors(self._found.world(found.state))
        moves.append(next(move for move, world, step in steps if world == to and prop in step.wrong))
        trace = self.trace(moves)
        last = trace.steps[-1]
        if prop not in self._product.judge.step(self._product.system.type_of(last.aggregate), last.reaction):
            said = "The unreduced rules keep the property in this last step, and the reduced search breaks it"
            to_form = self._found.world(found.after)
            raise Unsound(disagreement(trace.steps, said, self._differing((last.reaction.aggregate,), to_form)))
        return trace

    def seen(self, state: int, prop: int) -> Trace:
        """Return the trace to a state in which a reachability property holds."""
        return self._believed(state, prop, holds=True)

    def _believed(self, state: int, prop: int, *, holds: bool) -> Trace:
        """Return the trace to a state, if a property has the same truth there as in the search. Raises ``Unsound``."""
        form = self._found.world(state)
        world, happened = self._walk(self._found.way(state))
        judge = self._product.judge
        if prop in judge.of_system:
            subject = subject_of(judge.properties[prop].property, world.system_state())
            truths = {judge.properties[prop].holds(subject)}
        else:
            components = zip(self._product.components, world.aggregates.values(), strict=True)
            opinions = [judge.opinion(component.of, aggregate) for component, aggregate in components]
            truths = {kept for each in opinions for (number, _), (_, kept) in each.items() if number == prop}
        if holds not in truths:
            said = "The property has another truth in this state by the unreduced rules than in the reduced search"
            raise Unsound(disagreement(happened, said, self._differing([*world.aggregates.values()], form)))
        return Trace(tuple(happened), None, None, self._begins(happened), self._begin_ms)

    def _differing(self, aggregates: Sequence[Aggregate], form: StateRow) -> str:
        """Return the fields of these aggregates that differ between the unreduced rules and the search."""
        numbered = {
            component.name: component.states[local]
            for component, local in zip(self._product.components, form, strict=False)
        }
        return differing(aggregates, [numbered[each.name] for each in aggregates])

    def lasso(self, lasso: Lasso) -> Trace:
        """Return the trace of a lasso."""
        moves = [*self._found.way(lasso.stem[0]), *self._found.moves(lasso.stem)]
        return self.trace(moves, self._found.moves((lasso.stem[-1], *lasso.cycle), lasso.labels))

    def message(self, vain: Vain) -> Message:
        """Return messages in vain, with the trace to the first if there is one."""
        for place in vain.places:
            if place.local < 0:
                return Message(*vain.kind, vain.why, self.trace([]))
            state = self._doing(place)
            if state >= 0:
                move = Move(place.component, max(place.choice, 0), place.channel)
                try:
                    return Message(*vain.kind, vain.why, self.trace([*self._found.way(state), move]))
                except Unsound:
                    break  # the verdicts say where the search and the rules disagree
        return Message(*vain.kind, vain.why)

    def _doing(self, place: Place) -> int:
        """Return the state nearest to the opening in which a step is possible; -1 if there is none."""
        found, bounds = self._found, self._product.bounds
        if not isinstance(found, Graph):
            return found.nearest(place.component, (place.local,))
        if place.channel >= 0:
            return found.taking(place)
        component = self._product.components[place.component]
        said = any(step.said and step.choice == place.choice for step in component.steps(place.local))
        possible = found.seen.column(place.component) == place.local
        if said and bounds.commands is not None:
            possible &= found.seen.column(self._product.width - 1) < bounds.commands
        states = np.flatnonzero(possible)
        return int(states[0]) if states.size else -1

    def rule_error(self, rule_error: RuleError) -> Verdict:
        """Return the verdict on a rule error, with its trace."""
        owner = self._product.system.name
        return Verdict(owner, rule_error.name, PropertyKind.ALWAYS, Outcome.BROKEN, self.unanswered(rule_error))

    def unanswered(self, rule_error: RuleError) -> Trace:
        """Return the trace to a rule error."""
        place, only = rule_error.place, Attempt(rule_error.said, prop=rule_error.prop)
        state = self._state(place)
        if state < 0:
            return Trace((), None, only)
        try:
            world, happened = self._walk(self._found.way(state))
        except Unsound as unsound:
            return unsound.trace
        move = Move(place.component, place.choice, place.channel)
        if place.choice >= 0 or place.channel >= 0:
            given = self.unreduced.input(world, move)
            taken = self._taken(world, move)
            if taken is None:
                attempt = Attempt(rule_error.said, given.aggregate, given.cause, given.envelope)
                return Trace(tuple(happened), None, attempt)
            world, happening = taken
            happened.append(happening)
        if rule_error.given is None:
            return Trace(tuple(happened), None, only)
        cause, envelope = rule_error.given
        late = replace(envelope, at_ms=world.now_ms)
        return Trace(
            tuple(happened), None, Attempt(rule_error.said, self._product.components[place.component].name, cause, late)
        )

    def _taken(self, world: World, move: Move) -> tuple[World, SystemStep] | None:
        try:
            return self.unreduced.go(world, move)
        except Exception:  # noqa: BLE001 - whatever the rules raise: it is what is shown
            return None

    def _state(self, place: Place) -> int:
        """Return the state of the system at a place; -1 if it is before the first one."""
        if place.state >= 0 or place.local < 0:
            return place.state
        if place.channel >= 0 and isinstance(self._found, Graph):
            return self._found.taking(place)
        return self._found.nearest(place.component, (place.local,))
