"""A replayed trace: a method for each cause of a step, and questions about the result."""

from collections.abc import Iterable, Sequence
from typing import Any, Final
from unittest import SkipTest

from lifefold.core.kernel import (
    ActivityEnded,
    Cause,
    Entity,
    Envelope,
    Event,
    Machine,
    Phase,
    RunnerRecovered,
    System,
    TimerFired,
    Transition,
    alone,
    replace,
)
from lifefold.interpreters.replay.property_held import Way, is_kept, properties
from lifefold.interpreters.replay.world import BEGIN_MS, Taken, World, changes, entities, taken


class Retrace:
    """A machine or a system, replayed step by step. The steps of a single machine need no aggregate and no entity.

    ``after_ms`` of a step is its distance from the step before it.
    """

    def __init__(
        self,
        target: Machine[Any] | System,
        opening: Iterable[tuple[str, Envelope]] = (),
        *,
        commands: int | None = None,
    ) -> None:
        """Open the target. ``commands`` is the most operator commands; None for no limit.

        Raises ``SkipTest`` if an aggregate refuses its opening: the trace has no beginning any more.
        """
        system, openings = (target, dict(opening)) if isinstance(target, System) else alone(target)
        self.system: Final = system
        self._alone: Final = next(iter(openings), "")
        self._commands: Final = commands
        self._steps: Final[list[Taken]] = []
        self._mark: int | None = None
        self._lost = ""
        world = World({name: self.system.type_of(name).start(name) for name in openings}, {})
        for name, envelope in openings.items():
            begun = taken(self.system, world, name, Cause.COMMAND, replace(envelope, at_ms=BEGIN_MS))
            if isinstance(begun, str):
                raise SkipTest(f"{name} cannot begin any more: {begun}")
            world = begun[0]._replace(said=0)
        self._worlds: Final = [world]

    @property
    def world(self) -> World:
        """The present state of the system."""
        return self._worlds[-1]

    @property
    def taken(self) -> Sequence[Taken]:
        """The steps so far."""
        return self._steps

    def moved(self) -> str:
        """Return the transitions of the last step, in words."""
        return _moves(self._steps[-1])

    def command(self, event: Event, aggregate: str = "", entity: str = "", *, after_ms: int = 0) -> None:
        """Give an operator command to an entity."""
        self._take(aggregate, Cause.COMMAND, Envelope(entity or self._alone, event, self.world.now_ms + after_ms))

    def report(self, slot: str, event: Event, aggregate: str = "", entity: str = "", *, after_ms: int = 0) -> None:
        """Let the activity of a slot report an event."""
        ref, at_ms = entity or self._alone, self.world.now_ms + after_ms
        generation = self._generation(aggregate, ref, slot, Phase.LIVE)
        self._take(aggregate, Cause.REPORT, Envelope(ref, event, at_ms, slot, slot=slot, generation=generation))

    def timer(self, slot: str, aggregate: str = "", entity: str = "", *, after_ms: int = 0) -> None:
        """Let a timer elapse at its deadline, or later."""
        ref, at_ms = entity or self._alone, self.world.now_ms + after_ms
        found = self._entity(aggregate, ref)
        timer = None if found is None else found.find(slot)
        due_ms, generation = (at_ms, -1) if timer is None else (timer.deadline_ms, timer.generation)
        self._take(aggregate, Cause.TIMER, Envelope(ref, TimerFired(slot, generation), max(at_ms, due_ms), "timer"))

    def confirmation(self, slot: str, aggregate: str = "", entity: str = "", *, after_ms: int = 0) -> None:
        """Let the end of an activity be confirmed."""
        ref, at_ms = entity or self._alone, self.world.now_ms + after_ms
        generation = self._generation(aggregate, ref, slot, Phase.ENDING)
        self._take(aggregate, Cause.CONFIRMATION, Envelope(ref, ActivityEnded(slot, generation), at_ms, "engine"))

    def recovery(self, aggregate: str = "") -> None:
        """Let the runner return after a crash."""
        self._take(aggregate, Cause.RECOVERY, Envelope("", RunnerRecovered(0), self.world.now_ms, "engine"))

    def message(self, event: Event, sender: str, receiver: str) -> None:
        """Let the first message from one aggregate to another arrive, which must be this one."""
        waiting = self.world.under_way.get((sender, receiver), ())
        if not waiting or waiting[0].event != event:
            self._lose(f"{sender} does not tell {receiver} {event!r}")
            return
        first, now_ms = waiting[0], self.world.now_ms
        message = Envelope(first.entity, event, now_ms, sender, "", "", 0, sender, first.ordinal)
        self._take(receiver, Cause.MESSAGE, message)

    def goes_round(self) -> None:
        """Mark the beginning of the cycle: its steps follow, or none."""
        if self._may_go_on():
            self._mark = len(self._steps)

    def keeps(self, prop: str, of: str) -> bool:
        """Tell whether a property of a machine, a type of aggregates or the system held on this trace.

        A liveness property fails if it was due and holds in no world of the cycle, although the cycle is fair. Raises
        ``SkipTest`` if the property does not exist any more.
        """
        found = list(properties(self.system, prop, of))
        if not found:
            raise SkipTest(f"{of} does not have this property any more: {prop}")
        if self._lost and self._mark is not None:
            return True
        mark = len(self._steps) if self._mark is None else self._mark
        way = Way(self.system, self._commands, self._worlds, self._steps, mark)
        return all(is_kept(way, each) for each in found)

    def can_go_on(self) -> bool:
        """Tell whether a step is possible, or none is needed any more."""
        if self._lost or any(self.world.under_way.values()) or any(changes(self.system, self.world, self._commands)):
            return True
        return all(machine.settled(entity.record) for _, machine, entity in entities(self.system, self.world))

    def story(self) -> str:
        """Return the steps, a line each."""
        lines = ["what has happened:"]
        for number, step in enumerate(self._steps):
            if number == self._mark:
                lines.append("     and then, for ever:")
            place = " ".join(dict.fromkeys((step.aggregate, step.envelope.entity or step.aggregate)))
            lines.append(f"{number + 1:>3}. {place}: {step.cause} {step.envelope.event!r}  {_moves(step)}".rstrip())
        if self._lost:
            lines.append(f"     and then this is not possible: {self._lost}")
        elif self._mark == len(self._steps):
            lines.append("     and then nothing, for ever")
        return "\n".join(lines)

    def _take(self, aggregate: str, cause: Cause, envelope: Envelope) -> None:
        if not self._may_go_on():
            return
        came = taken(self.system, self.world, aggregate or self._alone, cause, envelope)
        if isinstance(came, str):
            self._lose(f"{cause} {envelope.event!r}: {came}")
        else:
            self._worlds.append(came[0])
            self._steps.append(came[1])

    def _may_go_on(self) -> bool:
        """Tell whether no step was refused. Raises ``SkipTest`` if one before the cycle was."""
        if self._lost and self._mark is None:
            raise SkipTest(f"the trace is lost after {len(self._steps)} steps, check again: {self._lost}")
        return not self._lost

    def _lose(self, why: str) -> None:
        if self._may_go_on():
            self._lost = why

    def _entity(self, aggregate: str, ref: str) -> Entity[Any] | None:
        found = self.world.aggregates.get(aggregate or self._alone)
        return None if found is None else found.entities.get(ref)

    def _generation(self, aggregate: str, ref: str, slot: str, phase: Phase) -> int:
        entity = self._entity(aggregate, ref)
        found = None if entity is None else entity.find(slot, phase)
        return -1 if found is None else found.generation


def _moves(step: Taken) -> str:
    return "; ".join(filter(None, map(_moved, step.reaction.transitions)))


def _moved(step: Transition) -> str:
    if step.before is None or step.before.state is step.after.state:
        return ""
    return f"{step.before.state} → {step.after.state}"
