"""Copies of logs between a file and a server, in both directions: that is how a fleet moves to a server, and back.

A copy has the same entries with the same links, the same anchor, operator commands with their numbers and answers,
watermarks, and metadata of its maker. It has no snapshot and no epoch, which belong to a store. A copy appears as a
whole or not at all: it is written under another name first. A crash leaves that draft, which the next copy removes.
"""

from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

import anyio

from lifefold.interpreters.store.address import Address
from lifefold.interpreters.store.chain import Anchor, BrokenChain, verified
from lifefold.interpreters.store.errors import damaged
from lifefold.interpreters.store.log_store import LogStore
from lifefold.interpreters.store.opening import create_log, is_on_server, open_log
from lifefold.interpreters.store.place import beside, flush_folder
from lifefold.interpreters.store.pointer import address_of, announce, write_pointer

DRAFT: Final = ".copy"
"""The end of the name of an unfinished copy."""

MOVED: Final = ".moved"
"""The end of the name of a log that was moved: no command finds it under its old name, so no run goes on with it."""

_FILES: Final = ("", "-wal", "-shm", "-journal", ".lock", ".anchor", ".new")


def copy_log(log: Path, target: Path) -> Anchor:
    """Copy a log to another path, and return its anchor. No process may write it meanwhile.

    The target is on a server if it was announced with an address. Raises ``FileExistsError``, ``Locked``, ``Damaged``,
    ``StoreError``.
    """
    with open_log(log, patient=False) as source:
        address = address_of(target)
        if target.exists() or (address is not None and is_on_server(address, target)):
            raise FileExistsError(target if address is None else str(address))
        return anyio.run(_copied, source, target, address)


def move_log(log: Path, address: Address | None) -> tuple[Path, Anchor]:
    """Move a log to a server, or into a file for None; its path and the files beside it stay.

    The log as it was is kept: return its path, whose name ends with ``.moved``, and the anchor. Raises as ``copy_log``.
    """
    target, (old, old_address) = beside(log, ".moving"), _unused(log)
    _remove(target, None)
    if address is not None:
        announce(target, address)
    anchor = copy_log(log, target)
    log.rename(old)
    _rename(target, log)
    if old_address is not None:
        with open_log(old, patient=False) as server:
            server.rename(old_address)
        write_pointer(old, old_address)
    return old, anchor


def _unused(log: Path) -> tuple[Path, Address | None]:
    """Return an unused path for a log that is moved, and on its server an unused address."""
    before = address_of(log)
    for number in count(1):
        end = MOVED if number == 1 else f"{MOVED}-{number}"
        old, address = beside(log, end), None if before is None else before.named(f"{before.log}{end}")
        if not old.exists() and (address is None or not is_on_server(address, old)):
            return old, address
    raise AssertionError  # there is always one more number


async def _copied(source: LogStore, target: Path, address: Address | None) -> Anchor:
    found = await source.chain()
    try:
        entries = verified(*found)
    except BrokenChain as error:
        raise damaged(source.path, str(error)) from error
    draft = beside(target, DRAFT)
    _remove(draft, None if address is None else address.named(f"{address.log}{DRAFT}"))
    with create_log(draft, source.made_with()) as copy:
        commands, performed = await source.commands(unanswered=False), await source.performed()
        written = await copy.fill(entries, commands, performed)
        if written != found.end or (await copy.chain()).end != found.end:
            raise damaged(source.path, "a copy of it has another anchor")
        if address is not None:
            copy.rename(address)
    _rename(draft, target)
    if address is not None:
        write_pointer(target, address)
    return written


def _rename(path: Path, target: Path) -> None:
    """Give a closed log another path, its anchor first; its lock is not needed any more."""
    for end in (".anchor", ""):
        with suppress(FileNotFoundError):
            beside(path, end).replace(beside(target, end))
    beside(path, ".lock").unlink(missing_ok=True)
    flush_folder(target.parent)


def _remove(draft: Path, address: Address | None) -> None:
    """Remove a draft that a crash has left, and announce the new one."""
    for end in _FILES:
        beside(draft, end).unlink(missing_ok=True)
    if address is not None:
        announce(draft, address)
        if is_on_server(address, draft):
            with open_log(draft, patient=False) as left:
                left.discard()
