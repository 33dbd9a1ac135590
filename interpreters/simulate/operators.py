"""What people say in a simulation, and when: things that count, at the worst time; and now and then anything at all.

Just after whatever happens somebody may say something, and that is the orderly time; or just before it, or after a
pause of any length, or after one that makes a difference to somebody's record. Mostly it is something that would be
taken. The clock jumps on the same occasions. When nothing goes on and nothing that could be said would be taken, there
are no more of them.
"""

from collections.abc import Sequence
from typing import Final

from lifefold.core.kernel import Cause, Envelope, Event, Reaction, System, possible, react
from lifefold.interpreters.simulate.environment import Chance
from lifefold.interpreters.simulate.property_monitor import WHOLE
from lifefold.interpreters.simulate.runner import Runner
from lifefold.interpreters.simulate.scheduler import WAITED, Agenda

HOUR_MS: Final = 3_600_000

JUMP_MS: Final = (1_000, 24 * HOUR_MS)
"""By how much a clock jumps."""

NEEDLESS: Final = 0.2
"""How often somebody says something of which nobody knows whether it is of any use."""

PAUSED: Final = 0.5
"""How often the next occasion is after a pause of any length, and not at a time that makes a difference."""

SPARES: Final = 0.8
"""How often nobody says what would end a life for good, so that much happens in one."""

MANY: Final = 200
"""Of so many things that might be said it is looked at which of them would be taken."""

_PAUSES: Final = 2
"""Of the ways in which a time makes a difference, those that are not a pause of somebody's."""

_LAST: Final = (3,)
"""Behind all else that happens at one time."""


class People:
    """Those who say something to the aggregates of a runner, and set its clock."""

    def __init__(self, system: System, runner: Runner, agenda: Agenda, chance: Chance) -> None:
        """Take the world that they are in."""
        self._system: Final = system
        self._runner: Final = runner
        self._agenda: Final = agenda
        self._chance: Final = chance
        self._ticks = 0

    def tick(self) -> None:
        """Let people say something, and the clock be set, now and then."""
        self._ticks += 1
        rates, number = self._chance.rates, self._ticks
        if not any(rates[each] for each in ("people", "early timer", "clock back")):
            return
        if self._chance.strikes("people", number):
            self._say(number)
        for fault, sign in (("early timer", 1), ("clock back", -1)):
            if self._chance.strikes(fault, number):
                least, most = JUMP_MS
                by_ms = least + self._chance.choices.any_way(("by", fault, number), most - least + 1)
                self._runner.set_clock(sign * by_ms)
        if not self._is_at_rest():
            self._agenda.at(self._next_ms(number), self.tick, order=WAITED)

    def sayable(self, name: str) -> list[Envelope]:
        """Return what people may say to an aggregate now, each once."""
        said: dict[tuple[str, Event], Envelope] = {}
        for each in self._sayable_later(name):
            said.setdefault((each.entity, each.event), each)
        return list(said.values())

    def _sayable_later(self, name: str) -> list[Envelope]:
        """Return what people may say to an aggregate, now and after each pause that makes a difference."""
        of, aggregate = self._system.type_of(name), self._runner.aggregates[name]
        every = possible(of, aggregate, self._runner.clock_ms)
        return [each.envelope for each in every if each.cause is Cause.COMMAND]

    def _say(self, number: int) -> None:
        """Let somebody say one of the things that people may say."""
        choices, names = self._chance.choices, list(self._runner.aggregates)
        if not names:
            return
        name = names[choices.any_way(("to whom", number), len(names))]
        said = self.sayable(name)
        if len(said) <= MANY and not choices.way(("needless", number), 2, NEEDLESS):
            said = [each for each in said if self._is_taken(name, each)] or said
        kinds = list(dict.fromkeys((each.entity, type(each.event)) for each in said))
        if not kinds:
            return
        likely = [not choices.is_drawn or self._chance.share("says", kind.__name__) > 0 for _, kind in kinds]
        if len(said) <= MANY and choices.way(("spares", number), 2, SPARES):
            going_on = {(each.entity, type(each.event)) for each in said if not self._is_last(name, each)}
            if not going_on:
                return
            harmless = [each in going_on for each in kinds]
            both = [one and other for one, other in zip(likely, harmless, strict=True)]
            likely = both if any(both) else harmless
        kind = kinds[choices.one_of(("what", number), likely)]
        alike = [each for each in said if (each.entity, type(each.event)) == kind]
        self._runner.post(name, alike[choices.any_way(("which", number), len(alike))])

    def _is_taken(self, name: str, envelope: Envelope) -> bool:
        """Tell whether something would be taken; a rule that fails is a reason to say it."""
        try:
            return isinstance(react(self._system.type_of(name), self._runner.aggregates[name], envelope), Reaction)
        except Exception:  # noqa: BLE001 - whatever it is, it is for the runner to come upon
            return True

    def _is_last(self, name: str, envelope: Envelope) -> bool:
        """Tell whether nothing could happen to an entity any more after that."""
        of, aggregate = self._system.type_of(name), self._runner.aggregates[name]
        machine, entity = of.machine_of(envelope.entity), aggregate.entities[envelope.entity]
        if machine is None:
            return False
        answer = machine.reduce(entity.record, envelope.event)
        return answer.map(lambda step: step.record.state in machine.final).value_or(default_value=False)

    def _next_ms(self, number: int) -> int:
        """Return when the next occasion is."""
        now_ms, choices = self._agenda.now_ms, self._chance.choices
        if not choices.way(("paused", number), 2, PAUSED):
            pauses = self._pauses_ms()
            way = choices.any_way(("when", number), _PAUSES + len(pauses))
            if way >= _PAUSES:
                return now_ms + pauses[way - _PAUSES]
            next_ms = self._agenda.next_ms()
            if next_ms is not None:
                return max(now_ms, next_ms - way)
        least, most = self._chance.environment.people_ms
        return now_ms + most - choices.any_way(("pause", number), most - least + 1)

    def _pauses_ms(self) -> Sequence[int]:
        """Return the pauses that make a difference to a record, the shortest first, and the shortest there is."""
        every: set[int] = {1}
        if self._entities() <= MANY:
            for aggregate in self._runner.aggregates.values():
                for entity in aggregate.entities.values():
                    every.update(entity.record.pauses_ms())
        return sorted(every)

    def _is_at_rest(self) -> bool:
        """Tell whether nothing goes on, and nothing that people may say would change that."""
        if self._agenda.next_ms() is not None or not self._runner.is_up:
            return False
        if self._entities() > WHOLE:
            return False
        every = [(name, each) for name in self._runner.aggregates for each in self._sayable_later(name)]
        return len(every) <= MANY and not any(self._is_taken(name, each) for name, each in every)

    def _entities(self) -> int:
        """Return how many there are."""
        return sum(len(each.entities) for each in self._runner.aggregates.values())
