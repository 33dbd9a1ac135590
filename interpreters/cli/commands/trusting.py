"""The command by which people say how far an agent is trusted: ``trust``, in a fleet that gates anything (E34, E35)."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate
from lifefold.core.policy.access import Trust, demoted, promoted, violated
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.cli.commands.deciding import nobody_left
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.operator_commands import REFUSED, Refused, Said

_MOVES: Final[Mapping[str, tuple[type[worker_slot.Judged], Callable[[Trust], Trust]]]] = {
    "promote": (worker_slot.Promoted, promoted),
    "demote": (worker_slot.Demoted, demoted),
    "violation": (worker_slot.Violated, violated),
}


def trust(arguments: Namespace) -> int:
    """Promote or demote an agent by one level, or record a violation."""
    operator_commands.must_be_text("the reason", arguments.reason)
    kind, move = _MOVES[arguments.move]

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        of, name = aggregates[board.NAME], arguments.agent
        worker_slots = {
            ref.removeprefix("worker_slot:"): of.record(ref) for ref in of.entities if ref.startswith("worker_slot:")
        }
        must_be_there("agent", [name], sorted(worker_slots))
        sat: worker_slot.WorkerSlot = worker_slots[name]
        why = _obstacle(of, sat, move)
        if sat.trust is None or why:
            yield Refused(name, f"{REFUSED}{why}")
        else:
            yield Said(
                name, board.NAME, f"worker_slot:{name}", kind(arguments.reason), _outcome(sat.trust, move(sat.trust))
            )

    return operator_commands.say(arguments.db, judge, "status")


def _obstacle(of: Aggregate, sat: worker_slot.WorkerSlot, move: Callable[[Trust], Trust]) -> str:
    """Say why nothing would come of it; nothing if something does."""
    if sat.trust is None:
        return "this fleet gates nothing, because its file has no gates and no trust; everybody may do everything"
    if sat.state is worker_slot.State.GONE:
        return "it has stopped, for good"
    if move(sat.trust) == sat.trust:
        return f"it is {sat.trust.level.word} already{', and has no violations' if sat.trust.level else ''}"
    return nobody_left(of)


def _outcome(before: Trust, after: Trust) -> str:
    level = f"it is {'still ' if before.level is after.level else ''}{after.level.word}"
    if after.violations:
        return f"{level}, and rises only when a person promotes it: violations, {after.violations}"
    return f"{level}; its violations are forgiven" if before.violations else level
