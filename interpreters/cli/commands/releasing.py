"""The command ``release``: ends a quarantine, after the cause of its error is fixed."""

from argparse import Namespace
from collections.abc import Iterator, Mapping

from lifefold.core.kernel import Aggregate, EntityReleased
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.fleet_runner.quarantines import quarantined


def release(arguments: Namespace) -> int:
    """Release all quarantined entities of an agent, a service or a task."""
    wanted = arguments.name

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        there = list(quarantined(aggregates))
        meant = [each for each in there if each.name == wanted]
        if not meant:
            names = ", ".join(dict.fromkeys(each.name for each in there))
            known = f"quarantined: {names}" if there else "nothing is quarantined"
            raise BadInput(f"{wanted!r} is not quarantined; {known}")
        for each in meant:
            name = wanted if len(meant) == 1 else f"{wanted} ({each.entity})"
            yield Said(name, each.aggregate, each.entity, EntityReleased(), "is released, and continues in its state")

    return operator_commands.say(arguments.db, judge, "status")
