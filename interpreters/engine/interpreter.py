"""Interpreters: a handler for every type of effect and of activity.

A handler of an *effect* is called once for each committed transition that requests it. After a crash it may be called
again with the same ``EffectContext.identity``, and must make the repetition harmless.

A handler of an *activity* runs while the states of the activity last. It reports events with ``activity.report`` and
returns when the activity is over. It is cancelled when those states are left. After its return no part of the activity
may remain; until then nothing else begins in its slot. It is also cancelled when the engine stops: only then is
``activity.ending`` false.

After a crash the handler of a running activity is called again, with ``activity.resumed`` set. It is called with
``activity.cleanup_only`` set if the end was requested before the crash. The same happens if the end was requested so
soon after the crash that the handler may not have found the remains.

An engine accepts an interpreter only if it has a handler for everything that the system can request.

Handlers are registered by type: in two mappings, or as the methods of a class, marked with ``handles``.
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
    """The origin of a requested effect: entry ``version`` of the aggregate, and position ``index`` in that entry.

    ``within`` is the aggregate right after the entry; ``ref`` names the entity that requested the effect.
    """

    within: Aggregate
    ref: str
    version: int
    index: int

    @property
    def identity(self) -> tuple[str, int, int]:
        """The identity of the effect, the same when it is performed again."""
        return self.within.name, self.version, self.index

    @property
    def entity(self) -> Entity[Any]:
        """The entity that requested the effect, right after the entry."""
        return self.within.entities[self.ref]


class Unreached(Exception):
    """An effect could not reach an activity, because no handler attends to the activity.

    A handler of an effect raises it. The effect counts as not performed, and the engine calls the handler again when a
    handler attends to such an activity. If no handler of such an activity runs, the effect is over. An engine that
    stops meanwhile leaves the effect to the next one.
    """

    def __init__(self, activity: type[Activity], why: str = "") -> None:
        """Name the type of the activity."""
        super().__init__(why or f"no handler attends to {activity.__name__}")
        self.activity: Final = activity


class ActivityContext(ABC):
    """An activity as its handler sees it."""

    __slots__ = ("attended", "begin", "cleanup_only", "ending", "origin")

    def __init__(self, begin: Begin, origin: EffectContext, *, cleanup_only: bool) -> None:
        """Describe the activity of ``begin``, requested in the context ``origin``.

        With ``cleanup_only`` the handler ends the remains of a crash, begins nothing, and returns. ``ending`` says
        whether the end is requested. A handler that is cancelled without ``ending`` may leave its work to the next
        engine. ``attended`` says whether effects for the activity reach it.
        """
        self.attended = False
        self.begin: Final = begin
        self.origin: Final = origin
        self.cleanup_only: Final = cleanup_only
        self.ending = cleanup_only

    @property
    def generation(self) -> int:
        """The version of the transition that began the activity: unique within its entity."""
        return self.begin.generation

    @property
    def resumed(self) -> bool:
        """Whether parts of the activity may exist already, from before a crash."""
        return self.begin.resumed

    def attend(self) -> None:
        """State that effects for this activity reach it from now on.

        The engine then repeats effects that were ``Unreached``. The first report of a handler implies this call.
        """
        self.attended = True

    @abstractmethod
    async def report(self, event: Event) -> bool:
        """Send an event to the entity. Return True once the event is durable, False if the entity refused it."""


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
    """Mark a method as the handler of one or more types of effects, or of activities.

    ``on_error`` is the policy for its errors; the default is the engine's. ``Interpreter.of`` turns an instance of the
    class into an interpreter. A method that overrides a marked one needs no mark.

    >>> from lifefold import Effect, handles
    >>> class Ring(Effect, frozen=True): ...
    >>> class Bells:
    ...     @handles(Ring)
    ...     async def ring(self, effect, context):
    ...         print("ding")
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
    """A set of handlers. ``a.over(b)`` uses the handlers of ``a`` first.

    >>> from lifefold import Effect, Interpreter
    >>> class Ring(Effect, frozen=True): ...
    >>> async def ring(effect, context):
    ...     print("ding")
    >>> [kind.__name__ for kind in Interpreter({Ring: ring}).effects]
    ['Ring']
    """

    def __init__(
        self,
        effects: Mapping[type[Effect], EffectHandler] | None = None,
        activities: Mapping[type[Activity], ActivityHandler] | None = None,
        on_error: Mapping[type, OnError] | None = None,
    ) -> None:
        """Register handlers, and their declared error policies, by the type that each handles."""
        self.on_error: Final = dict(on_error or {})
        self.effects: Final = dict(effects or {})
        self.activities: Final = dict(activities or {})

    @classmethod
    def of(cls, handlers: object) -> Self:
        """Return an interpreter with the methods of an object that are marked with ``handles``.

        Raises ``TypeError`` if there are none, if two handle one type, or if an override is no coroutine function.
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
        """Return an interpreter with only the handlers of these types."""
        return type(self)(
            {kind: handler for kind, handler in self.effects.items() if kind in kinds},
            {kind: handler for kind, handler in self.activities.items() if kind in kinds},
            {kind: policy for kind, policy in self.on_error.items() if kind in kinds},
        )

    def over(self, other: "Interpreter") -> Self:
        """Return an interpreter with the handlers of this one, and those of ``other`` for the remaining types."""
        mine = self.effects.keys() | self.activities.keys()
        theirs = {kind: policy for kind, policy in other.on_error.items() if kind not in mine}
        return type(self)(other.effects | self.effects, other.activities | self.activities, theirs | self.on_error)

    def must_serve(self, system: System) -> None:
        """Raise ``MissingHandlersError`` unless everything that the system can request has a handler."""
        effects, activities = wanted(system)
        missing = sorted(t.__name__ for t in (effects - self.effects.keys()) | (activities - self.activities.keys()))
        if missing:
            message = (
                f"no handler for {', '.join(missing)}: the system {system.name!r} can request it; register one for each"
            )
            raise MissingHandlersError(message)
