"""The agent to promote for a task that is blocked because no agent has the trust that it requires."""

from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.kernel import Aggregate


def agent_to_promote(of: Aggregate, task: fleet_task.FleetTask) -> str:
    """Return the agent with the task's role whose level is the highest; empty if no agent that stays has the role.

    ``of`` is the board. Each promotion is one level, so that the agent may need several.
    """
    slots = ((ref, each) for ref, each in of.entities.items() if ref.startswith("worker_slot:"))
    staying = {
        ref.removeprefix("worker_slot:"): each.record
        for ref, each in slots
        if each.state in worker_slot.PRESENT and not each.record.leaves
    }
    able = sorted(name for name, slot in staying.items() if slot.may_take(task.role))
    return max(able, key=lambda name: staying[name].level, default="")
