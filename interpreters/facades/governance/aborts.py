"""The abort chain of document 004: the sessions that get SHUTDOWN when a tool, siblings or a session are aborted."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import Final

from lifefold.core.policy.abort import AbortPolicy, AbortScope, Target, affected, descendants
from lifefold.core.policy.reasons import AbortReason
from lifefold.interpreters.facades.arguments import function, instance, one_of, text
from lifefold.interpreters.facades.outbox import FAILURES_KEPT

Shutdown = Callable[[str, AbortReason, str], None]
"""Called with a session, the cause of its end, and a free text."""


class AbortChain:
    """A family of sessions. ``shutdown`` is called once for every session that an abort affects.

    The nearest sessions come first, and among them the earliest spawned. If ``shutdown`` raises for one session, the
    calls for the others follow, and the error is kept in ``failures``. A session is named by a text that is not empty.
    Arguments of other types raise ``TypeError`` or ``ValueError``.
    """

    def __init__(self, policy: AbortPolicy = AbortPolicy(), shutdown: Shutdown | None = None) -> None:  # noqa: B008 - an immutable value
        """Start without sessions."""
        self.policy: Final = instance(AbortPolicy, policy)
        self.failures: Final[deque[Exception]] = deque(maxlen=FAILURES_KEPT)
        self._shutdown: Final = None if shutdown is None else function("shutdown", shutdown)
        self._lock: Final = RLock()
        self._parents: Mapping[str, str] = {}

    def __repr__(self) -> str:
        """Return the number of sessions with a parent, and the policy."""
        return f"<AbortChain: {len(self._parents)} children, {self.policy}>"

    def register_child(self, parent_id: str, child_id: str) -> None:
        """Record the parent of a session; the first record counts."""
        parent, child = text("parent_id", parent_id, empty=False), text("child_id", child_id, empty=False)
        with self._lock:
            if child not in self._parents:
                self._parents = {**self._parents, child: parent}

    def children_of(self, parent_id: str) -> list[str]:
        """Return all descendants of a session, the nearest first."""
        return list(descendants(self._parents, text("parent_id", parent_id, empty=False)))

    def abort_tool(self, session_id: str, tool: str = "", reason: str = "") -> list[str]:
        """Abort one tool; return the sessions that this affects, none by default (E37)."""
        named, why = text("tool", tool), text("reason", reason)
        return self._abort(session_id, AbortScope.TOOL, f"{named}: {why}" if named else why)

    def abort_siblings(self, session_id: str, reason: str = "") -> list[str]:
        """Abort the siblings of a session, with their descendants (E36)."""
        return self._abort(session_id, AbortScope.SIBLING, reason)

    def abort_session(
        self, session_id: str, reason: str = "", cause: AbortReason = AbortReason.SHUTDOWN_SIGNAL
    ) -> list[str]:
        """Abort a session and its descendants (E36)."""
        return self._abort(session_id, AbortScope.SESSION, reason, one_of("cause", AbortReason, cause))

    def propagate_abort(self, parent_id: str, reason: str = "") -> list[str]:
        """Abort all descendants of a session that is over already."""
        found = descendants(self._parents, text("parent_id", parent_id, empty=False))
        below = [Target(each, AbortReason.PARENT_ABORTED) for each in found]
        return self._shut_down(below, text("reason", reason))

    def cleanup(self, session_id: str) -> None:
        """Forget a session: its parent and its children."""
        gone = text("session_id", session_id, empty=False)
        with self._lock:
            self._parents = {child: of for child, of in self._parents.items() if gone not in (child, of)}

    def _abort(
        self, session_id: str, scope: AbortScope, reason: str, cause: AbortReason = AbortReason.SIBLING_ABORTED
    ) -> list[str]:
        named = text("session_id", session_id, empty=False)
        return self._shut_down(affected(self._parents, named, scope, self.policy, cause), text("reason", reason))

    def _shut_down(self, targets: Iterable[Target], reason: str) -> list[str]:
        sessions: list[str] = []
        for target in targets:
            sessions.append(target.session)
            if self._shutdown is not None:
                try:
                    self._shutdown(target.session, target.abort_reason, reason)
                except Exception as error:  # noqa: BLE001 - user code: the calls for other sessions must follow
                    self.failures.append(error)
        return sessions
