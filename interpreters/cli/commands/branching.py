"""The command ``branch --accept``: accepts the target branch at the commit to which an agent has moved it."""

from argparse import Namespace
from collections.abc import Iterator, Mapping

from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.operator_commands import Said


def branch(arguments: Namespace) -> int:
    """Accept the branch for every agent with a merge that waits for it; the agents merge then."""
    if arguments.reason:
        operator_commands.must_be_text("the reason", arguments.reason)

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said]:
        for name, work in _disputed(aggregates):
            accepted = assignment.BranchAccepted(work.found, arguments.reason)
            done = f"the branch is accepted at {work.found[:12]}, and {work.brief.task} is merged"
            yield Said(name.partition("/")[2], name, "assignment", accepted, done)

    return operator_commands.say(arguments.db, judge, "status")


def _disputed(aggregates: Mapping[str, Aggregate]) -> list[tuple[str, assignment.Assignment]]:
    """Return the workers whose merge is disputed, each with its assignment. Raises ``BadInput`` if there are none."""
    workers = [(name, each.record("assignment")) for name, each in aggregates.items() if each.kind == worker.KIND]
    found = [(name, work) for name, work in sorted(workers) if work.state is assignment.State.DISPUTED]
    if not found:
        raise BadInput("no merge waits for a moved branch: no agent has moved the target branch; nothing is accepted")
    return found
