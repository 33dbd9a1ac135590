"""A machine as a statechart: the one structure that SCXML and XState both write down.

How a table becomes a chart, so that both take the same transitions:

* *First fit.* A chart looks at a state's own transitions first, in their order, and then at those of the states around
  it; a table has one order. So a row from any state stands with the region ``ANY``, around all states that are not
  final, only if no row of the same event that comes later stands further in; otherwise it is repeated in every state.
* *Staying is not entering again.* A row that leads to its own state begins and ends nothing, so it has no target.
* *A final state ends a chart.* What rows of any state do in a final state (they never leave it) is not said.
* *Guards, actions and computed durations are names.* Whoever runs the chart supplies what they mean.
* *Activities whose states overlap without nesting* are begun again by each of their states, timers too.
* *Postponed events* exist in neither format and are told to the reader only.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from lifefold.core.kernel import After, Does, Machine, Row, State
from lifefold.interpreters.views.outline import (
    Names,
    Region,
    condition_of,
    fixed_ms,
    in_words,
    name_of,
    pattern_of,
    postponed,
    regions,
)


class Arm(msgspec.Struct, frozen=True):
    """A transition out of a node. ``target`` None stays; ``guard`` None is no condition."""

    event: str
    guard: str | None
    target: str | None
    effects: tuple[str, ...]


class Timer(msgspec.Struct, frozen=True):
    """An event that happens by itself. ``delay`` is a number of milliseconds or the name of what computes it."""

    id: str
    event: str
    delay: int | str


class Invocation(msgspec.Struct, frozen=True):
    """An activity, and the names of the events it may yield."""

    id: str
    activity: str
    yields: tuple[str, ...]


class Node(msgspec.Struct, frozen=True):
    """A state (no ``nodes``) or a region of several; ``initial`` is the id of the node in it to begin with."""

    id: str
    title: str
    final: bool = False
    arms: tuple[Arm, ...] = ()
    timers: tuple[Timer, ...] = ()
    activities: tuple[Invocation, ...] = ()
    postponed: tuple[str, ...] = ()
    nodes: tuple["Node", ...] = ()
    initial: str = ""


class Chart(msgspec.Struct, frozen=True):
    """The whole chart. Whoever runs it supplies what is named in ``guards`` (with the row of each) and ``delays``."""

    name: str
    about: str
    initial: str
    nodes: tuple[Node, ...]
    guards: dict[str, Row[Any]]
    delays: tuple[str, ...]


def chart(machine: Machine[Any]) -> Chart:
    """Return the machine as a statechart. Raises ``ValueError`` for one with a row that restarts timers."""
    restarting = next((row for row in machine.rows if row.restart), None)
    if restarting is not None:
        message = f"machine {machine.name!r}: {restarting} has no equal in a statechart; its table can be printed"
        raise ValueError(message)
    return _Drawing(machine).chart()


class _Drawing:
    """The making of one chart: the names that were given out so far, and which rows stand around all states."""

    def __init__(self, machine: Machine[Any]) -> None:
        self.machine = machine
        self.names = Names(*machine.states)
        self.around = _around(machine)
        self.guards: dict[str, Row[Any]] = {}
        self.delays: list[str] = []

    def chart(self) -> Chart:
        machine = self.machine
        lives = tuple(state for state in machine.states if state not in machine.final)
        nodes = tuple(self.node(region) for region in regions(machine, lives))
        if self.around:
            arms = tuple(self.arm(row, None) for row in self.around)
            nodes = (Node(self.names.of("ANY", "ANY"), "ANY", arms=arms, nodes=nodes, initial=self.first(nodes)),)
        ends = tuple(Node(self.names[end], str(end), final=True) for end in machine.states if end in machine.final)
        nodes = (*nodes, *ends)
        delays = tuple(dict.fromkeys(self.delays))
        return Chart(machine.name, machine.about, self.first(nodes), nodes, self.guards, delays)

    def node(self, region: Region) -> Node:
        timers = tuple(self.timer(region, span.during) for span in region.spans if isinstance(span.during, After))
        activities = tuple(self.activity(region, span.during) for span in region.spans if isinstance(span.during, Does))
        if region.parts:
            nodes = tuple(self.node(part) for part in region.parts)
            title = f"during {region.title}"
            identifier = self.names.of(region.states, title)
            return Node(identifier, title, timers=timers, activities=activities, nodes=nodes, initial=self.first(nodes))
        state = region.states[0]
        return Node(
            self.names[state],
            str(state),
            arms=tuple(self.arms(state)),
            timers=timers,
            activities=activities,
            postponed=postponed(self.machine, state),
        )

    def arms(self, state: State) -> Iterator[Arm]:
        """Yield the transitions of one state, without those that an earlier one leaves nothing to."""
        closed: set[type] = set()
        for row in self.machine.rows:
            inside = state in row.sources if row.sources is not None else row not in self.around
            if inside and row.event not in closed:
                yield self.arm(row, state)
                closed |= {row.event} if not condition_of(row) else set()

    def arm(self, row: Row[Any], state: State | None) -> Arm:
        guard = None
        if condition_of(row):
            test = row.pattern.test if row.pattern is not None else None
            of = f"{name_of(row.event)} " if pattern_of(row) else ""
            guard = self.names.of(("guard", test, row.when), of + condition_of(row))
            self.guards.setdefault(guard, row)
        target = None if row.target is None or row.target is state else self.names[row.target]
        return Arm(name_of(row.event), guard, target, tuple(effect.__name__ for effect in row.effects))

    def timer(self, region: Region, timer: After[Any]) -> Timer:
        identifier = self.names.of(("timer", timer.slot, region.states), timer.slot)
        return Timer(identifier, name_of(timer.event), self.delay(timer))

    def delay(self, timer: After[Any]) -> int | str:
        fixed = fixed_ms(timer)
        if fixed is not None:
            return fixed
        name = self.names.of(("delay", timer.duration_ms), in_words(timer.duration_ms))
        self.delays.append(name)
        return name

    def activity(self, region: Region, activity: Does[Any]) -> Invocation:
        identifier = self.names.of(("activity", activity.slot, region.states), activity.slot)
        return Invocation(identifier, activity.slot, tuple(map(name_of, activity.yields)))

    def first(self, nodes: tuple[Node, ...]) -> str:
        """Return the node to begin with: the one with the machine's initial state in it, or else the first."""
        wanted = self.names[self.machine.initial.state]
        return next((node.id for node in nodes if wanted in ids(node)), nodes[0].id)


def ids(node: Node) -> frozenset[str]:
    """Return the ids of a node and of all that is in it."""
    return frozenset({node.id}).union(*(ids(each) for each in node.nodes))


def _around(machine: Machine[Any]) -> tuple[Row[Any], ...]:
    """Return the rows from any state that may stand around all others: they end the chart, none inside is later."""
    around: list[Row[Any]] = []
    inside: set[type] = set()
    for row in reversed(machine.rows):
        if row.sources is None and row.target in machine.final and row.event not in inside:
            around.append(row)
        else:
            inside.add(row.event)
    return tuple(reversed(around))
