"""The breadth-first search: all reachable states, nearest first, each with the state before it.

It takes all states of a level together. The steps of an aggregate are looked up in the tables of its component (see
``component``), and arrays of steps make arrays of states. Reactions that are not in a table yet are computed on the
way.
"""

from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from lifefold.core.kernel import PropertyKind
from lifefold.interpreters.search.component import Component, LocalStep, Move
from lifefold.interpreters.search.findings import BrokenAt, Findings, Progress, Watch
from lifefold.interpreters.search.product_system import ProductSystem, StateRow
from lifefold.interpreters.search.rule_error import Place, RuleError
from lifefold.interpreters.search.state_set import Change, Numbers, StateSet, Words
from lifefold.interpreters.search.symmetry import Symmetry
from lifefold.interpreters.search.system_properties import SystemProperties

Halves = npt.NDArray[np.int32]

CHUNK_STATES: Final = 100_000
"""The most states that are processed together."""


class Graph(Findings):
    """All states, in the order in which they were reached.

    The steps of a state to other states, or with a restarted timer, are those from ``first[state]`` to before
    ``first[state + 1]``, if kept.
    """

    def __init__(self, product_system: ProductSystem) -> None:
        """Begin without states."""
        super().__init__(product_system)
        self.symmetry: Symmetry | None = None
        self.seen: Final = StateSet(product_system.width)
        self.parents: Final = array("q")
        self.first: Numbers = np.zeros(1, dtype=np.int64)
        self.targets: Halves = np.zeros(0, dtype=np.int32)
        self.labels: Halves = np.zeros(0, dtype=np.int32)

    @property
    def count(self) -> int:
        """The number of states that were reached."""
        return self.seen.count

    def world(self, state: int) -> StateRow:
        """Return a state by its number."""
        return self.seen.row(state)

    def chunks(self) -> Iterator[tuple[int, list[Numbers]]]:
        """Yield all states in chunks: the number of the first one, and their columns."""
        for begin in range(0, self.count, CHUNK_STATES):
            end = min(begin + CHUNK_STATES, self.count)
            yield begin, [self.seen.column(number, begin, end) for number in range(self.product_system.width)]

    def way(self, state: int) -> list[Move]:
        """Return a shortest trace to a state from the opening."""
        states = [state]
        while (parent := self.parents[states[-1]]) >= 0:
            states.append(parent)
        return self.moves(states[::-1]) if self.symmetry is None else self._moves(states, self.symmetry)

    def _moves(self, states: Sequence[int], symmetry: Symmetry) -> list[Move]:
        """Return the moves that end in the first of these states: each from the state that the next one represents."""
        found: list[Move] = []
        to = self.world(states[0])
        for state in states[1:]:
            images = symmetry.images(self.world(state))
            steps = (
                (move, image, after) for image in images for move, after, _ in self.product_system.successors(image)
            )
            move, to = next((move, image) for move, image, after in steps if after == to)
            found.append(move)
        return found[::-1]

    def taking(self, place: Place) -> int:
        """Return the state nearest to the opening in which an aggregate is about to accept a message."""
        queues = [number for number, each in enumerate(self.product_system.queues) if each[:1] == (place.message,)]
        waiting = np.isin(self.seen.column(len(self.product_system.components) + place.channel), queues)
        return int(np.flatnonzero(waiting & (self.seen.column(place.component) == place.local))[0])

    def nearest(self, component: int, locals_: Collection[int]) -> int:
        """Return the state nearest to the opening in which an aggregate is in one of these; -1 if there is none."""
        found = np.flatnonzero(np.isin(self.seen.column(component), np.fromiter(locals_, dtype=np.int64)))
        return int(found[0]) if found.size else -1


def explore(product_system: ProductSystem, *, tell: Callable[[Progress], None] | None = None) -> Graph:
    """Reach every state within the bounds."""
    return _Search(product_system, tell).run()


class _Table:
    """The steps of a component as arrays, without those on messages."""

    def __init__(self, component: Component) -> None:
        self._part = component
        self._first = array("q")
        self._count = array("q")
        self._steps: list[LocalStep] = []
        self._fields = tuple(array("q") for _ in range(4))
        self._outboxes: dict[tuple[tuple[int, int], ...], int] = {(): 0}
        self.wrong: dict[int, tuple[int, ...]] = {}

    def expand(self, locals_: Numbers) -> None:
        """Compute the steps of these states, unless they are known."""
        missing = len(self._part.states) - len(self._first)
        self._first.extend([-1] * missing)
        self._count.extend([0] * missing)
        for local in np.unique(locals_).tolist():
            if self._first[local] < 0:
                self._add(local)

    def _add(self, local: int) -> None:
        steps = self._part.steps(local)
        self._first[local] = len(self._fields[0])
        self._count[local] = len(steps)
        for step in steps:
            outbox = self._outboxes.setdefault(step.sent, len(self._outboxes))
            if step.wrong:
                self.wrong[len(self._fields[0])] = step.wrong
            for field, value in zip(self._fields, (step.to, outbox, step.said, step.label), strict=True):
                field.append(value)

    def steps(self, locals_: Numbers) -> tuple[Numbers, Numbers]:
        """Return the steps of states, one after the other, and for each the place of its state."""
        count = np.asarray(self._count)[locals_]
        rows = np.repeat(np.arange(len(locals_)), count)
        begins = np.repeat(np.cumsum(count) - count, count)
        return np.arange(len(rows)) - begins + np.asarray(self._first)[locals_][rows], rows

    def fields(self, steps: Numbers) -> tuple[Numbers, ...]:
        """Return the fields of each step: its target, its messages (by number), whether it is a command, its label."""
        return tuple(np.asarray(field)[steps] for field in self._fields)

    def outboxes(self) -> list[tuple[tuple[int, int], ...]]:
        """Return the messages of steps, by number."""
        return list(self._outboxes)


class _Batch(msgspec.Struct):
    """Steps of a chunk: the places of their states, their labels, and their changes, column by column."""

    rows: Numbers
    labels: Numbers
    changes: list[tuple[int, Change]]
    wrong: dict[int, tuple[int, ...]] = {}
    """The transition properties that a step breaks, by its place in the batch."""


def _after(columns: Sequence[Numbers], batch: _Batch) -> list[Numbers]:
    """Return the targets of the steps of a batch, column by column."""
    after = [column[batch.rows] for column in columns]
    for column, (which, _, new) in batch.changes:
        after[column][which] = new
    return after


class _Search:
    def __init__(self, product_system: ProductSystem, tell: Callable[[Progress], None] | None) -> None:
        self._product = product_system
        self._graph = Graph(product_system)
        self._watch = Watch(self._graph, tell)
        self._tables = [_Table(component) for component in product_system.components]
        self._level_end = 1
        self._counts: list[Numbers] = []
        self._targets: list[Halves] = []
        self._labels: list[Halves] = []
        judge = product_system.judge
        follows = any(prop.property.property_kind is PropertyKind.LEADS_TO for prop in judge.properties)
        self._keep_steps = follows and not product_system.bounds.symmetry
        self._scenes = SystemProperties(product_system)
        tempers = {number: judge.properties[number].property.property_kind for number in judge.of_system}
        self._of_system = [
            (number, property_kind is PropertyKind.SOMETIMES)
            for number, property_kind in tempers.items()
            if property_kind in {PropertyKind.ALWAYS, PropertyKind.SOMETIMES}
        ]

    def run(self) -> Graph:
        graph, product_system = self._graph, self._product
        beginning = product_system.initial()
        if product_system.bounds.symmetry:
            graph.symmetry = Symmetry(product_system, beginning)
        initial = [np.array([number], dtype=np.int64) for number in beginning]
        graph.seen.widen([int(number[0]) for number in initial])
        graph.seen.add(graph.seen.pack(initial))
        graph.parents.append(-1)
        graph.broken.update((prop, BrokenAt(0)) for prop in product_system.wrong_at_birth)
        try:
            self._judge(0)
            self._go_on()
        except (RuleError, KeyboardInterrupt) as why:
            graph.end(why)
        self._gather()
        graph.seconds = self._watch.seconds
        return graph

    def _go_on(self) -> None:
        """Explore all states, until there are no more or a limit is reached."""
        graph, begin = self._graph, 0
        while begin < graph.count and not graph.truncated:
            end = min(begin + CHUNK_STATES, self._level_end)
            self._look(begin, end)
            self._watch.report(graph.count - end)
            if end == self._level_end < graph.count:
                graph.levels.append(end)
                self._level_end = graph.count
            graph.truncated = self._watch.limit()
            begin = end

    def _look(self, begin: int, end: int) -> None:
        """Take all steps from the states from ``begin`` to before ``end``."""
        seen, components = self._graph.seen, self._product.components
        columns = [seen.column(number, begin, end) for number in range(self._product.width)]
        batches = [self._spontaneous(component.number, columns) for component in components]
        batches += [
            self._reception(channel, columns)
            for channel in range(len(self._product.channels))
            if columns[len(components) + channel].any()
        ]
        arrived = [self._arrive(begin, batch, after) for batch, after in self._taken(begin, end, columns, batches)]
        rows, targets = (np.concatenate(column) for column in ([r for r, _, _ in arrived], [t for _, t, _ in arrived]))
        leaving = np.bincount(rows[targets != begin + rows], minlength=end - begin)
        self._graph.stuck.extend((begin + np.flatnonzero(leaving == 0)).tolist())
        if self._keep_steps:
            order = np.argsort(rows, kind="stable")
            self._counts.append(np.bincount(rows, minlength=end - begin))
            self._targets.append(targets[order].astype(np.int32))
            self._labels.append(np.concatenate([labels for _, _, labels in arrived])[order].astype(np.int32))

    def _taken(
        self, begin: int, end: int, columns: Sequence[Numbers], batches: Sequence[_Batch]
    ) -> list[tuple[_Batch, list[Words]]]:
        """Return the targets of each batch, or their representatives."""
        seen, symmetry = self._graph.seen, self._graph.symmetry
        if symmetry is None:
            seen.widen(self._product.largest())
            words = seen.words(begin, end)
            return [(batch, self._apply(words, batch)) for batch in batches]
        stand = [symmetry.representatives(_after(columns, batch)) for batch in batches]
        seen.widen(self._product.largest())
        return [(batch, seen.pack(after)) for batch, after in zip(batches, stand, strict=True)]

    def _apply(self, words: Sequence[Words], batch: _Batch) -> list[Words]:
        after = [word[batch.rows] for word in words]
        for column, change in batch.changes:
            self._graph.seen.change(after, column, change)
        return after

    def _arrive(self, begin: int, batch: _Batch, after: list[Words]) -> tuple[Numbers, Numbers, Numbers]:
        """Add the targets of steps; return the place of the state, the target and the label of those that are kept."""
        graph = self._graph
        known = graph.count
        targets, firsts = graph.seen.add(after)
        sources = begin + batch.rows
        graph.parents.frombytes(sources[firsts].tobytes())
        graph.steps += len(targets)
        for place, properties in batch.wrong.items():
            for prop in properties:
                graph.broken.setdefault(prop, BrokenAt(int(sources[place]), int(targets[place])))
        self._judge(known)
        kept = targets != sources
        if self._product.restarting:  # the representative of a restarted timer is asked of the steps, not of the states
            kept |= np.isin(batch.labels, list(self._product.restarting))
        return batch.rows[kept], targets[kept], batch.labels[kept]

    def _spontaneous(self, number: int, columns: Sequence[Numbers]) -> _Batch:
        """Return the steps of an aggregate on inputs other than messages."""
        table, locals_ = self._tables[number], columns[number]
        table.expand(locals_)
        steps, rows = table.steps(locals_)
        to, outboxes, said, labels = table.fields(steps)
        if self._product.bounds.commands is not None:
            may = np.flatnonzero((said == 0) | (columns[-1][rows] < self._product.bounds.commands))
            steps, rows, to, outboxes, said, labels = (each[may] for each in (steps, rows, to, outboxes, said, labels))
        changes: list[tuple[int, Change]] = [(number, (slice(None), locals_[rows], to))]
        if self._product.bounds.commands is not None:
            speaking = np.flatnonzero(said)
            spoken = columns[-1][rows[speaking]]
            changes.append((self._product.width - 1, (speaking, spoken, spoken + 1)))
        changes += self._outbox_changes(table.outboxes(), outboxes, rows, columns)
        wrong = {
            place: table.wrong[step] for place, step in enumerate(steps.tolist()) if step in table.wrong
        } if table.wrong else {}  # fmt: skip
        return _Batch(rows, labels, changes, wrong)

    def _reception(self, channel: int, columns: Sequence[Numbers]) -> _Batch:
        """Return the steps in which the first message of a channel arrives."""
        product_system = self._product
        receiver = product_system.channels[channel][1]
        place = len(product_system.components) + channel
        rows = np.flatnonzero(columns[place])
        queues, locals_ = columns[place][rows], columns[receiver][rows]
        pairs, which = np.unique(np.stack([locals_, queues]), axis=1, return_inverse=True)
        outboxes: dict[tuple[tuple[int, int], ...], int] = {(): 0}
        fields: list[tuple[int, int, int, int]] = []
        wrong: dict[int, tuple[int, ...]] = {}
        every: list[list[int]] = pairs.T.tolist()
        for pair, (local, queue) in enumerate(every):
            messages = product_system.queues[queue]
            step = product_system.components[receiver].reception(local, channel, messages[0])
            if step.wrong:
                wrong[pair] = step.wrong
            outbox = outboxes.setdefault(step.sent, len(outboxes))
            fields.append((step.to, product_system.queue(messages[1:]), outbox, step.label))
        to, left, sent, labels = np.array(fields, dtype=np.int64).T[:, which.ravel()]
        changes: list[tuple[int, Change]] = [
            (receiver, (slice(None), locals_, to)),
            (place, (slice(None), queues, left)),
            *self._outbox_changes(list(outboxes), sent, rows, columns),
        ]
        broken = {
            row: wrong[pair] for row, pair in enumerate(which.ravel().tolist()) if pair in wrong
        } if wrong else {}  # fmt: skip
        return _Batch(rows, labels, changes, broken)

    def _outbox_changes(
        self, outboxes: Sequence[tuple[tuple[int, int], ...]], sent: Numbers, rows: Numbers, columns: Sequence[Numbers]
    ) -> Iterator[tuple[int, Change]]:
        """Yield the changes of the channels."""
        outboxes_in_use: list[int] = np.unique(sent[sent > 0]).tolist()
        for outbox in outboxes_in_use:
            which = np.flatnonzero(sent == outbox)
            messages: dict[int, tuple[int, ...]] = {}
            for channel, message in outboxes[outbox]:
                messages[channel] = (*messages.get(channel, ()), message)
            for channel, more in messages.items():
                place = len(self._product.components) + channel
                queues = columns[place][rows[which]]
                known, back = np.unique(queues, return_inverse=True)
                shorter: list[int] = known.tolist()
                longer = [self._product.queue((*self._product.queues[queue], *more)) for queue in shorter]
                yield place, (which, queues, np.array(longer, dtype=np.int64)[back.ravel()])

    def _judge(self, begin: int) -> None:
        """Judge the states from ``begin`` on: by the results of their components, and by the system's properties."""
        graph, judge = self._graph, self._product.judge
        if judge.wrong or judge.seen:
            columns = [graph.seen.column(component.number, begin) for component in self._product.components]
            for (component, local), properties in judge.wrong.items():
                for prop in properties:
                    if prop not in graph.broken and (found := np.flatnonzero(columns[component] == local)).size:
                        graph.broken[prop] = BrokenAt(begin + int(found[0]))
            for prop, places in judge.seen.items():
                for component, locals_ in places.items():
                    if prop not in graph.witnesses:
                        found = np.flatnonzero(np.isin(columns[component], list(locals_)))
                        if found.size:
                            graph.witnesses[prop] = begin + int(found[0])
        if self._of_system and begin < graph.count:
            self._judge_scenes(begin)

    def _judge_scenes(self, begin: int) -> None:
        graph = self._graph
        columns = [graph.seen.column(number, begin) for number in range(self._product.width)]
        for prop, possible in self._of_system:
            if prop not in graph.witnesses and prop not in graph.broken:
                found = np.flatnonzero(self._scenes.holds(prop, columns, begin) == possible)
                if found.size and possible:
                    graph.witnesses[prop] = begin + int(found[0])
                elif found.size:
                    graph.broken[prop] = BrokenAt(begin + int(found[0]))

    def _gather(self) -> None:
        """Join the steps of all chunks."""
        if self._keep_steps and self._counts:
            graph = self._graph
            graph.targets, graph.labels = np.concatenate(self._targets), np.concatenate(self._labels)
            graph.first = np.concatenate([[0], np.cumsum(np.concatenate(self._counts))])
