"""The words of a table: ``row(source, Event, target, action, when=guard)``, ``does``, ``after``, ``ANY``, ``STAY``.

A row means: in any of the ``source`` states, on this event, and if the guard agrees, run ``action`` and go to
``target``. The first row that fits wins, so an unguarded row ends the list for its state and event. A *pattern* names a
variant of an event, as the documents do with ``SessionExited(Error)``. It is a guard that reads the event alone.

The effects that an action may return are declared by its annotation, ``-> Step[Session, LogFatal]``. Type checkers
verify it, and tables and diagrams print it.
"""

import typing
from collections.abc import Callable, Iterable
from functools import lru_cache
from types import UnionType
from typing import Any, Generic, Literal, Never, TypeVar

import msgspec

from lifefold.core.kernel.record import Event, Record, State
from lifefold.core.kernel.shown import shown
from lifefold.core.kernel.step import Step
from lifefold.effects import Activity, Effect

R = TypeVar("R", bound=Record)
E = TypeVar("E", bound=Event)


class AnyState(msgspec.Struct, frozen=True):
    """The source of a row that holds in every state.

    >>> from lifefold import ANY, Event, State, row
    >>> class Door(State):
    ...     SHUT = "Shut"
    ...     BROKEN = "Broken"
    >>> class Smashed(Event, frozen=True): ...
    >>> row(ANY, Smashed, Door.BROKEN)
    <row(ANY, Smashed, Broken)>
    """


ANY = AnyState()
"""Every state of the machine, final ones included."""


class Stays(msgspec.Struct, frozen=True):
    """The target of a row that leaves the state as it is.

    >>> from lifefold import STAY, Event, State, row
    >>> class Door(State):
    ...     SHUT = "Shut"
    >>> class Knocked(Event, frozen=True): ...
    >>> row(Door.SHUT, Knocked, STAY)
    <row(Shut, Knocked, (same))>
    """


STAY = Stays()
"""The present state of the record: the event changes other fields only."""

Source = State | Iterable[State] | AnyState


class Pattern(msgspec.Struct, Generic[E], frozen=True):
    """A variant of an event: those for which ``test`` holds. ``label`` is what tables print in the parentheses."""

    event: type[E]
    label: str
    test: Callable[[E], bool]


class Row(msgspec.Struct, Generic[R], frozen=True):
    """One line of a transition table. ``sources`` is None for ``ANY``, ``target`` for ``STAY``. Made by ``row``.

    With ``restart`` the row restarts the timers that continue beyond it. A row from ``ANY`` without some states, made
    by a profile, is still ``everywhere``: it includes states that are added later.
    """

    sources: frozenset[State] | None
    event: type[Event]
    target: State | None
    action: Callable[[R, Any], Step[R, Effect]] | None = None
    when: Callable[[R, Any], bool] | None = None
    pattern: Pattern[Any] | None = None
    restart: bool = False
    everywhere: bool = False

    @property
    def target_label(self) -> str:
        """The name of the target; ``(same)`` if the state does not change."""
        return "(same)" if self.target is None else str(self.target)

    @property
    def source_label(self) -> str:
        """``ANY``, or the names of the sources."""
        return "ANY" if self.sources is None else " | ".join(sorted(self.sources))

    @property
    def event_label(self) -> str:
        """The event as a document's table spells it: ``SessionExited(Error)``, ``PromptReady(prompt)``."""
        return self.event.label() if self.pattern is None else f"{self.event.__name__}({self.pattern.label})"

    @property
    def unguarded(self) -> bool:
        """Whether the row is always taken for its event: it has neither a pattern nor a guard."""
        return self.pattern is None and self.when is None

    @property
    def effects(self) -> tuple[type[Effect], ...]:
        """The effects that the action may return, from its annotation."""
        return () if self.action is None else declared(self.action, 1, Effect)

    def __str__(self) -> str:
        """Return the row as a line of its table."""
        when = f" when {self.when.__name__}" if self.when else ""
        restart = ", restart" if self.restart else ""
        return f"row({self.source_label}, {self.event_label}, {self.target_label}{when}{restart})"

    def __repr__(self) -> str:
        """Return the row as a line of its table, on one short line."""
        return shown(str(self))

    def goes(self, state: State) -> State:
        """Return the target of the row from one of its sources."""
        return state if self.target is None else self.target


def row(  # noqa: PLR0913 - the parts of a row, each with its name
    source: Source,
    event: type[E] | Pattern[E],
    target: State | Stays,
    action: Callable[[R, E], Step[R, Effect]] | None = None,
    *,
    when: Callable[[R, E], bool] | None = None,
    restart: bool = False,
) -> Row[R]:
    """Write one line of the table. An action or a guard for another record or event does not type-check.

    A row back to its own state leaves the state's timers as they are. With ``restart`` they begin again, with the
    durations of that time; so do the timers that the source and the target have in common.

    >>> from lifefold import Event, State, row
    >>> class Door(State):
    ...     OPEN = "Open"
    ...     SHUT = "Shut"
    >>> class Opened(Event, frozen=True): ...
    >>> row(Door.SHUT, Opened, Door.OPEN)
    <row(Shut, Opened, Open)>
    """
    pattern = event if isinstance(event, Pattern) else None
    kind = event.event if isinstance(event, Pattern) else event
    to, sources = None if isinstance(target, Stays) else target, states(source)
    return Row(sources, kind, to, action, when, pattern, restart, everywhere=sources is None)


def states(source: Source) -> frozenset[State] | None:
    """Return the states that a source stands for; None for ``ANY``."""
    if isinstance(source, AnyState):
        return None
    return frozenset((source,)) if isinstance(source, State) else frozenset(source)


class Does(msgspec.Struct, Generic[R], frozen=True):
    """An activity of the states it is declared for. ``last`` are the events of ``yields`` that end it by itself.

    One that ``outlives`` its runner is the same after a recovery; another one is made from the record of that time.
    """

    make: Callable[[R], Activity]
    yields: tuple[type[Event], ...]
    last: tuple[type[Event], ...]
    slot: str
    outlives: bool = False

    @property
    def activity(self) -> type[Activity]:
        """The type of the activity, from the factory's annotation."""
        return _activity(self.make)


Restore = Literal["deadline", "remaining", "restart"]
"""A timer after a crash of the runner: it keeps its deadline, it pauses for the down time, or it starts again."""


class After(msgspec.Struct, Generic[R], frozen=True):
    """A timer of the states it is declared for: ``duration_ms`` after they are entered, the event happens.

    A duration of None means no timer. A function that may return None declares it: ``-> int | None``.
    """

    duration_ms: Callable[[R], int | None]
    event: type[Event]
    restore: Restore
    slot: str

    @property
    def yields(self) -> tuple[type[Event], ...]:
        """The one event of this timer."""
        return (self.event,)

    @property
    def is_optional(self) -> bool:
        """Whether the timer may be absent, from the annotation of the duration."""
        return type(None) in typing.get_args(typing.get_type_hints(self.duration_ms).get("return"))


During = Does[R] | After[R]


def does(
    make: Callable[[R], Activity],
    *,
    yields: type[Event] | tuple[type[Event], ...] = (),
    last: type[Event] | tuple[type[Event], ...] = (),
    outlives: bool = False,
) -> Does[R]:
    """Declare an activity: ``make`` returns it for a record, ``yields`` are the events that it may report.

    After one of ``last`` the activity is over and confirmed. Otherwise its end is requested when the state is left. Its
    slot is the name of the activity's type. With ``outlives`` its process survives the runner: the next runner gets the
    activity as it was begun, whatever the record says by then.

    >>> from lifefold import Activity, Event, Record, does
    >>> class Bake(Activity, frozen=True): ...
    >>> class Baked(Event, frozen=True): ...
    >>> def bake(oven: Record) -> Bake:
    ...     return Bake()
    >>> does(bake, last=Baked).slot
    'Bake'
    """
    over = last if isinstance(last, tuple) else (last,)
    may = yields if isinstance(yields, tuple) else (yields,)
    every = (*may, *(event for event in over if event not in may))
    return Does(make, every, over, _activity(make).__name__, outlives)


def after(
    duration_ms: int | Callable[[R], int | None], event: type[Event], *, restore: Restore = "deadline"
) -> After[R]:
    """Declare a timer: the event happens ``duration_ms`` after the state was entered. Its slot is the event's name.

    A row back to its own state leaves the timer as it is, unless it has ``restart=True``. Raises ``ValueError`` for a
    negative duration.

    >>> from lifefold import Event, after
    >>> class Shut(Event, frozen=True): ...
    >>> after(5_000, Shut).slot
    'Shut'
    """
    if isinstance(duration_ms, int) and duration_ms < 0:
        raise ValueError(f"after({duration_ms}, {event.__name__}): accepted: 0 ms or more")
    delay = duration_ms if callable(duration_ms) else _constant(duration_ms)
    return After(delay, event, restore, event.__name__)


def _constant(duration_ms: int) -> Callable[[Any], int | None]:
    return lambda _record: duration_ms


@lru_cache(maxsize=10_000)
def declared(function: Callable[..., Any], argument: int | None, base: type) -> tuple[type, ...]:
    """Return the types of ``base`` that a function's return annotation names, itself or as its n-th type argument.

    ``Never`` names none. Raises ``TypeError`` if the annotation is missing or names any other type.
    """
    # Reading an annotation evaluates its text, and each engine asks for those of all rows.
    hint = function if isinstance(function, type) else typing.get_type_hints(function).get("return")
    if argument is not None:
        hint = dict(enumerate(typing.get_args(hint))).get(argument)
    if hint is Never:
        return ()
    options = typing.get_args(hint) if typing.get_origin(hint) in {typing.Union, UnionType} else (hint,)
    found = tuple(option for option in options if isinstance(option, type) and issubclass(option, base))
    if found != options:
        raise TypeError(_unsaid(function, base))
    return found


def _activity(make: Callable[..., Activity]) -> type[Activity]:
    found = declared(make, None, Activity)
    if len(found) != 1:
        raise TypeError(_unsaid(make, Activity))
    return found[0]


def _unsaid(function: Callable[..., Any], base: type) -> str:
    name = f"{function.__module__}.{function.__qualname__}"
    return f"{name} needs a return annotation with the {base.__name__} that it returns"
