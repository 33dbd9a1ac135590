"""The lifecycles and systems that are known by name: what ``lifefold machines`` lists and every command looks up.

A name is a machine's own name wherever it has one to itself. The task of a fleet shares its name with the task of the
document, because both write the same journal; here it is listed apart, since its table has more rows.
"""

from difflib import get_close_matches
from typing import Any, Generic, TypeVar

import msgspec

from lifefold.core import (
    agent,
    approval,
    fleet,
    process,
    runtime,
    session,
    session_profiles,
    status,
    task,
    task_profiles,
    turn,
)
from lifefold.core.budget import lease
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
        """Take what was looked for (``machine``, ``format``), the name given, and the names there are."""
        self.kind, self.name, self.known = kind, name, known
        self.nearest = next(iter(get_close_matches(name.lower(), known, n=1, cutoff=0.5)), "")
        meant = f" did you mean {self.nearest!r}?" if self.nearest else ""
        super().__init__(f"unknown {kind} {name!r};{meant} known are {', '.join(known)}")


_FLEET_TASK = fleet.job.machine.starting(fleet.job.machine.initial, "task-in-fleet")
MACHINES: tuple[Entry[Machine[Any]], ...] = (
    Entry("session", session.machine.about, session.machine),
    Entry("session-windowed", "session, but errors of long ago are forgotten", session_profiles.windowed),
    Entry("session-prompt-failures", "session, but writing a prompt may fail", session_profiles.prompt_failures),
    Entry(
        "session-in-fleet",
        "session, but writing a prompt may fail, and a session may suspend itself, or stall",
        session_profiles.in_fleet,
    ),
    Entry(
        "session-supervised",
        session_profiles.supervised.about,
        session_profiles.supervised,
    ),
    Entry("process", process.machine.about, process.machine),
    Entry("process-promptise-1.5", "process, but a failed one can be stopped", process.promptise_1_5),
    Entry("process-by-hand", process.by_hand.about, process.by_hand),
    Entry("process-by-hand-1.5", "process-by-hand, but a failed one can be stopped", process.by_hand_1_5),
    Entry("runtime", runtime.machine.about, runtime.machine),
    Entry("runtime-sw4rm-agentpy", runtime.agentpy.about, runtime.agentpy),
    Entry("runtime-graceful", runtime.graceful.about, runtime.graceful),
    Entry("runtime-supervised", runtime.supervised.about, runtime.supervised),
    Entry("runtime-watched", runtime.watched.about, runtime.watched),
    Entry("status", status.machine.about, status.machine),
    Entry("status-draining", "status, but a stop may wait for the tasks that are active", status.draining),
    Entry("lease", lease.machine.about, lease.machine),
    Entry("task", task.machine.about, task.machine),
    Entry("task-bernstein-1.9", "task, but what nobody works at may fail, too", task_profiles.bernstein_1_9),
    Entry("task-governed", task_profiles.governed.about, task_profiles.governed),
    Entry("task-approval", approval.machine.about, approval.machine),
    Entry("agent", agent.machine.about, agent.machine),
    Entry("agent-supervised", "agent, but it keeps time by itself and may die in any state", agent.supervised),
    Entry("turn", turn.machine.about, turn.machine),
    Entry("turn-completing-fails", "turn, but a crash while COMPLETING fails it", turn.completing_fails),
    Entry("task-in-fleet", fleet.job.machine.about, _FLEET_TASK),
    Entry("seat", fleet.seat.machine.about, fleet.seat.machine),
    Entry("intent", fleet.intent.machine.about, fleet.intent.machine),
    Entry("mailbox", fleet.mailbox.machine.about, fleet.mailbox.machine),
    Entry("pulse", fleet.pulse.machine.about, fleet.pulse.machine),
    Entry("plan", fleet.proposal.machine.about, fleet.proposal.machine),
    Entry("doors", fleet.doors.machine.about, fleet.doors.machine),
    Entry("purse", fleet.purse.machine.about, fleet.purse.machine),
    Entry("meter", fleet.meter.machine.about, fleet.meter.machine),
    Entry("permit", fleet.permit.machine.about, fleet.permit.machine),
    Entry("room", fleet.room.machine.about, fleet.room.machine),
    Entry("supervision", fleet.supervision.machine.about, fleet.supervision.machine),
    Entry("invocation", fleet.invocation.machine.about, fleet.invocation.machine),
    Entry("inbox", fleet.inbox.machine.about, fleet.inbox.machine),
    Entry("trigger", fleet.trigger.machine.about, fleet.trigger.machine),
    Entry("duty", fleet.duty.machine.about, fleet.duty.machine),
    Entry("change", fleet.change.machine.about, fleet.change.machine),
    Entry("assignment", fleet.assignment.machine.about, fleet.assignment.machine),
)
"""Every lifecycle, those of the documents first."""

SYSTEMS: tuple[Entry[System], ...] = (
    Entry("fleet", "a board that gives tasks out, a worker for every agent, and services", fleet.system),
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
    known = machines()
    if name not in known:
        raise UnknownNameError("machine", name, tuple(known))
    return known[name]
