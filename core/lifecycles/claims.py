"""The claim that a report without a proof is about (E12).

A report with the number of its claim is about that claim. A report without one, by an agent with a claim of the task,
is about that agent's last claim, even if it is over. So no report of an agent can be taken for one of the next owner. A
report by any other actor, such as a janitor or a gate, is about the present claim, or about none.

The numbers are not part of the task: earlier owners decide about none of its transitions. They are a value beside it,
folded over its transitions.
"""

import msgspec

from lifefold.core.kernel import Event
from lifefold.core.lifecycles.task import Claimed, State, Task

UNCLAIMED = frozenset({State.PLANNED, State.OPEN, State.BLOCKED, State.WAITING_FOR_SUBTASKS})
"""The states of a task without an owner who could report."""


def owner(actor: str) -> str:
    """Return the name under which an actor owns its claims; all actors without a name share one."""
    return actor or "anybody"


class Claims(msgspec.Struct, frozen=True):
    """The number of each owner's last claim of one task."""

    last: dict[str, int] = {}

    def after(self, event: Event, became: Task) -> "Claims":
        """Return the claims after a transition of the task, with one more after a claim."""
        return self._with_owner(became) if isinstance(event, Claimed) else self

    def knowing(self, t: Task) -> "Claims":
        """Return the claims with that of the task's owner, even if its claim was not observed."""
        return self if not t.owner or t.owner in self.last else self._with_owner(t)

    def meant_by(self, actor: str, t: Task) -> int:
        """Return the number of the claim that this actor's report is about; 0 for none."""
        return self.last.get(owner(actor), 0 if t.state in UNCLAIMED else t.epoch)

    def _with_owner(self, t: Task) -> "Claims":
        return Claims({**self.last, t.owner: t.epoch})
