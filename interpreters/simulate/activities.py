"""The activities of a simulation: processes that report events, with or without a runner.

They outlive every runner. A new runner learns which activities run, and gets the events that they have reported
meanwhile. An activity that a runner ends is over, and its end is confirmed after a delay.
"""

from collections.abc import Callable, Collection
from typing import Any, Final

from returns.result import Success

from lifefold.core.kernel import ActivityEnded, Aggregate, Envelope, Event, Machine, RequestedEffect, System, replace
from lifefold.interpreters.search.crash_model import Fault
from lifefold.interpreters.simulate.environment import LATE_MS, Chance, Range, Said
from lifefold.interpreters.simulate.inputs import Given, Taker
from lifefold.interpreters.simulate.property_monitor import Violation
from lifefold.interpreters.simulate.scheduler import Agenda, Part, Process, turn


class Activities:
    """The running activities, and those of them that the present runner attends."""

    def __init__(self, runner: Taker, system: System, agenda: Agenda, chance: Chance) -> None:
        """Take the runner, the system and the agenda."""
        self._runner: Final = runner
        self._system: Final = system
        self._agenda: Final = agenda
        self._chance: Final = chance
        self._processes: Final[dict[Part, Process]] = {}
        self._heard: Final[set[Part]] = set()
        """The activities that this runner attends."""

    def begin(self, part: Part, aggregate: Aggregate) -> None:
        """Start an activity, or attend one that an earlier runner has started."""
        process = self._processes.get(part)
        self._heard.add(part)
        if process is None:
            process = self._processes[part] = Process(self._course(part, aggregate))
            self._continue(part, process)
            return
        for place in range(process.heard, process.spoken):
            self._at(part, 0, self._report, self._runner.life, part, process, place)

    def end(self, part: Part) -> None:
        """End an activity, if it still runs, and confirm its end."""
        process = self._processes.pop(part, None)
        if process is not None:
            process.is_over = True
        self._heard.discard(part)
        after_ms = self._takes_ms(self._chance.environment.end_ms, "end", *part)
        self._at(part, after_ms, self._confirm, self._runner.life, part)

    def let_go(self, part: Part) -> None:
        """Forget an activity that has reported everything, if it is over."""
        name, ref, slot, generation = part
        if self._runner.aggregates[name].entities[ref].find(slot, generation=generation) is None:
            self._processes.pop(part, None)
            self._heard.discard(part)

    def lose_listener(self) -> None:
        """Continue without a runner."""
        self._heard.clear()

    def hasten(self, name: str, asked: RequestedEffect) -> None:
        """Let the activities that an effect ends soon come to their end at once, with their last report.

        Raises ``Violation`` if this runner does not attend it: the effect would not reach it.
        """
        hastened = self._chance.environment.hastens.get(type(asked.effect), ())
        for part, process in list(self._processes.items()) if hastened else ():
            is_meant = part[:2] == (name, asked.entity) and self._is_of(part, hastened)
            if is_meant and not process.is_over and process.spoken < len(process.said):
                if part not in self._heard:
                    raise self.unreached(part, asked)
                process.heard = process.spoken = len(process.said) - 1
                after_ms = self._takes_ms(self._chance.environment.end_ms, "hastened", *part)
                self._at(part, after_ms, self._speak, part, process)

    def unreached(self, part: Part, asked: RequestedEffect) -> Exception:
        """Return the error for an effect on an activity that this runner does not attend."""
        return Violation(self._system.name, Fault.UNATTENDED, f"{part[0]}, {part[1]}: {asked.effect!r}")

    def relieve(self, relied_on: Collection[object], is_due: Callable[[Event], bool]) -> None:
        """Let activities without further reports come to an end after all, if a property relies on it.

        It does if their type is among these, or if one of their ends is due, which is then their end. Reports without
        an end are also sent, if they are due and an entity accepts them.
        """
        for part, process in self._processes.items():
            name, ref, slot, generation = part
            aggregate = self._runner.aggregates[name]
            entity = aggregate.entities[ref]
            running = entity.find(slot, generation=generation)
            if running is None or not process.spoken == len(process.said) == process.heard:
                continue
            ends = [end for kind in self._last(part) for end in kind.examples_for(entity.record)]
            due_end = next((each for each in ends if is_due(each)), None)
            if due_end is not None or type(running.activity) in relied_on:
                said = self._course(part, aggregate)
                process.said += said if due_end is None else [*said[:-1], Said(1, due_end)]
                self._continue(part, process)
                continue
            due = next((each for each in self._taken(part, entity.record) if is_due(each)), None)
            if due is not None:
                process.said.append(Said(1, due))
                self._continue(part, process)

    def _last(self, part: Part) -> list[type[Event]]:
        """Return the events that may end an activity, in the order of their declaration."""
        slot, machine = part[2], self._machine_of(part)
        return [kind for kind in machine.spans[slot].during.yields if kind in machine.last[slot]]

    def _taken(self, part: Part, record: Any) -> list[Event]:
        """Return the reports of an activity that its entity would accept now."""
        machine = self._machine_of(part)
        kinds = machine.spans[part[2]].during.yields
        said = [each for kind in kinds for each in kind.examples_for(record)]
        return [each for each in said if isinstance(machine.reduce(record, each), Success)]

    def _machine_of(self, part: Part) -> Machine[Any]:
        machine = self._system.type_of(part[0]).machine_of(part[1])
        assert machine is not None  # noqa: S101 - it has begun there
        return machine

    def _course(self, part: Part, aggregate: Aggregate) -> list[Said]:
        """Return the reports of an activity that starts now."""
        _name, ref, slot, generation = part
        machine = self._machine_of(part)
        return self._chance.course(machine, aggregate, aggregate.entities[ref], slot, generation)

    def _continue(self, part: Part, process: Process) -> None:
        if process.spoken < len(process.said):
            self._at(part, process.said[process.spoken].after_ms, self._speak, part, process)

    def _speak(self, part: Part, process: Process) -> None:
        """Let a process report its next event, with or without a runner."""
        if process.is_over or process.spoken == len(process.said):
            return
        place = process.spoken
        process.spoken += 1
        self._continue(part, process)  # before it is reported: its consequences may hasten it
        if part in self._heard:
            self._report(self._runner.life, part, process, place)

    def _report(self, life: int, part: Part, process: Process, place: int) -> None:
        runner = self._runner
        if life != runner.life or process.is_over:
            return
        name, ref, slot, generation = part
        envelope = Envelope(ref, process.said[place].event, runner.clock_ms, slot, slot=slot, generation=generation)
        runner.give([Given(name, envelope, process, place)])
        if self._chance.strikes("late report", *part, place, runner.life):
            after_ms = self._takes_ms(LATE_MS, "late report", *part, place)
            self._agenda.at(self._agenda.now_ms + after_ms, self._repeat, name, envelope)

    def _repeat(self, name: str, envelope: Envelope) -> None:
        if self._runner.is_up:
            self._runner.give([Given(name, replace(envelope, at_ms=self._runner.clock_ms))])

    def _confirm(self, life: int, part: Part) -> None:
        if life == self._runner.life:
            name, ref, slot, generation = part
            ended = Envelope(ref, ActivityEnded(slot, generation), self._runner.clock_ms, "engine")
            self._runner.give([Given(name, ended)])

    def _is_of(self, part: Part, kinds: tuple[type[Any], ...]) -> bool:
        running = self._runner.aggregates[part[0]].entities[part[1]].find(part[2])
        return running is not None and isinstance(running.activity, kinds)

    def _takes_ms(self, span_ms: Range, *name: str | int) -> int:
        return self._chance.takes_ms(span_ms, *name, self._runner.life)

    def _at(self, part: Part, after_ms: int, what: Callable[..., None], *given: Any) -> None:
        """Schedule something for an activity, in its turn."""
        self._agenda.at(self._agenda.now_ms + after_ms, what, *given, order=turn(part))
