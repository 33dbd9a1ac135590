"""The witness of an engine: what it has to do, and what it has done.

The witness sees every durable entry, every call of a handler, every record of performed effects and every answer to a
caller. It knows nothing of the engine's insides. Each guarantee below is checked at the moment it could first be
broken, and raises ``Violation``.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from lifefold.core.kernel import Reaction, Refusal
from lifefold.effects import Begin, CancelTimer, Effect, End, StartTimer, Tell
from lifefold.interpreters.search.crash_model import Fault
from lifefold.interpreters.simulate.inputs import Identity
from lifefold.interpreters.simulate.property_monitor import Violation
from lifefold.interpreters.simulate.scheduler import Part


class Guarantee(StrEnum):
    """What an engine guarantees besides the properties of a system, and besides ``Fault`` of the crash model."""

    IN_ORDER = "the effects of an aggregate are performed in their order"
    RECORDED = "an effect is recorded as performed after it is performed"
    REMAINS = "nothing remains of an activity whose end is confirmed"
    SHARED = "an activity begins when nothing remains of the one before it in its slot"
    ATTENDED = "every activity in the log has a handler"
    DELIVERED = "every message is in the log of its receiver when the engine is idle"
    ONCE = "an input with a key is in the log at most once"
    GIVEN = "every operator command in the log was given"
    ANSWERED = "an input is answered as accepted if and only if it is in the log"
    RULED = "the log has what the rules decide"
    KEPT = "a snapshot is the fold of its entries"
    RAISES = "the engine raises no error of its own"
    RESTS = "the engine comes to rest"


class Witness:
    """Watches the engines of one run, one after the other."""

    def __init__(self, system: str) -> None:
        """Take the name of the system."""
        self._system: Final = system
        self._effects: Final[dict[Identity, Effect]] = {}
        self._order: Final[dict[str, list[Identity]]] = {}
        self._places: Final[dict[Identity, int]] = {}
        self._performed: Final[dict[str, int]] = {}
        """By aggregate: the number of its effects that were performed, from the first one on."""
        self._past: dict[str, int] = {}
        """By aggregate: the version of which the log knew all effects performed when the present engine began."""
        self._by_this: Final[set[Identity]] = set()
        """The effects that the present engine has performed."""
        self._begun: Final[set[Part]] = set()
        self._confirmed: Final[set[Part]] = set()
        self._keys: Final[set[tuple[str, str]]] = set()
        self.again = 0
        """The number of effects that were performed again after a crash."""

    def broken(self, guarantee: str, of: str) -> Violation:
        """Return the violation of a guarantee."""
        return Violation(self._system, guarantee, of)

    def begin_engine(self, performed: Mapping[str, int]) -> None:
        """Note that another engine begins, with this record of performed effects."""
        self._past = dict(performed)
        self._by_this.clear()

    def entry(self, name: str, key: str, reaction: Reaction) -> None:
        """Note a durable entry of an aggregate. Raises ``Violation`` if its key was there before."""
        if key and (name, key) in self._keys:
            raise self.broken(Guarantee.ONCE, f"{name}, {key}")
        self._keys.add((name, key))
        version = reaction.aggregate.version
        for index, asked in enumerate(reaction.effects):
            match asked.effect:
                case Begin(slot=slot, generation=generation):
                    self._begun.add((name, asked.entity, slot, generation))
                case End() | StartTimer() | CancelTimer() | Tell():
                    pass
                case effect:
                    order = self._order.setdefault(name, [])
                    self._places[name, version, index] = len(order)
                    self._effects[name, version, index] = effect
                    order.append((name, version, index))

    def performing(self, identity: Identity, effect: Effect) -> None:
        """Note that a handler is called. Raises ``Violation`` if the effect may not be performed now."""
        name, version, _ = identity
        if self._effects.get(identity) != effect:
            raise self.broken(Fault.UNPERSISTED, _told(identity, effect))
        if version <= self._past.get(name, 0):
            raise self.broken(Fault.PAST, _told(identity, effect))
        if identity in self._by_this:
            raise self.broken(Fault.TWICE, _told(identity, effect))
        place, performed = self._places[identity], self._performed.get(name, 0)
        if place > performed:
            raise self.broken(Guarantee.IN_ORDER, _told(identity, effect))
        self.again += place < performed
        self._performed[name] = max(performed, place + 1)

    def performed(self, identity: Identity) -> None:
        """Note that a handler has returned."""
        self._by_this.add(identity)

    def recorded(self, performed: Mapping[str, int]) -> None:
        """Note a durable record of performed effects. Raises ``Violation`` if one of them was not performed."""
        for name, version in performed.items():
            for identity in self._unperformed(name):
                if identity[1] <= version:
                    raise self.broken(Guarantee.RECORDED, _told(identity, self._effects[identity]))
                break

    def _unperformed(self, name: str) -> Iterator[Identity]:
        return iter(self._order.get(name, ())[self._performed.get(name, 0) :])

    def must_have_performed(self) -> None:
        """Raise ``Violation`` if an effect of the log was never performed."""
        for name in self._order:
            for identity in self._unperformed(name):
                raise self.broken(Fault.LOST, _told(identity, self._effects[identity]))

    def began(self, part: Part, running: Iterator[Part]) -> None:
        """Note that the handler of an activity is called, while these run. Raises ``Violation`` if it may not be."""
        if part not in self._begun:
            raise self.broken(Fault.UNPERSISTED, _activity(part))
        if part in self._confirmed:
            raise self.broken(Guarantee.REMAINS, _activity(part))
        if any(each != part and each[:3] == part[:3] for each in running):
            raise self.broken(Guarantee.SHARED, _activity(part))

    def confirmed(self, part: Part, *, runs: bool) -> None:
        """Note that the log has the end of an activity. Raises ``Violation`` if it still runs."""
        if runs:
            raise self.broken(Guarantee.REMAINS, _activity(part))
        self._confirmed.add(part)

    def answered(self, name: str, key: str, outcome: Reaction | Refusal) -> None:
        """Note the answer to an input with a key. Raises ``Violation`` if the log says otherwise."""
        if isinstance(outcome, Refusal) and outcome.kind == "stopped":
            return
        is_accepted = isinstance(outcome, Reaction) or outcome.kind == "duplicate"
        self.told(name, key, is_accepted=is_accepted)

    def told(self, name: str, key: str, *, is_accepted: bool) -> None:
        """Note the answer to an input with a key. Raises ``Violation`` if the log says otherwise."""
        if is_accepted is not ((name, key) in self._keys):
            raise self.broken(Guarantee.ANSWERED, f"{name}, {key}")


def _told(identity: Identity, effect: Effect) -> str:
    name, version, index = identity
    return f"{name}, entry {version}, effect {index}: {effect!r}"


def _activity(part: Part) -> str:
    name, ref, slot, generation = part
    return f"{name}, {ref}: {slot} of generation {generation}"
