"""Making and opening the log at a path: in a file there, or on the server that a pointer there names.

This is the one place where the kind of a log decides which store it gets.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lifefold.interpreters.store.address import Address
from lifefold.interpreters.store.errors import NotAStore, NotThere
from lifefold.interpreters.store.log_store import LogStore
from lifefold.interpreters.store.pointer import address_of, write_pointer
from lifefold.interpreters.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from lifefold.interpreters.store.postgres import PostgresStore


def create_log(path: Path, meta: Mapping[str, str]) -> LogStore:
    """Make a log with the metadata of its maker, and open it for writing.

    It is on a server if its path was announced with an address (``pointer``). Raises ``FileExistsError``, ``Locked``,
    ``StoreError``.
    """
    address = address_of(path)
    if address is None or path.exists():
        return SqliteStore.create(path, meta)  # which refuses a path that is not free
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the first log of a server that this user names here
    store = _on_servers().create(address, meta, path)
    try:
        write_pointer(path, address)
    except BaseException:
        store.close()
        raise
    return store


def open_log(path: Path, *, patient: bool = True) -> LogStore:
    """Open a log for writing, under a new epoch. Raises ``Locked``, ``Busy``, ``NotAStore``, ``StoreError``.

    A patient store waits while another program has locked the file, or while the server cannot be reached.
    """
    address = address_of(path)
    if address is None:
        return SqliteStore.open(path, patient=patient)
    return _on_servers().open(address, path, patient=patient)


def peek_log(path: Path, *, patient: bool = False) -> LogStore:
    """Open a log to read it and to leave operator commands, with or without a running writer.

    A patient store waits in later calls as ``open_log`` says. Raises ``Busy``, ``NotAStore``, ``StoreError``.
    """
    address = address_of(path)
    if address is None:
        return SqliteStore.peek(path, patient=patient)
    return _on_servers().peek(address, path, patient=patient)


def is_on_server(address: Address, path: Path) -> bool:
    """Tell whether a server has this log; ``path`` names it in messages. Raises ``StoreError``."""
    try:
        _on_servers().peek(address, path).close()
    except NotThere:
        return False
    return True


def _on_servers() -> "type[PostgresStore]":
    """Return the store for logs on servers; its library is an extra. Raises ``StoreError`` without it."""
    try:
        from lifefold.interpreters.store.postgres import PostgresStore  # noqa: PLC0415 - an extra, and slow to import
    except ModuleNotFoundError as error:
        if error.name not in {"psycopg", "psycopg_binary", "psycopg_c"}:
            raise
        raise NotAStore("a log on a server needs psycopg; install it with: pip install 'lifefold[postgres]'") from error
    return PostgresStore
