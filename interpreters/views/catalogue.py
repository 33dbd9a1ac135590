"""The lifecycles and systems that are known by name: what ``lifefold machines`` lists and every command looks up.

A name is a machine's own name wherever it has one to itself. The task of a fleet shares its name with the task of the
document, because both write the same journal; here it is listed apart, since its table has a row more.
"""

from difflib import get_close_matches
from typing import Any, Generic, TypeVar

import msgspec

from lifefold.core import fleet, session, task
from lifefold.core.kernel import Machine, System

T = TypeVar("T")


class Entry(msgspec.Struct, Generic[T], frozen=True):
    """Something known: its name, one line about it, and the thing itself."""

    name: str
    about: str
    value: T


class UnknownNameError(LookupError):
    """Nothing of this name is known. ``known`` lists what is, ``nearest`` what may have been meant, or is empty."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        """Take what was looked for (``machine``, ``system``), the name given, and the names there are."""
        self.kind, self.name, self.known = kind, name, known
        self.nearest = next(iter(get_close_matches(name.lower(), known, n=1, cutoff=0.5)), "")
        meant = f" did you mean {self.nearest!r}?" if self.nearest else ""
        super().__init__(f"unknown {kind} {name!r};{meant} known are {', '.join(known)}")


_FLEET_TASK = task.in_fleet.starting(task.in_fleet.initial, "task-in-fleet")

MACHINES: tuple[Entry[Machine[Any]], ...] = (
    Entry("session", session.machine.about, session.machine),
    Entry("session-windowed", "session, but errors of long ago are forgotten", session.windowed),
    Entry("session-prompt-failures", "session, but writing a prompt may fail", session.prompt_failures),
    Entry("task", task.machine.about, task.machine),
    Entry("task-in-fleet", "task, but an unclaimed one is blocked when what it depends on fails", _FLEET_TASK),
    Entry("seat", fleet.seat.machine.about, fleet.seat.machine),
    Entry("intent", fleet.intent.machine.about, fleet.intent.machine),
    Entry("mailbox", fleet.mailbox.machine.about, fleet.mailbox.machine),
    Entry("assignment", fleet.assignment.machine.about, fleet.assignment.machine),
)
"""Every lifecycle, those of the documents first."""

SYSTEMS: tuple[Entry[System], ...] = (
    Entry("fleet", "a board that gives tasks out, and a worker for every agent", fleet.system),
)
"""Every system of lifecycles."""


def machines() -> dict[str, Machine[Any]]:
    """Return the lifecycles by name."""
    return {entry.name: entry.value for entry in MACHINES}


def systems() -> dict[str, System]:
    """Return the systems by name."""
    return {entry.name: entry.value for entry in SYSTEMS}


def about() -> dict[str, str]:
    """Return one line about each lifecycle and each system, by name."""
    lines = {entry.name: entry.about for entry in MACHINES}
    return lines | {entry.name: entry.about for entry in SYSTEMS}


def machine_named(name: str) -> Machine[Any]:
    """Return the lifecycle of this name. Raises ``UnknownNameError``."""
    return _named("machine", name, machines())


def system_named(name: str) -> System:
    """Return the system of this name. Raises ``UnknownNameError``."""
    return _named("system", name, systems())


def named(name: str) -> Machine[Any] | System:
    """Return the lifecycle or the system of this name. Raises ``UnknownNameError``, which lists both."""
    known: dict[str, Machine[Any] | System] = {**machines(), **systems()}
    return _named("machine or system", name, known)


def _named(kind: str, name: str, known: dict[str, T]) -> T:
    if name not in known:
        raise UnknownNameError(kind, name, tuple(known))
    return known[name]
