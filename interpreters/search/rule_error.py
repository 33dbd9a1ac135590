"""A rule error: a mistake in the rules that ends a search, with its place.

A rule, a guard, a property or the examples of an event may raise an error. A late input may be accepted, or a message
may have no recipient. A search notices the error while it makes the table of an aggregate, so its place is one in that
table. A trace to it is found afterwards.
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
ADDRESSED: Final = "every message has a recipient"

UNANSWERED: Final = "a flaw in the rules"
"""The words of a report for a search that ended by a rule error."""


class Place(NamedTuple):
    """The place of an error: a state of an aggregate (none: the opening), with the number of its input or a message.

    An error of the whole system has a ``state``.
    """

    component: int = -1
    local: int = -1
    choice: int = -1
    channel: int = -1
    message: int = -1
    state: int = -1


class RuleError(Exception):
    """An error of the rules. ``name`` is the property that it breaks, ``said`` describes it.

    ``given`` is the input, if the error is that it has changed something. ``prop`` is the property that cannot be
    judged, with its owner.
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
    """Return the rule error for a raised error."""
    what = f"{type(error).__name__}: {error}".removesuffix(": ") + _where(error)
    if prop is not None:
        said = f"the property of {prop[0]}, {prop[1]!r}, cannot be judged: {what}"
    elif place.local < 0 and place.state < 0:
        said = f"the opening fails: {what}"
    elif place.state < 0 and place.choice < 0 and place.channel < 0:
        said = f"the possible inputs cannot be derived: {what}"
    else:
        said = f"raises {what}"
    return RuleError(ANSWERED, place, said, prop=prop)


def _where(error: Exception) -> str:
    """Return in words where it was raised: the innermost place outside of libraries and the kernel."""
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
