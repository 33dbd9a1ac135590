"""The effect of these rules on a log: names that are read otherwise, unreadable parts, and the record of a start.

``examined`` folds a whole log and changes nothing. ``Examined.sentences`` says the result to an operator.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from lifefold.core.kernel import Machine, System, broken, misfits
from lifefold.core.kernel.evolution import Field, Renamed, Upcast, name_of, old_name
from lifefold.core.kernel.forgotten import ForgottenActivity, ForgottenEffect, ForgottenEvent, ForgottenState
from lifefold.effects import Begin
from lifefold.interpreters.engine.ledger import Decision, Ledger
from lifefold.interpreters.engine.seam import Undone
from lifefold.interpreters.store import Entry


class Part(msgspec.Struct, frozen=True):
    """Entries one after the other that the same rules decided. ``begin_ms`` and ``end_ms`` are Unix time."""

    rules: str
    entries: int
    begin_ms: int
    end_ms: int


class Examined(msgspec.Struct, frozen=True):
    """A log as these rules see it. ``read_as`` and ``by_name`` count what has an old name, or a name alone."""

    now: str
    parts: tuple[Part, ...] = ()
    read_as: Mapping[str, int] = {}
    by_name: Mapping[str, int] = {}
    strange: tuple[str, ...] = ()
    """What these rules cannot take."""
    broken: tuple[str, ...] = ()
    """The properties that do not hold of the present state."""
    idle: tuple[str, ...] = ()
    """Activities and timers that older rules did not have, and that an entity's state now has."""

    @property
    def is_at_seam(self) -> bool:
        """Whether other rules decided the newest entry."""
        return bool(self.parts) and self.parts[-1].rules != self.now

    @property
    def can_go_on(self) -> bool:
        """Whether a runner of these rules starts on the log."""
        return not self.is_at_seam or not (self.strange or self.broken)

    def sentences(self) -> Iterator[str]:
        """Yield what an operator must know, a sentence each, with an indented line for each part."""
        if not self.parts:
            yield "The log has no entries."
            return
        yield f"The log has {_entries(sum(each.entries for each in self.parts))}:"
        for part in self.parts:
            by = f"by the rules {part.rules}" if part.rules else "by rules that it does not name"
            yield f"  {_entries(part.entries)} {by}, {_time(part.begin_ms)} to {_time(part.end_ms)}"
        if not self.is_at_seam:
            yield f"These are the rules of this program ({self.now}). There is nothing to upgrade."
            return
        yield f"The rules of this program are {self.now}."
        yield from _listed("Older names are read as they are called today:", map(_times, self.read_as.items()))
        yield from _listed("What this program no longer knows is kept by its name:", map(_times, self.by_name.items()))
        yield from _listed("These rules cannot take:", self.strange)
        if not self.strange:
            yield from _listed("These properties do not hold of the present state:", self.broken)
            if not self.broken:
                yield "These rules know all that the log needs, and their properties hold of its present state."
        yield from _listed("These do not run, and begin when their state is next entered:", self.idle)

    def conclusion(self, *, is_recorded: bool) -> str:
        """Return what follows: what was recorded, would be recorded, or has to be done first."""
        if not self.can_go_on:
            return f"A start is refused, and nothing is changed. {_ADVICE[0 if self.strange else 1]}"
        change = f"the change from the rules {self.parts[-1].rules or '(not named)'} to {self.now}"
        return f"Recorded: {change}." if is_recorded else f"A start records {change}. Nothing was changed."


_ADVICE: Final = (
    "End that with the version that wrote the log, or declare in the machine what became of it (evolved=).",
    "Go on with the version that wrote the log, or with rules whose properties allow this state.",
)
_SHOWN: Final = 20
"""The number of lines of one list."""


def examined(system: System, rules: str, entries: Iterable[Entry], performed: Mapping[str, int]) -> Examined:
    """Fold a log with the rules of a system, of this version. Raises ``LogMismatchError`` if it cannot be read."""
    ledger, undone = Ledger(system, rules=rules), Undone(performed)
    parts, by_name, read_as = list[Part](), Counter[str](), Counter[str]()
    begun = set[tuple[str, str, str]]()
    old = {kind: _old_names(of.machines.values()) for kind, of in system.aggregates.items()}
    for entry in entries:
        decision = next(iter(ledger.fold([entry])))
        undone.observe(decision)
        _extend(parts, entry)
        by_name.update(_forgotten(decision))
        begun.update(_begun(decision))
        read_as.update(_read_as(entry, old.get(entry.stream.partition("/")[0], {})))
    is_at_seam = ledger.is_at_seam
    strange = misfits(system, ledger.aggregates.values(), undone.effects()) if is_at_seam else ()
    return Examined(
        rules,
        tuple(parts),
        dict(read_as),
        dict(by_name),
        strange,
        broken(system, undone.state(ledger)) if is_at_seam and not strange else (),
        tuple(_idle(ledger, begun)) if is_at_seam and not strange else (),
    )


def _extend(parts: list[Part], entry: Entry) -> None:
    if parts and parts[-1].rules == entry.rules:
        last = parts.pop()
        parts.append(Part(last.rules, last.entries + 1, last.begin_ms, entry.at_ms))
    else:
        parts.append(Part(entry.rules, 1, entry.at_ms, entry.at_ms))


def _forgotten(decision: Decision) -> Iterator[str]:
    """Yield what an entry has by its name alone."""
    if isinstance(decision.envelope.event, ForgottenEvent):
        yield f"the event {decision.envelope.event.name}"
    for requested in decision.reaction.effects:
        effect = requested.effect
        if isinstance(effect, ForgottenEffect):
            yield f"the effect {effect.name}"
        elif isinstance(effect, Begin) and isinstance(effect.activity, ForgottenActivity):
            yield f"the activity {effect.activity.name}"
    for step in decision.reaction.transitions:
        entered: object = step.entered
        if isinstance(entered, ForgottenState):
            yield f"the state {entered} of {step.machine}"


def _begun(decision: Decision) -> Iterator[tuple[str, str, str]]:
    """Yield kind, machine and slot of all that runs after an entry."""
    for step in decision.reaction.transitions:
        for part in step.after.running:
            yield decision.reaction.aggregate.kind, step.machine, part.slot


def _idle(ledger: Ledger, begun: set[tuple[str, str, str]]) -> Iterator[str]:
    """Yield activities and timers of present states that never ran in this log: older rules did not have them."""
    for name, of in ledger.aggregates.items():
        kind = ledger.system.type_of(name)
        for ref, entity in of.entities.items():
            machine = kind.machine_of(ref)
            if machine is None:
                continue
            for slot, span in machine.spans.items():
                if entity.state in span.states and (of.kind, ref.partition(":")[0], slot) not in begun:
                    yield f"{slot} of {name}, {ref} in {entity.state}"


def _old_names(machines: Iterable[Machine[Any]]) -> dict[tuple[str, str], str]:
    """Return the sentences of old names: by the key of JSON that has the name, and the name."""
    found: dict[tuple[str, str], str] = {}
    for machine in machines:
        for each in machine.evolved:
            match each:
                case Renamed(was=was, now=now) if not isinstance(now, type):
                    found["state", was] = f"the state {was} as {now}"
                case Renamed(was=was, now=now):
                    found["type", was] = f"{was} as {now.__name__}"
                case Upcast(now=now):
                    found["type", old_name(each)] = f"{old_name(each)} as {' or '.join(kind.__name__ for kind in now)}"
                case Field(was=was, now=now, of=of):
                    where = "the record" if of is None else name_of(of)
                    into = f"is read as {now}" if now else "is left out"
                    found["", was] = f"the field {was} of {where} {into}"
                case _:
                    found["type", old_name(each)] = f"{old_name(each)}, which is gone"
    return found


def _read_as(entry: Entry, old: Mapping[tuple[str, str], str]) -> Iterator[str]:
    if old:
        seen = set[str]()
        for data in (entry.envelope, entry.outcome):
            seen.update(_named(msgspec.json.decode(data), old))
        yield from sorted(seen)


def _named(value: object, old: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield the sentences of the old names in a value of JSON."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            for name in ((key, inner), ("", key)):
                if isinstance(name[1], str) and (sentence := old.get(cast("tuple[str, str]", name))):
                    yield sentence
            yield from _named(inner, old)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _named(inner, old)


def _listed(head: str, lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield head
        yield from (f"  {line}" for line in found[:_SHOWN])
        if len(found) > _SHOWN:
            yield f"  and {len(found) - _SHOWN} more"


def _times(found: tuple[str, int]) -> str:
    what, count = found
    return f"{what} ({_entries(count)})"


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


def _time(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1_000))
