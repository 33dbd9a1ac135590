"""Profiles of the task's table, as values.

``bernstein_1_9`` has the document's thirty edges and the four further ones of that version's code (E1). A task that is
planned, open, blocked or waiting may be given up, too. The seventeen states of version 3.23 are no profile of twelve,
and are left out.

``governed`` has the document's thirty edges and no others. It also enforces rules that the document only mentions:

- a task that is reopened rests before it may be claimed (E6), and a lasting failure is not retried (E5);
- a claim without work expires (E11). The work of a dead owner is orphaned by the watcher of owners, which ends the
  claim. The recovery of the work reports under the next epoch, and the former owner is late;
- subtasks have a limit of time (E9), and a lost one blocks its parent with the reason (E7);
- cancelling a task at work ends its session (E20);
- a report of a claim that is over changes nothing and is kept as a late report (E12).
"""

from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import (
    ANY,
    STAY,
    Event,
    Machine,
    Pattern,
    Property,
    Row,
    Step,
    Transition,
    accepts,
    after,
    always_step,
    replace,
    row,
    sometimes,
)
from lifefold.core.lifecycles import task
from lifefold.core.lifecycles.property_forms import is_transient, keeps_time
from lifefold.core.lifecycles.task import (
    Blocked,
    Cancelled,
    Claimed,
    Completed,
    Decomposed,
    Failed,
    Orphaned,
    Released,
    Retried,
    Started,
    State,
    SubtasksOverdue,
    Task,
)
from lifefold.core.policy.limits import at_least
from lifefold.core.policy.retry import RetryPolicy, not_before_ms, retry_limit
from lifefold.effects import AbortSession, KeepDeadLetter


class GivenUp(Event, frozen=True):
    """The task will not be done: it has failed without having been begun (profile ``bernstein_1_9``)."""

    reason: str = ""


def give_up(t: Task, e: GivenUp) -> Step[Task, Never]:
    """Keep why."""
    return Step(replace(t, owner="", reason=e.reason, failure=e.reason))


def given_up_has_failed(step: Transition) -> bool:
    """A task that is given up has failed, with the reason (profile ``bernstein_1_9``)."""
    if not isinstance(step.event, GivenUp):
        return True
    t: Task = step.after.record
    return step.entered is State.FAILED and (t.owner, t.reason, t.failure) == ("", step.event.reason, step.event.reason)


bernstein_1_9 = (
    task.machine.with_rows(
        row(State.PLANNED, GivenUp, State.FAILED, give_up),
        row(State.OPEN, GivenUp, State.FAILED, give_up),
        row(State.BLOCKED, GivenUp, State.FAILED, give_up),
        row(State.WAITING_FOR_SUBTASKS, GivenUp, State.FAILED, give_up),
        name="task-bernstein-1.9",
    )
    .with_properties(
        accepts(
            "a task that has not been begun can be given up",
            {(State.PLANNED, State.OPEN, State.BLOCKED, State.WAITING_FOR_SUBTASKS): (GivenUp,)},
        )
    )
    .with_properties(always_step("a task that is given up has failed, with the reason", given_up_has_failed))
)
"""The profile with thirty-four edges (E1)."""


class GovernedTask(Task, frozen=True):
    """A task that may be claimed from ``not_before_ms`` on; its limits in milliseconds."""

    timestamps: ClassVar[tuple[str, ...]] = ("at_ms", "not_before_ms")
    opaque: ClassVar[tuple[str, ...]] = ("prompt", "reason", "commit", "kept")

    at_ms: int = 0
    not_before_ms: int = 0
    retry_policy: RetryPolicy = RetryPolicy()
    lease_ms: int = 900_000
    subtasks_ms: int = 1_800_000

    def __post_init__(self) -> None:
        """Refuse limits that cannot work. Raises ``ValueError``, which names the field."""
        at_least(1, self, "lease_ms", "subtasks_ms")

    def pauses_ms(self) -> tuple[int, ...]:
        """Return no time, and the longest rest of a task."""
        return 0, max(1, self.retry_policy.backoff_cap_ms)

    def horizon_ms(self) -> int:
        """Return 0: the time since a task could first be claimed makes no difference."""
        return 1

    @property
    def allowed_retries(self) -> int:
        """The least of the task's own limit and the fleet's, and 0 for a failure that cannot pass (E5)."""
        return retry_limit(self.max_retries, self.trouble, self.retry_policy)


class LeaseExpired(Event, frozen=True):
    """The owner has not begun to work within its lease (E11)."""


_Report = Started | Completed | Failed | Released | Decomposed | Blocked
_REPORTS: Final[tuple[type[Event], ...]] = (Started, Completed, Failed, Released, Decomposed, Blocked)


def is_due(t: GovernedTask, _e: Claimed) -> bool:
    """The task has rested enough (E6)."""
    return t.at_ms >= t.not_before_ms


def is_late(t: GovernedTask, e: _Report) -> bool:
    """The report is of a claim that is over (E12)."""
    return 0 < e.epoch < t.epoch or (e.epoch == t.epoch != 0 and not t.owner)


def retry_later(t: GovernedTask, e: Retried) -> Step[Task, Never]:
    """Count the retry, and let the task rest."""
    rested_ms = not_before_ms(t.at_ms, t.retries, t.retry_policy)
    return task.retry(replace(t, not_before_ms=rested_ms), e)


def cancel(t: GovernedTask, e: Cancelled) -> Step[Task, AbortSession]:
    """Keep the reason, and end the session that works at the task (E20)."""
    return Step(task.explain(t, e).record, (AbortSession(t.owner, t.id),))


def lose(t: GovernedTask, _e: LeaseExpired) -> Step[Task, Never]:
    """Take the task away from an owner that has not begun."""
    return Step(replace(t, owner="", reason=f"{t.owner} has not begun within its lease"))


def orphan(t: GovernedTask, _e: Orphaned) -> Step[Task, Never]:
    """End the claim: its number is used up, and the recovery of the work reports under the next one (E12)."""
    return Step(replace(t, epoch=t.epoch + 1))


def keep_report(t: GovernedTask, e: _Report) -> Step[GovernedTask, KeepDeadLetter]:
    """Change nothing, and keep the report."""
    return Step(t, (KeepDeadLetter(t.id, type(e).__name__, e.epoch, t.epoch),))


def lease(t: GovernedTask) -> int:
    """Return the time that a claim may stand without work, in milliseconds."""
    return t.lease_ms


def subtasks_limit(t: GovernedTask) -> int:
    """Return the time limit of subtasks, in milliseconds."""
    return t.subtasks_ms


def claims_wait(step: Transition) -> bool:
    """A task that has to rest cannot be claimed (E6)."""
    waited: bool = step.before is None or step.at_ms >= step.before.record.not_before_ms
    return waited or not isinstance(step.event, Claimed)


def cancelled_is_ended(step: Transition) -> bool:
    """The session that works at a cancelled task is ended (E20)."""
    before = step.before
    worked_at = before is not None and before.state in {State.CLAIMED, State.IN_PROGRESS}
    aborted = [each.owner for each in step.effects if isinstance(each, AbortSession)]
    return (
        step.entered is not State.CANCELLED
        or not worked_at
        or (before is not None and aborted == [before.record.owner])
    )


def late_is_kept(step: Transition) -> bool:
    """A report that changes nothing is kept for people (E12)."""
    unchanged: bool = step.after.record == replace(step.was, at_ms=step.at_ms)
    return unchanged is any(isinstance(each, KeepDeadLetter) for each in step.effects)


def lease_expires_before_work_only(step: Transition) -> bool:
    """Only an owner that has not begun to work loses its task by the lease (E11)."""
    return step.was.state is State.CLAIMED


def hopeless_is_not_retried(step: Transition) -> bool:
    """A failure that cannot pass is not retried (E5)."""
    before: GovernedTask = step.was
    return before.retries < retry_limit(before.max_retries, before.trouble, before.retry_policy)


def rests_before_a_retry(step: Transition) -> bool:
    """A retried task rests first, twice as long as before, up to the longest rest (E6)."""
    policy: RetryPolicy = step.was.retry_policy
    rest_ms = min(policy.backoff_base_ms * 2**step.was.retries, policy.backoff_cap_ms)
    return bool(step.after.record.not_before_ms == step.at_ms + rest_ms)


def ends_the_claim_of_an_orphan(step: Transition) -> bool:
    """The recovery of a dead agent's work reports under the next number (E12)."""
    return bool(step.after.record.epoch == step.was.epoch + 1)


def names_the_owner_of_an_expired_lease(step: Transition) -> bool:
    """A task whose owner has not begun is open again, with the owner's name in the reason (E11)."""
    owner: str = step.was.owner
    t: GovernedTask = step.after.record
    return step.entered is State.OPEN and not t.owner and owner in t.reason


def of_a_claim(kind: type[Event]) -> Pattern[Any]:
    """Return the pattern of reports with the number of a claim."""
    return Pattern(kind, "epoch", lambda e: e.epoch > 0)


def of_no_claim(kind: type[Event]) -> Pattern[Any]:
    """Return the pattern of reports without a claim."""
    return Pattern(kind, "no claim", lambda e: e.epoch == 0)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    accepts(
        "a report of a claim that is over is accepted, to be kept",
        {ANY: tuple(of_a_claim(kind) for kind in _REPORTS)},
        when=lambda e: e.record.epoch > 0 and not e.record.owner,
    ),
    accepts("a lost subtask can block its parent", {State.WAITING_FOR_SUBTASKS: (of_no_claim(Blocked),)}),
    always_step("a task that has to rest cannot be claimed", claims_wait),
    always_step("the session that works at a cancelled task is ended", cancelled_is_ended),
    always_step("a report that changes nothing is kept, and no other one is", late_is_kept, on=_Report),
    always_step("a lease expires only before its owner has begun", lease_expires_before_work_only, on=LeaseExpired),
    always_step("a task rests before it is retried", rests_before_a_retry, on=Retried),
    always_step("the recovery of a task has a number of its own", ends_the_claim_of_an_orphan, on=Orphaned),
    always_step(
        "an owner that has not begun loses the task, and is named", names_the_owner_of_an_expired_lease, on=LeaseExpired
    ),
    *keeps_time(
        {
            LeaseExpired: ((State.CLAIMED,), lambda t: t.lease_ms),
            SubtasksOverdue: ((State.WAITING_FOR_SUBTASKS,), lambda t: t.subtasks_ms),
        }
    ),
    always_step("a failure that cannot pass is not retried", hopeless_is_not_retried, on=Retried),
    is_transient(State.CLAIMED),
    is_transient(State.WAITING_FOR_SUBTASKS),
    sometimes("a task has to rest", lambda e: e.record.not_before_ms > e.record.at_ms),
)

STRICTER: Final[tuple[Row[Any], ...]] = (
    row(State.OPEN, Claimed, State.CLAIMED, task.claim, when=is_due),
    row(State.CLAIMED, Cancelled, State.CANCELLED, cancel),
    row(State.IN_PROGRESS, Cancelled, State.CANCELLED, cancel),
    row(State.IN_PROGRESS, Orphaned, State.ORPHANED, orphan, when=task.is_owner),
    row(State.FAILED, Retried, State.OPEN, retry_later, when=task.retries_left),
)
"""Rows that replace the literal ones for the same state and event."""

_instead = {(r.sources, r.event): r for r in STRICTER}

governed: Machine[Any] = Machine(
    "task-governed",
    GovernedTask(),
    rows=(
        *(_instead.get((r.sources, r.event), r) for r in task.machine.rows),
        row(State.CLAIMED, LeaseExpired, State.OPEN, lose),
        row(State.WAITING_FOR_SUBTASKS, Blocked, State.BLOCKED, task.explain, when=task.is_of_no_claim),
        row(ANY, Started, STAY, keep_report, when=is_late),
        row(ANY, Completed, STAY, keep_report, when=is_late),
        row(ANY, Failed, STAY, keep_report, when=is_late),
        row(ANY, Released, STAY, keep_report, when=is_late),
        row(ANY, Decomposed, STAY, keep_report, when=is_late),
        row(ANY, Blocked, STAY, keep_report, when=is_late),
    ),
    final=task.machine.final,
    properties=(*task.machine.properties, *PROPERTIES),
    rests=task.rests,
    detached=task.machine.detached,
    during={
        State.CLAIMED: after(lease, LeaseExpired),
        State.WAITING_FOR_SUBTASKS: after(subtasks_limit, SubtasksOverdue),
    },
    about="task, with rest before a retry, leases, limits for subtasks, and late reports",
)
"""The profile that enforces the document's remarks about retries, leases and subtasks."""
