"""The commands ``copy`` and ``move``: a log between a file and a server, with the same entries and links."""

from argparse import Namespace

from lifefold.interpreters.cli import logs
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.store import Locked
from lifefold.interpreters.store.address import is_address, read_address
from lifefold.interpreters.store.copying import copy_log, move_log
from lifefold.interpreters.store.pointer import address_of

FILE = "file"
"""The word for a file as the target of ``move``."""


def copy(arguments: Namespace) -> None:
    """Copy a log. Raises ``BadInput``."""
    log, target = logs.find_log(arguments.origin), logs.named(arguments.target)
    if address_of(target) is None and not target.absolute().parent.is_dir():
        raise BadInput(f"{target}: {target.absolute().parent} is not a folder; accepted: a file in an existing folder")
    try:
        anchor = copy_log(log, target)
    except Locked as error:
        raise BadInput(str(error)) from error
    except FileExistsError as error:
        raise BadInput(f"{error}: is there already; accepted: the place of a new log") from error
    print(f"copied {anchor.entries:,} entries of {log} to {address_of(target) or target}")
    print(f"its newest link is that of the original: {anchor.link.hex()[:16]}")


def move(arguments: Namespace) -> None:
    """Move a log to a server, or back into a file; its path stays. Raises ``BadInput``."""
    if arguments.to != FILE and not is_address(arguments.to):
        raise BadInput(f"--to {arguments.to}: accepted: {FILE}, or postgresql://USER@HOST:PORT/DATABASE?log=NAME")
    log = logs.find_log(arguments.origin)
    address = None if arguments.to == FILE else read_address(arguments.to)
    if address is None and address_of(log) is None:
        raise BadInput(f"{log}: is in a file already")
    try:
        old, anchor = move_log(log, address)
    except Locked as error:
        raise BadInput(str(error)) from error
    except FileExistsError as error:
        raise BadInput(f"{error}: is there already; remove it, or choose another name") from error
    print(f"moved {log} with {anchor.entries:,} entries to {address or 'a file'}; commands find it at the same path")
    print(f"the log as it was is kept: {old}")
