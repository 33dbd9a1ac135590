"""What ends a search before its time because the rules themselves are at fault: which step it is, and what is wrong.

A rule, a guard, a property or an event's examples may raise an error; something that is late may be taken; a message
may be taken by nobody. It is noticed while the table of an aggregate is made, so its place is one in that table; a way
to it is found afterwards.
"""

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from traceback import FrameSummary, extract_tb
from typing import Final, NamedTuple

from lifefold.core import kernel
from lifefold.core.kernel import Cause, Envelope

INERT: Final = "what is late or comes twice changes nothing"
ANSWERED: Final = "rules and properties raise no error"
TAKEN: Final = "every message is taken"
ADDRESSED: Final = "every message is for somebody who is there"

UNANSWERED: Final = "a flaw in the rules"
"""How it is told that a search ended by a flaw."""


class Place(NamedTuple):
    """Where it is: in a state of an aggregate (none: where it begins), at its how-manieth input, or at a message.

    Of the whole system it is a ``state``.
    """

    component: int = -1
    local: int = -1
    choice: int = -1
    channel: int = -1
    message: int = -1
    state: int = -1


class RuleError(Exception):
    """The rules cannot be gone on with. ``name`` is the property that this breaks, ``said`` what is wrong.

    ``given`` is what should have changed nothing, if that is it; ``prop`` what cannot be judged: whose, its name.
    """

    def __init__(
        self,
        name: str,
        place: Place,
        said: str,
        given: tuple[Cause, Envelope] | None = None,
        prop: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(f"{name}: {said}")
        self.name = name
        self.place = place
        self.said = said
        self.given = given
        self.prop = prop


def raised(error: Exception, place: Place, prop: tuple[str, str] | None = None) -> RuleError:
    """Return the flaw that an error shows."""
    what = f"{type(error).__name__}: {error}".removesuffix(": ") + _where(error)
    if prop is not None:
        said = f"the property of {prop[0]}, {prop[1]!r}, cannot be judged: {what}"
    elif place.local < 0 and place.state < 0:
        said = f"it cannot begin: {what}"
    elif place.state < 0 and place.choice < 0 and place.channel < 0:
        said = f"what may happen next cannot be told: {what}"
    else:
        said = f"raises {what}"
    return RuleError(ANSWERED, place, said, prop=prop)


def _where(error: Exception) -> str:
    """Return in words where it was raised: the innermost place that is neither a library's nor the kernel's."""
    frames = extract_tb(error.__traceback__)
    for frame in (*_of_rules(frames), *frames[-1:]):
        return f" (in {frame.name}, {Path(frame.filename).name}:{frame.lineno})"
    return ""


def _of_rules(frames: list[FrameSummary]) -> Iterator[FrameSummary]:
    return (frame for frame in reversed(frames) if not frame.filename.startswith(_OTHERS))


_OTHERS: Final = (
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    *(str(Path(file).parent) for file in (kernel.__file__, __file__)),
    "<frozen",
)
