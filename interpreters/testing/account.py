"""The changes in a test that were not asserted yet, and their description."""

from collections.abc import Iterator
from typing import Any, Final, Literal

from lifefold.core.kernel import Entity, Refusal, replace
from lifefold.effects import Effect, Tell
from lifefold.interpreters.testing.run import Run
from lifefold.interpreters.testing.trace import DERIVED, Taken, changes, going_on, place, said, shown, what

Aspect = Literal["state", "effects", "running"]
"""An aspect that a test must assert completely: records and postponed events; effects; activities and messages."""

ASPECTS: Final[tuple[Aspect, ...]] = ("state", "effects", "running")


class Account:
    """The changes since the last input. ``base`` has the entities before it, ``said`` the asserted fields."""

    def __init__(self, run: Run, asked: frozenset[Aspect]) -> None:
        """Begin after the opening: its activities and effects must be asserted; records need not."""
        self.base: dict[str, Entity[Any]] = {key: replace(each, running=()) for key, each in entities(run)}
        self.effects: list[tuple[str, Effect]] = []
        self.refusals: list[Refusal] = []
        self.said: set[tuple[str, str]] = set()
        self._run: Final = run
        self._asked: Final = asked
        self._inputs: list[Taken] = []
        for taken in run.steps:
            self.note(taken)

    def note(self, taken: Taken) -> None:
        """Add the changes of an input."""
        self._inputs.append(taken)
        if isinstance(taken.outcome, Refusal):
            self.refusals.append(taken.outcome)
            return
        self.refusals += taken.outcome.refusals
        for asked in taken.effects:
            if not isinstance(asked.effect, DERIVED):
                effect = replace(asked.effect, ordinal=0) if isinstance(asked.effect, Tell) else asked.effect
                self.effects.append((place(taken.aggregate, asked.entity), effect))

    def clear(self) -> None:
        """Accept all changes."""
        self.base = dict(entities(self._run))
        self.effects, self.refusals, self.said, self._inputs = [], [], set(), []

    @property
    def inputs(self) -> str:
        """Return the inputs since the last assertion, in words."""
        return ", then ".join(what(each.envelope) for each in self._inputs)

    def unsaid(self) -> Iterator[str]:
        """Yield the changes without an assertion, and in any case the refusals."""
        yield from (f"refused, {each.kind}: {each.reason}" for each in self.refusals)
        for key, entity in entities(self._run):
            before = self.base.get(key)
            if "state" in self._asked:
                yield from (self.label(key) + line for line in self._fields(key, before, entity))
            if "running" in self._asked and (key, "running") not in self.said:
                yield from (self.label(key) + line for line in parts(before, entity))
        if "effects" in self._asked:
            yield from (f"{self.label(key)}effect {said(effect)}" for key, effect in self.effects)

    def _fields(self, key: str, before: Entity[Any] | None, entity: Entity[Any]) -> Iterator[str]:
        """Yield the changed fields of a record, without the time of a clocked one, which the kernel sets."""
        clocked = "at_ms" in entity.record.__struct_fields__
        for name, (was, now) in changes(before, entity).items():
            if (key, name) not in self.said and not (clocked and name == "at_ms"):
                yield f"{name} {shown(was)} → {shown(now)}"
        waiting = [[each.event for each in (before.postponed if before else ())], [e.event for e in entity.postponed]]
        if waiting[0] != waiting[1] and (key, "waiting") not in self.said:
            yield f"waiting {waiting[0]!r} → {waiting[1]!r}"

    def label(self, key: str) -> str:
        """Return the name of an entity in a message: empty, if it is the only one."""
        return "" if len(list(entities(self._run))) == 1 else f"{key}: "


def entities(run: Run) -> Iterator[tuple[str, Entity[Any]]]:
    """Yield all entities with their names."""
    for name, aggregate in run.world.aggregates.items():
        for ref, entity in aggregate.entities.items():
            yield place(name, ref), entity


def parts(before: Entity[Any] | None, after: Entity[Any]) -> Iterator[str]:
    """Yield the activities and timers that have ended, and those that have begun."""
    old, new = {} if before is None else going_on(before), going_on(after)
    yield from (f"- {each}" for each in old if each not in new)
    yield from (f"+ {each}" for each in new if each not in old)
