"""Work that a log still owes, and that no machine of the present program knows: it stops a start.

A past event, effect or activity without a type of today is folded and shown by its name. It cannot be delivered,
performed or resumed, and a runner that left it out would lose it.
"""

from collections.abc import Iterable, Iterator, Mapping

from lifefold.core.kernel import Aggregate
from lifefold.core.kernel.codec import ForgottenActivity, ForgottenEffect, ForgottenEvent
from lifefold.effects import Effect, Tell
from lifefold.interpreters.engine.ledger import LogMismatchError


def must_be_known(aggregates: Mapping[str, Aggregate], owed: Iterable[Effect]) -> None:
    """Raise ``LogMismatchError`` for running activities, owed effects and messages that are forgotten."""
    found = sorted({*_owed(owed), *_running(aggregates)})
    if found:
        message = (
            f"this program no longer knows {', '.join(found)}, and the log still owes it; "
            "end that with the version that wrote the log"
        )
        raise LogMismatchError(message)


def _owed(effects: Iterable[Effect]) -> Iterator[str]:
    for effect in effects:
        if isinstance(effect, ForgottenEffect):
            yield f"the effect {effect.name}"
        elif isinstance(effect, Tell) and isinstance(effect.event, ForgottenEvent):
            yield f"the message {effect.event.name} to {effect.aggregate}"


def _running(aggregates: Mapping[str, Aggregate]) -> Iterator[str]:
    for name, aggregate in aggregates.items():
        for entity in aggregate.entities.unarchived().values():
            for part in entity.running:
                if isinstance(part.activity, ForgottenActivity):
                    yield f"the activity {part.activity.name} of {name}, {entity.ref}"
