"""What becomes of a mistake in the fleet's rules: it breaks a property, is no other fleet, or survives.

A mistake is asked about in fleets that are small, and different: in one there is a second agent, in another a task that
waits for the first. It is *the same* as the true fleet where every input, in every state that an aggregate of the true
one reaches, has the same outcome; there it need not be searched for. It is *needless* if every input has the same
outcome but for messages that are told besides, and these change nothing, wherever they arrive.
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
from lifefold.interpreters.check import Outcome as Said
from lifefold.interpreters.check.checking import NEVER_STUCK, _Check
from lifefold.interpreters.search.canonical import NOW_MS, blank
from lifefold.interpreters.search.component import Component, FlightMessage
from lifefold.interpreters.search.configuration import Judge
from lifefold.interpreters.search.graph import Graph, explore
from lifefold.interpreters.search.product_system import ProductSystem, Refused, Unaddressed
from lifefold.interpreters.search.rule_error import RuleError
from lifefold.interpreters.search.witness import Witness
from mutation_campaign import Broken, Impatient
from rule_mutation import Mistake, Source
from rule_places import watched
from rule_sources import FEATURES, SOURCES
from small_fleets import SMALL, Small
from witnessed_fleet import witnessed

CARRIED: Final = frozenset({"epoch", "kept", "result"})
"""Numbers of a fleet that messages carry, so that they mean something elsewhere."""

NOBODY: Final = "messages are for somebody who is there"
"""What a fleet that tells somebody who is not there is refused for: it cannot be looked at."""

BEGINS: Final = "what a fleet begins with is taken"
"""What a fleet is refused for whose rules run in a circle at once."""

_IDLE: Final = frozenset({Said.NEVER_SEEN, Said.VACUOUS})
"""What can be said of properties in so small a fleet, though they are kept."""

MORE_STATES: Final = 1_000
"""How many more than twice those of the true fleet are looked at: one with a mistake may have no end of them."""


class Fate(StrEnum):
    """What may become of a mistake."""

    KILLED = "killed"
    SAME = "same"
    NEEDLESS = "needless"
    SURVIVED = "survived"


class Tried(NamedTuple):
    """What became of a mistake: in which fleet it was found, and by which property; and in which it is another one."""

    mistake: Mistake
    fate: Fate
    where: str = ""
    by: str = ""
    differs: tuple[str, ...] = ()


Call = tuple[int, Aggregate, Envelope]
"""An aggregate's input: which part of the house it is, what it is, and what it is told."""

Outcome = tuple[int, tuple[object, ...]] | None
"""What comes of it: which state, and what it asks for and tells; None if it is refused."""


class Ground:
    """A small fleet that is looked at once as it is, and then with mistakes."""

    def __init__(self, small: Small) -> None:
        """Search the true one."""
        self._small: Final = small
        system = witnessed(small.people)
        bounds = Bounds(within=small.within, commands=small.commands, compared=0)
        self._house: Final = ProductSystem(system, small.opening, Judge(system), bounds, CARRIED)
        report = self._judged(self._house)
        assert not report.truncated
        assert all(each.outcome in _IDLE or each.name == NEVER_STUCK for each in report.broken()), report
        self.idle: Final = {each.name for each in report.broken()}
        """What is never due, or never comes to be, in so small a fleet; and whom people tell nothing may be stuck."""
        self.states: Final = report.states
        self.bounds: Final = replace(bounds, states=2 * report.states + MORE_STATES)
        self._calls: Final = tuple(_calls(self._house))
        ran = [watched(partial(self._outcome, component.of, call)) for component, call in self._each()]
        self._said: Final = [said for said, _ in ran]
        self._where: Final[defaultdict[str, list[int]]] = defaultdict(list)
        for number, (_, names) in enumerate(ran):
            for name in names:
                self._where[name].append(number)

    def _judged(self, product_system: ProductSystem, graph: Graph | None = None) -> Report:
        """Return what is found of all properties in a fleet."""
        known = explore(product_system) if graph is None else graph
        judge = _Check(product_system.system, self._small.opening, (), product_system.bounds, None)
        return judge._judged(product_system, known, Witness(product_system, known))

    def with_rules(self, mistake: Mistake) -> System:
        """Return the fleet with a mistake."""
        made = mistake.make()
        return witnessed(self._small.people, {mistake.of: made.rules}, made.fold)

    def is_same(self, system: System, within: str = "") -> bool:
        """Tell whether another fleet does the same wherever the true one gets.

        ``within``: only where this function runs in the true one it can do anything else.
        """
        numbers = self._where[within] if within and within not in called_at_once() else range(len(self._calls))
        with suppress(Exception):  # whatever a rule with a mistake raises, the true one does not
            changed = {
                component.number
                for component in self._house.components
                if _is_changed(component.of, system.type_of(component.name))
            }
            return all(
                self._born(component, system) == self._born(component) for component in self._house.components
            ) and all(
                self._outcome(system.type_of(self._house.components[call[0]].name), call) == self._said[number]
                for number, call in ((number, self._calls[number]) for number in numbers)
                if call[0] in changed
            )
        return False

    def is_needless(self, system: System) -> bool:
        """Tell whether another fleet does the same, but for messages that change nothing wherever they arrive."""
        answers = (self._outcome(system.type_of(component.name), call) for component, call in self._each())
        if not all(self._born(component, system) == self._born(component) for component in self._house.components):
            return False
        if not all(map(_tells_more, answers, self._said)):
            return False
        product_system = ProductSystem(system, self._small.opening, Judge(system), self.bounds, CARRIED)
        graph = explore(product_system)
        components = zip(self._house.components, product_system.components, strict=True)
        return not graph.truncated and all(_hears_nothing_new(*each) for each in components)

    def _born(self, component: Component, system: System | None = None) -> Outcome:
        of = component.of if system is None else system.type_of(component.name)
        envelope = dict(self._small.opening)[component.name]
        return self._outcome(of, (component.number, of.start(component.name), envelope))

    def _each(self) -> Iterator[tuple[Component, Call]]:
        return ((self._house.components[call[0]], call) for call in self._calls)

    def _outcome(self, of: AggregateType, call: Call) -> Outcome:
        reaction = react(of, *call[1:])
        if not isinstance(reaction, Reaction):
            return None
        told = tuple(map(_plain, _lasting(each.effect for each in reaction.effects)))
        return self._house.components[call[0]].known(reaction.aggregate), told

    def killer(self, system: System) -> str:
        """Return the first property that is found broken; nothing if there is none."""
        try:
            product_system = ProductSystem(system, self._small.opening, Impatient(system), self.bounds, CARRIED)
            graph = explore(product_system)
        except Broken as broken:
            return str(broken)
        except RuleError as flaw:
            return flaw.name
        except Unaddressed:
            return NOBODY
        except Refused:
            return BEGINS
        names = [product_system.judge.properties[number].property.name for number in graph.broken]
        if not names:
            names = [each.name for each in self._judged(product_system, graph).broken()]
        return next((name for name in names if name not in self.idle), "")


@cache
def called_at_once() -> frozenset[str]:
    """Return the functions that make rules, or tables, when their modules are run."""
    return frozenset[str]().union(*(each.called_at_once() for each in (*SOURCES, *FEATURES)))


def _is_changed(of: AggregateType, other: AggregateType) -> bool:
    """Tell whether another type has other rules, or looks up something else."""
    return (of.rules, of.views) != (other.rules, other.views)


def _lasting(effects: Iterable[object]) -> Iterator[object]:
    """Yield what is asked for, without timers that begin and end at once; the others are known by what they are for."""
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


def _tells_more(answer: Outcome, said: Outcome) -> bool:
    """Tell whether an answer is what was said, with more messages, if any."""
    if answer is None or said is None:
        return answer is said
    (state, told), (other, known) = answer, said
    left = iter(told)
    asked = [[each for each in wishes if not isinstance(each, tuple)] for wishes in (told, known)]
    return state == other and asked[0] == asked[1] and all(each in left for each in known)


def _hears_nothing_new(ours: Component, theirs: Component) -> bool:
    """Tell whether a part reaches no other states than ours, and what it hears there that ours does not is nothing."""
    known = [ours.known(each) for each in theirs.states]
    heard = {(number, *_heard(ours, *letter)) for number, *letter in ours._receptions}
    return -1 not in known and all(
        (known[number], *_heard(theirs, *letter)) in heard or (step.to == number and not step.told)
        for (number, *letter), step in theirs._receptions.items()
    )


def _heard(component: Component, channel: int, message: int) -> tuple[str, FlightMessage]:
    return component._house.sender(channel), component._house.messages[message]


def _calls(product_system: ProductSystem) -> Iterator[Call]:
    """Yield all that an aggregate of a fleet is told, in every state in which it was met."""
    for component in product_system.components:
        for aggregate in component.states:
            yield from (
                (component.number, aggregate, each.envelope) for each in possible(component.of, aggregate, NOW_MS)
            )
        for number, channel, message in component._receptions:
            letter, sender = product_system.messages[message], product_system.sender(channel)
            envelope = Envelope(letter.entity, letter.event, NOW_MS, sender, "", "", 0, sender, 1)
            yield component.number, component.states[number], envelope


class Campaign:
    """All mistakes in some of the rules of a fleet."""

    def __init__(self, *grounds: str, sources: Sequence[Source] = SOURCES) -> None:
        """Make them, and look at the small fleets in which they are tried: these, or all."""
        every = {**SMALL, **FEATURED}
        self.grounds: Final = {name: Ground(every[name]) for name in grounds or SMALL}
        self.mistakes: Final = tuple(each for source in sources for each in source.mistakes())

    def run(self, share: slice = slice(None)) -> Iterator[Tried]:
        """Try some of the mistakes, or all."""
        return (self.attempt(mistake) for mistake in self.mistakes[share])

    def attempt(self, mistake: Mistake) -> Tried:
        """Say what becomes of a mistake."""
        differs: list[str] = []
        for name, ground in self.grounds.items():
            system = ground.with_rules(mistake)
            if not ground.is_same(system, mistake.within):
                differs.append(name)
                by = ground.killer(system)
                if by:
                    return Tried(mistake, Fate.KILLED, name, by, tuple(differs))
        return Tried(mistake, self._left(mistake, differs), differs=tuple(differs))

    def _left(self, mistake: Mistake, differs: Sequence[str]) -> Fate:
        """Say what a mistake is that breaks no property, and is another fleet in these."""
        if not differs:
            return Fate.SAME
        grounds = (self.grounds[name] for name in differs)
        needless = all(ground.is_needless(ground.with_rules(mistake)) for ground in grounds)
        return Fate.NEEDLESS if needless else Fate.SURVIVED


def campaign_of(source: Source) -> Campaign:
    """Return the campaign of one source, in the small fleets that show what it has."""
    return Campaign(*FEATURES.get(source, SMALL), sources=(source,))
