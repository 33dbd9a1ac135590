"""Record histories of workflows for ``tests/interpreters/temporal/test_stored_histories.py``.

``PYTHONPATH=tests/support python tools/cluster/record_histories.py`` fires kilns on a development server of Temporal.
In the first record a host is lost while it fires, and another one goes on. In the second one a kiln comes back to a
host that is full by now, and another host fires it. The histories of their workflows go into
``tests/data/workflow_histories``, one file each. Keep the files of released versions: their workflows may be at work.
"""

import re
import socket
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import anyio
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from kiln import Lit
from temporal_pottery import LOOK_S, ClusterHands, ClusterPottery, is_warm, pottery_on
from temporal_server import dev_server

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "tests" / "data" / "workflow_histories"


async def record_a_lost_host(pottery: ClusterPottery, folder: Path) -> None:
    """Write the histories of a firing whose host is lost."""
    await pottery.begin_host("one")
    await pottery.open()
    await pottery.say(Lit())
    await pottery.hands.until("fire 1 begins")
    session = await pottery.child()
    pottery.scopes["one"].cancel()
    await pottery.until_lost(session)
    await pottery.begin_host("two")
    await pottery.hands.until("fire 1 goes on")
    pottery.hands.out.set()
    await pottery.until(lambda: pottery.state() == "Cold" and pottery.counted == (0, 7))
    await pottery.verified()
    await write(folder, *map(pottery.cluster.handle, ("kiln/a", "tally")), session)


async def record_a_full_host(pottery: ClusterPottery, folder: Path) -> None:
    """Write the histories of a kiln that gives its room away when it is cold, and finds its host full."""
    elsewhere = ClusterHands()
    await pottery.begin_host("one", capacity=1, keeps_room=is_warm)
    await pottery.open("full", "b")
    for number, name in enumerate(("kiln/full", "kiln/b"), 1):
        await pottery.say(Lit(), to=name)
        await pottery.hands.until("fire 1 begins", number)
        if number == 1:
            pottery.hands.out.set()
            await pottery.until(lambda: pottery.state("kiln/full") == "Cold" and pottery.counted == (0, 7))
            pottery.hands.out = anyio.Event()
    await pottery.say(Lit(), to="kiln/full")
    await pottery.until(lambda: pottery.state("kiln/full") == "Firing")
    refused = await until_closed(pottery, await pottery.child("kiln/full"))
    await pottery.begin_host("two", elsewhere, capacity=1)
    await elsewhere.until("fire 2 begins")
    elsewhere.out.set()
    await pottery.until(lambda: pottery.state("kiln/full") == "Cold" and pottery.counted == (0, 7, 0, 7))
    await pottery.verified()
    await write(folder, pottery.cluster.handle("kiln/full"), refused)


async def until_closed(
    pottery: ClusterPottery, session: WorkflowHandle[object, object]
) -> WorkflowHandle[object, object]:
    """Wait until the workflow of a session has begun and ended, and return this run of it."""
    while True:
        with suppress(RPCError):
            found = await session.describe()
            if found.close_time is not None:
                return pottery.cluster.client.get_workflow_handle(session.id, run_id=found.run_id)
        await anyio.sleep(LOOK_S)


async def write(folder: Path, *handles: WorkflowHandle[object, object]) -> None:
    """Write the histories of workflows into a folder."""
    for handle in handles:
        history = await handle.fetch_history()
        name = re.sub(r"[^a-z0-9]+", "-", history.workflow_id.lower()).strip("-")
        (folder / f"{name}.json").write_text(f"{without_this_machine(history.to_json())}\n")


RECORDS: Final = (record_a_lost_host, record_a_full_host)


async def record(folder: Path) -> None:
    """Write the histories of all records into a folder."""
    for each in RECORDS:
        with TemporaryDirectory() as temporary:
            async with dev_server() as client, pottery_on(client, Path(temporary)) as pottery:
                await each(pottery, folder)


def without_this_machine(text: str) -> str:
    """Return a history without the names of this machine, its processes and its folders, and without stack traces."""
    text = re.sub(r'"stackTrace": "(?:[^"\\]|\\.)*"', '"stackTrace": ""', text)
    for word, stands_for in ((str(ROOT), ""), (socket.gethostname(), "machine")):
        text = text.replace(word, stands_for)
    return re.sub(r"\d+@[\w.-]+", "1@machine", text)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    anyio.run(record, Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
