"""The command ``unit``: prints a systemd unit that keeps the runner of a fleet alive."""

import os
import sys
from argparse import Namespace
from pathlib import Path

from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.service_unit import unit as unit_of
from lifefold.interpreters.fleet_file import FleetFileError, load
from lifefold.interpreters.store.address import is_address, read_address


def unit(arguments: Namespace) -> None:
    """Print the unit of a fleet file."""
    try:
        fleet = load(Path(arguments.fleet), watch=arguments.watch)
    except FleetFileError as error:
        raise BadInput(str(error)) from error
    options = ["--watch"] if arguments.watch else []
    if arguments.serve is not None:
        options.append(f"--serve={arguments.serve}")
    if arguments.db:
        is_on_server = is_address(arguments.db)
        log = read_address(arguments.db) if is_on_server else logs.named(arguments.db).absolute()
        options.append(f"--db={log}")
    print(unit_of(fleet, (*_program(), "run", str(fleet.source), *options), os.environ.get("PATH", os.defpath)), end="")


def _program() -> tuple[str, ...]:
    """Return the absolute path of this program: its script beside the interpreter, or else its module.

    The module is not looked for in the working directory (``-P``), which may have a folder of that name.
    """
    script = Path(sys.executable).with_name("lifefold")
    return (str(script),) if script.is_file() else (sys.executable, "-P", "-m", "lifefold.interpreters.cli")
