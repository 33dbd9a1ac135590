"""An exhaustive test harness: a change without an assertion fails the test.

A ``Harness`` gives inputs to a machine or a system in virtual time. After each, the test asserts the changes. The next
input, and the end, fail with the difference if a change was not asserted: of a field, an effect, an activity or a
timer. ``exhaustive`` relaxes it. (The idea is that of the TestStore of The Composable Architecture.)
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from difflib import get_close_matches
from types import TracebackType
from typing import Any, Final, NoReturn, Self, TypeVar

from lifefold.core.kernel import (
    ActivityEnded,
    Entity,
    Envelope,
    Event,
    Input,
    Machine,
    Phase,
    RunnerRecovered,
    Running,
    System,
    TimerFired,
)
from lifefold.effects import Activity, Effect
from lifefold.interpreters.called import called
from lifefold.interpreters.testing.account import ASPECTS, Account, Aspect
from lifefold.interpreters.testing.run import Opening, run_of
from lifefold.interpreters.testing.trace import Trace, changes, place, said, shown

T = TypeVar("T")

Name = str | type[Event] | type[Activity]
"""An activity or a timer, by its slot, its type, or the type of the timer's event."""

Going = Name | Activity
"""The same, or an activity with its fields."""


class Harness(AbstractContextManager["Harness"]):
    """Use it as a context: at its end everything must be asserted; ``finish`` checks the same.

    In a system, ``of=`` names an entity: the aggregate's name and, after a space, the entity's reference if the
    aggregate has several. ``to=`` names the recipient of an input in the same way.
    """

    def __init__(
        self,
        of: Machine[Any] | System,
        *,
        opening: Opening | None = None,
        exhaustive: bool | tuple[Aspect, ...] = True,
        now_ms: int = 0,
    ) -> None:
        """Begin; a system with its ``opening``. Its activities and effects must be asserted, its records need not.

        ``exhaustive`` is whether every change must be asserted, or which aspects. Raises ``ValueError`` for an unknown
        one.
        """
        self._aspects: Final = _aspects(exhaustive=exhaustive)
        self._run: Final = run_of(of, opening, now_ms)
        self._account: Final = Account(self._run, self._aspects)

    @property
    def trace(self) -> Trace:
        """All inputs so far."""
        return self._run.trace

    @property
    def now_ms(self) -> int:
        """The virtual time."""
        return self._run.world.now_ms

    def entity(self, of: str = "") -> Entity[Any]:
        """Return the present entity. Raises ``KeyError`` with the existing names."""
        return self._named(of)[2]

    def record(self, of: str = "") -> Any:
        """Return the present record of an entity."""
        return self.entity(of).record

    def send(self, event: Event, *, to: str = "", actor: str = "operator") -> None:
        """Give a command. A refusal has to be asserted."""
        _must_be_event(event)
        aggregate, ref, _ = self._named(to)
        self._take(aggregate, Envelope(ref, event, self.now_ms, actor))

    def report(self, event: Event, *, to: str = "", slot: Name = "", generation: int | None = None) -> None:
        """Let the activity that yields this event report it; ``generation`` is for one that is not the present one."""
        _must_be_event(event)
        aggregate, ref, entity = self._named(to)
        part = self._source(aggregate, entity, event, _slot(slot))
        number = part.generation if generation is None else generation
        self._take(aggregate, Envelope(ref, event, self.now_ms, part.slot, slot=part.slot, generation=number))

    def confirm(self, slot: Name = "", *, to: str = "") -> None:
        """Confirm the end of the activity that was asked to end."""
        aggregate, ref, entity = self._named(to)
        ending = [each for each in entity.running if each.phase is Phase.ENDING and _slot(slot) in {"", each.slot}]
        part = _only(ending, "no activity was asked to end", "name one by slot=")
        self._take(aggregate, Envelope(ref, ActivityEnded(part.slot, part.generation), self.now_ms, "engine"))

    def advance(self, ms: int) -> None:
        """Let time pass. Every timer that is due meanwhile elapses at its time, the earliest first."""
        _must_go_on(ms)
        self._settle()
        until_ms = self.now_ms + ms
        while due := sorted(self._due(until_ms), key=lambda each: each[0]):
            self._account.note(self._run.take(due[0][1]))
        self._run.world = self._run.world.later(until_ms)

    def deliver(self, sender: str = "", receiver: str = "") -> None:
        """Let the first message in flight arrive, from and to these aggregates if they are named."""
        self._settle()
        waiting = [
            each for each in self._run.world.next_messages() if sender in {"", each[0]} and receiver in {"", each[1]}
        ]
        channel = _only(waiting, "no message is in flight", "name them by sender= and receiver=")
        self._account.note(self._run.deliver(channel))

    def recover(self, down_ms: int = 0) -> None:
        """Let the runner return after a crash: every aggregate requests its activities and timers again."""
        _must_go_on(down_ms)
        self._settle()
        at_ms = self.now_ms + down_ms
        for name in dict.fromkeys(name for name, _, _ in self._run.world.running()):
            back = Envelope("", RunnerRecovered(down_ms), at_ms, "engine")
            self._account.note(self._run.take(Input(name, back)))

    def assert_changed(self, entity: str = "", /, *, of: str = "", **fields: object) -> None:
        """Assert that these fields of a record have changed since the last input, and their values.

        The entity may also be named without ``of=``, for a record that has a field of that name.
        """
        key, entity_now = self._keyed(entity or of)
        if entity and of:
            fields["of"] = of
        before = self._account.base.get(key)
        changed = changes(before, entity_now)
        for name, value in fields.items():
            now = _field(entity_now, name)
            if now != value:
                self._fail(f"{self._account.label(key)}{name} is {shown(now)}, not {shown(value)}")
            if before is not None and name not in changed:
                self._fail(f"{self._account.label(key)}{name} has not changed: it was {shown(now)} before")
            self._account.said.add((key, name))

    def assert_effects(self, *effects: Effect, of: str = "") -> None:
        """Assert the effects since the last input, in order, without those of activities and timers.

        A ``Tell`` is compared without its number. Unless effects are exhaustive, there may be others between them.
        """
        given = self._account.effects
        mine = [pair for pair in given if not of or pair[0] == of or pair[0].startswith(f"{of} ")]
        asked = [effect for _, effect in mine]
        rest = iter(asked)
        if asked != list(effects) and ("effects" in self._aspects or not all(each in rest for each in effects)):
            self._fail("\n".join(["asserted were", *_listed(effects), "asked for were", *_listed(asked)]))
        self._account.effects = [pair for pair in given if pair not in mine]

    def assert_running(self, *live: Going, ending: Iterable[Name] = (), of: str = "") -> None:
        """Assert the present activities and timers of an entity: running ones, and those that are ending.

        An activity is given by its name, or with its fields: ``CallGateway(cents=500)``. Unless this aspect is
        exhaustive, there may be more. An activity that has begun since the last input may then be given by its name
        alone.
        """
        key, entity = self._keyed(of)
        self._must_be_begun_with(key, entity, live)
        found = sorted((part.slot, str(part.phase)) for part in entity.running if part.phase is not Phase.WAITING)
        wanted = sorted([*((_slot(each), "live") for each in live), *((_slot(each), "ending") for each in ending)])
        missing = [f"- {slot} ({phase})" for slot, phase in wanted if (slot, phase) not in found]
        more = [f"+ {slot} ({phase})" for slot, phase in found if (slot, phase) not in wanted]
        if missing or (more and "running" in self._aspects):
            head = f"{self._account.label(key)}the activities are not those asserted (-, but +):"
            self._fail("\n".join([head, *missing, *more]))
        self._account.said.add((key, "running"))

    def _must_be_begun_with(self, key: str, entity: Entity[Any], live: Sequence[Going]) -> None:
        """Fail unless activities have the asserted fields, and all new ones were asserted with fields."""
        given = {_slot(each): each for each in live}
        before = self._account.base.get(key)
        running = () if before is None else before.running
        old = {(part.slot, part.generation) for part in running}
        for part in entity.running:
            wanted = given.get(part.slot)
            if part.activity is None or part.phase is not Phase.LIVE or wanted is None:
                continue
            if isinstance(wanted, Activity) and wanted != part.activity:
                self._fail(f"{self._account.label(key)}{part.activity!r} runs, not {wanted!r}")
            is_new = (part.slot, part.generation) not in old
            if not isinstance(wanted, Activity) and is_new and part.activity.__struct_fields__ and self._all_running:
                begun = f"{self._account.label(key)}{part.slot} has begun, and was asserted without its fields"
                self._fail(f"{begun}: assert_running({part.activity!r})")

    @property
    def _all_running(self) -> bool:
        return "running" in self._aspects

    def assert_waiting(self, *events: Event, of: str = "") -> None:
        """Assert the postponed events, in order."""
        key, entity = self._keyed(of)
        found = [each.event for each in entity.postponed]
        if found != list(events):
            self._fail(f"{self._account.label(key)}waiting is {found!r}, not {list(events)!r}")
        self._account.said.add((key, "waiting"))

    def assert_refused(self, kind: str = "", reason: str = "") -> None:
        """Assert that an input was refused, or a rule action: of this kind, with this text in the reason."""
        refusals = self._account.refusals
        for refusal in refusals:
            if kind in {"", refusal.kind} and reason in refusal.reason:
                refusals.remove(refusal)
                return
        found = "".join(f"\n  {each.kind}: {each.reason}" for each in refusals) or " nothing"
        self._fail(f"asserted was a refusal ({kind or 'any'}: {reason or 'any'}); refused was:{found}")

    def finish(self) -> None:
        """Fail unless every change was asserted, and every message delivered."""
        self._settle()
        if "running" in self._aspects and self._run.world.in_flight:
            messages = (f"  {a} tells {b}: {event!r}" for a, b, _, event in self.trace.in_flight)
            self._fail("\n".join(["messages were not delivered:", *messages]))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Finish, unless the test has failed already."""
        if kind is None:
            self.finish()

    def _take(self, aggregate: str, envelope: Envelope) -> None:
        self._settle()
        self._account.note(self._run.take(Input(aggregate, envelope)))

    def _settle(self) -> None:
        """Fail unless all changes were asserted."""
        missing = [f"  {each}" for each in self._account.unsaid()]
        if missing:
            self._fail("\n".join([f"not everything was asserted of: {self._account.inputs}", *missing]))
        self._account.clear()

    def _due(self, until_ms: int) -> Iterator[tuple[int, Input]]:
        for name, entity, part in self._run.world.running():
            if part.activity is None and part.deadline_ms <= until_ms:
                at_ms = max(part.deadline_ms, self.now_ms)
                fired = Envelope(entity.ref, TimerFired(part.slot, part.generation), at_ms, "timer")
                yield at_ms, Input(name, fired)

    def _named(self, of: str) -> tuple[str, str, Entity[Any]]:
        """Return an entity with its aggregate and reference; a name may be omitted if there is only one."""
        name, _, ref = of.partition(" ")
        every = [
            (a, r, entity) for a, each in self._run.world.aggregates.items() for r, entity in each.entities.items()
        ]
        found = [each for each in every if name in {"", each[0]} and ref in {"", each[1]}]
        if len(found) != 1:
            message = f"{of!r} does not name one entity; there are {', '.join(f'{a} {r}' for a, r, _ in every)}"
            raise KeyError(message)
        return found[0]

    def _keyed(self, of: str) -> tuple[str, Entity[Any]]:
        aggregate, ref, entity = self._named(of)
        return place(aggregate, ref), entity

    def _source(self, aggregate: str, entity: Entity[Any], event: Event, slot: str) -> Running:
        """Return the activity that an event comes from: one that yields it, and a running one if there is one."""
        machine = self._run.world.system.type_of(aggregate).machines[entity.ref.partition(":")[0]]
        going = [part for part in entity.running if part.activity is not None and slot in {"", part.slot}]
        able = [part for part in going if slot or type(event) in machine.spans[part.slot].during.yields]
        live = [part for part in able if part.phase is Phase.LIVE]
        return _only(live or able, f"no activity runs that yields {type(event).__name__}", "name one by slot=")

    def _fail(self, message: str) -> NoReturn:
        __tracebackhide__ = True
        raise AssertionError(f"{message}\n\n{self.trace}\n")


def _aspects(*, exhaustive: bool | tuple[Aspect, ...]) -> frozenset[Aspect]:
    if isinstance(exhaustive, bool):
        return frozenset(ASPECTS if exhaustive else ())
    unknown = [each for each in exhaustive if each not in ASPECTS]
    if unknown:
        message = f"exhaustive= takes True, False, or some of {', '.join(ASPECTS)}; not {', '.join(map(repr, unknown))}"
        raise ValueError(message)
    return frozenset(exhaustive)


def _must_be_event(given: Any) -> None:
    """Raise ``TypeError`` for a value that is not an event, such as the class of an event."""
    if isinstance(given, type) and issubclass(given, Event):
        message = f"an event is wanted, and {given.__name__} is {called(given)}; did you mean {given.__name__}()?"
        raise TypeError(message)
    if not isinstance(given, Event):
        message = f"an event is wanted; {given!r} is {called(given)}"
        raise TypeError(message)


def _must_go_on(ms: int) -> None:
    if ms < 0:
        message = f"time does not go back: found {ms} ms; accepted: 0 or more"
        raise ValueError(message)


def _field(entity: Entity[Any], name: str) -> Any:
    """Return a field of a record. Raises ``AttributeError`` with the existing names."""
    try:
        return getattr(entity.record, name)
    except AttributeError as error:
        there: tuple[str, ...] = entity.record.__struct_fields__
        localized = get_close_matches(name, there, n=1)
        meant = f"; did you mean {localized[0]!r}?" if localized else ""
        message = f"{type(entity.record).__name__} has no field {name!r}; there are {', '.join(there)}{meant}"
        raise AttributeError(message) from error


def _slot(name: Going) -> str:
    if isinstance(name, str):
        return name
    return type(name).__name__ if isinstance(name, Activity) else name.__name__


def _only(found: Sequence[T], none: str, several: str) -> T:
    """Return the only one. Raises ``ValueError`` if there is none, or more than one."""
    if len(found) != 1:
        message = f"there are {len(found)}: {several}" if found else none
        raise ValueError(message)
    return found[0]


def _listed(effects: Sequence[Effect]) -> list[str]:
    return [f"  {said(each)}" for each in effects] or ["  none"]
