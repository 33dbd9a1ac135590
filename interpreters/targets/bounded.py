"""Up to where shipped lifecycles are looked at that would go on without an end: a predicate for each record."""

from lifefold.core.fleet.board import budget, fleet_task, restart_permit, worker_slot
from lifefold.core.fleet.service import inbox
from lifefold.core.fleet.worker import desired_state, usage_meter
from lifefold.core.fleet.worker.mailbox import Mailbox
from lifefold.core.lifecycles import runtime
from lifefold.core.lifecycles.budget import lease
from lifefold.core.policy.access import Trust


def one_section(a: runtime.Runtime) -> bool:
    """Tell whether no more than one section is executed at a time, however often it was entered."""
    return len({each.key for each in a.preemption.sections}) <= 1


def little_money(x: lease.Lease) -> bool:
    """Tell whether a lease has been granted, and has overrun, no more than a few micro-dollars."""
    most_granted, most_overrun = 8, 100
    return x.account.cap <= most_granted and x.account.overrun <= most_overrun


def little_left(p: budget.Budget) -> bool:
    """Tell whether a budget has no more than a few sessions, and few more were spent."""
    most_granted, most_overrun = 4, 3
    return all(each.account.cap <= most_granted and each.account.overrun <= most_overrun for each in p.lines)


def little_spent(m: usage_meter.UsageMeter) -> bool:
    """Tell whether sessions have cost no more than a little since the board was told."""
    most = 6
    return max(m.spent.microusd, m.spent.time_ms) <= most


def few_retries(t: fleet_task.FleetTask) -> bool:
    """Tell whether a task may be tried again no more than twice, and has no more than four parts."""
    most_retries, most_parts = 2, 4
    return t.max_retries <= most_retries and t.parts <= most_parts


def few_uses(p: restart_permit.RestartPermit) -> bool:
    """Tell whether a permit for a restart has come back no more than once."""
    return p.used <= 1 or p.state is not restart_permit.State.FREE


def no_drain(i: desired_state.DesiredState) -> bool:
    """Tell whether an agent is to run, to pause, to hold or to stop, without draining and without being killed."""
    return not i.drains and not i.at_once


def no_kill(i: desired_state.DesiredState) -> bool:
    """Tell whether an agent may end what it has begun with grace."""
    return not i.at_once


def one_message(i: inbox.Inbox) -> bool:
    """Tell whether no more than one message waits for a service."""
    return len(i.messages) <= 1


def one_letter(box: Mailbox) -> bool:
    """Tell whether a mailbox has no more than one message."""
    return len(box.messages) <= 1


def short_record(s: worker_slot.WorkerSlot) -> bool:
    """Tell whether a worker slot has no more than eleven successes and one violation."""
    most_successes, most_violations = 11, 1
    trust = s.trust or Trust()
    return trust.successes <= most_successes and trust.violations <= most_violations
