"""Whose claim somebody's words about a task are about, who proves nothing (E12).

A report with the number of its claim is of that claim. Without one, whoever has ever claimed the task speaks of the
last claim of his own, be it over; so nobody's words can be taken for those of the next owner. Everybody else, as a
janitor or a gate, speaks of the present claim; where nobody owns the task, of none.

What is remembered for that is not the task's: who was its owner decides about none of its transitions. It is a value
beside it, folded over them.
"""

import msgspec

from lifefold.core.kernel import Event
from lifefold.core.lifecycles.task import Claimed, State, Task

UNCLAIMED = frozenset({State.PLANNED, State.OPEN, State.BLOCKED, State.WAITING_FOR_SUBTASKS})
"""In these a task has no owner who could report."""


def owner(actor: str) -> str:
    """Return the name under which an actor owns what it claims; all who do not say theirs have one together."""
    return actor or "anybody"


class Claims(msgspec.Struct, frozen=True):
    """The number of everybody's last claim of one task, by owner."""

    last: dict[str, int] = {}

    def after(self, event: Event, became: Task) -> "Claims":
        """Return the claims after a transition of the task: one more, if it was a claim."""
        return self._with_owner(became) if isinstance(event, Claimed) else self

    def knowing(self, t: Task) -> "Claims":
        """Return the claims with that of the task's owner, who has it without having been seen to claim it."""
        return self if not t.owner or t.owner in self.last else self._with_owner(t)

    def meant_by(self, actor: str, t: Task) -> int:
        """Return the number of the claim that this actor's words are about; 0 for none."""
        return self.last.get(owner(actor), 0 if t.state in UNCLAIMED else t.epoch)

    def _with_owner(self, t: Task) -> "Claims":
        return Claims({**self.last, t.owner: t.epoch})
