"""The account of a worker of the costs of its sessions, in a fleet with budgets."""

from collections.abc import Iterator

from lifefold.core.fleet.worker import assignment, conversations, usage_meter
from lifefold.core.kernel import Aggregate, Dispatch, Machine, Property, Rule, Step, Transition, always, rule
from lifefold.core.lifecycles import session
from lifefold.core.lifecycles.budget.amounts import Amounts, Caps, Resource


def measuring(agent: Machine[session.Session]) -> Rule:
    """Return the rule that counts the sessions of this lifecycle."""

    @rule(on=agent, beside=usage_meter.REF)
    def measure(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
        """Count a session from its start to its end, or until it is given up."""
        if transition.before is None:
            return
        lived = transition.before.state in session.SESSION_LIVES
        lives = transition.after.state in session.SESSION_LIVES
        now_ms = transition.after.entered_ms
        if lives and not lived:
            yield Dispatch(usage_meter.REF, usage_meter.SessionBegan(now_ms, _most_ms(transition.after.record.limits)))
        elif lived and not lives:
            yield Dispatch(usage_meter.REF, _ended(worker, transition))

    return measure


def _ended(worker: Aggregate, transition: Transition) -> usage_meter.SessionEnded:
    """Return the end of a session, with its charge. A session that is given up before its end reports nothing."""
    at_ms, exited = transition.after.entered_ms, transition.event
    if not isinstance(exited, session.SessionExited):
        return usage_meter.SessionEnded(at_ms)
    return usage_meter.SessionEnded(at_ms, conversations.charged(worker, exited), exited.usage != session.Usage())


def _most_ms(limits: session.Limits) -> int | None:
    """Return how long a session may take, with its grace; None without a time limit."""
    return None if limits.session_timeout_ms is None else limits.session_timeout_ms + limits.grace_ms


@rule(on=assignment.machine, event=assignment.WorkRequested, beside=usage_meter.REF)
def clear_meter(_worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Clear the meter when its figures go to the board with a request for work, so that costs are reported once."""
    yield Dispatch(usage_meter.REF, usage_meter.UsageReported())


def spent(worker: Aggregate) -> tuple[Amounts, bool]:
    """Return the costs since the last report, and whether a session has not reported its costs."""
    found = worker.entities.get(usage_meter.REF)
    return (Amounts(), False) if found is None else (found.record.spent, found.record.silent)


def is_counting(worker: Aggregate) -> bool:
    """Tell whether the last session is still to be counted."""
    found = worker.entities.get(usage_meter.REF)
    return found is not None and found.state is usage_meter.State.COUNTING


def is_used_up(worker: Aggregate) -> bool:
    """Tell whether the reservation of a claim is used up, so that no other session of it may begin.

    Sessions do not count: an agent that was interrupted by an operator or by a crash of the runner goes on.
    """
    return _exceeds_share(worker, spent(worker)[0])


def is_used_up_by(worker: Aggregate, transition: Transition) -> bool:
    """Tell whether the reservation of a claim is used up with the session that ends by this transition.

    The rules of one transition see the meter before that session is counted.
    """
    found = worker.entities.get(usage_meter.REF)
    if found is None:
        return False
    step = usage_meter.machine.step(found.record, _ended(worker, transition))
    return isinstance(step, Step) and _exceeds_share(worker, step.record.spent)


def _exceeds_share(worker: Aggregate, so_far: Amounts) -> bool:
    share: Amounts = worker.record("assignment").brief.share
    return any(share.of(each) and so_far.of(each) >= share.of(each) for each in Resource if each != Resource.SESSIONS)


def left(worker: Aggregate) -> Caps:
    """Return what another session of the claim may cost."""
    share, so_far = worker.record("assignment").brief.share, spent(worker)[0]
    return Caps(**{each: max(0, share.of(each) - so_far.of(each)) for each in Resource if share.of(each)})


def counts_living_sessions(worker: Aggregate) -> bool:
    """The meter counts exactly while a session lives, or is about to."""
    found = worker.entities.get(usage_meter.REF)
    lives = worker.record("session").state in session.SESSION_LIVES
    return found is None or is_counting(worker) is lives


def tells_costs_once(worker: Aggregate) -> bool:
    """A worker that waits for work has reported its costs, and does not report them again."""
    found = worker.entities.get(usage_meter.REF)
    waits = worker.record("assignment").state is assignment.State.WANTING
    return found is None or not waits or found.record.spent == Amounts()


def spends_within_the_reservation(worker: Aggregate) -> bool:
    """A session begins only while every part of the reservation has something left."""
    begins = worker.record("session").state is session.State.SPAWNING
    works = worker.record("assignment").state is assignment.State.WORKING
    rest = left(worker)
    spendable = [rest.of(each) for each in Resource if each != Resource.SESSIONS]
    return not (begins and works and is_counting(worker)) or 0 not in spendable


PROPERTIES: tuple[Property[Aggregate], ...] = (
    always("every session is counted while it lives", counts_living_sessions),
    always("costs are reported to the board once", tells_costs_once),
    always("no session begins when the reservation is used up", spends_within_the_reservation),
)
