"""The command by which people say how far an agent is trusted: ``trust``, in a fleet that gates anything (E34, E35)."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lifefold.core.fleet import board, seat
from lifefold.core.kernel import Aggregate
from lifefold.core.policy.access import Trust, demoted, promoted, violated
from lifefold.interpreters.cli import posting
from lifefold.interpreters.cli.commands.deciding import nobody_left
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.posting import REFUSED, Refused, Said

_MOVES: Final[Mapping[str, tuple[type[seat.Judged], Callable[[Trust], Trust]]]] = {
    "promote": (seat.Promoted, promoted),
    "demote": (seat.Demoted, demoted),
    "violation": (seat.Violated, violated),
}


def trust(arguments: Namespace) -> int:
    """Promote or demote an agent by one level, or record a violation."""
    posting.must_be_text("the reason", arguments.reason)
    kind, move = _MOVES[arguments.move]

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        of, name = aggregates[board.NAME], arguments.agent
        seats = {ref.removeprefix("seat:"): of.record(ref) for ref in of.entities if ref.startswith("seat:")}
        must_be_there("agent", [name], sorted(seats))
        sat: seat.Seat = seats[name]
        why = _obstacle(of, sat, move)
        if sat.trust is None or why:
            yield Refused(name, f"{REFUSED}{why}")
        else:
            yield Said(name, board.NAME, f"seat:{name}", kind(arguments.reason), _outcome(sat.trust, move(sat.trust)))

    return posting.say(arguments.db, judge, "status")


def _obstacle(of: Aggregate, sat: seat.Seat, move: Callable[[Trust], Trust]) -> str:
    """Say why nothing would come of it; nothing if something does."""
    if sat.trust is None:
        return "this fleet gates nothing, because its file has no gates and no trust; everybody may do everything"
    if sat.state is seat.State.GONE:
        return "it has stopped, for good"
    if move(sat.trust) == sat.trust:
        return f"it is {sat.trust.level.word} already{', and has no violations' if sat.trust.level else ''}"
    return nobody_left(of)


def _outcome(before: Trust, after: Trust) -> str:
    level = f"it is {'still ' if before.level is after.level else ''}{after.level.word}"
    if after.violations:
        return f"{level}, and rises only when a person promotes it: violations, {after.violations}"
    return f"{level}; its violations are forgiven" if before.violations else level
