"""Whether an agent that asks may use a tool: by the ``permissions`` of the agent, before any operator is asked.

The kinds of tools are those of the Agent Client Protocol. *read* looks at files, and refuses what changes them. *edit*
also changes files, inside the worktree only. *all* allows everything. What these words leave open is asked.
"""

from enum import StrEnum
from typing import Final


class Leave(StrEnum):
    """The decision about a request for a tool."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    ASKED = "asked"


LOOKING: Final = frozenset({"read", "search", "think"})
"""The kinds of tools that change nothing."""

CHANGING: Final = frozenset({"edit", "delete", "move"})
"""The kinds of tools that change files."""

RUNNING: Final = "execute"
"""The kind of tools that run a command."""


def leave_of(permissions: str, kind: str, *, is_inside: bool) -> Leave:
    """Decide about a tool of a kind; ``is_inside``: it names what it acts on, and all of that is in the worktree."""
    if permissions == "all":
        return Leave.ALLOWED
    if permissions in {"read", "edit"} and kind in LOOKING:
        return Leave.ALLOWED
    if permissions == "edit" and kind in CHANGING and is_inside:
        return Leave.ALLOWED
    if permissions == "read" and (kind in CHANGING or kind == RUNNING):
        return Leave.REFUSED
    return Leave.ASKED
