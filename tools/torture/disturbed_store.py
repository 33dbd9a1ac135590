"""A program that uses a log on a disk that fails in between, and prints what it was told: ``FOLDER SWITCH FAULT MS``.

The output is JSON: for each deed its answer while the disk fails, and then what the log has that was acknowledged.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from interposing import Fault, Switch
from lifefold.interpreters.store import Batch, SqliteStore
from recorded_store import entry


async def attempt(deed: Callable[[], Awaitable[object]]) -> str:
    """Do something; return the kind and the text of its error, or an empty text."""
    try:
        await deed()
    except Exception as error:  # noqa: BLE001 - any error is the answer
        return f"{type(error).__name__}: {error}"
    return ""


async def main(folder: Path, switch: Switch, fault: Fault, pause_ms: int) -> dict[str, object]:
    """Do each deed once while the disk fails, and once when it works again."""
    path, told, acknowledged = folder / "log.db", dict[str, object](), 1
    SqliteStore.create(path, {}).close()

    async def opened() -> None:
        SqliteStore.open(path, patient=False).close()

    async def made() -> None:
        SqliteStore.create(folder / "other.db", {}).close()

    with SqliteStore.open(path, patient=False) as store:
        await store.append(Batch([entry("a", 1)]))
        deeds: dict[str, Callable[[], Awaitable[object]]] = {
            "append": lambda: store.append(Batch([entry("a", acknowledged + 1)])),
            "submit": lambda: store.submit("a", b"command"),
            "read": store.read,
        }
        for name, deed in deeds.items():
            switch.turn(fault, pause_ms)
            told[name] = await attempt(deed)
            switch.turn(Fault.SOUND)
            if name == "append":
                acknowledged += not told[name]
    for name, deed in {"open": opened, "make": made}.items():
        switch.turn(fault, pause_ms)
        told[name] = await attempt(deed)
        switch.turn(Fault.SOUND)
    with SqliteStore.open(path, patient=False) as store:
        found = await store.read_on(0)
        told["lost"] = acknowledged - len(found)
        await store.append(Batch([entry("a", len(found) + 1)]))
        told["goes on"] = len(await store.read_on(0)) == len(found) + 1
    await made() if not (folder / "other.db").exists() else None
    return told


if __name__ == "__main__":
    place, switched, kind, slow_ms = sys.argv[1:]
    print(json.dumps(anyio.run(main, Path(place), Switch(Path(switched)), Fault[kind], int(slow_ms))))
