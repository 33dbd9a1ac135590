"""The hosts of a fleet on several machines as rows and lines: state, room, use, agents, and when each was heard."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lifefold.interpreters.cli.fitting import fitted
from lifefold.interpreters.cli.wording import age, by_number
from lifefold.interpreters.fleet_runner.hosts import AT_WORK, Host, HostStatus

_FIRST_OUT: Final = ("PROCESS", "MACHINE", "POOLS")
"""The columns that a narrow terminal leaves out first, in this order."""

MOST_LINES: Final = 12
"""The most hosts in the status of a fleet; ``lifefold hosts`` has all of them."""


def table(hosts: Sequence[HostStatus], width: int | None) -> str:
    """Return a table of hosts, at most ``width`` characters wide."""
    rows: list[tuple[str, ...]] = [
        ("HOST", "STATE", "HEARD", "USED", "POOLS", "AGENTS", "MACHINE", "PROCESS"),
        *map(_row, sorted(hosts, key=lambda host: by_number(host.name))),
    ]
    return fitted(rows, width, first_out=_FIRST_OUT, shortened=("AGENTS", "HOST"), note=width is None)


def _row(of: HostStatus) -> tuple[str, ...]:
    pools = ", ".join(f"{each.name} {each.used}/{each.room}" for each in of.pools)
    agents = ", ".join(sorted(of.agents, key=by_number))
    state = f"{of.state}, takes no work" if of.refuses and of.state == AT_WORK else of.state
    heard = f"{age(of.silent_ms)} ago"
    return of.name, state, heard, f"{of.used}/{of.room}", pools, agents or "-", of.machine, str(of.process)


def refusals(hosts: Iterable[HostStatus]) -> Iterator[str]:
    """Yield a line for each host that takes no work, with the reason."""
    for each in sorted(hosts, key=lambda host: by_number(host.name)):
        if each.refuses and each.state == AT_WORK:
            yield f"host {each.name} takes no work: {each.refuses}"


def about_themselves(hosts: Iterable[Host]) -> Iterator[str]:
    """Yield a line for each host that is not lost and tells of itself, such as that another process has its name."""
    for each in sorted(hosts, key=lambda host: by_number(host.status.name)):
        about = f"host {each.status.name}"
        yield from (
            f"{about} {told.message}" for told in each.said.standing if told.agent == about and not each.is_lost
        )


def briefly(hosts: Iterable[HostStatus]) -> list[tuple[str, bool]]:
    """Return each host in a few words, and whether it needs the attention of an operator."""
    found = list[tuple[str, bool]]()
    for each in sorted(hosts, key=lambda host: by_number(host.name)):
        is_well = each.state == AT_WORK and not each.refuses
        after = "" if is_well else f" {'takes no work' if each.state == AT_WORK else each.state}"
        silent = f" for {age(each.silent_ms)}" if each.state == "lost" else ""
        found.append((f"{each.name} {each.used}/{each.room}{after}{silent}", not is_well))
    return found
