"""The journal: one LifecycleEvent for every transition of every machine (document 004, "Transition Metadata")."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from lifefold.core.kernel.entity import Transition
from lifefold.core.kernel.record import Event


class LifecycleEvent(msgspec.Struct, frozen=True):
    """A transition for audits, metrics and screens: the document's nine fields, in its order.

    ``timestamp`` is Unix time in seconds. All other known facts are in ``metadata`` (E44).
    """

    timestamp: float
    entity_type: str
    entity_id: str
    from_status: str
    to_status: str
    actor: str = ""
    reason: str = ""
    transition_reason: str | None = None
    abort_reason: str | None = None
    metadata: dict[str, Any] = {}


def journal(aggregate: str, transition: Transition) -> LifecycleEvent:
    """Return a transition's journal entry. ``entity_id`` is the entity's key, or else its aggregate's.

    The canonical reasons come from the event itself, from fields or properties of their names.
    """
    machine, _, key = transition.entity.partition(":")
    owner = aggregate.partition("/")[2]
    return LifecycleEvent(
        timestamp=transition.at_ms / 1_000,
        entity_type=machine,
        entity_id=key or owner or aggregate,
        from_status=transition.before.state if transition.before else "",
        to_status=transition.after.state,
        actor=transition.actor,
        reason=describe(transition.event),
        transition_reason=_text(transition.event, "transition_reason"),
        abort_reason=_text(transition.event, "abort_reason"),
        metadata={
            "aggregate": aggregate,
            "event": type(transition.event).__name__,
            "version": transition.after.version,
            "effects": [type(effect).__name__ for effect in transition.effects],
        },
    )


def _text(event: Event, name: str) -> str | None:
    """Return the reason that an event has under one of the document's names; None if it has none."""
    reason = getattr(event, name, None)
    return None if reason is None else str(reason)


def describe(event: Event) -> str:
    """Return an event's fields in one line; empty if it has none or is the kernel's own."""
    values = {name: getattr(event, name) for name in event.__struct_fields__ if name not in _KERNEL_FIELDS | _SEPARATE}
    line = ", ".join(_texts({name: value for name, value in values.items() if not _is_left_out(event, name)}))
    return line if len(line) <= _LINE_CHARACTERS else line[: _LINE_CHARACTERS - 1] + "…"


def _is_left_out(of: msgspec.Struct, name: str) -> bool:
    """Tell whether a field is a struct, a yes or no, a zero or nothing, that has its default."""
    value = getattr(of, name)
    can_be_left_out = isinstance(value, msgspec.Struct | bool | None) or value == 0
    return bool(can_be_left_out and value == _defaults(of).get(name, _NONE))


def _defaults(of: msgspec.Struct) -> dict[str, Any]:
    """Return the defaults of a struct by field; only its last fields have one."""
    defaults = of.__struct_defaults__
    return dict(zip(of.__struct_fields__[len(of.__struct_fields__) - len(defaults) :], defaults, strict=True))


def _texts(values: dict[str, Any]) -> Iterator[str]:
    """Yield the text of each field with a value, with its name unless it speaks for itself."""
    for name, value in values.items():
        if isinstance(value, msgspec.Struct):
            defaults = _defaults(value)
            fields = ((each, part) for each, part in msgspec.structs.asdict(value).items() if each not in _SEPARATE)
            inside = ", ".join(_texts({each: part for each, part in fields if part != defaults.get(each, _NONE)}))
            text = f"{type(value).__name__}({inside})" if inside else type(value).__name__
        # An empty text or tuple says nothing that an operator needs to read.
        elif value in ("", ()):
            continue
        else:
            text = str(value).strip().partition("\n")[0]
        yield text if name in _PLAIN_FIELDS else f"{name} {text}"


_NONE: Final = object()
"""The default of a field without one."""

_KERNEL_FIELDS = frozenset({"record", "records", "slot", "generation", "down_ms"})
_SEPARATE = frozenset({"transition_reason", "abort_reason", "diagnosis"})
"""Facts that an entry has in fields of their own."""
_PLAIN_FIELDS = frozenset(
    {"brief", "commit", "limits", "message", "msg", "outcome", "owner", "prompt", "reason", "task", "text"}
)
"""Fields that are printed without their names."""
_LINE_CHARACTERS = 160
