"""A writer of a log on a server, as a process: it appends until it fails, and prints each acknowledged version."""

import sys

import anyio

from conformance import entry
from lifefold.interpreters.store import Batch, StoreError
from lifefold.interpreters.store.postgres import PostgresStore, Timings, read_address


async def write(store: PostgresStore) -> None:
    """Append entries of one stream, one after the other."""
    version = len(await store.read("a"))
    while True:
        version += 1
        try:
            await store.append(Batch((entry("a", version),)))
        except StoreError as error:
            _tell(type(error).__name__)
            return
        _tell(version)
        await anyio.sleep(0.005)


def _tell(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with PostgresStore.open(read_address(sys.argv[1]), timings=Timings(idle_s=1, stuck_s=1)) as opened:
        anyio.run(write, opened)
