"""The wait of a brain while another process writes the log of its fleet. The lock of the log decides, and no vote.

The lock of a file ends with its process. A server ends the session of a writer that is silent for its lease
(``lifefold.interpreters.store.postgres``), and gives its lock free.
"""

from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from lifefold.interpreters.store import Busy, StoreError, Unreachable, peek_log

LOOK_S: Final = 1.0
"""The pause between two looks at the lock."""


async def until_free(log: Path, look_s: float = LOOK_S) -> None:
    """Wait while another process has a log open for writing, and while its server cannot be reached.

    Another brain may take the log before this one does. After a pause, a log that cannot be read is left to the one who
    opens it.
    """
    while True:
        try:
            if not await to_thread.run_sync(_is_written, log):
                return
        except (Busy, Unreachable):
            pass
        except StoreError:
            await anyio.sleep(look_s)
            return
        await anyio.sleep(look_s)


def _is_written(log: Path) -> bool:
    with peek_log(log) as store:
        return store.is_written()
