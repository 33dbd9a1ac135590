"""What activities do in a simulation: read off what they ``yield`` and its ``examples()``, unless somebody says better.

The orderly course of an activity is to say, once each, what it may say and go on, and then to be over with the first
thing that it may be over with; of each, the first example. What takes its entity out of the states in which the
activity goes on is an end as well, and no orderly one. So ``yields`` and ``examples()`` begin with what is as it should
be. Each thing takes the time that the environment says.

Who knows better writes a ``Script``: what an activity says, and after how long, given what it is about.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from lifefold.core.kernel import Aggregate, Entity, Event, Machine
from lifefold.effects import Activity, Effect
from lifefold.interpreters.simulate.choices import Choices, Name
from lifefold.interpreters.simulate.faults import ACTED, MOST

FLOOD: Final = 20
"""How often an activity repeats itself when it floods."""

SLOW: Final = 100
"""How many times as long something takes that is slow."""

USUAL_MS: Final = (1_000, 60_000)
"""How long something takes of which nobody has said how long it takes."""

LATE_MS: Final = (1_000, 600_000)
"""By how much something is late."""

SHARES: Final = (0, 0, 1, 1, 4)
"""How many times as often as usual in the run an activity has a fault, or something is said: some not at all."""

SELDOM: Final = 10
"""One in so many times that an activity could say something in vain it does."""

Range = tuple[int, int]
"""From, to: both may be."""


class Said(msgspec.Struct, frozen=True):
    """What an activity says, ``after_ms`` milliseconds after what it has said before."""

    after_ms: int
    event: Event


Script = Callable[[Aggregate, Entity[Any], Activity, Choices], Iterable[Said]]
"""What an activity of an entity says, one thing after the other; the choices are for what a script leaves to chance."""


class Environment(msgspec.Struct, frozen=True):
    """The world around a system, as far as a user wants to say what it is like.

    ``durations_ms`` has, by type of activity, how long each thing that it says takes; ``weights``, by type of event,
    how likely each of its examples is among the ends that are not orderly, 1 for those that are not said. ``scripts``
    replace all of that for a type of activity. ``hastens`` has, by type of effect, which activities of the same entity
    end soon when it is performed: a process that is asked to end, and does. The rest is how long a message takes, how
    much time there is between things that people might say, how long the confirmation of an end takes, a transaction
    of a slow store, and until there is a runner again. A run is healed when one of these ``parts`` of its time is over:
    4 is a quarter of it. ``rates`` are the usual ones of faults here, if they are not those of everywhere.
    """

    durations_ms: Mapping[type[Activity], Range] = {}
    weights: Mapping[type[Event], Sequence[int]] = {}
    scripts: Mapping[type[Activity], Script] = {}
    hastens: Mapping[type[Effect], tuple[type[Activity], ...]] = {}
    message_ms: Range = (1, 50)
    people_ms: Range = (60_000, 3_600_000)
    end_ms: Range = (1, 1_000)
    write_ms: Range = (100, 5_000)
    restart_ms: Range = (100, 60_000)
    parts: tuple[int, ...] = (1,)
    rates: Mapping[str, float] = {}


class Chance:
    """The choices of one run, with the rates of its faults: what an environment leaves open is decided here."""

    def __init__(self, environment: Environment, choices: Choices, rates: Mapping[str, float]) -> None:
        """Take the environment, where choices come from, and how often what goes wrong."""
        self.environment: Final = environment
        self.choices: Final = choices
        self.rates: Final = dict(rates)
        self.struck: Final[Counter[str]] = Counter()
        """How often each fault has happened."""
        self.is_calm = False
        """Whether nothing goes wrong any more."""
        self._shares: Final[dict[Name, int]] = {}

    def calm(self) -> None:
        """Let nothing go wrong any more."""
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
        """Return how many times as often as usual something is in this run, drawn when it is first asked for."""
        if what not in self._shares:
            self._shares[what] = SHARES[self.choices.cast(len(SHARES))]
        return self._shares[what]

    def takes_ms(self, span_ms: Range, *name: str | int) -> int:
        """Return how long something takes: the shortest, if all is orderly."""
        least, most = span_ms
        took = least + (self.choices.way(("takes", *name), most - least + 1, 0.5) if most > least else 0)
        return took * SLOW if self.strikes("slow", *name) else took

    def course(
        self, machine: Machine[Any], aggregate: Aggregate, entity: Entity[Any], slot: str, generation: int
    ) -> list[Said]:
        """Return what an activity that begins now says if nobody ends it; nothing more, if it hangs."""
        activity = next(each.activity for each in entity.running if (each.slot, each.generation) == (slot, generation))
        assert activity is not None  # noqa: S101 - timers say nothing
        script = self.environment.scripts.get(type(activity))
        if script is not None:
            return list(script(aggregate, entity, activity, self.choices))
        name = (aggregate.name, entity.ref, slot, generation)
        span_ms = self.environment.durations_ms.get(type(activity), USUAL_MS)
        soon_ms = tuple(dict.fromkeys((0, *entity.record.pauses_ms())))
        events = self._events(machine, entity.record, slot, name)
        return [Said(self._after_ms(span_ms, soon_ms, *name, place), event) for place, event in enumerate(events)]

    def _after_ms(self, span_ms: Range, soon_ms: Sequence[int], *name: str | int) -> int:
        """Return after how long an activity says something: maybe at once, or after a pause that makes a difference."""
        if self.strikes("hasty", *name):
            return soon_ms[self.choices.any_way(("how soon", *name), len(soon_ms))]
        return self.takes_ms(span_ms, *name)

    def _events(self, machine: Machine[Any], record: Any, slot: str, name: Name) -> list[Event]:
        on_the_way, others, ends = _sorted(machine, record, slot)
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
        """Return some of what an activity may say and go on, in an order of its own."""
        many = 1 + self.choices.any_way(("how many", *name), 2 * len(events))
        return [events[self.choices.any_way(("says", *name, place), len(events))] for place in range(many)]

    def _other(self, machine: Machine[Any], ends: Sequence[Event], name: Name) -> Event:
        """Return one of these ends; seldom one that nobody takes, and in one run not all of the others."""
        weights = [self._weight(each, ends) for each in ends]
        owners = [place for place, weight in enumerate(weights) for _ in range(weight)]
        if not owners:
            return ends[0]
        likely = [self._is_likely(machine, str(name[2]), ends[place]) for place in owners]
        return ends[owners[self.choices.one_of(("which end", *name), likely)]]

    def _is_likely(self, machine: Machine[Any], slot: str, end: Event) -> bool:
        """Tell whether an activity comes to this end in this run."""
        if not self.choices.is_drawn:
            return True
        share = self.share("ends", slot, repr(end))
        return share > 0 and (_is_taken(machine, slot, end) or not self.choices.cast(SELDOM))

    def _weight(self, event: Event, ends: Sequence[Event]) -> int:
        weights = self.environment.weights.get(type(event))
        place = [each for each in ends if type(each) is type(event)].index(event)
        return 1 if weights is None or place >= len(weights) else weights[place]


def _is_taken(machine: Machine[Any], slot: str, event: Event) -> bool:
    """Tell whether there is a row that may take this from an activity."""
    states = machine.spans[slot].states
    meant = (row for row in machine.rows if row.event is type(event) and machine.sources(row) & states)
    return any(row.pattern is None or row.pattern.test(event) for row in meant)


def _sorted(machine: Machine[Any], record: Any, slot: str) -> tuple[list[Event], list[Event], list[Event]]:
    """Return what an activity says and goes on, what else it may say so, and its ends; what is orderly first."""
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
        answer = machine.reduce(record, examples[0])
        if answer.map(lambda step: step.record.state in span.states).value_or(default_value=True):
            on_the_way.append(examples[0])
            others += examples[1:]
        else:
            broken += examples
    return on_the_way, others, [*ends, *broken]
