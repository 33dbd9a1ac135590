"""Reading and checking control messages, and the limits of critical sections."""

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from lifefold.interpreters.facades.arguments import whole

LONGEST_DEADLINE_MS: Final = 366 * 24 * 3_600_000
"""The longest limit that a critical section may declare: a year."""


def duration_ms(deadline_ms: object) -> int | None:
    """Return the limit of a critical section. Raises ``TypeError`` and ``ValueError``."""
    if deadline_ms is None:
        return None
    return whole("deadline_ms", deadline_ms, range(LONGEST_DEADLINE_MS + 1))


class _Control(msgspec.Struct):
    """The known fields in the payload of a control message."""

    type: str
    reason: str | None = None


def preempt_request(message: object) -> str | None:
    """Return the reason of a preemption request; None for any other message."""
    if not isinstance(message, Mapping):
        return None
    fields = cast("Mapping[object, object]", message)
    payload = fields.get("payload")
    if fields.get("content_type") != "application/json" or not isinstance(payload, bytes | str):
        return None
    try:
        control = msgspec.json.decode(payload, type=_Control)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return (control.reason or "") if control.type == "PREEMPT_REQUEST" else None
