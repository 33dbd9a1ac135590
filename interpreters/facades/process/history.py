"""The history of a process in document 002: states, records of transitions, and their serialization.

Records are immutable, and a caller cannot change a history: metadata are copied on the way in and on the way out (C13).
A restored history is checked: it must be a chain of the table's edges that leads to the state (C11).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, cast

from lifefold.core.kernel import Machine
from lifefold.core.lifecycles.process import Process, State
from lifefold.interpreters.facades.arguments import string, whole, yes_or_no
from lifefold.interpreters.facades.moves import targets

COUNTS: Final = range(sys.maxsize)
"""The possible numbers of transitions."""


class ProcessState(str, Enum):  # noqa: UP042 - printed as the document prints it: ProcessState.RUNNING
    """The document's eight states, equal to those of ``lifefold.core.lifecycles.process.State`` and to their values."""

    CREATED = "created"
    STARTING = "starting"
    RUNNING = "running"
    SUSPENDED = "suspended"
    AWAITING = "awaiting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


class SnapshotError(ValueError):
    """A snapshot has wrong contents, or its history is illegal; the text says where and why."""


@dataclass(frozen=True, slots=True)
class ProcessTransition:
    """A transition that was made.

    ``timestamp`` is UTC by the wall clock; the present, if none is given. ``seq`` counts the transitions of a process
    from 1, and gives their order even if the clock goes backwards (C17). ``metadata`` are copies of those of the move.
    """

    from_state: ProcessState
    to_state: ProcessState
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))
    reason: str = ""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)
    seq: int = field(default=0, compare=False)

    def copy(self) -> ProcessTransition:
        """Return a copy with copied metadata."""
        return replace(self, metadata=deepcopy(self.metadata))

    def to_dict(self) -> dict[str, Any]:
        """Return the five fields of the document; JSON if the metadata are. ``seq`` is the place in the history."""
        return {
            "from_state": self.from_state.value,
            "to_state": self.to_state.value,
            "timestamp": self.timestamp.isoformat(),
            "reason": self.reason,
            "metadata": deepcopy(self.metadata),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProcessTransition:
        """Read the output of ``to_dict``; reason and metadata may be missing. Raises ``SnapshotError``."""
        known = mapping("a transition", data)
        try:
            reason, metadata = string("reason", known.get("reason", "")), copied(known.get("metadata"))
        except TypeError as error:
            raise SnapshotError(str(error)) from error
        moved = read_state("from_state", known), read_state("to_state", known)
        return cls(*moved, _read_time(known.get("timestamp")), reason, metadata)


def read_history(data: object) -> list[ProcessTransition]:
    """Read the transitions of a snapshot. Raises ``SnapshotError``, which says in which one something is wrong."""
    if not isinstance(data, list | tuple):
        raise SnapshotError(f"the history must be a list, not {type(data).__name__}")
    history: list[ProcessTransition] = []
    for place, entry in enumerate(cast("Iterable[object]", data), 1):
        try:
            history.append(ProcessTransition.from_dict(mapping("it", entry)))
        except SnapshotError as error:
            raise SnapshotError(f"transition {place}: {error}") from error
    return history


def read_state(name: str, data: Mapping[str, Any]) -> ProcessState:
    """Read a state from one field. Raises ``SnapshotError``."""
    try:
        return ProcessState(string(name, data.get(name)))
    except (TypeError, ValueError) as error:
        known = ", ".join(state.value for state in ProcessState)
        raise SnapshotError(f"{name} must be one of {known}") from error


def read_count(name: str, data: Mapping[str, Any]) -> int:
    """Read a number from one field, 0 if it is missing. Raises ``SnapshotError``."""
    try:
        return whole(name, data.get(name, 0), COUNTS)
    except (TypeError, ValueError) as error:
        raise SnapshotError(f"{name} must be a number of transitions") from error


def read_flag(name: str, data: Mapping[str, Any]) -> bool:
    """Read a truth value from one field, False if it is missing. Raises ``SnapshotError``."""
    try:
        return yes_or_no(name, data.get(name, False))
    except TypeError as error:
        raise SnapshotError(f"{name} must be true or false") from error


def check_chain(machine: Machine[Process], history: list[ProcessTransition], state: ProcessState) -> None:
    """Raise ``SnapshotError`` unless a history is a chain of the machine's edges that leads to the state (C11)."""
    before = history[0].from_state if history else state
    for place, made in enumerate(history, 1):
        if made.from_state is not before:
            raise SnapshotError(f"transition {place} begins in {made.from_state.value!r}, not in {before.value!r}")
        before = made.to_state
        if before.value not in targets(machine, State(made.from_state.value)):
            edge = f"from {made.from_state.value!r} to {before.value!r}"
            raise SnapshotError(f"transition {place} is not in the table: {edge}")
    if before is not state:
        raise SnapshotError(f"the history leads to {before.value!r}, but the state is {state.value!r}")


def mapping(what: str, value: object) -> dict[str, Any]:
    """Return a mapping as a dict. Raises ``SnapshotError`` if it is none."""
    if not isinstance(value, Mapping):
        raise SnapshotError(f"{what} must be a mapping, not {type(value).__name__}")
    return dict(cast("Mapping[str, Any]", value))


def copied(metadata: object) -> dict[str, Any]:
    """Return a deep copy of metadata, empty for None. Raises ``TypeError`` if they cannot be copied (C13)."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping) or not all(
        isinstance(name, str) for name in cast("Iterable[object]", metadata)
    ):
        raise TypeError("metadata must be a mapping with texts for keys")
    try:
        return {name: deepcopy(value) for name, value in cast("Mapping[str, Any]", metadata).items()}
    except Exception as error:  # copying runs code of the metadata's own
        raise TypeError("metadata must be data that can be copied") from error


def _read_time(value: object) -> datetime:
    """Read an ISO time; one without a zone is UTC."""
    try:
        read = datetime.fromisoformat(string("timestamp", value))
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise SnapshotError("timestamp must be an ISO 8601 time") from error
