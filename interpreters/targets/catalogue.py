"""The lifecycles and systems that are known by name: ``lifefold machines`` lists them, and every command looks them up.

The name of an entry is the name of its machine, if that is unique. The task of a fleet has the name of the document's
task, because both write the same journal. It is listed as ``task-in-fleet``, since its table has more rows.
"""

from difflib import get_close_matches
from typing import Any, Generic, TypeVar

import msgspec

from lifefold.core import fleet
from lifefold.core.cluster import leases
from lifefold.core.fleet.board import (
    account,
    budget,
    fleet_task,
    intake,
    notifier,
    preemption_request,
    restart_permit,
    service_slot,
    worker_slot,
)
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.fleet.service import inbox, invocation, trigger
from lifefold.core.fleet.system import plan_change
from lifefold.core.fleet.worker import (
    announcer,
    assignment,
    conversation,
    desired_state,
    mailbox,
    output,
    question,
    quota,
    stall_detector,
    steering,
    supervisor,
    turns,
    usage_meter,
)
from lifefold.core.kernel import Machine, System
from lifefold.core.lifecycles import (
    agent,
    approval,
    process,
    runtime,
    runtime_profiles,
    session,
    session_profiles,
    session_windowed,
    status,
    task,
    task_profiles,
    turn,
)
from lifefold.core.lifecycles.budget import lease

T = TypeVar("T")


class Entry(msgspec.Struct, Generic[T], frozen=True):
    """A named lifecycle or system, with one line about it."""

    name: str
    about: str
    value: T


class UnknownNameError(LookupError):
    """The name is unknown. ``known`` lists the known names; ``nearest`` is the most similar one, or empty."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        """Take the kind of the thing (``machine``, ``format``), the given name, and the known names."""
        self.kind, self.name, self.known = kind, name, known
        self.nearest = next(iter(get_close_matches(name.lower(), known, n=1, cutoff=0.5)), "")
        meant = f" did you mean {self.nearest!r}?" if self.nearest else ""
        super().__init__(f"unknown {kind} {name!r};{meant} known are {', '.join(known)}")


_FLEET_TASK = fleet_task.machine.starting(fleet_task.machine.initial, "task-in-fleet")
MACHINES: tuple[Entry[Machine[Any]], ...] = (
    Entry("session", session.machine.about, session.machine),
    Entry("session-windowed", "session, but old errors no longer count", session_windowed.windowed),
    Entry("session-prompt-failures", "session, but writing a prompt may fail", session_profiles.prompt_failures),
    Entry(
        "session-in-fleet",
        "session, but writing a prompt may fail, and a session may suspend itself, or stall",
        session_profiles.in_fleet,
    ),
    Entry("session-supervised", session_profiles.supervised.about, session_profiles.supervised),
    Entry("process", process.machine.about, process.machine),
    Entry("process-promptise-1.5", "process, but a failed one can be stopped", process.promptise_1_5),
    Entry("process-by-hand", process.by_hand.about, process.by_hand),
    Entry("process-by-hand-1.5", "process-by-hand, but a failed one can be stopped", process.by_hand_1_5),
    Entry("runtime", runtime.machine.about, runtime.machine),
    Entry("runtime-sw4rm-agentpy", runtime_profiles.agentpy.about, runtime_profiles.agentpy),
    Entry("runtime-graceful", runtime_profiles.graceful.about, runtime_profiles.graceful),
    Entry("runtime-supervised", runtime_profiles.supervised.about, runtime_profiles.supervised),
    Entry("runtime-watched", runtime_profiles.watched.about, runtime_profiles.watched),
    Entry("status", status.machine.about, status.machine),
    Entry("status-draining", "status, but a stop may wait for the tasks that are active", status.draining),
    Entry("lease", lease.machine.about, lease.machine),
    Entry("task", task.machine.about, task.machine),
    Entry("task-bernstein-1.9", "task, but a task without an owner may fail too", task_profiles.bernstein_1_9),
    Entry("task-governed", task_profiles.governed.about, task_profiles.governed),
    Entry("task-approval", approval.machine.about, approval.machine),
    Entry("agent", agent.machine.about, agent.machine),
    Entry("agent-supervised", "agent, but it has timers of its own and may die in any state", agent.supervised),
    Entry("turn", turn.machine.about, turn.machine),
    Entry("turn-completing-fails", "turn, but a crash while COMPLETING fails it", turn.completing_fails),
    Entry("turn-in-fleet", turns.in_fleet.about, turns.in_fleet),
    Entry("task-in-fleet", fleet_task.machine.about, _FLEET_TASK),
    Entry("worker_slot", worker_slot.machine.about, worker_slot.machine),
    Entry("desired_state", desired_state.machine.about, desired_state.machine),
    Entry("mailbox", mailbox.machine.about, mailbox.machine),
    Entry("stall_detector", stall_detector.machine.about, stall_detector.machine),
    Entry("steering", steering.machine.about, steering.machine),
    Entry("output", output.machine.about, output.machine),
    Entry("questions", question.machine.about, question.machine),
    Entry("plan", plan_approval.machine.about, plan_approval.machine),
    Entry("intake", intake.machine.about, intake.machine),
    Entry("budget", budget.machine.about, budget.machine),
    Entry("usage_meter", usage_meter.machine.about, usage_meter.machine),
    Entry("restart_permit", restart_permit.machine.about, restart_permit.machine),
    Entry("preemption_request", preemption_request.machine.about, preemption_request.machine),
    Entry("supervisor", supervisor.machine.about, supervisor.machine),
    Entry("invocation", invocation.machine.about, invocation.machine),
    Entry("inbox", inbox.machine.about, inbox.machine),
    Entry("trigger", trigger.machine.about, trigger.machine),
    Entry("service_slot", service_slot.machine.about, service_slot.machine),
    Entry("account", account.machine.about, account.machine),
    Entry("quota", quota.machine.about, quota.machine),
    Entry("change", plan_change.machine.about, plan_change.machine),
    Entry("assignment", assignment.machine.about, assignment.machine),
    Entry("conversation", conversation.machine.about, conversation.machine),
    Entry("notifier", notifier.machine.about, notifier.machine),
    Entry("announcer", announcer.machine.about, announcer.machine),
    Entry("host-leases", leases.machine.about, leases.machine),
)
"""Every lifecycle, those of the documents first."""

SYSTEMS: tuple[Entry[System], ...] = (
    Entry("fleet", "a board that dispatches tasks, a worker for each agent, and services", fleet.system),
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
