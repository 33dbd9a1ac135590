"""The campaign of mutants of the fleet's rules: each is killed, equivalent, needless or survives.

Each mutant is checked in small fleets that differ: one has a second agent, another a task that depends on the first.
A mutant is *equivalent* in a fleet if every input has the original outcome, in every state that an aggregate of the
original reaches. No search is then needed. It is *needless* if it differs only by additional messages, and these change
nothing in any state in which they arrive.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cache, partial
from typing import Final, NamedTuple

from featured_fleets import FEATURED
from lifefold.core.kernel import Aggregate, AggregateType, Envelope, Reaction, System, possible, react, replace
from lifefold.effects import CancelTimer, StartTimer, Tell
from lifefold.interpreters.check import Bounds, Report
from lifefold.interpreters.check import Outcome as CheckOutcome
from lifefold.interpreters.check.checking import NEVER_STUCK, _Check
from lifefold.interpreters.search.canonical import NOW_MS, blank
from lifefold.interpreters.search.component import Component
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.exchange import FlightMessage, Refused, Unaddressed
from lifefold.interpreters.search.graph import Graph, explore
from lifefold.interpreters.search.product_system import ProductSystem
from lifefold.interpreters.search.rule_error import RuleError
from lifefold.interpreters.search.witness import Witness
from mutation_campaign import Broken, Impatient
from rule_mutation import RuleMutant, Source
from rule_places import watched
from rule_sources import FEATURES, SOURCES
from small_fleets import SMALL, Small
from witnessed_fleet import witnessed

CARRIED: Final = frozenset({"epoch", "kept", "result"})
"""Numbers in messages that have a meaning in other aggregates."""

NO_RECIPIENT: Final = "every message has a recipient"
"""The property that a mutant breaks if it sends a message to no aggregate of the fleet: it cannot be searched."""

OPENING_REFUSED: Final = "the fleet accepts its opening messages"
"""The property that a mutant breaks if its rules do not come to an end on the opening."""

_IDLE: Final = frozenset({CheckOutcome.NEVER_SEEN, CheckOutcome.VACUOUS})
"""Outcomes that a property without a violation can have in so small a fleet."""

MORE_STATES: Final = 1_000
"""The bound of a search is twice the states of the original and these: a mutant may have infinitely many."""

NEAR_STATES: Final = (1_000, 10_000)
"""Before that, the nearest states of each fleet are searched: most mistakes show near the opening."""


class Fate(StrEnum):
    """The possible results for a mutant."""

    KILLED = "killed"
    EQUIVALENT = "equivalent"
    NEEDLESS = "needless"
    SURVIVED = "survived"


class Verdict(NamedTuple):
    """The result for a mutant: the fleet and the property that found it, and the fleets in which it differs."""

    mutant: RuleMutant
    fate: Fate
    where: str = ""
    by: str = ""
    differs: tuple[str, ...] = ()


Call = tuple[int, Aggregate, Envelope]
"""An input of an aggregate: the number of its component, the aggregate and the input."""

Outcome = tuple[int, tuple[object, ...]] | None
"""The number of the new state, the requested effects and the messages; None if the input is refused."""


class SearchedFleet:
    """A small fleet: searched once as it is, then compared with each mutant."""

    def __init__(self, small: Small) -> None:
        """Search the original."""
        self._small: Final = small
        system = witnessed(small.operators)
        bounds = Bounds(within=small.within, commands=small.commands, compared=0)
        self._product: Final = ProductSystem(system, small.opening, Judge(system), bounds, CARRIED)
        report = self._judged(self._product)
        assert not report.truncated
        assert all(each.outcome in _IDLE or each.name == NEVER_STUCK for each in report.broken()), report
        self.idle: Final = {each.name for each in report.broken()}
        """Properties that are vacuous in so small a fleet, and deadlocks where operators send nothing."""
        self.states: Final = report.states
        self.bounds: Final = replace(bounds, states=2 * report.states + MORE_STATES)
        self._calls: Final = tuple(_calls(self._product))
        ran = [watched(partial(self._outcome, component.of, call)) for component, call in self._each()]
        self._outcomes: Final = [said for said, _ in ran]
        self._where: Final[defaultdict[str, list[int]]] = defaultdict(list)
        for number, (_, names) in enumerate(ran):
            for name in names:
                self._where[name].append(number)

    def _judged(self, product_system: ProductSystem, graph: Graph | None = None) -> Report:
        """Return the report on all properties of a fleet."""
        known = explore(product_system) if graph is None else graph
        judge = _Check(product_system.system, self._small.opening, (), product_system.bounds, None)
        return judge._judged(product_system, known, Witness(product_system, known))

    def with_rules(self, mutant: RuleMutant) -> System:
        """Return the fleet with the rules of a mutant."""
        made = mutant.make()
        return witnessed(self._small.operators, {mutant.of: made.rules}, made.fold)

    def is_equivalent(self, system: System, within: str = "") -> bool:
        """Tell whether another fleet has the same outcomes wherever the original gets.

        ``within``: only inputs that run this function in the original can have another outcome.
        """
        numbers = self._where[within] if within and within not in called_at_once() else range(len(self._calls))
        with suppress(Exception):  # a mutant may raise any error, and the original raises none
            changed = {
                component.number
                for component in self._product.components
                if _is_changed(component.of, system.type_of(component.name))
            }
            return all(
                self._born(component, system) == self._born(component) for component in self._product.components
            ) and all(
                self._outcome(system.type_of(self._product.components[call[0]].name), call) == self._outcomes[number]
                for number, call in ((number, self._calls[number]) for number in numbers)
                if call[0] in changed
            )
        return False

    def is_needless(self, system: System) -> bool:
        """Tell whether another fleet differs only by messages that change nothing wherever they arrive."""
        answers = (self._outcome(system.type_of(component.name), call) for component, call in self._each())
        if not all(self._born(component, system) == self._born(component) for component in self._product.components):
            return False
        if not all(map(_only_tells_more, answers, self._outcomes)):
            return False
        product_system = ProductSystem(system, self._small.opening, Judge(system), self.bounds, CARRIED)
        graph = explore(product_system)
        components = zip(self._product.components, product_system.components, strict=True)
        return not graph.truncated and all(_receives_nothing_new(*each) for each in components)

    def _born(self, component: Component, system: System | None = None) -> Outcome:
        of = component.of if system is None else system.type_of(component.name)
        envelope = dict(self._small.opening)[component.name]
        return self._outcome(of, (component.number, of.start(component.name), envelope))

    def _each(self) -> Iterator[tuple[Component, Call]]:
        return ((self._product.components[call[0]], call) for call in self._calls)

    def _outcome(self, of: AggregateType, call: Call) -> Outcome:
        reaction = react(of, *call[1:])
        if not isinstance(reaction, Reaction):
            return None
        told = tuple(map(_plain, _lasting(each.effect for each in reaction.effects)))
        return self._product.components[call[0]].known(reaction.aggregate), told

    def killer(self, system: System, near: int | None = None) -> str | None:
        """Return the first property that the mutant breaks; an empty text if there is none.

        ``near``: only so many states are searched, the nearest first. None then means that there are more.
        """
        bounds = self.bounds if near is None else replace(self.bounds, states=min(near, self.bounds.states))
        try:
            product_system = ProductSystem(system, self._small.opening, Impatient(system), bounds, CARRIED)
            graph = explore(product_system)
        except Broken as broken:
            return str(broken)
        except RuleError as flaw:
            return flaw.name
        except Unaddressed:
            return NO_RECIPIENT
        except Refused:
            return OPENING_REFUSED
        names = [product_system.judge.properties[number].property.name for number in graph.broken]
        if not names:
            names = [each.name for each in self._judged(product_system, graph).broken()]
        found = next((name for name in names if name not in self.idle), "")
        return None if not found and graph.truncated and bounds.states < self.bounds.states else found


@cache
def called_at_once() -> frozenset[str]:
    """Return the functions that run when their modules are executed: they make rules or tables."""
    return frozenset[str]().union(*(each.called_at_once() for each in (*SOURCES, *FEATURES)))


def _is_changed(of: AggregateType, other: AggregateType) -> bool:
    """Tell whether another type has other rules or views."""
    return (of.rules, of.views) != (other.rules, other.views)


def _lasting(effects: Iterable[object]) -> Iterator[object]:
    """Yield the effects, without timers that start and end at once, and without generations of timers."""
    asked = list(effects)
    ended = {(each.slot, each.generation) for each in asked if isinstance(each, CancelTimer)}
    begun = {(each.slot, each.generation) for each in asked if isinstance(each, StartTimer)}
    for each in asked:
        if isinstance(each, StartTimer | CancelTimer):
            if (each.slot, each.generation) not in ended & begun:
                yield replace(each, generation=0)
        else:
            yield each


def _plain(effect: object) -> object:
    return (effect.aggregate, effect.entity, blank(effect.event)) if isinstance(effect, Tell) else repr(effect)


def _only_tells_more(answer: Outcome, expected: Outcome) -> bool:
    """Tell whether an outcome is the known one, with additional messages at most."""
    if answer is None or expected is None:
        return answer is expected
    (state, told), (other, known) = answer, expected
    left = iter(told)
    asked = [[each for each in effects if not isinstance(each, tuple)] for effects in (told, known)]
    return state == other and asked[0] == asked[1] and all(each in left for each in known)


def _receives_nothing_new(ours: Component, theirs: Component) -> bool:
    """Tell whether a component reaches only known states, and additional messages change nothing there."""
    known = [ours.known(each) for each in theirs.states]
    received = {(number, *_received(ours, *message)) for number, *message in ours._receptions}
    return -1 not in known and all(
        (known[number], *_received(theirs, *message)) in received or (step.to == number and not step.sent)
        for (number, *message), step in theirs._receptions.items()
    )


def _received(component: Component, channel: int, message: int) -> tuple[str, FlightMessage]:
    return component._exchange.sender(channel), component._exchange.messages[message]


def _calls(product_system: ProductSystem) -> Iterator[Call]:
    """Yield every input of every aggregate, in each state that the search has reached."""
    for component in product_system.components:
        for aggregate in component.states:
            yield from (
                (component.number, aggregate, each.envelope) for each in possible(component.of, aggregate, NOW_MS)
            )
        for number, channel, message in component._receptions:
            flight, sender = product_system.messages[message], product_system.sender(channel)
            envelope = Envelope(flight.entity, flight.event, NOW_MS, sender, "", "", 0, sender, 1)
            yield component.number, component.states[number], envelope


class Campaign:
    """All mutants of some of the rules of a fleet."""

    def __init__(self, *fleets: str, sources: Sequence[Source] = SOURCES) -> None:
        """Make the mutants, and search the small fleets in which they are tried: the named ones, or all."""
        every = {**SMALL, **FEATURED}
        searched = {name: SearchedFleet(every[name]) for name in fleets or SMALL}
        self.fleets: Final = dict(sorted(searched.items(), key=lambda each: each[1].states))
        self.mutants: Final = tuple(each for source in sources for each in source.mutants())

    def run(self, share: slice = slice(None)) -> Iterator[Verdict]:
        """Try some of the mutants, or all."""
        return (self.attempt(mutant) for mutant in self.mutants[share])

    def attempt(self, mutant: RuleMutant) -> Verdict:
        """Return the verdict on a mutant. The smallest fleets come first, and the nearest states of all fleets."""
        differs: list[str] = []
        left: Iterable[tuple[str, System]] = self._differing(mutant)
        for near in (*NEAR_STATES, None):
            undecided: list[tuple[str, System]] = []
            for name, system in left:
                differs += [name] if near == NEAR_STATES[0] else []
                by = self.fleets[name].killer(system, near)
                if by:
                    return Verdict(mutant, Fate.KILLED, name, by, tuple(differs))
                undecided += [(name, system)] if by is None else []
            left = undecided
        return Verdict(mutant, self._left(mutant, differs), differs=tuple(differs))

    def _differing(self, mutant: RuleMutant) -> Iterator[tuple[str, System]]:
        """Yield the fleets in which a mutant differs from the original, each with its rules."""
        for name, fleet in self.fleets.items():
            system = fleet.with_rules(mutant)
            if not fleet.is_equivalent(system, mutant.within):
                yield name, system

    def _left(self, mutant: RuleMutant, differs: Sequence[str]) -> Fate:
        """Return the fate of a mutant that breaks no property and differs in these fleets."""
        if not differs:
            return Fate.EQUIVALENT
        fleets = (self.fleets[name] for name in differs)
        needless = all(fleet.is_needless(fleet.with_rules(mutant)) for fleet in fleets)
        return Fate.NEEDLESS if needless else Fate.SURVIVED


def campaign_of(source: Source) -> Campaign:
    """Return the campaign of one source, in the small fleets that use its rules."""
    return Campaign(*FEATURES.get(source, SMALL), sources=(source,))
