"""Another clock for a process: libfaketime adds an offset to its time of day, and to no clock that cannot be set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

LIBRARY: Final = "faketime/libfaketime.so.1"


def library() -> Path | None:
    """Return the library, if the machine has it."""
    return next(
        (each for folder in ("/usr/lib", "/usr/local/lib") for each in Path(folder).glob(f"**/{LIBRARY}")), None
    )


def clock_ahead(seconds: int) -> Mapping[str, str]:
    """Return the variables of a process whose time of day is ahead, or behind by a negative number.

    The test is skipped where the library is missing.
    """
    found = library()
    if found is None:
        pytest.skip("needs libfaketime: apt install libfaketime")
    return {"LD_PRELOAD": str(found), "FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
