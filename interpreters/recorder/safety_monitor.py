"""Property monitors with less work: only what a finished step can break, and nothing twice.

``SparingMonitor`` finds the same as ``PropertyMonitor``. It evaluates a property of a small aggregate again only after
a step that changes a part which the property has read (``watched``).

``SafetyMonitor`` is that of an audit, and does still less:

- Liveness and reachability properties are left out, because a recorded run can break none of them.
- A large system is evaluated as a whole after ``SHARE`` times as many steps as it has entities.

A property without a localized form that is broken, and holds again before the next of these steps, is not noticed by
the ``SafetyMonitor``.
"""

from collections.abc import Container, Iterable
from typing import Any, Final

from lifefold.core.kernel import Aggregate, AggregateType, Property, PropertyKind, Reaction, System
from lifefold.interpreters.recorder.watched import EVERYTHING, VIEW, watched
from lifefold.interpreters.simulate import property_monitor
from lifefold.interpreters.simulate.property_monitor import PropertyMonitor, Violation

SHARE: Final = 4
"""A large system is evaluated as a whole after so many steps for each of its entities."""


class _Answers:
    """The properties of one aggregate that have held, and what each of them has read."""

    def __init__(self, properties: tuple[Property[Any], ...]) -> None:
        self._properties: Final = properties
        self._reads: Final[list[set[str]]] = [set() for _ in properties]
        self._readers: Final[dict[str, set[int]]] = {}
        self._last: Aggregate | None = None

    def broken(self, now: Aggregate, changed: tuple[str, ...]) -> Property[Any] | None:
        """Return the first property that does not hold; ``changed`` are the changed entities."""
        subject = watched(now)
        for place in sorted(self._due(now, changed)):
            subject.read.clear()
            if not self._properties[place].holds(subject):
                return self._properties[place]
            if subject.read != self._reads[place]:
                self._note(place, set(subject.read))
        self._last = now
        return None

    def _due(self, now: Aggregate, changed: tuple[str, ...]) -> set[int]:
        """Return the places of the properties that have read a part which is another one now."""
        last, readers = self._last, self._readers
        if last is None:
            return set(range(len(self._properties)))
        due = set(readers.get(EVERYTHING, ()))
        for ref in changed:
            due |= readers.get(ref, _NONE)
        if now.views is not last.views:
            for name, view in now.views.items():
                if view is not last.views[name]:
                    due |= readers.get(VIEW + name, _NONE)
        return due

    def _note(self, place: int, read: set[str]) -> None:
        for part in self._reads[place] - read:
            self._readers[part].discard(place)
        for part in read - self._reads[place]:
            self._readers.setdefault(part, set()).add(place)
        self._reads[place] = read


_NONE: Final[frozenset[int]] = frozenset()


class SparingMonitor(PropertyMonitor):
    """Watches a run as ``PropertyMonitor`` does, and evaluates no property of a small aggregate twice on the same."""

    def __init__(
        self,
        system: System,
        more: Iterable[Property[Any]] = (),
        kinds: Container[PropertyKind] = tuple(PropertyKind),
    ) -> None:
        """Gather the properties as ``PropertyMonitor`` does."""
        super().__init__(system, more, kinds)
        self._answers: Final[dict[str, _Answers]] = {}
        self._grown: Final[set[str]] = set()
        """The aggregates that have become large; an aggregate loses no entity."""

    def pass_over(self, aggregate: Aggregate) -> None:
        """Note an aggregate that has changed by a step that is not judged."""
        super().pass_over(aggregate)
        self._answers.pop(aggregate.name, None)

    def _look_in(self, of: AggregateType, reaction: Reaction) -> None:
        aggregate, mine = reaction.aggregate, self._of_types[of.kind]
        self._stale[aggregate.name] = None
        if aggregate.name in self._grown or len(aggregate.entities) > property_monitor.WHOLE:
            self._grown.add(aggregate.name)
            self._look_in_large(mine, reaction)
            return
        answers = self._answers.get(aggregate.name)
        if answers is None:
            answers = self._answers[aggregate.name] = _Answers(mine.always)
        self.asked += len(mine.always)
        broken = answers.broken(aggregate, reaction.changed)
        if broken is not None:
            raise Violation(mine.owner, broken.name, aggregate.name)
        self._follow(mine, aggregate, aggregate.name)


class SafetyMonitor(SparingMonitor):
    """Watches a recorded run for what breaks a safety property."""

    def __init__(self, system: System) -> None:
        """Gather the safety properties of a system and its parts."""
        super().__init__(system, kinds=(PropertyKind.ALWAYS, PropertyKind.ALWAYS_STEP))

    def _interval(self, entities: int) -> int:
        return 1 if entities <= property_monitor.WHOLE else entities * SHARE
