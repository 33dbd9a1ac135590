"""A replayed trace: a method for each cause of a step, and questions about the result."""

from collections.abc import Iterable, Sequence
from typing import Any, Final
from unittest import SkipTest

from lifefold.core.kernel import (
    START_MS,
    ActivityEnded,
    Created,
    Envelope,
    Event,
    Input,
    Machine,
    Opened,
    Refusal,
    RunnerRecovered,
    System,
    SystemStep,
    TimerFired,
    Transition,
    World,
    alone,
    replace,
)
from lifefold.interpreters.replay.changes import changes, entities
from lifefold.interpreters.replay.property_held import Way, is_kept, of_states, properties
from lifefold.interpreters.replay.renumbered import renumbered


class Replay:
    """A machine or a system, replayed step by step. The steps of a single machine need no aggregate and no entity.

    ``after_ms`` of a step is its distance from the step before it.
    """

    def __init__(
        self,
        target: Machine[Any] | System,
        opening: Iterable[tuple[str, Envelope]] = (),
        *,
        begin: World | None = None,
        commands: int | None = None,
    ) -> None:
        """Open the target, or begin in a world, such as one folded from a log.

        ``commands`` is the most operator commands; None for no limit.

        Raises ``SkipTest`` if an aggregate refuses its opening: the trace has no beginning any more.
        """
        system, openings = (target, dict(opening)) if isinstance(target, System) else alone(target)
        self.system: Final = system
        self._alone: Final = next(iter(openings), "")
        self._commands: Final = commands
        self._steps: Final[list[SystemStep]] = []
        self._mark: int | None = None
        self._lost = ""
        world = World(self.system, now_ms=START_MS) if begin is None else replace(begin, system=system, commands=0)
        for name, envelope in openings.items() if begin is None else ():
            begun = world.step(Input(name, replace(envelope, at_ms=START_MS)))
            if isinstance(begun, Refusal):
                raise SkipTest(f"{name} cannot begin any more: {begun.reason}")
            world, _ = begun
        self._worlds: Final = [world]

    @property
    def world(self) -> World:
        """The present state of the system."""
        return self._worlds[-1]

    @property
    def taken(self) -> Sequence[SystemStep]:
        """The steps so far."""
        return self._steps

    def moved(self) -> str:
        """Return the transitions of the last step, in words."""
        return _moves(self._steps[-1])

    def command(self, event: Event, aggregate: str = "", entity: str = "", *, after_ms: int = 0) -> None:
        """Give an operator command to an entity."""
        self._take(aggregate, Envelope(entity or self._alone, event, self.world.now_ms + after_ms))

    def report(self, slot: str, event: Event, aggregate: str = "", entity: str = "", *, after_ms: int = 0) -> None:
        """Let the activity of a slot report an event."""
        ref, at_ms = entity or self._alone, self.world.now_ms + after_ms
        self._take(aggregate, Envelope(ref, event, at_ms, slot, slot=slot))

    def timer(self, slot: str, aggregate: str = "", entity: str = "", *, after_ms: int = 0) -> None:
        """Let a timer elapse at its deadline, or later."""
        ref, at_ms = entity or self._alone, self.world.now_ms + after_ms
        self._take(aggregate, Envelope(ref, TimerFired(slot, -1), at_ms, "timer"))

    def confirmation(self, slot: str, aggregate: str = "", entity: str = "", *, after_ms: int = 0) -> None:
        """Let the end of an activity be confirmed."""
        ref, at_ms = entity or self._alone, self.world.now_ms + after_ms
        self._take(aggregate, Envelope(ref, ActivityEnded(slot, -1), at_ms, "engine"))

    def recovery(self, aggregate: str = "") -> None:
        """Let the runner return after a crash."""
        self._take(aggregate, Envelope("", RunnerRecovered(0), self.world.now_ms, "engine"))

    def message(self, event: Event, sender: str, receiver: str) -> None:
        """Let the first message from one aggregate to another arrive, which must be this one."""
        self._take(receiver, Envelope("", event, self.world.now_ms, sender, sender=sender))

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
        way = Way(self._commands, self._worlds, self._steps, mark)
        return all(is_kept(way, each) for each in found)

    def broken(self) -> list[str]:
        """Return the properties of states and transitions that did not hold on this trace, each with its owner."""
        way = Way(self._commands, self._worlds, self._steps, len(self._steps))
        return [f"{owner}: {each.property.name}" for owner, each in of_states(self.system) if not is_kept(way, each)]

    def can_go_on(self) -> bool:
        """Tell whether a step is possible, or none is needed any more."""
        if self._lost or self.world.in_flight or any(changes(self.world, self._commands)):
            return True
        return all(machine.settled(entity.record) for _, machine, entity in entities(self.world))

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

    def repeat(self, given: Input) -> str:
        """Give an input of another run, such as one of a log; return why it is not possible here, or nothing.

        Its numbers become those of this run. An impossible input changes nothing, and the trace is not lost.
        """
        came = self._stepped(given)
        if not isinstance(came, str):
            self._worlds.append(came[0])
            self._steps.append(came[1])
        return came if isinstance(came, str) else ""

    def _take(self, aggregate: str, envelope: Envelope) -> None:
        if self._may_go_on() and (why := self.repeat(Input(aggregate or self._alone, envelope))):
            self._lose(why)

    def _stepped(self, given: Input) -> tuple[World, SystemStep] | str:
        """Return the next world with its step, or why the input is not possible."""
        name, envelope = given
        begins = isinstance(envelope.event, Created | Opened)
        known = name in self.world.aggregates or (begins and name.partition("/")[0] in self.system.aggregates)
        found = renumbered(self.world, given)
        if isinstance(found, str):
            return found
        came = self.world.step(found) if known else f"there is no {name}"
        if isinstance(came, tuple):
            return came
        return f"{given.cause} {envelope.event!r}: {came.reason if isinstance(came, Refusal) else came}"

    def _may_go_on(self) -> bool:
        """Tell whether no step was refused. Raises ``SkipTest`` if one before the cycle was."""
        if self._lost and self._mark is None:
            raise SkipTest(f"the trace is lost after {len(self._steps)} steps, check again: {self._lost}")
        return not self._lost

    def _lose(self, why: str) -> None:
        if self._may_go_on():
            self._lost = why


def _moves(step: SystemStep) -> str:
    return "; ".join(filter(None, map(_moved, step.reaction.transitions)))


def _moved(step: Transition) -> str:
    if step.before is None or step.before.state is step.after.state:
        return ""
    return f"{step.before.state} → {step.after.state}"
