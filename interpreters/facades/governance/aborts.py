"""Document 004's abort chain: who is sent SHUTDOWN when a tool, siblings or a session are aborted."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import Final

from lifefold.core.policy.abort import AbortPolicy, AbortScope, Target, affected, descendants
from lifefold.core.policy.reasons import AbortReason
from lifefold.interpreters.facades.arguments import function, instance, one_of, text
from lifefold.interpreters.facades.outbox import FAILURES_KEPT

Shutdown = Callable[[str, AbortReason, str], None]
"""Called with a session, why it is to end, and the words that were said about it."""


class AbortChain:
    """A family of sessions. ``shutdown`` is called once for every session that an abort takes along.

    The nearest are told first, and among them who was spawned first. If ``shutdown`` raises for one of them, the others
    are told nevertheless, and the error is kept in ``failures``. A session is named by a text that is not empty;
    whatever else is given raises ``TypeError`` or ``ValueError``, as does what is no policy, no cause, or cannot be
    called.
    """

    def __init__(self, policy: AbortPolicy = AbortPolicy(), shutdown: Shutdown | None = None) -> None:  # noqa: B008 - an immutable value
        """Begin without a family."""
        self.policy: Final = instance(AbortPolicy, policy)
        self.failures: Final[deque[Exception]] = deque(maxlen=FAILURES_KEPT)
        self._shutdown: Final = None if shutdown is None else function("shutdown", shutdown)
        self._lock: Final = RLock()
        self._parents: Mapping[str, str] = {}

    def __repr__(self) -> str:
        """Say how many sessions have a parent, and by which policy aborts spread."""
        return f"<AbortChain: {len(self._parents)} children, {self.policy}>"

    def register_child(self, parent_id: str, child_id: str) -> None:
        """Record whose child a session is; the first word about it counts."""
        parent, child = text("parent_id", parent_id, empty=False), text("child_id", child_id, empty=False)
        with self._lock:
            if child not in self._parents:
                self._parents = {**self._parents, child: parent}

    def children_of(self, parent_id: str) -> list[str]:
        """Return everybody below a session, the nearest first."""
        return list(descendants(self._parents, text("parent_id", parent_id, empty=False)))

    def abort_tool(self, session_id: str, tool: str = "", reason: str = "") -> list[str]:
        """Abort one tool; return the sessions that this takes along, none by default (E37)."""
        named, why = text("tool", tool), text("reason", reason)
        return self._abort(session_id, AbortScope.TOOL, f"{named}: {why}" if named else why)

    def abort_siblings(self, session_id: str, reason: str = "") -> list[str]:
        """Abort the siblings of a session, with all that is below them (E36)."""
        return self._abort(session_id, AbortScope.SIBLING, reason)

    def abort_session(
        self, session_id: str, reason: str = "", cause: AbortReason = AbortReason.SHUTDOWN_SIGNAL
    ) -> list[str]:
        """Abort a session and all that is below it (E36)."""
        return self._abort(session_id, AbortScope.SESSION, reason, one_of("cause", AbortReason, cause))

    def propagate_abort(self, parent_id: str, reason: str = "") -> list[str]:
        """Abort everybody below a session that is over already."""
        found = descendants(self._parents, text("parent_id", parent_id, empty=False))
        below = [Target(each, AbortReason.PARENT_ABORTED) for each in found]
        return self._tell(below, text("reason", reason))

    def cleanup(self, session_id: str) -> None:
        """Forget a session: whose child it is, and who are its children."""
        gone = text("session_id", session_id, empty=False)
        with self._lock:
            self._parents = {child: of for child, of in self._parents.items() if gone not in (child, of)}

    def _abort(
        self, session_id: str, scope: AbortScope, reason: str, cause: AbortReason = AbortReason.SIBLING_ABORTED
    ) -> list[str]:
        named = text("session_id", session_id, empty=False)
        return self._tell(affected(self._parents, named, scope, self.policy, cause), text("reason", reason))

    def _tell(self, targets: Iterable[Target], reason: str) -> list[str]:
        told: list[str] = []
        for target in targets:
            told.append(target.session)
            if self._shutdown is not None:
                try:
                    self._shutdown(target.session, target.abort_reason, reason)
                except Exception as error:  # noqa: BLE001 - user code: the others are to be told nevertheless
                    self.failures.append(error)
        return told
