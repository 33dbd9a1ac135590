"""Functions of the fleet's rules that run during a call: a mutant of a function can differ only where it runs."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final, TypeVar

from lifefold.core import fleet

T = TypeVar("T")

_RULES: Final = (str(Path(fleet.__file__).parent), "<string>")
"""Where the code of rules is from: the files of the fleet, and texts that are executed in their place."""


def watched(work: Callable[[], T]) -> tuple[T, frozenset[str]]:
    """Call a function; return its result and the outermost functions of rules that ran meanwhile."""
    ran: set[str] = set()

    def note(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_RULES):
            ran.add(frame.f_code.co_qualname.partition(".")[0])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return work(), frozenset(ran)
    finally:
        sys.setprofile(before)
