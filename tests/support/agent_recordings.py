"""The recorded output of real agent programs: tests/data/adapters, a folder for each program."""

from functools import cache
from pathlib import Path

import msgspec

from lifefold.interpreters.testing import Recording

FOLDER = Path(__file__).parent.parent / "data" / "adapters"


@cache
def recordings(program: str) -> dict[str, Recording]:
    """Return the recordings of a program by their names."""
    statuses = msgspec.json.decode((FOLDER / program / "statuses.json").read_bytes(), type=dict[str, int])
    return {
        name: Recording(name, (FOLDER / program / f"{name}.txt").read_bytes(), status)
        for name, status in statuses.items()
    }
