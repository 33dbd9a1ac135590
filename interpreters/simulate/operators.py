"""The operators of a simulation: commands that matter, at the worst time, and now and then any command.

The orderly time of a command is just after an input. Other times are just before it, after a pause of any length, or
after a pause that makes a difference to a record. Most commands are ones that an entity accepts. The clock jumps on
the same occasions. When nothing runs and no possible command would be accepted, there are no more of them.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final

from lifefold.core.kernel import Cause, Envelope, Event, Input, Machine, Reaction, System, possible
from lifefold.core.kernel.environment import possible_of
from lifefold.interpreters.simulate.environment import Chance
from lifefold.interpreters.simulate.property_monitor import WHOLE
from lifefold.interpreters.simulate.scheduler import WAITED, Agenda
from lifefold.interpreters.simulate.simulated_runner import SimulatedRunner

HOUR_MS: Final = 3_600_000

JUMP_MS: Final = (1_000, 24 * HOUR_MS)
"""The distance of a jump of the clock."""

NEEDLESS: Final = 0.2
"""The rate of commands that may be refused."""

PAUSED: Final = 0.5
"""The rate of pauses of any length, and not of those that make a difference."""

SPARES: Final = 0.8
"""The rate at which commands that end a lifecycle are left out: most lifecycles are to go on."""

KEEN: Final = 0.5
"""The rate of commands of the kinds that come often, where an environment has such kinds."""

MANY: Final = 200
"""The most possible commands of which the accepted ones are computed."""

_PAUSES: Final = 2
"""Of the ways in which a time makes a difference, those that are not a pause of a record."""

_LAST: Final = (3,)
"""After all else at the same time."""


class Operators:
    """The operators of a system: they give commands to the aggregates of a runner, and set its clock."""

    def __init__(self, system: System, runner: SimulatedRunner, agenda: Agenda, chance: Chance) -> None:
        """Take the system, the runner and the agenda."""
        self._system: Final = system
        self._runner: Final = runner
        self._agenda: Final = agenda
        self._chance: Final = chance
        self._ticks = 0

    def tick(self) -> None:
        """Let operators give a command, and the clock be set, now and then."""
        self._ticks += 1
        rates, number = self._chance.rates, self._ticks
        if not any(rates[each] for each in ("operators", "early timer", "clock back")):
            return
        if self._chance.strikes("operators", number):
            self._say(number)
        for fault, sign in (("early timer", 1), ("clock back", -1)):
            if self._chance.strikes(fault, number):
                least, most = JUMP_MS
                by_ms = least + self._chance.choices.any_way(("by", fault, number), most - least + 1)
                self._runner.set_clock(sign * by_ms)
        if not self._is_at_rest():
            self._agenda.at(self._next_ms(number), self.tick, order=WAITED)

    def sayable(self, name: str) -> list[Envelope]:
        """Return the possible commands of an aggregate, each once."""
        created = self._chance.environment.creates(self._runner.aggregates[name])
        return _each_once((*self._sayable_later(name), *created))

    def sayable_of(self, name: str, kinds: Container[object]) -> list[Envelope]:
        """Return the possible commands whose events have one of these types: the others are not made."""
        created = self._chance.environment.creates(self._runner.aggregates[name])
        return _each_once((*self._later_of(name, kinds), *(each for each in created if type(each.event) in kinds)))

    def _later_of(self, name: str, kinds: Container[object]) -> Iterator[Envelope]:
        """Yield the same as ``_sayable_later``, for some types of events."""
        of, aggregate, now_ms = self._system.type_of(name), self._runner.aggregates[name], self._runner.clock_ms
        meant = {each.name: self._commands(name, each, kinds) for each in of.machines.values()}
        asked = [ref for ref in aggregate.entities if meant[ref.partition(":")[0]]]
        for ref in sorted(asked):
            machine = of.machines[ref.partition(":")[0]]
            for each in possible_of(machine, aggregate.entities[ref], now_ms, meant[machine.name]):
                if each.cause is Cause.COMMAND:
                    yield each.envelope

    def _commands(self, name: str, machine: Machine[Any], kinds: Container[object]) -> tuple[type[Event], ...]:
        """Return the commands of these types that operators may give to a machine."""
        commands = self._system.type_of(name).commands.get(machine.name)
        return tuple(each for each in (machine.commands if commands is None else commands) if each in kinds)

    def _sayable_later(self, name: str) -> list[Envelope]:
        """Return the possible commands of an aggregate, now and after each pause that makes a difference."""
        of, aggregate = self._system.type_of(name), self._runner.aggregates[name]
        every = possible(of, aggregate, self._runner.clock_ms)
        return [each.envelope for each in every if each.cause is Cause.COMMAND]

    def _say(self, number: int) -> None:
        """Give one of the possible commands."""
        choices, names = self._chance.choices, list(self._runner.aggregates)
        if not names or self._says_keenly(number):
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
        self._runner.submit(name, alike[choices.any_way(("which", number), len(alike))])

    def _says_keenly(self, number: int) -> bool:
        """Give an accepted command of those that come often, if there is one now; tell whether it was given."""
        keen, choices = self._chance.environment.keen, self._chance.choices
        if not keen or not choices.way(("keen", number), 2, KEEN):
            return False
        said = [(name, each) for name in self._runner.aggregates for each in self.sayable(name)]
        found = [(name, each) for name, each in said if isinstance(each.event, keen) and self._is_taken(name, each)]
        kinds = [kind for kind in keen if any(type(each.event) is kind for _, each in found)]
        if not kinds:
            return False
        others = (place for place in range(len(kinds) - 1) if not choices.way(("what keenly", number, place), 2, 0.5))
        kind = kinds[next(others, len(kinds) - 1)]
        alike = [(name, each) for name, each in found if type(each.event) is kind]
        self._runner.submit(*alike[choices.any_way(("which", number), len(alike))])
        return True

    def _is_taken(self, name: str, envelope: Envelope) -> bool:
        """Tell whether a command would be accepted; a rule that raises an error is a reason to give it."""
        try:
            return isinstance(self._runner.world.outcome(Input(name, envelope)), Reaction)
        except Exception:  # noqa: BLE001 - whatever it is, it is for the runner to come upon
            return True

    def _is_last(self, name: str, envelope: Envelope) -> bool:
        """Tell whether no input is possible for an entity after a command."""
        of, aggregate = self._system.type_of(name), self._runner.aggregates[name]
        machine, entity = of.machine_of(envelope.entity), aggregate.entities.get(envelope.entity)
        if machine is None or entity is None:
            return False
        answer = machine.reduce(entity.record, envelope.event)
        return answer.map(lambda step: step.record.state in machine.final).value_or(default_value=False)

    def _next_ms(self, number: int) -> int:
        """Return the time of the next opportunity."""
        now_ms, choices = self._agenda.now_ms, self._chance.choices
        if not choices.way(("paused", number), 2, PAUSED):
            pauses = self._pauses_ms()
            way = choices.any_way(("when", number), _PAUSES + len(pauses))
            if way >= _PAUSES:
                return now_ms + pauses[way - _PAUSES]
            next_ms = self._agenda.next_ms()
            if next_ms is not None:
                return max(now_ms, next_ms - way)
        least, most = self._chance.environment.operators_ms
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
        """Tell whether nothing runs, and no possible command would change that."""
        if self._agenda.next_ms() is not None or not self._runner.is_up:
            return False
        if self._entities() > WHOLE:
            return False
        every = [(name, each) for name in self._runner.aggregates for each in self._sayable_later(name)]
        return len(every) <= MANY and not any(self._is_taken(name, each) for name, each in every)

    def _entities(self) -> int:
        """Return the number of entities."""
        return sum(len(each.entities) for each in self._runner.aggregates.values())


def _each_once(commands: Iterable[Envelope]) -> list[Envelope]:
    said: dict[tuple[str, Event], Envelope] = {}
    for each in commands:
        said.setdefault((each.entity, each.event), each)
    return list(said.values())
