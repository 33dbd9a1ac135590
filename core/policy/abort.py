"""The reach of an abort: the document's chain of tool, siblings and session.

The family is one immutable map from each session to its parent, recorded when a session is spawned (E38). Everything
else is derived from it. ``affected`` answers for a scope:

- ``TOOL``: no session. The session goes on without that tool's result.
- ``SIBLING``: the other children of the same parent, each with everything below it. The session itself and the parent
  are not among them (E36).
- ``SESSION``: the session itself and everything below it.

Escalation is opt-in (E37). ``tool_to_sibling`` makes the loss of a tool the loss of its session's siblings.
``sibling_to_session`` makes an abort of siblings the abort of their parent, with everything below it. A session without
a parent has no siblings and nothing to escalate to.

No session is named twice, and a cycle in the map is followed once (E36).
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from lifefold.core.policy.reasons import AbortReason

Parents = Mapping[str, str]
"""The parent of each session that has one, in the order of spawning; answers keep this order.

A map without an order of its own, such as a ``PMap``, orders equal entries by PYTHONHASHSEED.
"""


class AbortScope(StrEnum):
    """The scope of an abort, before any escalation."""

    TOOL = "tool"
    SIBLING = "sibling"
    SESSION = "session"


class AbortPolicy(msgspec.Struct, frozen=True):
    """The scopes that become the next wider one; by default none does (E37)."""

    tool_to_sibling: bool = False
    sibling_to_session: bool = False


class Target(msgspec.Struct, frozen=True):
    """A session to end, and the reason."""

    session: str
    abort_reason: AbortReason


def children(parents: Parents, session: str) -> tuple[str, ...]:
    """Return the children of a session, in the order of the map; the session itself is never among them."""
    return tuple(child for child, parent in parents.items() if parent == session != child)


def siblings(parents: Parents, session: str) -> tuple[str, ...]:
    """Return the other children of the session's parent; none if it has no parent."""
    parent = parents.get(session)
    found = () if parent is None else children(parents, parent)
    return tuple(child for child in found if child != session)


def descendants(parents: Parents, session: str) -> tuple[str, ...]:
    """Return all sessions below a session, the nearest first, each once; never the session itself."""
    return tuple(_below(parents, (session,), frozenset((session,))))


def escalated(scope: AbortScope, policy: AbortPolicy) -> AbortScope:
    """Return the scope that an abort of ``scope`` has under a policy."""
    if scope is AbortScope.TOOL and policy.tool_to_sibling:
        return escalated(AbortScope.SIBLING, policy)
    return AbortScope.SESSION if scope is AbortScope.SIBLING and policy.sibling_to_session else scope


def affected(
    parents: Parents,
    session: str,
    scope: AbortScope,
    policy: AbortPolicy = AbortPolicy(),  # noqa: B008 - an immutable value
    cause: AbortReason = AbortReason.UNKNOWN,
) -> tuple[Target, ...]:
    """Return the sessions to end because of an abort at ``session``, in the order of their abort.

    ``cause`` is the reason of a session that is aborted itself. Sessions below it end because their parent did.
    """
    reach = escalated(scope, policy)
    if reach is AbortScope.TOOL:
        return ()
    if reach is AbortScope.SIBLING:
        return _without_siblings(parents, session)
    root = session if scope is AbortScope.SESSION else parents.get(session)
    if root is None:
        return ()
    return (Target(root, cause), *(Target(each, AbortReason.PARENT_ABORTED) for each in descendants(parents, root)))


def _without_siblings(parents: Parents, session: str) -> tuple[Target, ...]:
    found = siblings(parents, session)
    spared = frozenset((session, parents.get(session, ""), *found))
    below = _below(parents, found, spared)
    return (
        *(Target(each, AbortReason.SIBLING_ABORTED) for each in found),
        *(Target(each, AbortReason.PARENT_ABORTED) for each in below),
    )


def _below(parents: Parents, roots: tuple[str, ...], seen: frozenset[str]) -> Iterator[str]:
    """Yield the sessions below the roots, level by level, without those in ``seen`` and everything below these."""
    level = roots
    while level:
        found = (child for each in level for child in children(parents, each))
        level = tuple(dict.fromkeys(child for child in found if child not in seen))
        seen |= frozenset(level)
        yield from level
