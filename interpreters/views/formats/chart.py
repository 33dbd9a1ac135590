"""A machine as a statechart: the common structure of SCXML and XState.

A table becomes a chart with the same transitions by these rules:

- *First fit.* A chart tries a state's own transitions first, in their order, and then those of the states around it; a
  table has one order. So a row from any state can stand with the region ``ANY``, around all states that are not final.
  That is correct only if no later row of the same event stands further in; otherwise the row is repeated in every
  state.
- *Staying is not entering again.* A row to its own state begins and ends nothing, so it has no target. A row that
  restarts timers enters its state again, if only timers of that state alone are declared there.
- *A final state ends a chart.* Rows from any state never leave a final state, and their effects there are omitted.
- *Guards, actions and computed durations are names.* The host of the chart supplies their functions.
- *Activities whose states overlap without nesting* begin again in each of their states, timers too.
- *Postponed events* exist in neither format, so a comment names them.
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
    """A transition out of a node. ``target`` None stays; ``guard`` None is no condition.

    It ``reenters`` if it goes from a state to the same state, and begins the timers of that state again.
    """

    event: str
    guard: str | None
    target: str | None
    effects: tuple[str, ...]
    reenters: bool = False


class Timer(msgspec.Struct, frozen=True):
    """A timer. ``delay`` is a number of milliseconds or the name of its function."""

    id: str
    event: str
    delay: int | str


class Invocation(msgspec.Struct, frozen=True):
    """An activity, and the names of the events that it may yield."""

    id: str
    activity: str
    yields: tuple[str, ...]


class Node(msgspec.Struct, frozen=True):
    """A state (no ``nodes``) or a region of several; ``initial`` is the id of its initial node."""

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
    """The whole chart. Its host supplies the functions in ``guards`` (with the row of each) and ``delays``."""

    name: str
    about: str
    initial: str
    nodes: tuple[Node, ...]
    guards: dict[str, Row[Any]]
    delays: tuple[str, ...]


def chart(machine: Machine[Any]) -> Chart:
    """Return the machine as a statechart.

    Raises ``ValueError`` for a row that restarts timers where an activity, or a timer of several states, goes on.
    """
    restarting = next((row for row in machine.rows if row.restart and not _may_reenter(machine, row)), None)
    if restarting is not None:
        message = f"machine {machine.name!r}: {restarting} has no equal in a statechart; its table can be printed"
        raise ValueError(message)
    return _Drawing(machine).chart()


class _Drawing:
    """The construction of one chart: the names so far, and the rows around all states."""

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
        """Yield the transitions of one state, without those that an earlier one makes unreachable."""
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
        effects = tuple(effect.__name__ for effect in row.effects)
        if row.restart and state is not None:
            return Arm(name_of(row.event), guard, self.names[state], effects, reenters=True)
        return Arm(name_of(row.event), guard, target, effects)

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
        """Return the initial node: the one with the machine's initial state in it, or else the first."""
        wanted = self.names[self.machine.initial.state]
        return next((node.id for node in nodes if wanted in ids(node)), nodes[0].id)


def _may_reenter(machine: Machine[Any], row: Row[Any]) -> bool:
    """Tell whether entering the states of the row again restarts their timers, and nothing else."""
    there = [span for span in machine.spans.values() if row.sources is None or span.states & row.sources]
    return row.sources is not None and all(isinstance(each.during, After) and len(each.states) == 1 for each in there)


def ids(node: Node) -> frozenset[str]:
    """Return the ids of a node and of all nodes in it."""
    return frozenset({node.id}).union(*(ids(each) for each in node.nodes))


def _around(machine: Machine[Any]) -> tuple[Row[Any], ...]:
    """Return the rows from any state that may stand around all others: they are last, and none inside is later."""
    around: list[Row[Any]] = []
    inside: set[type] = set()
    for row in reversed(machine.rows):
        if row.sources is None and row.target in machine.final and row.event not in inside:
            around.append(row)
        else:
            inside.add(row.event)
    return tuple(reversed(around))
