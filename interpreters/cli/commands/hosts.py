"""The command ``hosts``: the hosts of a fleet on several machines, as each has said it beside the log's entries."""

import json
from argparse import Namespace

import anyio
import msgspec

from lifefold.interpreters.cli import host_lines, logs
from lifefold.interpreters.cli.fitting import terminal_width, wrapped
from lifefold.interpreters.cli.wording import as_typed
from lifefold.interpreters.fleet_runner.hosts import hosts_of


def hosts(arguments: Namespace) -> None:
    """Print the hosts: state, since when heard, room and use, pools, and the agents that work there."""
    with logs.peek(arguments.db) as store:
        every = anyio.run(hosts_of, store)
        found = [each.status for each in every]
        fleet = store.meta("fleet")
    if arguments.json:
        print(json.dumps([msgspec.to_builtins(each) for each in found], indent=2))
        return
    if not found:
        print(as_typed(f"fleet {fleet}: no host has spoken yet; lifefold host FLEET.toml begins one on a cluster"))
        return
    print(host_lines.table(found, terminal_width()))
    for line in (*host_lines.refusals(found), *host_lines.about_themselves(every)):
        print(*wrapped(line, terminal_width()), sep="\n")
