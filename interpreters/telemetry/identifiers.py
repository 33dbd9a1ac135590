"""The identifiers of traces and spans. They are digests of what the log says, so every export has the same ones.

The identity of a log is part of each digest, because two fleets may have tasks of the same names. A session knows the
identifiers of its own span when it begins: ``traceparent`` is the value of its ``TRACEPARENT`` (W3C Trace Context).
"""

from hashlib import sha256
from typing import Final, NamedTuple

from lifefold.interpreters.store import Entry

TRACE_CHARS: Final = 32
SPAN_CHARS: Final = 16
"""The lengths of the identifiers, in hexadecimal digits."""


class Place(NamedTuple):
    """The identifiers of a span, in hexadecimal digits: its trace, and itself."""

    trace: str
    span: str

    @property
    def traceparent(self) -> str:
        """The value of ``TRACEPARENT`` for children of the span; it says that the trace is recorded."""
        return f"00-{self.trace}-{self.span}-01"


class Begun(NamedTuple):
    """An activity: its stream, its entity, its slot, and the generation that began it."""

    stream: str
    entity: str
    slot: str
    generation: int


def identity_of(first: Entry) -> str:
    """Return the identity of a log whose maker has given it none: a digest of its first entry."""
    return _digest("entry", first.stream, str(first.version), str(first.at_ms), first.key, first.envelope.hex())


def trace_of(log: str, stream: str, entity: str, *more: str) -> str:
    """Return the trace of an entity, or of an activity of it: ``more`` is its slot and its generation."""
    return _digest("trace", log, stream, entity, *more)[:TRACE_CHARS]


def span_of(log: str, stream: str, entity: str, slot: str, generation: int) -> str:
    """Return the span of an activity; without a slot that of a life of the entity, which began with that version."""
    return _digest("span", log, stream, entity, slot, str(generation))[:SPAN_CHARS]


def task_trace(log: str, task: str) -> str:
    """Return the trace of a task of a fleet, which its sessions belong to."""
    return trace_of(log, "board", f"task:{task}")


def session_place(log: str, begun: Begun, task: str) -> Place:
    """Return the place of a session in the trace of its task; a run of a service, without one, has its own trace."""
    own = (begun.stream, begun.entity, begun.slot, str(begun.generation))
    trace = task_trace(log, task) if task else trace_of(log, *own)
    return Place(trace, span_of(log, *begun))


def _digest(*parts: str) -> str:
    state = sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass")
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()
