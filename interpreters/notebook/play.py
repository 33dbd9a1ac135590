"""A machine or a system, played by hand: a tree of worlds, in which each input leads to one more.

A ``Play`` is a value. Every move returns another ``Play``, which keeps all branches. It needs no front end: a widget,
a test and a picture show the same value.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from lifefold.core.kernel import (
    START_MS,
    Input,
    LifecycleEvent,
    Machine,
    Record,
    Refusal,
    System,
    SystemStep,
    World,
    alone,
    journal,
    replace,
)
from lifefold.interpreters.notebook.history import History
from lifefold.interpreters.report.trace import Trace, kernel_words, placed
from lifefold.interpreters.search.opening import Opening, opened

MOST: Final = 40
"""The most inputs that the text of a play lists."""


class Node(NamedTuple):
    """One world of the tree: the number of the node before it, the step that led here (None: the beginning)."""

    before: int
    step: SystemStep | None
    world: World


class Play(msgspec.Struct, frozen=True):
    """A tree of worlds, and the present one. ``nodes[0]`` is the beginning; ``now`` is the number of a node."""

    subject: Machine[Any] | System
    opening: tuple[Input, ...]
    nodes: tuple[Node, ...]
    now: int = 0

    @classmethod
    def of(cls, subject: Machine[Any] | System, opening: Any = ()) -> "Play":
        """Begin to play. A system needs its opening. Raises ``ValueError`` for an opening that is refused."""
        if isinstance(subject, Machine):
            system, first = alone(subject)
            pairs: Opening = tuple(first.items())
        else:
            system, pairs = subject, opened(subject, opening)
        inputs = tuple(Input(name, replace(envelope, at_ms=START_MS)) for name, envelope in pairs)
        world = World(system, now_ms=START_MS)
        for each in inputs:
            world, _ = _taken(world, each)
        return cls(subject, inputs, (Node(0, None, world),))

    @classmethod
    def fork(cls, history: History, inputs: int | None = None) -> "Play":
        """Begin after so many inputs of a history, or after all of them: what could have happened from there.

        Raises ``IndexError`` for more inputs than there are.
        """
        count = len(history) if inputs is None else inputs
        if not 0 <= count <= len(history):
            raise IndexError(f"there is no input {count}; the last one is {len(history)}")
        given = tuple(Input(each.entry.stream, each.envelope) for each in history[:count])
        world = World(history.system)
        for each in given:
            world, _ = _taken(world, each)
        return cls(history.system, given, (Node(0, None, world),))

    @property
    def world(self) -> World:
        """The present world."""
        return self.nodes[self.now].world

    def choices(self, later_ms: int = 0) -> tuple[Input, ...]:
        """Return the enabled inputs: those that are possible, now or so much later, and that the rules accept."""
        world = self.world
        return tuple(dict.fromkeys(each for each in world.choices(later_ms) if _is_enabled(world, each)))

    def give(self, given: Input) -> "Play":
        """Give an input. An input that was given here before leads to its branch. Raises ``ValueError`` if refused."""
        for number in self.branches():
            step = self.nodes[number].step
            if step is not None and step.given == given:
                return self.at(number)
        world, step = _taken(self.world, given)
        return replace(self, nodes=(*self.nodes, Node(self.now, step, world)), now=len(self.nodes))

    def back(self) -> "Play":
        """Return to the world before the last input; the branch is kept. The beginning stays where it is."""
        return self.at(self.nodes[self.now].before)

    def at(self, number: int) -> "Play":
        """Go to a node. Raises ``IndexError`` if there is no such node."""
        if not 0 <= number < len(self.nodes):
            raise IndexError(f"there is no node {number}; the last one is {len(self.nodes) - 1}")
        return replace(self, now=number)

    def branches(self) -> tuple[int, ...]:
        """Return the numbers of the nodes after the present one: the inputs that were tried here."""
        return tuple(n for n, each in enumerate(self.nodes) if each.before == self.now and each.step is not None)

    def path(self) -> tuple[SystemStep, ...]:
        """Return the steps from the beginning to the present world."""
        steps: list[SystemStep] = []
        node = self.nodes[self.now]
        while node.step is not None:
            steps.append(node.step)
            node = self.nodes[node.before]
        return tuple(reversed(steps))

    def trace(self) -> Trace:
        """Return the path as a trace, as a check reports one."""
        entities = (
            (placed(name, ref), entity.record)
            for name, aggregate in self.world.aggregates.items()
            for ref, entity in aggregate.entities.items()
        )
        path = self.path()
        return Trace(path, begins=() if path else tuple(entities))

    def as_journal(self) -> tuple[LifecycleEvent, ...]:
        """Return the journal of the path: one event for each transition."""
        return tuple(journal(step.aggregate, each) for step in self.path() for each in step.reaction.transitions)

    def records(self) -> tuple[tuple[str, str], ...]:
        """Return the entities of the present world in words, each with its state and the fields without defaults."""
        return tuple(
            (placed(name, ref), _record(entity.record))
            for name, aggregate in self.world.aggregates.items()
            for ref, entity in sorted(aggregate.entities.items())
        )

    def effects(self) -> tuple[str, ...]:
        """Return the effects of the last step in words."""
        step = self.nodes[self.now].step
        return () if step is None else tuple(repr(each.effect) for each in step.reaction.effects)

    def messages(self) -> tuple[str, ...]:
        """Return the messages in flight in words, in the order in which they were sent."""
        flying = self.world.in_flight.items()
        return tuple(f"{sender} → {receiver}: {tell.event!r}" for (sender, receiver, _), tell in flying)

    def tree(self) -> tuple[str, ...]:
        """Return a line for each node, indented by its depth; the present one is marked."""
        return tuple(self._tree(0, 0))

    def text(self) -> str:
        """Return everything about the present world as text: records, effects, messages, inputs, tree."""
        choices = [f"{number}. {words(each)}" for number, each in enumerate(self.choices())]
        more = [f"… {len(choices) - MOST} more"] if len(choices) > MOST else []
        parts: dict[str, Sequence[str]] = {
            "records": [f"{place}: {record}" for place, record in self.records()],
            "effects of the last step": self.effects(),
            "messages in flight": self.messages(),
            "enabled inputs": [*choices[:MOST], *more],
            "played": self.tree(),
        }
        return "\n".join(_sections(parts))

    def _tree(self, number: int, depth: int) -> Iterator[str]:
        here = self.at(number)
        step = here.nodes[number].step
        said = "the beginning" if step is None else words(step.given)
        yield f"{'→' if number == self.now else ' '} {'  ' * depth}{number}. {said}"
        after = here.branches()
        for each in after:
            # Only a fork indents, so that a long play stays narrow.
            yield from self._tree(each, depth + (len(after) > 1))


def words(given: Input) -> str:
    """Return an input in one line: its entity, its source and its event."""
    envelope = given.envelope
    place = placed(given.aggregate, envelope.entity)
    source = envelope.sender or envelope.slot or envelope.actor
    return f"{place}: {kernel_words(envelope.event) or f'{source}: {envelope.event!r}'}"


def _record(record: Record) -> str:
    """Return the state, and the other fields that differ from their defaults."""
    fields, defaults = record.__struct_fields__, record.__struct_defaults__
    usual = dict(zip(fields[len(fields) - len(defaults) :], defaults, strict=True))
    other = {name: getattr(record, name) for name in fields if name != "state"}
    found = [f"{name}={value!r}" for name, value in other.items() if name not in usual or usual[name] != value]
    return ", ".join([str(record.state), *found])


def _is_enabled(world: World, given: Input) -> bool:
    outcome = world.outcome(given)
    return not isinstance(outcome, Refusal) and (outcome.refused is None or bool(given.envelope.sender))


def _taken(world: World, given: Input) -> tuple[World, SystemStep]:
    stepped = world.step(given)
    if isinstance(stepped, Refusal):
        message = f"{given.aggregate} refuses {type(given.envelope.event).__name__}: {stepped.reason}"
        raise ValueError(message)  # noqa: TRY004 - the input has the wrong value, not the wrong type
    return stepped


def _sections(parts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for head, lines in parts.items():
        if lines:
            yield f"{head}:"
            yield from (f"  {line}" for line in lines)
