"""Bounds of shipped lifecycles with infinitely many states: a predicate for each record."""

from lifefold.core.cluster import lease_model
from lifefold.core.fleet.board import budget, fleet_task, notifier, restart_permit, worker_slot
from lifefold.core.fleet.service import inbox
from lifefold.core.fleet.worker import conversation, desired_state, question, steering, usage_meter
from lifefold.core.fleet.worker.mailbox import Mailbox
from lifefold.core.lifecycles import runtime
from lifefold.core.lifecycles.budget import lease
from lifefold.core.policy.access import Trust
from lifefold.effects import NotificationKind


def one_section(a: runtime.Runtime) -> bool:
    """Tell whether at most one section is active at a time, however often it was entered."""
    return len({each.key for each in a.preemption.sections}) <= 1


def little_money(x: lease.Lease) -> bool:
    """Tell whether the cap and the overrun of a lease are a few micro-dollars at most."""
    most_granted, most_overrun = 8, 100
    return x.account.cap <= most_granted and x.account.overrun <= most_overrun


def little_left(p: budget.Budget) -> bool:
    """Tell whether the caps and the overruns of a budget are a few sessions at most."""
    most_granted, most_overrun = 4, 3
    return all(each.account.cap <= most_granted and each.account.overrun <= most_overrun for each in p.lines)


def little_spent(m: usage_meter.UsageMeter) -> bool:
    """Tell whether the usage since the last report is small."""
    most = 6
    return max(m.spent.microusd, m.spent.time_ms) <= most


def little_charged(c: conversation.Conversation) -> bool:
    """Tell whether a conversation was charged a few micro-dollars at most."""
    most = 6
    return c.charged.cost_microusd <= most


def few_retries(t: fleet_task.FleetTask) -> bool:
    """Tell whether a task has at most two retries and four parts."""
    most_retries, most_parts = 2, 4
    return t.max_retries <= most_retries and t.parts <= most_parts


def few_uses(p: restart_permit.RestartPermit) -> bool:
    """Tell whether a restart permit has become free at most once after a use."""
    return p.used <= 1 or p.state is not restart_permit.State.FREE


def no_drain(i: desired_state.DesiredState) -> bool:
    """Tell whether an agent was neither drained nor killed."""
    return not i.drains and not i.at_once


def no_kill(i: desired_state.DesiredState) -> bool:
    """Tell whether an agent was not killed."""
    return not i.at_once


def one_message(i: inbox.Inbox) -> bool:
    """Tell whether at most one message waits for a service."""
    return len(i.messages) <= 1


def one_undelivered(box: Mailbox) -> bool:
    """Tell whether a mailbox has at most one operator message."""
    return len(box.messages) <= 1


def few_letters(box: Mailbox) -> bool:
    """Tell whether a mailbox has at most two operator messages."""
    most = 2
    return len(box.messages) <= most


def few_posted(s: steering.Steering) -> bool:
    """Tell whether a session was given at most three messages."""
    most = 3
    return s.posted <= most


def one_question(q: question.Questions) -> bool:
    """Tell whether a worker has asked at most one question."""
    return q.asked <= 1


def few_questions(q: question.Questions) -> bool:
    """Tell whether a worker has asked at most two questions."""
    most = 2
    return q.asked <= most


def short_record(s: worker_slot.WorkerSlot) -> bool:
    """Tell whether a worker slot has at most eleven successes and one violation."""
    most_successes, most_violations = 11, 1
    trust = s.trust or Trust()
    return trust.successes <= most_successes and trust.violations <= most_violations


def two_requests(c: lease_model.Cluster) -> bool:
    """Tell whether at most two hosts, one after the other, were given each session."""
    most = 2
    return all(each.request <= most for each in c.leases)


def few_notifications(n: notifier.Notifier) -> bool:
    """Tell whether at most three closed tasks were announced to a notifier."""
    most = 3
    return n.count(NotificationKind.CLOSED) <= most
