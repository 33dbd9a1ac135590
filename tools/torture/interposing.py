"""The library ``interposed.c``: compiled where there is a compiler, and preloaded into programs."""

import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("interposed.c")

MISSING: Final = (
    "needs Linux and a C compiler (cc, gcc or clang): the operations of a program are seen in a library below it"
)


class Fault(IntEnum):
    """What is wrong with the disk."""

    SOUND = 0
    FULL = 1
    READ_ONLY = 2
    GONE = 3
    SLOW = 4
    UNSYNCED = 5
    """Flushes fail. What was written before may be dropped, and a later flush does not tell."""


@cache
def library() -> Path | None:
    """Return the compiled library; None if this machine cannot compile or preload it."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if sys.platform != "linux" or compiler is None:
        return None
    made = Path(tempfile.mkdtemp(prefix="lifefold-torture-")) / "interposed.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(made), str(SOURCE), "-ldl", "-lpthread"]
    done = subprocess.run(command, check=False, capture_output=True)
    return made if done.returncode == 0 else None


def environment(
    *, under: Path | None = None, record: Path | None = None, switch: Path | None = None, signals: Path | None = None
) -> Mapping[str, str]:
    """Return the environment of a program that is to be recorded, disturbed or watched. Raises ``LookupError``."""
    made = library()
    if made is None:
        raise LookupError(MISSING)
    places = {"UNDER": under, "RECORD": record, "SWITCH": switch, "SIGNALS": signals}
    told = {f"TORTURE_{name}": str(place) for name, place in places.items() if place is not None}
    return {**os.environ, **told, "LD_PRELOAD": str(made)}


class Switch:
    """A file with the present fault of a disk. A change is seen by all disturbed programs at once."""

    _FORM: Final = struct.Struct("iii")

    def __init__(self, path: Path) -> None:
        """Make the file, with a sound disk, or open it."""
        self.path: Final = path
        if not path.exists():
            path.write_bytes(bytes(self._FORM.size))
        with path.open("r+b") as file:
            self._shared: Final = mmap.mmap(file.fileno(), self._FORM.size)

    def turn(self, fault: Fault, pause_ms: int = 0) -> None:
        """Have a fault from now on. A slow disk makes the next flush wait, and is sound after that."""
        self._shared[: self._FORM.size] = self._FORM.pack(fault, pause_ms, 0)

    @property
    def disturbed(self) -> int:
        """The number of calls that the present fault has disturbed."""
        return int(self._FORM.unpack(self._shared[:])[2])
