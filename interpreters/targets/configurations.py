"""The check configurations of shipped lifecycles and systems: initial record or opening, and bounds.

The bounds make each search finite. A target without a configuration begins with its own initial record, within the
default bounds.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from lifefold.core.fleet.board import budget, fleet_task, notifier, worker_slot
from lifefold.core.fleet.service import inbox
from lifefold.core.fleet.worker import assignment, question, stall_detector, usage_meter
from lifefold.core.kernel import Record, replace
from lifefold.core.lifecycles import agent, process, runtime, session
from lifefold.core.lifecycles.budget import lease
from lifefold.core.lifecycles.budget.account import Account
from lifefold.core.lifecycles.budget.amounts import Resource
from lifefold.core.lifecycles.session_profiles import SupervisedSession
from lifefold.core.lifecycles.session_windowed import WindowedSession
from lifefold.core.policy.abort import AbortPolicy
from lifefold.core.policy.access import AccessLevel, Trust
from lifefold.core.policy.recovery import Retry
from lifefold.interpreters.search.configuration import Bounds
from lifefold.interpreters.search.crash_model import CRASHES, CrashBounds
from lifefold.interpreters.search.opening import Opening
from lifefold.interpreters.targets import openings
from lifefold.interpreters.targets.bounded import (
    few_letters,
    few_notifications,
    few_posted,
    few_questions,
    few_retries,
    few_uses,
    little_charged,
    little_left,
    little_money,
    little_spent,
    no_drain,
    no_kill,
    one_message,
    one_question,
    one_section,
    one_undelivered,
    short_record,
    two_requests,
)
from lifefold.interpreters.targets.openings import LADDER, TERMS


class CheckConfiguration(msgspec.Struct, frozen=True):
    """The check configuration of a shipped target: a machine begins with ``record``, a system with ``opening``.

    ``properties`` names tuples of additional properties, as module and name. ``of`` is the lifecycle or system, if the
    configuration has a name of its own.
    """

    record: Record | None = None
    opening: Opening = ()
    bounds: Bounds = Bounds()
    properties: tuple[tuple[str, str], ...] = ()
    crashes: CrashBounds = CRASHES
    of: str = ""


_ERRORS: Final = session.Limits(max_consecutive_errors=2, max_total_errors=3)
_WINDOW: Final = session.Limits(
    max_consecutive_errors=3,
    max_total_errors=3,
    total_errors_window_ms=2,
    backoff_base_ms=1,
    backoff_cap_ms=2,
    grace_ms=1,
)
_AGENT: Final = agent.Agent(
    limits=agent.Limits(
        spawn_timeout_ms=5,
        idle_ms=5,
        silence_ms=(1, 2, 3, 4),
        wall_clock_ms=6,
        fresh_ms=3,
        extension_ms=2,
        longest_ms=9,
    )
)
_RUNTIME: Final = runtime.Runtime(
    limits=runtime.Limits(
        init_timeout_ms=1,
        resource_timeout_ms=1,
        suspend_timeout_ms=1,
        shutdown_timeout_ms=1,
        recovery_timeout_ms=1,
        stuck_after_ms=1,
        preemption_timeout_ms=2,
        preemption_grace_ms=1,
        max_recoveries=1,
        retry=Retry(base_ms=1, cap_ms=1, jitter=0),
    )
)
_ONE_INPUT: Final = msgspec.structs.replace(CRASHES, inputs=1)
_NO_INPUT: Final = msgspec.structs.replace(CRASHES, inputs=0)
_ONE_INPUT_LARGE: Final = msgspec.structs.replace(_ONE_INPUT, states=1_000_000)
_PROCESS: Final = CheckConfiguration(
    process.Process(
        limits=process.Limits(
            restart_policy="always", max_restarts=1, max_consecutive_failures=2, idle_timeout_ms=1, max_lifetime_ms=1
        )
    ),
    bounds=Bounds(compared=500),
    properties=tuple(
        ("lifefold.core.lifecycles.process_properties", name) for name in ("COMING_BACK", "IDLING", "RECYCLING")
    ),
    crashes=_ONE_INPUT,
)


def _renewed() -> budget.Budget:
    """Return a budget for two sessions an hour."""
    return budget.Budget(lines=(budget.Line(Resource.SESSIONS, 1, Account(cap=2)),), period_ms=3_600_000)


def _usual(commands: int, **within: Callable[[Any], bool]) -> Bounds:
    """Return the usual bounds of a fleet: one message, no drain, few retries, this number of commands, and others."""
    usual: Mapping[str, Callable[[Any], bool]] = {
        "mailbox": one_undelivered,
        "desired_state": no_drain,
        "task": few_retries,
    }
    return Bounds(within={**usual, **within}, commands=commands)


def _runtime(name: str) -> CheckConfiguration:
    return CheckConfiguration(_RUNTIME, bounds=Bounds(within={name: one_section}, compared=200), crashes=_ONE_INPUT)


CHECK_CONFIGURATIONS: Final[Mapping[str, CheckConfiguration]] = {
    "session-windowed": CheckConfiguration(
        WindowedSession(limits=_WINDOW), bounds=Bounds(compared=500), crashes=_ONE_INPUT
    ),
    "session-prompt-failures": CheckConfiguration(session.Session(limits=_ERRORS)),
    "session-in-fleet": CheckConfiguration(session.Session(limits=_ERRORS)),
    "session-supervised": CheckConfiguration(SupervisedSession(limits=_ERRORS, account="left", supervised=True)),
    "process": _PROCESS,
    "process-promptise-1.5": _PROCESS,
    "runtime": _runtime("runtime"),
    "runtime-sw4rm-agentpy": _runtime("runtime-sw4rm-agentpy"),
    "runtime-graceful": _runtime("runtime-graceful"),
    "runtime-supervised": _runtime("runtime-supervised"),
    "runtime-watched": _runtime("runtime-watched"),
    "lease": CheckConfiguration(
        lease.Lease(holder="h", account=Account(cap=4)), bounds=Bounds(within={"lease": little_money})
    ),
    "task-governed": CheckConfiguration(crashes=_ONE_INPUT),
    "task-in-fleet": CheckConfiguration(
        fleet_task.FleetTask(
            max_retries=1,
            limit=1,
            needs_approval=True,
            most_subtasks=4,
            merges=AccessLevel.ELEVATED,
            approval_ms=3_600_000,
            fate=fleet_task.Fate(AbortPolicy(tool_to_sibling=True)),
        ),
        bounds=Bounds(within={"task-in-fleet": few_retries}),
        crashes=_ONE_INPUT,
    ),
    "assignment": CheckConfiguration(assignment.Assignment(guarded=True)),
    "worker_slot": CheckConfiguration(
        worker_slot.WorkerSlot(trust=Trust()), bounds=Bounds(within={"worker_slot": short_record})
    ),
    "agent": CheckConfiguration(_AGENT),
    "stall_detector": CheckConfiguration(stall_detector.StallDetector(limits=LADDER)),
    "agent-supervised": CheckConfiguration(_AGENT),
    "restart_permit": CheckConfiguration(bounds=Bounds(within={"restart_permit": few_uses})),
    "fleet": CheckConfiguration(opening=openings.small(1, 1, retries=1), bounds=_usual(commands=5), crashes=_ONE_INPUT),
    "fleet-governed": CheckConfiguration(
        opening=openings.governed(), bounds=_usual(commands=3), crashes=_ONE_INPUT_LARGE, of="fleet"
    ),
    "fleet-restarts": CheckConfiguration(
        opening=openings.restarted(), bounds=_usual(commands=2, restart_permit=few_uses), crashes=_ONE_INPUT, of="fleet"
    ),
    "fleet-preempting": CheckConfiguration(
        opening=openings.preempting(), bounds=_usual(commands=1), crashes=_ONE_INPUT, of="fleet"
    ),
    "fleet-aborts": CheckConfiguration(
        opening=openings.aborting(), bounds=_usual(commands=2), crashes=_ONE_INPUT_LARGE, of="fleet"
    ),
    "fleet-drained": CheckConfiguration(
        opening=openings.small(1, 1, retries=0),
        bounds=Bounds(within={"mailbox": one_undelivered, "task": few_retries}, commands=3),
        crashes=_ONE_INPUT,
        of="fleet",
    ),
    "fleet-limited": CheckConfiguration(
        opening=openings.limited(), bounds=_usual(commands=1, budget=little_left), crashes=_ONE_INPUT, of="fleet"
    ),
    "fleet-talking": CheckConfiguration(
        opening=openings.talking(),
        properties=(("lifefold.core.fleet.worker.conversations", "AT_LAST"),),
        bounds=_usual(commands=1),
        crashes=_ONE_INPUT,
        of="fleet",
    ),
    "conversation": CheckConfiguration(bounds=Bounds(within={"conversation": little_charged})),
    "budget": CheckConfiguration(_renewed(), bounds=Bounds(within={"budget": little_left})),
    "usage_meter": CheckConfiguration(
        usage_meter.UsageMeter(keeps_time=True), bounds=Bounds(within={"usage_meter": little_spent})
    ),
    "fleet-quota": CheckConfiguration(
        opening=openings.quota(), bounds=_usual(commands=0), crashes=_ONE_INPUT_LARGE, of="fleet"
    ),
    "fleet-sharing": CheckConfiguration(
        opening=openings.sharing(),
        bounds=_usual(commands=0),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "fleet-trusted": CheckConfiguration(
        opening=openings.trusted(), bounds=_usual(commands=2), crashes=_ONE_INPUT_LARGE, of="fleet"
    ),
    "fleet-stalling": CheckConfiguration(
        opening=openings.stalling(), bounds=_usual(commands=1), crashes=_ONE_INPUT_LARGE, of="fleet"
    ),
    "fleet-turns": CheckConfiguration(
        opening=openings.turning(), bounds=_usual(commands=1), crashes=_ONE_INPUT_LARGE, of="fleet"
    ),
    "fleet-steering": CheckConfiguration(
        opening=openings.steering(),
        properties=(("lifefold.core.fleet.worker.steering", "AT_LAST"),),
        bounds=_usual(commands=3, questions=one_question, mailbox=few_letters, steering=few_posted),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "steering": CheckConfiguration(bounds=Bounds(within={"steering": few_posted})),
    "fleet-2x3": CheckConfiguration(
        opening=openings.small(2, 3, retries=0, errors=1),
        bounds=Bounds(within={"mailbox": one_undelivered, "desired_state": no_drain}, commands=1, states=20_000_000),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "fleet-asking": CheckConfiguration(
        opening=openings.asking(),
        bounds=_usual(commands=2, questions=few_questions),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "questions": CheckConfiguration(
        question.Questions(terms=TERMS), bounds=Bounds(within={"questions": few_questions})
    ),
    "fleet-telling": CheckConfiguration(
        opening=openings.telling(),
        bounds=_usual(commands=2),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "fleet-resting": CheckConfiguration(
        opening=openings.resting(), bounds=_usual(commands=1, budget=little_left), crashes=_ONE_INPUT, of="fleet"
    ),
    "fleet-resuming": CheckConfiguration(
        opening=openings.resuming(),
        properties=(("lifefold.core.fleet.worker.conversations", "AT_LAST"),),
        bounds=_usual(commands=1, questions=one_question, budget=little_left),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "fleet-outages": CheckConfiguration(
        opening=openings.outages(),
        bounds=_usual(commands=1, inbox=one_message, desired_state=no_kill),
        crashes=_NO_INPUT,
        of="fleet",
    ),
    "notifier": CheckConfiguration(
        replace(notifier.machine.initial, most_waiting=2), bounds=Bounds(within={"notifier": few_notifications})
    ),
    "fleet-serving": CheckConfiguration(
        opening=openings.serving(),
        bounds=_usual(commands=1, inbox=one_message, desired_state=no_kill),
        crashes=_NO_INPUT,
        of="fleet",
    ),
    "inbox": CheckConfiguration(inbox.Inbox(takes_messages=True), bounds=Bounds(within={"inbox": one_message})),
    "fleet-orphans": CheckConfiguration(
        opening=openings.orphaning(),
        properties=(("lifefold.core.fleet.worker.orphans", "AT_LAST"),),
        bounds=_usual(commands=2),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
    "fleet-changing": CheckConfiguration(
        opening=openings.changing(), bounds=_usual(commands=2), crashes=_NO_INPUT, of="fleet"
    ),
    "host-leases": CheckConfiguration(
        bounds=Bounds(within={"host-leases": two_requests}, commands=0), crashes=_NO_INPUT
    ),
    "fleet-2x2": CheckConfiguration(
        opening=openings.small(2, 2, retries=0),
        bounds=Bounds(within={"mailbox": one_undelivered, "desired_state": no_drain}, commands=1, states=20_000_000),
        crashes=_ONE_INPUT_LARGE,
        of="fleet",
    ),
}
"""The configurations of shipped targets that need more than their initial record and the default bounds.

Times and limits are small, since only their order decides anything. Targets ``of`` another one have the rules of that
one. They are larger, and take minutes.
"""
