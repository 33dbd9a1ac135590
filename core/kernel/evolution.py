"""Upcasters: what became of the names and shapes that an older version of a machine has written to a log.

A log is read by the types of today. A field with a default needs no upcaster, and neither does a new state, row or
rule. Anything else that a log has and a machine no longer knows is declared beside the table (``evolved=``):

- ``renamed(was, now)``: an event, effect, activity or state has another name, or another state took its place;
- ``renamed_field(was, now)``: a field of the record, or of the struct ``of``, has another name; with ``by`` its value
  has another type or another meaning;
- ``removed_field(was)``: such a field is gone;
- ``upcast(function)``: an event, effect or activity of an old shape becomes one of today, or one of several (a split);
- ``removed(was)``: an event or effect is gone, and what is still pending of it is dropped.

Upcasters change what is read, never what is stored. They are pure, and read only the old value. What has been written
under a name keeps its meaning: a new meaning gets a new name (``tag=`` of an event, another field). So an old value is
known by its name alone, and no version must be compared.
"""

import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from lifefold.core.kernel.record import Event, State
from lifefold.core.kernel.row import Does
from lifefold.effects import Activity, Effect

if TYPE_CHECKING:
    from lifefold.core.kernel.machine import Machine

Kind: TypeAlias = type[Event] | type[Effect] | type[Activity]
"""A type that is written with a tag."""


class Renamed(msgspec.Struct, frozen=True):
    """Something of the name ``was`` is now of this type, or this state."""

    was: str
    now: Any


class Field(msgspec.Struct, frozen=True):
    """A field of the record, or of ``of``: it is called ``now``, or is gone if that is empty."""

    was: str
    now: str
    by: Callable[[Any], Any] | None = None
    of: Kind | None = None


class Upcast(msgspec.Struct, frozen=True):
    """An old shape becomes what the function returns for it; its annotations name the types."""

    old: Kind
    to: Callable[[Any], Any]
    now: tuple[Kind, ...]


class Removed(msgspec.Struct, frozen=True):
    """An event or effect of the name ``was`` is gone."""

    was: str


Evolved: TypeAlias = Renamed | Field | Upcast | Removed
"""A declaration of ``evolved=``."""


def renamed(was: str, now: Kind | State) -> Evolved:
    """Declare that an event, effect, activity or state of the old name is this one; the fields are the same.

    >>> from lifefold import Event, renamed
    >>> class Paid(Event, frozen=True): ...
    >>> renamed("Payed", Paid).was
    'Payed'
    """
    return Renamed(was, now)


def renamed_field(was: str, now: str, *, by: Callable[[Any], Any] | None = None, of: Kind | None = None) -> Evolved:
    """Declare that a field of the record, or of the struct ``of``, has another name.

    ``by`` makes the new value of the old one; the annotation of its parameter is the old type.

    >>> from lifefold import renamed_field
    >>> def in_ms(seconds: int) -> int:
    ...     return 1_000 * seconds
    >>> renamed_field("delay_s", "delay_ms", by=in_ms).now
    'delay_ms'
    """
    return Field(was, now, by, of)


def removed_field(was: str, *, of: Kind | None = None) -> Evolved:
    """Declare that a field of the record, or of the struct ``of``, is gone.

    >>> from lifefold import removed_field
    >>> removed_field("colour").was
    'colour'
    """
    return Field(was, "", None, of)


def upcast(to: Callable[[Any], Any]) -> Evolved:
    """Declare a function from an old shape to a type of today, or to one of several.

    The annotation of its parameter is the old shape, a struct with the old name or ``tag=``; that of its result names
    the types of today. Raises ``TypeError`` for a function without them.

    >>> from lifefold import Event, upcast
    >>> class Moved(Event, frozen=True):
    ...     by_mm: int
    >>> class MovedBefore(Event, frozen=True, tag="Moved.1"):
    ...     by_cm: int
    >>> def moved(old: MovedBefore) -> Moved:
    ...     return Moved(10 * old.by_cm)
    >>> upcast(moved).old
    <class 'MovedBefore'>
    """
    old, now = parameter_of(to), typing.get_type_hints(to).get("return")
    options: tuple[Any, ...] = typing.get_args(now) if typing.get_origin(now) in {typing.Union, UnionType} else (now,)
    if not all(_is_tagged(each) for each in (old, *options)):
        name = getattr(to, "__qualname__", repr(to))
        message = f"upcast({name}) needs annotations: the old event, effect or activity, and those that it becomes"
        raise TypeError(message)
    return Upcast(old, to, options)


def removed(was: str) -> Evolved:
    """Declare that an event or effect of this name is gone: what is still pending of it is dropped.

    A message that is still under way cannot be dropped, since messages are numbered; neither can an activity.

    >>> from lifefold import removed
    >>> removed("Poked").was
    'Poked'
    """
    return Removed(was)


def parameter_of(function: Callable[[Any], Any]) -> Any:
    """Return the annotated type of a function's first parameter; None if it has none."""
    hints = typing.get_type_hints(function)
    return next((kind for name, kind in hints.items() if name != "return"), None)


def _is_tagged(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Event | Effect | Activity)


Sort: TypeAlias = Literal["event", "effect", "activity"]
"""What a tagged type is: an event and an effect may have the same name."""


def sort_of(kind: Kind) -> Sort:
    """Return what a type is."""
    if issubclass(kind, Event):
        return "event"
    return "activity" if issubclass(kind, Activity) else "effect"


def name_of(kind: Kind) -> str:
    """Return the name under which values of a type are written."""
    return str(kind.__struct_config__.tag)


class Upcasters:
    """The upcasters of one machine, ready to read."""

    def __init__(self, machine: "Machine[Any]", encode: Callable[[Any], bytes], decoder: Callable[[Any], Any]) -> None:
        """Prepare the declarations of a machine, with the functions of its codec."""
        self._encode: Final = encode
        self._kinds: Final[dict[tuple[Sort, str], Callable[[bytes], bytes]]] = {}
        self._states: Final[dict[str, str]] = {}
        self._of_record: Final[dict[str, tuple[str, Callable[[bytes], bytes] | None]]] = {}
        self._of_kinds: Final[dict[tuple[Sort, str], dict[str, tuple[str, Callable[[bytes], bytes] | None]]]] = {}
        self.slots: Final[dict[str, str]] = {}
        self.removed: Final = removed_of(machine)
        for each in machine.evolved:
            match each:
                case Renamed(was=was, now=State() as state):
                    self._states[was] = str(state)
                case Renamed(was=was, now=now):
                    self._kinds[sort_of(now), was] = self._retagged(now)
                    self._slot(machine, was, now)
                case Upcast(old=old, to=to, now=now):
                    self._kinds[sort_of(old), name_of(old)] = self._converted(old, to, decoder)
                    self._slot(machine, name_of(old), now[0])
                case Field(was=was, now=now, by=by, of=of):
                    convert = None if by is None else self._converted(parameter_of(by), by, decoder)
                    fields = (
                        self._of_record if of is None else self._of_kinds.setdefault((sort_of(of), name_of(of)), {})
                    )
                    fields[was] = (now, convert)
                case _:  # nothing of what is removed is read as another thing
                    pass

    def _slot(self, machine: "Machine[Any]", was: str, now: Kind) -> None:
        """The slot of an activity or a timer has the name of its type."""
        if was not in machine.spans and now.__name__ in machine.spans:
            self.slots[was] = now.__name__

    def _retagged(self, now: Kind) -> Callable[[bytes], bytes]:
        tag = msgspec.Raw(self._encode(name_of(now)))

        def retag(data: bytes) -> bytes:
            return self._encode(_fields(data) | {"type": tag})

        return retag

    def _converted(self, old: Any, to: Callable[[Any], Any], decoder: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
        decode = decoder(old).decode
        return lambda data: self._encode(to(decode(data)))

    def tagged(self, sort: Sort, data: msgspec.Raw) -> msgspec.Raw:
        """Return an event, effect or activity as one of today."""
        name = _NAME.decode(data).type
        fields, convert = self._of_kinds.get((sort, name)), self._kinds.get((sort, name))
        if fields is None and convert is None:
            return data
        changed = bytes(data) if convert is None else convert(bytes(data))
        fields = self._of_kinds.get((sort, _NAME.decode(changed).type))
        return msgspec.Raw(changed if fields is None else self._encode(_moved(_fields(changed), fields)))

    def fields(self, fields: Mapping[str, msgspec.Raw]) -> Mapping[str, msgspec.Raw]:
        """Return fields of a record as those of today."""
        moved = _moved(fields, self._of_record)
        state = moved.get("state")
        now = None if state is None else self._states.get(msgspec.json.decode(state))
        return moved if now is None else {**moved, "state": msgspec.Raw(self._encode(now))}

    def record(self, data: msgspec.Raw) -> msgspec.Raw:
        """Return a whole record as one of today."""
        return msgspec.Raw(self._encode(dict(self.fields(_fields(data)))))


def _fields(data: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    return _FIELDS.decode(data)


def _moved(
    fields: Mapping[str, msgspec.Raw], by_name: Mapping[str, tuple[str, Callable[[bytes], bytes] | None]]
) -> dict[str, msgspec.Raw]:
    """Return fields under their names of today, without those that are gone."""
    found: dict[str, msgspec.Raw] = {}
    for was, data in fields.items():
        now, convert = by_name.get(was, (was, None))
        if now:
            found[now] = data if convert is None else msgspec.Raw(convert(bytes(data)))
    return found


class _Named(msgspec.Struct):
    type: str = ""


_NAME: Final = msgspec.json.Decoder(_Named)
_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def removed_of(machine: "Machine[Any]") -> frozenset[str]:
    """Return the names of a machine's removed events and effects."""
    return frozenset(each.was for each in machine.evolved if isinstance(each, Removed))


def kinds_of(machine: "Machine[Any]") -> tuple[Kind, ...]:
    """Return the types of a machine's events, effects and activities."""
    activities = (span.during.activity for span in machine.spans.values() if isinstance(span.during, Does))
    effects = (effect for each in machine.rows for effect in each.effects)
    return tuple(dict.fromkeys((*machine.events, *activities, *effects)))


def kept_by(machine: "Machine[Any]", evolved: Iterable[Evolved]) -> tuple[Evolved, ...]:
    """Return the declarations that a profile can use: it may lack a state or an event of its machine."""
    return tuple(each for each in evolved if not _unreachable(machine, each))


def problems_of(machine: "Machine[Any]") -> Iterator[str]:
    """Yield what is wrong with a machine's declarations, as sentences."""
    seen: dict[tuple[str, str], Evolved] = {}
    for each in machine.evolved:
        yield from (f"evolved: {_shown(each)}: {line}" for line in _unreachable(machine, each))
        of, was = _place(each)
        if was in _present(machine, each):
            yield f"evolved: {_shown(each)}: {was!r} has a meaning today; accepted: a name that is no longer used"
        if (of, was) in seen:
            yield f"evolved: {_shown(each)}: {was!r} is declared twice"
        seen[of, was] = each


def old_name(each: Evolved) -> str:
    """Return the name that a declaration is about."""
    return _place(each)[1]


def _place(each: Evolved) -> tuple[str, str]:
    """Return where a name was used, and the name."""
    match each:
        case Renamed(was=was, now=State()):
            return "state", was
        case Field(was=was, of=of):
            return f"field of {'the record' if of is None else name_of(of)}", was
        case Upcast(old=old):
            return sort_of(old), name_of(old)
        case Renamed(was=was, now=now):
            return sort_of(now), was
        case _:
            return "event or effect", each.was


def _present(machine: "Machine[Any]", each: Evolved) -> frozenset[str]:
    """Return the names of today among which the old one must not be."""
    match each:
        case Renamed(now=State()):
            return frozenset(map(str, machine.states))
        case Field(of=of):
            return frozenset((machine.record if of is None else of).__struct_encode_fields__)
        case Renamed(now=kind) | Upcast(old=kind):
            return frozenset(name_of(own) for own in kinds_of(machine) if sort_of(own) == sort_of(kind))
        case _:
            return frozenset(name_of(own) for own in kinds_of(machine) if sort_of(own) != "activity")


def _unreachable(machine: "Machine[Any]", each: Evolved) -> tuple[str, ...]:
    """Return what of a declaration's targets the machine does not have."""
    known: tuple[Any, ...] = kinds_of(machine)
    lacking: tuple[str, ...] = ()
    match each:
        case Renamed(now=State() as state):
            lacking = () if any(state is own for own in machine.states) else (str(state),)
        case Renamed(now=now):
            lacking = () if now in known else (getattr(now, "__name__", repr(now)),)
        case Upcast(now=targets):
            lacking = tuple(target.__name__ for target in targets if target not in known)
        case Field(now=name, of=of) if of is None or of in known:
            there = (machine.record if of is None else of).__struct_encode_fields__
            lacking = (name,) if name and name not in there else ()
        case Field(of=of):
            lacking = (getattr(of, "__name__", repr(of)),)
        case _:
            pass
    return tuple(f"the machine has no {name}" for name in lacking)


def _shown(each: Evolved) -> str:
    match each:
        case Renamed(was=was):
            return f"renamed({was!r})"
        case Field(was=was, now=now):
            return f"renamed_field({was!r}, {now!r})" if now else f"removed_field({was!r})"
        case Upcast(to=to):
            return f"upcast({getattr(to, '__qualname__', to)})"
        case _:
            return f"removed({each.was!r})"
