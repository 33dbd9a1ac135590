"""Document 002's interface: ``ProcessLifecycle``, its states, its records, its errors.

The possible moves are those of ``process.by_hand``, a profile of the machine in which only the caller moves a process.
This module adds the calls, the errors, and the audit history.

*Safe in several threads and tasks* (C1): moves are made in sequence, each with its record, under a lock that is never
held over an ``await``. So a transition is never incomplete, and never cancelled halfway.

*Two moves at once need not exclude each other.* The document's last sample requests SUSPENDED and STOPPING at the same
time, and states that one of them fails. By its table both succeed, because SUSPENDED may go to STOPPING. Only if
STOPPING comes first does the other one fail (C2). A caller that needs a single winner passes the expected state:
``expected_from=ProcessState.RUNNING``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import RLock
from typing import Any, Final

from lifefold.core.kernel import Entity, Machine
from lifefold.core.lifecycles import process
from lifefold.core.lifecycles.process import AT_REST, MoveRequested, Orphaned, Process, State
from lifefold.effects import Effect
from lifefold.interpreters.facades.arguments import string, whole
from lifefold.interpreters.facades.driver import Driver, RefusedError, wall_ms
from lifefold.interpreters.facades.moves import targets
from lifefold.interpreters.facades.process.history import (
    COUNTS,
    ProcessState,
    ProcessTransition,
    check_chain,
    copied,
    mapping,
    read_count,
    read_flag,
    read_history,
    read_state,
)
from lifefold.interpreters.facades.refusals import Refusal

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXPECTABLE: Final[dict[str | None, State | None]] = {None: None} | {state.value: state for state in State}
"""The possible values of ``expected_from``, by name."""


class StateError(Refusal):
    """A move that is not possible; nothing has changed.

    For a target outside the table, the text is the one in the document: one string of two lines. The allowed targets
    are in the order of their values (C10)::

        Cannot transition from 'created' to 'running'.
        Allowed targets: ['starting', 'stopped']

    It begins with ``Process 'x': `` if the process has an id. ``current`` is the present state. ``target`` is the
    requested state, or the caller's text if that is no state; it is None for a removal.
    """

    def __init__(self, message: str, current: ProcessState, target: str | None = None) -> None:
        """Take the message, and the two states."""
        super().__init__(message)
        self.current, self.target = current, target


class ProcessLifecycle:
    """The state machine of one process, with its history.

    Errors name ``process_id``. ``history_limit`` is the number of newest transitions that are kept; None keeps all
    (C14). ``machine`` is ``process.by_hand`` or a profile of it, such as ``process.by_hand_1_5``. ``clock`` returns
    Unix time in milliseconds. Raises ``TypeError`` or ``ValueError`` for invalid arguments.
    """

    def __init__(
        self,
        initial: ProcessState = ProcessState.CREATED,
        *,
        process_id: str = "",
        history_limit: int | None = None,
        machine: Machine[Process] = process.by_hand,
        clock: Callable[[], int] = wall_ms,
    ) -> None:
        """Begin in ``initial``."""
        self.process_id: Final = string("process_id", process_id)
        self.history_limit: Final = None if history_limit is None else whole("history_limit", history_limit, COUNTS[1:])
        ignored: Mapping[type[Effect], Callable[[Any], None]] = {e: _ignore for r in machine.rows for e in r.effects}
        found = process.found(State(string("initial", initial)))
        self._life: Final = Driver(machine, found, ignored, commit=self._record, clock=clock)
        self._given: tuple[str, dict[str, Any]] = ("", {})
        self._lock: Final = RLock()
        self._history: Final[deque[ProcessTransition]] = deque(maxlen=self.history_limit)
        self._made = 0
        self._removed = False

    def __repr__(self) -> str:
        """Return the process's id, its state, and the number of its transitions."""
        return f"<ProcessLifecycle {self.process_id!r}: {self.state.value}, {self._made} transitions>"

    @property
    def state(self) -> ProcessState:
        """The current state."""
        return ProcessState(self._life.record.state.value)

    @property
    def history(self) -> list[ProcessTransition]:
        """The kept transitions, in order: a new list of copies (C13)."""
        with self._lock:
            kept = list(self._history)
        return [made.copy() for made in kept]

    @property
    def dropped(self) -> int:
        """The number of transitions that the history has dropped because of its limit (C14)."""
        with self._lock:
            return self._made - len(self._history)

    @property
    def is_removed(self) -> bool:
        """Whether the process was removed (C16)."""
        return self._removed

    def can_transition(self, target: ProcessState) -> bool:
        """Tell whether the table leads from the present state to the target; False for a value that is no state."""
        return target in self._allowed(self._life.record.state)

    async def transition(
        self,
        target: ProcessState,
        reason: str = "",
        metadata: Mapping[str, Any] | None = None,
        expected_from: ProcessState | None = None,
    ) -> ProcessTransition:
        """Move to the target and return the record; with ``expected_from``, only from that state (C2).

        Raises ``StateError`` if that is not possible, ``TypeError`` for arguments of the wrong type. It waits for
        nothing, so it may be awaited in any event loop, and in several at once.
        """
        return self.move(target, reason, metadata, expected_from)

    def move(
        self,
        target: ProcessState,
        reason: str = "",
        metadata: Mapping[str, Any] | None = None,
        expected_from: ProcessState | None = None,
    ) -> ProcessTransition:
        """Do what ``transition`` does, without a loop."""
        wanted, why, kept = string("target", target), string("reason", reason), copied(metadata)
        own = copied(kept)
        expected = None if expected_from is None else string("expected_from", expected_from)
        with self._lock:
            allowed = self._allowed(self._life.record.state)
            if self._removed:
                raise self._error(wanted, "The process was removed.")
            if wanted not in allowed:
                raise self._error(wanted, f"Allowed targets: {allowed}")
            if expected not in _EXPECTABLE:
                raise self._error(wanted, f"Expected state: {expected!r}")
            try:
                made = self._take(MoveRequested(State(wanted), why, _EXPECTABLE[expected]), why, kept)
            except RefusedError as error:
                raise self._error(wanted, f"Expected state: {expected!r}") from error
        return replace(made, metadata=own)

    def recover(self) -> ProcessTransition | None:
        """Fail a process that was live when its runner died, with the reason "orphaned" (C12).

        Returns None for a process at rest, which does not change.
        """
        with self._lock:
            try:
                return self._take(Orphaned(), "orphaned", {}).copy()
            except RefusedError:
                return None

    def remove(self) -> None:
        """Remove the process for good: it can be read, and never moves again (C16).

        Raises ``StateError`` for a live process, which must be stopped first.
        """
        with self._lock:
            if self._life.record.state not in AT_REST:
                message = f"{self._who()}Cannot remove while {self.state.value!r}.\nStop it first."
                raise StateError(message, self.state)
            self._removed = True

    def snapshot(self) -> dict[str, Any]:
        """Return state and history, as JSON values if the metadata are.

        ``dropped`` is present if the history has dropped transitions, ``removed`` if the process was removed.
        """
        with self._lock:
            state, history, dropped, removed = self.state, list(self._history), self.dropped, self._removed
        written: dict[str, Any] = {"state": state.value, "history": [made.to_dict() for made in history]}
        return written | ({"dropped": dropped} if dropped else {}) | ({"removed": True} if removed else {})

    @classmethod
    def from_snapshot(
        cls,
        data: Mapping[str, Any],
        *,
        strict: bool = True,
        machine: Machine[Process] = process.by_hand,
        **options: Any,
    ) -> ProcessLifecycle:
        """Restore a snapshot for the audit. Call ``recover`` if the process may be dead (C12).

        With ``strict``, each transition must be in the table, and begin in the state where the one before it ended. The
        last one must lead to the state (C11). ``options`` are those of the constructor. Raises ``SnapshotError``.
        """
        known = mapping("a snapshot", data)
        state, history = read_state("state", known), read_history(known.get("history", []))
        if strict:
            check_chain(machine, history, state)
        restored = cls(state, machine=machine, **options)
        restored._made = read_count("dropped", known)
        restored._removed = read_flag("removed", known)
        for made in history:
            restored._keep(made)
        return restored

    def _allowed(self, state: State) -> list[str]:
        """Return the values of the allowed targets, in their order."""
        return [] if self._removed else sorted(target.value for target in targets(self._life.machine, state))

    def _take(self, event: MoveRequested | Orphaned, reason: str, metadata: dict[str, Any]) -> ProcessTransition:
        """Send an event to the machine, and return the kept record. Raises ``RefusedError``."""
        self._given = reason, metadata
        self._life.take(event)
        return self._history[-1]

    def _record(self, before: Entity[Process], after: Entity[Process]) -> None:
        """Keep the record of a move before it is committed; an error prevents the move."""
        moved = ProcessState(before.state.value), ProcessState(after.state.value)
        self._keep(ProcessTransition(*moved, _EPOCH + timedelta(milliseconds=after.entered_ms), *self._given))

    def _keep(self, made: ProcessTransition) -> None:
        """Number a record and keep it; the oldest one is dropped if there are too many."""
        self._history.append(replace(made, seq=self._made + 1))
        self._made += 1

    def _error(self, wanted: str, why: str) -> StateError:
        message = f"{self._who()}Cannot transition from {self.state.value!r} to {wanted!r}.\n{why}"
        return StateError(message, self.state, ProcessState(wanted) if wanted in {*ProcessState} else wanted)

    def _who(self) -> str:
        return f"Process {self.process_id!r}: " if self.process_id else ""


def _ignore(_effect: object) -> None:
    """Do nothing: a caller that moves a process by hand also performs its effects."""
