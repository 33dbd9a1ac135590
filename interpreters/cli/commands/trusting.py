"""The command ``trust``: changes the trust of an agent, in a fleet with gates (E34, E35: levels and violations)."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lifefold.core.fleet.board import worker_slot
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate
from lifefold.core.policy.access import Trust, demoted, promoted, violated
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.cli.commands.deciding import no_agent_left
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.operator_commands import REFUSED, Refused, Said
from lifefold.interpreters.explain.why.phrases import count

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
        slots = {
            ref.removeprefix("worker_slot:"): of.record(ref) for ref in of.entities if ref.startswith("worker_slot:")
        }
        must_be_there("agent", [name], sorted(slots))
        slot: worker_slot.WorkerSlot = slots[name]
        why = _obstacle(of, slot, move)
        if slot.trust is None or why:
            yield Refused(name, f"{REFUSED}{why}")
        else:
            yield Said(
                name, board.NAME, f"worker_slot:{name}", kind(arguments.reason), _outcome(slot.trust, move(slot.trust))
            )

    return operator_commands.say(arguments.db, judge, "status")


def _obstacle(of: Aggregate, slot: worker_slot.WorkerSlot, move: Callable[[Trust], Trust]) -> str:
    """Return why the command would change nothing; empty if it would."""
    if slot.trust is None:
        return "this fleet gates nothing, because its file has no gates and no trust; every agent may do everything"
    if why := no_agent_left(of, "trust counts no more in this log; a new log has the trust of the fleet file"):
        return why
    if slot.state is worker_slot.State.GONE:
        return "it has stopped, for good"
    if move(slot.trust) == slot.trust:
        return f"it is {slot.trust.level.word} already{', and has no violations' if slot.trust.level else ''}"
    return ""


def _outcome(before: Trust, after: Trust) -> str:
    level = f"it is {'still ' if before.level is after.level else ''}{after.level.word}"
    if after.violations:
        return f"{level}, with {count(after.violations, 'violation')}, and rises only when an operator promotes it"
    return f"{level}; its violations are forgiven" if before.violations else level
