"""The command ``init``."""

import shlex
from argparse import Namespace
from pathlib import Path

from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.wording import this_command
from lifefold.interpreters.demo.project import ScaffoldError, write_init


def init(arguments: Namespace) -> None:
    """Write a fleet file and an example agent."""
    try:
        written = write_init(Path(arguments.folder))
    except (ScaffoldError, OSError) as error:
        raise BadInput(str(error)) from error
    for path in written.files:
        print(f"wrote {path}")
    for note in written.notes:
        print(note)
    print(f"next: look at {written.fleet_file}, then  {this_command()} run {shlex.quote(str(written.fleet_file))}")
