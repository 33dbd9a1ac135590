"""Record histories of workflows for ``tests/interpreters/temporal/test_stored_histories.py``.

``PYTHONPATH=tests/support python tools/cluster/record_histories.py`` fires a kiln on a development server of Temporal.
Its host is lost while it fires, and another one goes on. The histories of all its workflows go into
``tests/data/workflow_histories``, one file each. Keep the files of released versions: their workflows may be at work.
"""

import re
import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import anyio

from kiln import Lit
from temporal_pottery import pottery_on
from temporal_server import dev_server

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "tests" / "data" / "workflow_histories"


async def record(folder: Path) -> None:
    """Write the histories of a firing into a folder."""
    with TemporaryDirectory() as temporary:
        async with dev_server() as client, pottery_on(client, Path(temporary)) as pottery:
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
            for handle in (*map(pottery.cluster.handle, ("kiln/a", "tally")), session):
                history = await handle.fetch_history()
                name = re.sub(r"[^a-z0-9]+", "-", history.workflow_id.lower()).strip("-")
                (folder / f"{name}.json").write_text(f"{without_this_machine(history.to_json())}\n")


def without_this_machine(text: str) -> str:
    """Return a text without the names of this machine, its processes and its folders."""
    for word, stands_for in ((str(ROOT), ""), (socket.gethostname(), "machine")):
        text = text.replace(word, stands_for)
    return re.sub(r"\d+@[\w.-]+", "1@machine", text)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    anyio.run(record, Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
