"""Who performs what: a handler for every type of effect and of activity.

A handler of an *effect* is called once per committed transition that asks for it, and possibly again after a crash,
with the same ``RequestedEffect.identity``; it must make that harmless. A handler of an *activity* runs for as long as
the state holds: it reports what happens with ``activity.report``, returns when it is over, and is cancelled when the
state is left. When it has returned nothing of the activity may be left; until then nothing else begins in its slot. It
is also cancelled when the whole engine goes down; ``activity.ending`` tells the two apart.

After a crash the handler of an activity that goes on is called again, with ``activity.resumed`` set. If the end of the
activity was asked for before the crash, or so soon after it that the handler may not have found what was left, it is
called with ``activity.cleanup_only`` set.

A system is served only by an interpreter that has a handler for everything the system can ask for.

Handlers are registered by type: in two mappings, or by a class whose methods say with ``handles`` what they are for.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from inspect import iscoroutinefunction
from typing import Any, Final, Self, TypeAlias, TypeVar, overload

import msgspec

from lifefold.core.kernel import Aggregate, Entity, Event, System
from lifefold.effects import Activity, Begin, Effect
from lifefold.interpreters.engine.failures import OnError
from lifefold.interpreters.missing import MissingHandlersError, wanted

S = TypeVar("S")
E = TypeVar("E", bound=Effect)
E2 = TypeVar("E2", bound=Effect)
E3 = TypeVar("E3", bound=Effect)
A = TypeVar("A", bound=Activity)
A2 = TypeVar("A2", bound=Activity)
A3 = TypeVar("A3", bound=Activity)
Work: TypeAlias = Coroutine[Any, Any, None]

_HANDLES: Final = "_lifefold_handles"
_ON_ERROR: Final = "_lifefold_on_error"
_TAKEN: Final = (Effect, Activity)


class EffectContext(msgspec.Struct, frozen=True, gc=False):
    """Where an effect comes from: entry ``version`` of the aggregate, place ``index`` in it.

    ``within`` is the aggregate as it was right after, ``ref`` the entity that asked.
    """

    within: Aggregate
    ref: str
    version: int
    index: int

    @property
    def identity(self) -> tuple[str, int, int]:
        """What makes this effect the same one when it is performed again."""
        return self.within.name, self.version, self.index

    @property
    def entity(self) -> Entity[Any]:
        """The entity that asked, as it was right after."""
        return self.within.entities[self.ref]


class Unreached(Exception):
    """An effect has not reached the activity that it concerns, because no handler attends to it.

    A handler of an effect raises it. The effect is then not performed: the engine calls the handler again when a
    handler of such an activity attends to it. If there is none that could, nothing is there to be reached, and the
    effect is over. An engine that stops meanwhile leaves the effect to the next one.
    """

    def __init__(self, activity: type[Activity], why: str = "") -> None:
        """Say of which type the activity is that the effect concerns."""
        super().__init__(why or f"no handler attends to {activity.__name__}")
        self.activity: Final = activity


class ActivityContext(ABC):
    """An activity as its handler sees it."""

    __slots__ = ("attended", "begin", "cleanup_only", "ending", "occasion")

    def __init__(self, begin: Begin, occasion: EffectContext, *, cleanup_only: bool) -> None:
        """Take what began.

        ``occasion`` is where it comes from. ``cleanup_only`` is whether all that is wanted is its end: end what a crash
        may have left, begin nothing, and return. ``ending`` is whether its end has been asked for: a handler that is
        cancelled while it has not may leave its work to whoever takes the activity up after the engine. ``attended`` is
        whether effects that concern the activity reach it.
        """
        self.attended = False
        self.begin: Final = begin
        self.occasion: Final = occasion
        self.cleanup_only: Final = cleanup_only
        self.ending = cleanup_only

    @property
    def generation(self) -> int:
        """The version of the transition that began it: unique among the activities of its entity."""
        return self.begin.generation

    @property
    def resumed(self) -> bool:
        """Whether something of it may be there already, from before a crash."""
        return self.begin.resumed

    def attend(self) -> None:
        """Say that what is asked of this activity reaches it from now on; effects that were ``Unreached`` come again.

        A handler that has reported anything attends to its activity, too.
        """
        self.attended = True

    @abstractmethod
    async def report(self, event: Event) -> bool:
        """Let the entity take an event of this activity. True once it is durably taken, False if it was refused."""


EffectHandler = Callable[[Any, EffectContext], Awaitable[None]]
ActivityHandler = Callable[[Any, ActivityContext], Awaitable[None]]


@overload
def handles(
    first: type[E], second: type[E2], /, *, on_error: OnError | None = None
) -> Callable[[Callable[[S, E | E2, EffectContext], Work]], Callable[[S, E | E2, EffectContext], Work]]: ...
@overload
def handles(
    first: type[E], second: type[E2], third: type[E3], /, *, on_error: OnError | None = None
) -> Callable[[Callable[[S, E | E2 | E3, EffectContext], Work]], Callable[[S, E | E2 | E3, EffectContext], Work]]: ...
@overload
def handles(
    first: type[A], second: type[A2], /, *, on_error: OnError | None = None
) -> Callable[[Callable[[S, A | A2, ActivityContext], Work]], Callable[[S, A | A2, ActivityContext], Work]]: ...
@overload
def handles(
    first: type[A], second: type[A2], third: type[A3], /, *, on_error: OnError | None = None
) -> Callable[
    [Callable[[S, A | A2 | A3, ActivityContext], Work]], Callable[[S, A | A2 | A3, ActivityContext], Work]
]: ...
@overload
def handles(
    *kinds: type[E], on_error: OnError | None = None
) -> Callable[[Callable[[S, E, EffectContext], Work]], Callable[[S, E, EffectContext], Work]]: ...
@overload
def handles(
    *kinds: type[A], on_error: OnError | None = None
) -> Callable[[Callable[[S, A, ActivityContext], Work]], Callable[[S, A, ActivityContext], Work]]: ...
def handles(*kinds: Any, on_error: OnError | None = None) -> Any:
    """Mark a method as the handler of a type of effects, or of activities; of several, if it takes each of them.

    ``on_error`` says what is done when it raises; without it, that is the engine's ``on_error``.

    ``Interpreter.of`` makes an interpreter of an instance of its class. A method that overrides it needs no mark.
    """
    if not kinds or not any(all(isinstance(kind, type) and issubclass(kind, of) for kind in kinds) for of in _TAKEN):
        raise TypeError(f"handles{kinds!r}: accepted: types of effects, or types of activities, at least one, not both")

    def mark(method: Any) -> Any:
        _must_be_async(method, repr(method), _names(kinds))
        setattr(method, _HANDLES, kinds)
        setattr(method, _ON_ERROR, on_error)
        return method

    return mark


def _names(kinds: tuple[type, ...]) -> str:
    return ", ".join(kind.__name__ for kind in kinds)


def _must_be_async(method: object, called: str, handled: str) -> None:
    if not iscoroutinefunction(method):
        raise TypeError(f"{called} handles {handled}, and is no coroutine function: write async def")


class Interpreter:
    """A set of handlers. Compose with ``over``: the left one's handlers go first."""

    def __init__(
        self,
        effects: Mapping[type[Effect], EffectHandler] | None = None,
        activities: Mapping[type[Activity], ActivityHandler] | None = None,
        on_error: Mapping[type, OnError] | None = None,
    ) -> None:
        """Take the handlers by the type they handle, and what is done when one raises, where that was declared."""
        self.on_error: Final = dict(on_error or {})
        self.effects: Final = dict(effects or {})
        self.activities: Final = dict(activities or {})

    @classmethod
    def of(cls, handlers: object) -> Self:
        """Return the interpreter whose handlers are the methods of an object that ``handles`` marks.

        Raises ``TypeError`` if there are none, or two for one type, or one that was overridden by something else.
        """
        marks = {
            name: found
            for base in reversed(type(handlers).__mro__)
            for name, found in vars(base).items()
            if getattr(found, _HANDLES, ())
        }
        marked = {name: getattr(found, _HANDLES) for name, found in marks.items()}
        owners: dict[type, str] = {}
        for name, kinds in marked.items():
            for kind in kinds:
                if owners.setdefault(kind, name) != name:
                    both = f"both {owners[kind]} and {name} handle {kind.__name__}"
                    raise TypeError(f"{type(handlers).__name__}: {both}; accepted: one of them")
        if not owners:
            raise TypeError(f"{type(handlers).__name__} has no handlers: mark methods, such as @handles(LogFatal)")
        bound = {kind: getattr(handlers, name) for kind, name in owners.items()}
        for kind, name in owners.items():
            _must_be_async(bound[kind], f"{type(handlers).__name__}.{name}", kind.__name__)
        declared = {kind: getattr(marks[name], _ON_ERROR, None) for kind, name in owners.items()}
        return cls(
            {kind: handler for kind, handler in bound.items() if issubclass(kind, Effect)},
            {kind: handler for kind, handler in bound.items() if issubclass(kind, Activity)},
            {kind: policy for kind, policy in declared.items() if policy is not None},
        )

    def only(self, kinds: Collection[type]) -> Self:
        """Return an interpreter that has this one's handlers for these types, and for no other."""
        return type(self)(
            {kind: handler for kind, handler in self.effects.items() if kind in kinds},
            {kind: handler for kind, handler in self.activities.items() if kind in kinds},
            {kind: policy for kind, policy in self.on_error.items() if kind in kinds},
        )

    def over(self, other: "Interpreter") -> Self:
        """Return an interpreter that uses this one's handlers, and ``other``'s where this one has none."""
        mine = self.effects.keys() | self.activities.keys()
        theirs = {kind: policy for kind, policy in other.on_error.items() if kind not in mine}
        return type(self)(other.effects | self.effects, other.activities | self.activities, theirs | self.on_error)

    def must_serve(self, system: System) -> None:
        """Raise ``MissingHandlersError`` unless there is a handler for everything that the system can ask for."""
        effects, activities = wanted(system)
        missing = sorted(t.__name__ for t in (effects - self.effects.keys()) | (activities - self.activities.keys()))
        if missing:
            message = (
                f"no handler for {', '.join(missing)}: the system {system.name!r} can ask for it; register one for each"
            )
            raise MissingHandlersError(message)
