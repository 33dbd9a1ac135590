"""The environment of a simulation: the conduct of activities, derived from ``yields`` and ``examples()``.

The orderly course of an activity has one report of each event that does not end it, and then the first event that ends
it. Each event is its first example. An event that takes the entity out of the activity's states also ends the
activity, but is not orderly. So ``yields`` and ``examples()`` begin with the usual events. The time of each report is
given by the environment.

A ``Script`` replaces this conduct: it yields the reports of an activity with their delays.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from lifefold.core.kernel import Aggregate, Entity, Envelope, Event, Machine, Phase
from lifefold.effects import Activity, Effect
from lifefold.interpreters.simulate.choices import Choices, Name
from lifefold.interpreters.simulate.faults import ACTED, MOST

FLOOD: Final = 20
"""The number of repetitions of an activity that floods."""

SLOW: Final = 100
"""The factor by which a slow report takes longer."""

USUAL_MS: Final = (1_000, 60_000)
"""The time of a report without a declared duration."""

LATE_MS: Final = (1_000, 600_000)
"""The delay of a late report."""

SHARES: Final = (0, 0, 1, 1, 4)
"""The factors of the rates of faults and reports in one run: some do not occur in it."""

SELDOM: Final = 10
"""An activity makes one in so many of the reports that are in vain."""

Range = tuple[int, int]
"""The lowest and the highest value; both are possible."""


class Said(msgspec.Struct, frozen=True):
    """A report of an activity, ``after_ms`` milliseconds after the report before it."""

    after_ms: int
    event: Event


Script = Callable[[Aggregate, Entity[Any], Activity, Choices], Iterable[Said]]
"""The reports of an activity of an entity, in order; a script draws its random decisions from the choices."""


def _nothing(_aggregate: Aggregate) -> Iterable[Envelope]:
    return ()


class Environment(msgspec.Struct, frozen=True):
    """The environment of a system.

    ``durations_ms`` has, by type of activity, the time of each report. ``weights`` has, by type of event, the weight
    of each example among the ends that are not orderly; 1 by default. ``scripts`` replace all of that for a type of
    activity. ``hastens`` has, by type of effect, the activities of the same entity that end soon after it, such as a
    process that is asked to end. ``fenced`` are the activities whose processes outlive the daemon of their host in a
    simulated cluster, until their fence.

    ``unusual`` are reports that no orderly activity makes on its way. ``creates`` yields the entities that an operator
    may create in an aggregate, each as the input with its ``Created``. ``keen`` are the events of commands that come
    often, the most frequent first.

    The other fields are times: of a message, of the confirmation of an end, of a transaction in a slow store. Others
    are the time between two opportunities of operators, and the time until the next runner. A run is healed after one
    of these ``parts`` of its time: 4 is a quarter. ``rates`` replace the usual rates of faults.
    """

    durations_ms: Mapping[type[Activity], Range] = {}
    weights: Mapping[type[Event], Sequence[int]] = {}
    scripts: Mapping[type[Activity], Script] = {}
    unusual: tuple[type[Event], ...] = ()
    creates: Callable[[Aggregate], Iterable[Envelope]] = _nothing
    keen: tuple[type[Event], ...] = ()
    hastens: Mapping[type[Effect], tuple[type[Activity], ...]] = {}
    fenced: tuple[type[Activity], ...] = ()
    message_ms: Range = (1, 50)
    operators_ms: Range = (60_000, 3_600_000)
    end_ms: Range = (1, 1_000)
    write_ms: Range = (100, 5_000)
    restart_ms: Range = (100, 60_000)
    parts: tuple[int, ...] = (1,)
    rates: Mapping[str, float] = {}


class Chance:
    """The choices of one run, with the rates of its faults: all that an environment leaves open is decided here."""

    def __init__(self, environment: Environment, choices: Choices, rates: Mapping[str, float]) -> None:
        """Take the environment, the choices, and the rates of faults."""
        self.environment: Final = environment
        self.choices: Final = choices
        self.rates: Final = dict(rates)
        self.struck: Final[Counter[str]] = Counter()
        """The number of occurrences of each fault."""
        self.is_calm = False
        """Whether no fault happens any more."""
        self._shares: Final[dict[Name, int]] = {}

    def calm(self) -> None:
        """Let no fault happen any more."""
        self.is_calm = True
        self.choices.calm()
        self.rates.update(dict.fromkeys(self.rates, 0.0))

    def strikes(self, fault: str, *name: str | int) -> bool:
        """Tell whether a fault happens on this occasion."""
        rate = self.rates[fault]
        if rate and fault in ACTED and self.choices.is_drawn:
            rate = min(rate * self.share(fault, name[2]), MOST)
        if not rate or not self.choices.way((fault, *name), 2, rate):
            return False
        self.struck[fault] += 1
        return True

    def share(self, *what: str | int) -> int:
        """Return the factor of a rate in this run, drawn when it is first needed."""
        if what not in self._shares:
            self._shares[what] = SHARES[self.choices.cast(len(SHARES))]
        return self._shares[what]

    def takes_ms(self, span_ms: Range, *name: str | int) -> int:
        """Return a duration: the shortest, if all is orderly."""
        least, most = span_ms
        took = least + (self.choices.way(("takes", *name), most - least + 1, 0.5) if most > least else 0)
        return took * SLOW if self.strikes("slow", *name) else took

    def course(
        self, machine: Machine[Any], aggregate: Aggregate, entity: Entity[Any], slot: str, generation: int
    ) -> list[Said]:
        """Return the reports of an activity that starts now, if it is not ended; no end, if it hangs."""
        part = next(each for each in entity.running if (each.slot, each.generation) == (slot, generation))
        activity = part.activity
        assert activity is not None  # noqa: S101 - timers say nothing
        script = self.environment.scripts.get(type(activity))
        if script is not None:  # one that the same step has ended says nothing
            return list(script(aggregate, entity, activity, self.choices)) if part.phase is Phase.LIVE else []
        name = (aggregate.name, entity.ref, slot, generation)
        span_ms = self.environment.durations_ms.get(type(activity), USUAL_MS)
        soon_ms = tuple(dict.fromkeys((0, *entity.record.pauses_ms())))
        events = self._events(machine, entity.record, slot, name)
        return [Said(self._after_ms(span_ms, soon_ms, *name, place), event) for place, event in enumerate(events)]

    def _after_ms(self, span_ms: Range, soon_ms: Sequence[int], *name: str | int) -> int:
        """Return the delay of a report: none, or a pause that makes a difference."""
        if self.strikes("hasty", *name):
            return soon_ms[self.choices.any_way(("how soon", *name), len(soon_ms))]
        return self.takes_ms(span_ms, *name)

    def _events(self, machine: Machine[Any], record: Any, slot: str, name: Name) -> list[Event]:
        on_the_way, others, ends = _sorted(machine, record, slot, self.environment.unusual)
        is_early = bool(on_the_way) and self.strikes("exits early", *name)
        said = [] if is_early else on_the_way
        if said and self.strikes("rambles", *name):
            said = self._rambling([*said, *others], name)
        if said and self.strikes("floods", *name):
            said = [*said, *[said[-1]] * FLOOD]
        if not ends or self.strikes("hangs", *name):
            return said
        others = ends if is_early else ends[1:]
        may_fail = any(self._is_likely(machine, slot, each) for each in others)
        if is_early or (may_fail and self.strikes("fails", *name)):
            return [*said, self._other(machine, others, name)]
        return [*said, ends[0]]

    def _rambling(self, events: Sequence[Event], name: Name) -> list[Event]:
        """Return some of the reports without an end, in a random order."""
        many = 1 + self.choices.any_way(("how many", *name), 2 * len(events))
        return [events[self.choices.any_way(("says", *name, place), len(events))] for place in range(many)]

    def _other(self, machine: Machine[Any], ends: Sequence[Event], name: Name) -> Event:
        """Return one of these ends; seldom one that no entity accepts, and in one run not all of the others."""
        weights = [self._weight(each, ends) for each in ends]
        owners = [place for place, weight in enumerate(weights) for _ in range(weight)]
        if not owners:
            return ends[0]
        likely = [self._is_likely(machine, str(name[2]), ends[place]) for place in owners]
        return ends[owners[self.choices.one_of(("which end", *name), likely)]]

    def _is_likely(self, machine: Machine[Any], slot: str, end: Event) -> bool:
        """Tell whether an activity may come to this end in this run."""
        if not self.choices.is_drawn:
            return True
        share = self.share("ends", slot, repr(end))
        return share > 0 and (_is_taken(machine, slot, end) or not self.choices.cast(SELDOM))

    def _weight(self, event: Event, ends: Sequence[Event]) -> int:
        weights = self.environment.weights.get(type(event))
        place = [each for each in ends if type(each) is type(event)].index(event)
        return 1 if weights is None or place >= len(weights) else weights[place]


def _is_taken(machine: Machine[Any], slot: str, event: Event) -> bool:
    """Tell whether there is a row that may accept this report of an activity."""
    states = machine.spans[slot].states
    meant = (row for row in machine.rows if row.event is type(event) and machine.sources(row) & states)
    return any(row.pattern is None or row.pattern.test(event) for row in meant)


def _sorted(
    machine: Machine[Any], record: Any, slot: str, unusual: tuple[type[Event], ...]
) -> tuple[list[Event], list[Event], list[Event]]:
    """Return the orderly reports of an activity, its other reports, and its ends; orderly ones first."""
    span, last = machine.spans[slot], machine.last[slot]
    on_the_way: list[Event] = []
    others: list[Event] = []
    ends: list[Event] = []
    broken: list[Event] = []
    said = ((kind, kind.examples_for(record)) for kind in span.during.yields)
    for kind, examples in ((kind, examples) for kind, examples in said if examples):
        if kind in last:
            ends += examples
            continue
        if kind in unusual:
            others += examples
            continue
        answer = machine.reduce(record, examples[0])
        if answer.map(lambda step: step.record.state in span.states).value_or(default_value=True):
            on_the_way.append(examples[0])
            others += examples[1:]
        else:
            broken += examples
    return on_the_way, others, [*ends, *broken]
