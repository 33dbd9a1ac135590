"""The command ``resume --account``: tries an account again that rests after a limit."""

from argparse import Namespace
from collections.abc import Iterator, Mapping

from lifefold.core.fleet.board import account
from lifefold.core.fleet.dispatch import accounts
from lifefold.core.fleet.system import board
from lifefold.core.kernel import Aggregate
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.engine import REFUSED

_DONE = "it is tried with one session; its success lets the others go on"


def lift_rest(arguments: Namespace) -> int:
    """End the rest of an account before its time. Raises ``BadInput`` for agents beside an account."""
    if arguments.agents:
        raise BadInput("resume: found agents and --account; accepted: one of both")

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        of, name = aggregates[board.NAME], arguments.account
        must_be_there("account", [name], [each.ref.partition(":")[2] for each in accounts.accounts_of(of)])
        ref = accounts.ref_of(name)
        if of.entities[ref].state is account.State.RESTING:
            yield Said(name, board.NAME, ref, account.RestLifted(), _DONE)
        else:
            yield Refused(name, f"{REFUSED}it does not rest")

    return operator_commands.say(arguments.db, judge, "status")
