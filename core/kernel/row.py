"""The words of a table: ``row(source, Event, target, action, when=guard)``, ``does``, ``after``, ``ANY``, ``STAY``.

A row says: in any of the ``source`` states, on this event, and if the guard agrees, go to ``target`` by way of
``action``. The first row that fits wins, so an unguarded row ends the list for its state and event. A *pattern* names a
variant of an event, as the documents do with ``SessionExited(Error)``; it is a guard that looks at the event alone.

The effects that an action may return are read from its annotation, ``-> Step[Session, LogFatal]``, which the type
checkers hold it to; tables and diagrams print them from there.
"""

import typing
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Any, Generic, Literal, Never, TypeVar

import msgspec

from lifefold.core.kernel.record import Event, Record, State
from lifefold.core.kernel.step import Step
from lifefold.effects import Activity, Effect

R = TypeVar("R", bound=Record)
E = TypeVar("E", bound=Event)


class AnyState(msgspec.Struct, frozen=True):
    """The source of a row that holds in every state."""


ANY = AnyState()
"""Every state of the machine, final ones included."""


class Stays(msgspec.Struct, frozen=True):
    """The target of a row that leaves the state as it is."""


STAY = Stays()
"""Whatever state the record is in: an event that only changes what stands beside it."""

Source = State | Iterable[State] | AnyState


class Pattern(msgspec.Struct, Generic[E], frozen=True):
    """A variant of an event: those for which ``test`` holds. ``label`` is what tables print in the parentheses."""

    event: type[E]
    label: str
    test: Callable[[E], bool]


class Row(msgspec.Struct, Generic[R], frozen=True):
    """One line of a transition table. ``sources`` is None for ``ANY``, ``target`` for ``STAY``. Made by ``row``.

    With ``restart`` the timers that go on beyond it begin again. A row from ``ANY`` from which a profile has taken some
    states is still ``everywhere``: it holds in states that are added later.
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
        """The name of the target; ``(same)`` if the state stays as it is."""
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
        """Whether the row is taken for its event in any case: it has neither a pattern nor a condition."""
        return self.pattern is None and self.when is None

    @property
    def effects(self) -> tuple[type[Effect], ...]:
        """The effects that the action may return, as its annotation declares them."""
        return () if self.action is None else declared(self.action, 1, Effect)

    def __str__(self) -> str:
        """Print as the line of the table that it is."""
        when = f" when {self.when.__name__}" if self.when else ""
        restart = ", restart" if self.restart else ""
        return f"row({self.source_label}, {self.event_label}, {self.target_label}{when}{restart})"

    def goes(self, state: State) -> State:
        """Return the state that the row leads to from one of its sources."""
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

    A row back to its own state leaves the state's timers as they are; with ``restart`` they begin again, with the
    durations that hold by then. So do, with ``restart``, the timers that the source and the target have in common.
    """
    pattern = event if isinstance(event, Pattern) else None
    kind = event.event if isinstance(event, Pattern) else event
    to, sources = None if isinstance(target, Stays) else target, states(source)
    return Row(sources, kind, to, action, when, pattern, restart, everywhere=sources is None)


def states(source: Source) -> frozenset[State] | None:
    """Return the states that a source means; None for ``ANY``."""
    if isinstance(source, AnyState):
        return None
    return frozenset((source,)) if isinstance(source, State) else frozenset(source)


class Does(msgspec.Struct, Generic[R], frozen=True):
    """An activity of the states it is declared for. ``last`` are those events of ``yields`` with which it is over."""

    make: Callable[[R], Activity]
    yields: tuple[type[Event], ...]
    last: tuple[type[Event], ...]
    slot: str

    @property
    def activity(self) -> type[Activity]:
        """The type of the activity, as the factory's annotation declares it."""
        return _activity(self.make)


Restore = Literal["deadline", "remaining", "restart"]
"""What a crash of the runner does to a timer: nothing (it keeps its deadline), it pauses, or it starts again."""


class After(msgspec.Struct, Generic[R], frozen=True):
    """A timer of the states it is declared for: ``duration_ms`` after they are entered, the event happens.

    Where the duration is None there is no timer. A function that may return None says so: ``-> int | None``.
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
        """Whether there may be no timer, as the annotation of the duration says."""
        return type(None) in typing.get_args(typing.get_type_hints(self.duration_ms).get("return"))


During = Does[R] | After[R]


def does(
    make: Callable[[R], Activity],
    *,
    yields: type[Event] | tuple[type[Event], ...] = (),
    last: type[Event] | tuple[type[Event], ...] = (),
) -> Does[R]:
    """Declare an activity: ``make`` says what is to be done, ``yields`` which events may come of it.

    With one of ``last`` the activity is over by itself, confirmed; otherwise its end is asked for when the state is
    left. Its slot is the name of the activity's type.
    """
    over = last if isinstance(last, tuple) else (last,)
    may = yields if isinstance(yields, tuple) else (yields,)
    every = (*may, *(event for event in over if event not in may))
    return Does(make, every, over, _activity(make).__name__)


def after(
    duration_ms: int | Callable[[R], int | None], event: type[Event], *, restore: Restore = "deadline"
) -> After[R]:
    """Declare a timer: the event happens ``duration_ms`` after the state was entered. Its slot is the event's name.

    A row that leads back to its own state leaves the timer as it is, unless it says ``restart=True``. Raises
    ``ValueError`` for a negative duration.
    """
    if isinstance(duration_ms, int) and duration_ms < 0:
        raise ValueError(f"after({duration_ms}, {event.__name__}): accepted: 0 ms or more")
    delay = duration_ms if callable(duration_ms) else _constant(duration_ms)
    return After(delay, event, restore, event.__name__)


def _constant(duration_ms: int) -> Callable[[Any], int | None]:
    return lambda _record: duration_ms


def declared(function: Callable[..., Any], argument: int | None, base: type) -> tuple[type, ...]:
    """Return the types of ``base`` that a function's return annotation names, itself or as its n-th type argument.

    ``Never`` names none. Raises ``TypeError`` if the annotation does not say it, or names anything else.
    """
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
    return f"{name} needs a return annotation that says which {base.__name__} it returns"
