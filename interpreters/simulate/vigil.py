"""What is promised, asked at every step of a run: of what the step has changed, and of the whole.

``always`` and invariants are asked of every entity that changed and of its aggregate, ``always_step`` of every
transition; those of the system of all of it. What is possible (``sometimes``) is noted when it is seen. What has to
follow is owed from when it is due until it holds, and nothing may be owed at the end, when everything has been healed.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Event,
    Overview,
    Property,
    Reaction,
    Scene,
    System,
    Temper,
    always,
)


class Violation(Exception):
    """A promise that is broken: whose it is, its name, and of what it does not hold."""

    def __init__(self, owner: str, promise: str, of: str) -> None:
        super().__init__(f"{owner}: {promise}: not so of {of}")
        self.owner: Final = owner
        self.promise: Final = promise
        self.of: Final = of


class Debt(msgspec.Struct, frozen=True):
    """Something that has to follow: by which promise, of which subject."""

    owner: str
    promise: str
    of: str


class _Promises(msgspec.Struct, frozen=True):
    """The promises about one kind of subject."""

    owner: str
    always: tuple[Property[Any], ...]
    steps: tuple[Property[Any], ...]
    sometimes: tuple[Property[Any], ...]
    follows: tuple[Property[Any], ...]

    @property
    def is_asked(self) -> bool:
        """Whether there is anything to ask of a state."""
        return bool(self.always or self.sometimes or self.follows)


_NOTHING: Final = object()


def _sorted(owner: str, promises: Iterable[Property[Any]]) -> _Promises:
    every = tuple(promises)
    of = {temper: tuple(each for each in every if each.temper is temper) for temper in Temper}
    return _Promises(owner, of[Temper.ALWAYS], of[Temper.ALWAYS_STEP], of[Temper.SOMETIMES], of[Temper.LEADS_TO])


class Vigil:
    """Watches one run. ``seen`` are the names of what was promised to be possible and was seen, ``owed`` is due."""

    def __init__(self, system: System, more: Iterable[Property[Any]] = ()) -> None:
        """Gather what a system and all in it promise; ``more`` are promises of the system."""
        self.asked = 0
        self.seen: Final[set[tuple[str, str]]] = set()
        self.owed: dict[Debt, bool] = {}
        """What is due, in the order in which it came to be; whether it was so before everything was healed."""
        self._alone: Final = len(system.aggregates) == 1
        self._of_machines: Final = {
            (kind, name): _sorted(name, [*machine.properties, *map(_invariant, machine.invariants)])
            for kind, of in system.aggregates.items()
            for name, machine in of.machines.items()
        }
        self._of_types: Final = {kind: _sorted(kind, of.properties) for kind, of in system.aggregates.items()}
        every = [*system.properties, *more]
        self._of_system: Final = {
            sees: _sorted(system.name, [each for each in every if each.sees is sees])
            for sees in dict.fromkeys([None, *(each.sees for each in every)])
        }
        """By what promises of the system look at; None for those that look at all of it."""
        sorts = (*self._of_machines.values(), *self._of_types.values(), *self._of_system.values())
        self._given: Final = {(each.owner, promise.name): promise.given for each in sorts for promise in each.follows}
        self._overviews: Final[dict[Callable[[Any], Hashable], Overview]] = {}
        self._count = 0
        self._single: Final = {kind: self._alone and len(of.machines) == 1 for kind, of in system.aggregates.items()}

    def possible(self) -> Iterator[tuple[str, str]]:
        """Yield what is promised to be possible, each with its owner."""
        for each in (*self._of_types.values(), *self._of_system.values()):
            yield from ((each.owner, promise.name) for promise in each.sometimes)
        for (kind, _), each in self._of_machines.items():
            if self._single[kind]:
                yield from ((each.owner, promise.name) for promise in each.sometimes)

    def look(self, of: AggregateType, reaction: Reaction) -> None:
        """Ask what is promised of what has changed in an aggregate. Raises ``Violation``."""
        aggregate = reaction.aggregate
        kind = of.kind
        mine = self._of_types[kind]
        for step in reaction.transitions:
            promises = self._of_machines[kind, step.machine]
            if step.before is None and self._single[kind]:
                self._owe(promises, step.entity)
            for each in (promises, mine, *self._of_system.values()):
                for promise in each.steps:
                    self._hold(each.owner, promise, step, step.entity)
        for ref in reaction.changed:
            entity = aggregate.entities[ref]
            self._ask(self._of_machines[kind, ref.partition(":")[0]], entity, ref, follows=self._single[kind])
        self._ask(mine, aggregate, aggregate.name, follows=True)

    def look_around(self, changed: Aggregate, scene: Callable[[], Scene], under_way: int) -> None:
        """Ask what is promised of the whole, now that this aggregate has changed. Raises ``Violation``."""
        for sees, promises in self._of_system.items():
            if sees is None:
                if promises.is_asked:
                    self._ask(promises, scene(), promises.owner, follows=True)
                continue
            overview = self._overviews.get(sees) or Overview({}, -1)
            seen = sees(changed)
            if overview.under_way != under_way or overview.aggregates.get(changed.name, _NOTHING) != seen:
                overview = Overview({**overview.aggregates, changed.name: seen}, under_way)
                self._overviews[sees] = overview
                if len(overview.aggregates) == self._count:
                    self._ask(promises, overview, promises.owner, follows=True)

    def _ask(self, promises: _Promises, subject: Any, name: str, *, follows: bool) -> None:
        for promise in promises.always:
            self._hold(promises.owner, promise, subject, name)
        if not follows:
            return
        for promise in promises.sometimes:
            if (promises.owner, promise.name) not in self.seen and promise.holds(subject):
                self.seen.add((promises.owner, promise.name))
        for promise in promises.follows:
            self._follow(promises.owner, promise, subject, name)

    def _hold(self, owner: str, promise: Property[Any], subject: Any, name: str) -> None:
        self.asked += 1
        if not promise.holds(subject):
            raise Violation(owner, promise.name, name)

    def _follow(self, owner: str, promise: Property[Any], subject: Any, name: str) -> None:
        debt = Debt(owner, promise.name, name)
        if promise.holds(subject):
            self.owed.pop(debt, None)
        elif promise.when is not None and promise.when(subject):
            self.owed.setdefault(debt, False)

    def begin(self, names: Mapping[str, AggregateType]) -> None:
        """Owe what is promised to come in any case."""
        self._count = len(names)
        subjects = [(each, each.owner) for each in self._of_system.values()]
        subjects += [(self._of_types[of.kind], name) for name, of in names.items()]
        for promises, name in subjects:
            self._owe(promises, name)

    def _owe(self, promises: _Promises, name: str) -> None:
        """Owe what is promised to come in any case."""
        owed = (Debt(promises.owner, each.name, name) for each in promises.follows if each.when is None)
        self.owed.update(dict.fromkeys(owed, False))

    def heal(self) -> None:
        """Take note that everything is healed now: what is owed has to come; what is due later may go on for ever."""
        self.owed = dict.fromkeys(self.owed, True)

    def overdue(self) -> list[Debt]:
        """Return what has been owed since before everything was healed."""
        return [debt for debt, is_old in self.owed.items() if is_old]

    def pleas(self) -> frozenset[type[Event]]:
        """Return the events on which those promises rely, to be said at last, of which something is owed."""
        given = (fair.of for owed in self.overdue() for fair in self._given[owed.owner, owed.promise])
        return frozenset(each for each in given if isinstance(each, type) and issubclass(each, Event))


def _invariant(holds: Callable[[Any], bool]) -> Property[Any]:
    return always(holds.__name__.replace("_", " "), lambda entity: holds(entity.record))
