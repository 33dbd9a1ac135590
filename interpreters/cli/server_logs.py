"""The paths of logs on servers: a command line names such a log by its address, and all else by its path.

The path is that of a pointer (``lifefold.interpreters.store.pointer``), and the files of the fleet are beside it. A
pointer that is known is used: one in ``.lifefold`` here, or one of a fleet that has run on this machine. Otherwise a
run gets the path of its fleet's log. A command that reads gets a path in the folder of this user's state.
"""

from argparse import Namespace
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from lifefold.interpreters.desk import registry
from lifefold.interpreters.processes.private import make_private
from lifefold.interpreters.store import NotAStore
from lifefold.interpreters.store.address import Address, is_address, read_address
from lifefold.interpreters.store.opening import is_on_server
from lifefold.interpreters.store.pointer import address_of, announce, write_pointer

FOLDER: Final = ".lifefold"
"""The folder of the logs of a folder."""

_ATTRIBUTES: Final = ("db", "log", "logs", "names", "origin", "target")
"""The arguments of commands that name logs."""

_FIRST_OF_TWO: Final = "task"
"""The argument of ``diff`` that names the first of two logs, if there is another one."""


def with_paths(arguments: Namespace) -> None:
    """Replace the addresses of logs in the arguments of a command by paths. Raises ``NotAStore``, ``StoreError``."""
    if hasattr(arguments, "fleet"):
        return  # the fleet's file says where the log of a run belongs
    for name in (*_ATTRIBUTES, *([_FIRST_OF_TWO] if isinstance(getattr(arguments, "log", None), list) else [])):
        given: str | list[str] | None = getattr(arguments, name, None)
        if given is not None:
            paths = _with_path(given) if isinstance(given, str) else [_with_path(each) for each in given]
            setattr(arguments, name, paths)


def path_of(text: str, folder: Path | None = None, name: str = "") -> Path:
    """Return the path of the log with this address; a run gives the folder and the name of its fleet.

    Raises ``NotAStore`` for an unusable address, ``StoreError`` if the server cannot be asked.
    """
    address = read_address(text)
    known = known_path(address, folder)
    if known is not None:
        return known
    path = _free((_state() if folder is None else folder / FOLDER) / f"{name or address.log}.db")
    announce(path, address)
    is_begun(path)
    return path


def known_path(address: Address, folder: Path | None = None) -> Path | None:
    """Return the path of the log with this address, if a command has used it on this machine. No server is asked."""
    return next((each for each in _pointers(folder or Path()) if address_of(each) == address), None)


def is_begun(log: Path) -> bool:
    """Tell whether a log is there. One on a server that was announced gets its pointer. Raises ``StoreError``."""
    address = address_of(log)
    if log.exists() or address is None or not is_on_server(address, log):
        return log.exists()
    make_private(log.parent)
    write_pointer(log, address)
    return True


def announce_next(log: Path, then: Path) -> None:
    """Note that the log of the next run is where the log of this run is; for a log on a server, in its database."""
    address = address_of(log)
    if address is not None:
        announce(then, address.named(f"{address.log.partition(_END)[0]}{_END}{then.stem.rpartition(_END)[2]}"))


def is_next_begun(log: Path, then: Path) -> bool:
    """Tell whether the log of the next run is there, also if it began on another machine. Raises ``StoreError``."""
    if not then.exists():
        try:
            announce_next(log, then)
        except NotAStore:
            return False  # the name of the log has no room for the number of a run
    return is_begun(then)


def _with_path(word: str) -> str:
    return str(path_of(word)) if is_address(word) else word


def _pointers(folder: Path) -> Iterator[Path]:
    """Yield the paths that may have a pointer: here, in the state of this user, and of the fleets of this machine."""
    for each in (folder / FOLDER, _state()):
        yield from sorted(each.glob("*.db"))
    yield from (Path(each.log) for each in registry.found())


def _state() -> Path:
    return registry.folder().parent / "logs"


def _free(path: Path) -> Path:
    names = (path.with_name(f"{path.stem}{'' if number == 1 else f'-{number}'}.db") for number in count(1))
    return next(each for each in names if not each.exists())


_END: Final = ".run-"
