"""What an agent does with its own task: read it, split it, report an aborted tool."""

import json
from collections.abc import Mapping, Sequence

from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli import inside, logs, operator_commands
from lifefold.interpreters.cli.agent_tools.claim import Claim
from lifefold.interpreters.cli.commands import aborting, adding
from lifefold.interpreters.cli.errors import BadInput


def task(claim: Claim) -> str:
    """Return the task of a claim as JSON: what is to be done, and how it is verified."""
    with logs.peek(str(claim.log)) as store:
        aggregates = logs.fold(store).aggregates
    return json.dumps(_described(aggregates, claim), ensure_ascii=False)


def _described(aggregates: Mapping[str, Aggregate], claim: Claim) -> dict[str, object]:
    ref = f"task:{claim.task}"
    if board.NAME not in aggregates or ref not in aggregates[board.NAME].entities:
        raise BadInput(f"the board has no task {claim.task}")
    record: fleet_task.FleetTask = aggregates[board.NAME].record(ref)
    return {
        "id": record.id,
        "state": record.state,
        "prompt": record.prompt,
        "verify": record.verify,
        "files": record.files,
        "depends_on": record.depends_on,
        "parts": record.parts_of_it(),
        "max_subtasks": record.most_subtasks,
        "retries": record.retries,
        "max_retries": record.max_retries,
        "failure": record.failure,
        "is_yours": (record.owner, record.epoch, record.token) == (claim.agent, claim.epoch, claim.secret),
    }


def split(claim: Claim, parts: Sequence[object]) -> str:
    """Split the task of a claim into parts, and return the answer. Raises ``BadInput`` with the reason of a refusal."""
    if not 1 <= len(parts) <= fleet_task.MOST_SUBTASKS:
        raise BadInput(f"parts: found {len(parts)}; accepted: 1 to {fleet_task.MOST_SUBTASKS}")
    judge = adding.splitting(claim.task, claim.epoch, claim.secret, adding.parts_of(parts))
    return operator_commands.answer_to_a_session(str(claim.log), judge)


def report(claim: Claim, tool: str, reason: str) -> str:
    """Report that a call of a tool was aborted. Raises ``BadInput`` with the reason of a refusal."""
    operator_commands.must_be_text("tool", tool)
    if reason:
        operator_commands.must_be_text("reason", reason)
    event = fleet_task.ToolAborted(claim.epoch, inside.hidden(tool), inside.hidden(reason), claim.secret)
    return operator_commands.answer_to_a_session(str(claim.log), aborting.judged(claim.task, event))
