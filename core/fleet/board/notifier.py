"""A notifier: the notifications of one table ``[[notify]]`` of a fleet file, delivered in order, one at a time.

A notification is *pending*, is *being delivered*, and is then delivered or failed. A failed delivery is tried again
after a pause that grows. After the last try the notification has failed, and the next one comes. While no notification
arrives, each further one gets a single try: a notifier that is down does not keep a fleet from its end.

Everything is in the log, so no notification is lost or repeated when a runner ends. Only a runner that dies between a
delivery and its record delivers again, under the same number: at least once, and recognisable.

The board has one notifier for each table, and none without one. Rules announce what they see in the log. A runner
announces its own observations, such as a merge that local changes block. An observation has a ``key``, and each key is
announced once.
"""

from typing import Any, ClassVar, Final, Never

import msgspec

from lifefold.core.kernel import (
    STAY,
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    accepts,
    after,
    always,
    always_step,
    does,
    leads_to,
    replace,
    row,
    sometimes,
    weakly,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import exits_on, goes_on, is_transient, keeps_time
from lifefold.core.policy.backoff import exponential_ms
from lifefold.effects import DeliverNotification, Notification, NotificationKind

REF: Final = "notifier"
"""The board has several, ``notifier:1`` and so on, in the order of the fleet file."""

FIRST: Final = f"{REF}:1"
"""The first notifier: a board with any has this one."""

MOST_WAITING: Final = 1_000
"""The most notifications of a notifier that are not delivered yet; one more has failed at once."""

MOST_FAILURES: Final = 10
"""The most failed notifications that are kept for display, the latest ones; all are counted."""

MOST_KEYS: Final = 100
"""The most observations that are remembered, the latest ones."""

PAUSE_MS: Final = 1_000
"""The pause after the first failed try, in milliseconds; it doubles with every further one."""

LONGEST_PAUSE_MS: Final = 60_000
"""The longest pause between two tries."""

DEFAULT_RETRIES: Final = 5
"""How often a failed delivery is tried again."""


class State(AnyLifecycleState):
    """The three states of a notifier."""

    IDLE = "Idle"
    PENDING = "Pending"
    DELIVERING = "Delivering"


class Announced(Event, frozen=True):
    """A rule announces a notification."""

    notification: Notification = Notification(NotificationKind.CLOSED, "T1 is closed", "T1")

    @classmethod
    def examples(cls) -> tuple["Announced", ...]:
        """Return one of a kind that examples listen to, and one of another kind."""
        return cls(), cls(Notification(NotificationKind.LIMIT, "a limit"))

    @classmethod
    def examples_for(cls, record: Any) -> tuple["Announced", ...]:
        """Return those of every notifier, and one of the first kind that this one listens to."""
        return *cls.examples(), *(cls(Notification(kind, "news", "T1")) for kind in record.kinds[:1])


class Observed(Event, frozen=True):
    """A runner has observed something that waits, perhaps again: ``key`` is the same then."""

    notification: Notification = Notification(NotificationKind.BLOCKED_MERGE, "T1 waits to be merged", "T1")
    key: str = "T1"


class DeliveryDue(Event, frozen=True):
    """The next try is due."""


class Delivered(Event, frozen=True):
    """The notification is delivered."""


class DeliveryFailed(Event, frozen=True):
    """This try has failed."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = ""


class Failure(msgspec.Struct, frozen=True):
    """A notification that was not delivered, with its number and the reason of the last try."""

    number: int
    notification: Notification
    reason: str


class Notifier(Record, frozen=True):
    """The notifier ``name``: the kinds it listens to, its waiting notifications, and what became of the others.

    ``number`` is the number of the oldest waiting notification, or else of the last one. ``tries`` counts its failed
    tries. ``is_down``: the last notification has failed. ``accepted`` counts notifications by kind, ``failed`` those
    that were not delivered; ``failures`` are the last of these. ``keys`` are those of the last observations. At most
    ``most_waiting`` notifications wait.
    """

    identifiers: ClassVar[tuple[str, ...]] = ("number",)

    state: State = State.IDLE
    name: str = ""
    kinds: tuple[NotificationKind, ...] = ()
    retries: int = DEFAULT_RETRIES
    waiting: tuple[Notification, ...] = ()
    number: int = 0
    tries: int = 0
    is_down: bool = False
    accepted: tuple[tuple[NotificationKind, int], ...] = ()
    failed: int = 0
    failures: tuple[Failure, ...] = ()
    keys: tuple[str, ...] = ()
    most_waiting: int = MOST_WAITING

    def count(self, kind: NotificationKind) -> int:
        """Return how many notifications of a kind were accepted."""
        return dict(self.accepted).get(kind, 0)

    def normal_form(self) -> "Notifier":
        """Return the record without what is only displayed. Properties read which kinds there were, and one count."""
        counts = tuple((kind, each if kind is NotificationKind.CLOSED else 1) for kind, each in self.accepted)
        return replace(self, failed=0, failures=(), accepted=counts)


def listens(n: Notifier, e: Announced) -> bool:
    """The notifier listens to this kind."""
    return e.notification.kind in n.kinds


def has_capacity(n: Notifier, e: Announced) -> bool:
    """The notifier listens to this kind, and another notification may wait."""
    return listens(n, e) and len(n.waiting) < n.most_waiting


def is_new(n: Notifier, e: Observed) -> bool:
    """The notifier listens to this kind, has not heard of this observation yet, and has room."""
    return e.notification.kind in n.kinds and e.key not in n.keys and len(n.waiting) < n.most_waiting


def has_more(n: Notifier, _e: Delivered) -> bool:
    """Another notification waits."""
    return len(n.waiting) > 1


def may_retry(n: Notifier, _e: DeliveryFailed) -> bool:
    """The notification has a try left. While the notifier is down, each has one only."""
    return not n.is_down and n.tries < n.retries


def has_more_waiting(n: Notifier, _e: DeliveryFailed) -> bool:
    """Another notification waits."""
    return len(n.waiting) > 1


def begin(n: Notifier, e: Announced) -> Step[Notifier, Never]:
    """Take the first notification."""
    return Step(_with(replace(n, number=n.number + 1, tries=0), e.notification))


def append(n: Notifier, e: Announced) -> Step[Notifier, Never]:
    """Append the notification."""
    return Step(_with(n, e.notification))


def overflow(n: Notifier, e: Announced) -> Step[Notifier, Never]:
    """Count a notification that finds no room as failed; its number is 0, and it is not accepted."""
    return Step(_failed(n, Failure(0, e.notification, f"{n.most_waiting} notifications wait already")))


def begin_observed(n: Notifier, e: Observed) -> Step[Notifier, Never]:
    """Take the first notification, and remember its observation."""
    return Step(_with(_knowing(replace(n, number=n.number + 1, tries=0), e.key), e.notification))


def append_observed(n: Notifier, e: Observed) -> Step[Notifier, Never]:
    """Append the notification, and remember its observation."""
    return Step(_with(_knowing(n, e.key), e.notification))


def succeed(n: Notifier, _e: Delivered) -> Step[Notifier, Never]:
    """Go on to the next notification."""
    return Step(_next(replace(n, is_down=False)))


def try_again(n: Notifier, _e: DeliveryFailed) -> Step[Notifier, Never]:
    """Count the failed try."""
    return Step(replace(n, tries=n.tries + 1))


def give_up(n: Notifier, e: DeliveryFailed) -> Step[Notifier, Never]:
    """Keep the failure, and go on to the next notification."""
    return Step(_next(replace(_failed(n, Failure(n.number, n.waiting[0], e.reason)), is_down=True)))


def _with(n: Notifier, notification: Notification) -> Notifier:
    """Return the notifier with one more notification."""
    counts = dict(n.accepted)
    counts[notification.kind] = counts.get(notification.kind, 0) + 1
    return replace(n, waiting=(*n.waiting, notification), accepted=tuple(sorted(counts.items())))


def _knowing(n: Notifier, key: str) -> Notifier:
    return replace(n, keys=(*n.keys, key)[-MOST_KEYS:])


def _failed(n: Notifier, failure: Failure) -> Notifier:
    return replace(n, failed=n.failed + 1, failures=(*n.failures, failure)[-MOST_FAILURES:])


def _next(n: Notifier) -> Notifier:
    """Return the notifier without its oldest notification."""
    left = n.waiting[1:]
    return replace(n, waiting=left, number=n.number + bool(left), tries=0)


def pause(n: Notifier) -> int:
    """Return the time until the next try, in milliseconds: none before the first."""
    return exponential_ms(n.tries, base_ms=PAUSE_MS, cap_ms=LONGEST_PAUSE_MS) if n.tries else 0


def deliver(n: Notifier) -> DeliverNotification:
    """Return the activity of a try."""
    return DeliverNotification(n.name, n.number, n.tries, n.waiting[0])


def rests(n: Notifier) -> bool:
    """No notification waits."""
    return n.state is State.IDLE


# The properties


def goes_in_order(step: Transition) -> bool:
    """Notifications are appended, and the oldest leaves when it is delivered or has failed for good, never else."""
    if step.before is None:
        return True
    was: Notifier = step.before.record
    now: Notifier = step.after.record
    match step.event:
        case Announced() | Observed():
            new = len(now.waiting) - len(was.waiting)
            return now.waiting[: len(was.waiting)] == was.waiting and new in {0, 1}
        case Delivered():
            return now.waiting == was.waiting[1:]
        case DeliveryFailed():
            return now.waiting == (was.waiting if now.tries else was.waiting[1:])
        case _:
            return now.waiting == was.waiting


def is_delivered_once(step: Transition) -> bool:
    """A delivered notification leaves for good: each try has the next number, or the same one after a failed try."""
    if step.before is None:
        return True
    was: Notifier = step.before.record
    now: Notifier = step.after.record
    match step.event:
        case Delivered() | DeliveryFailed() if not now.waiting:
            return (now.number, now.tries) == (was.number, 0)
        case Delivered():
            return (now.number, now.tries) == (was.number + 1, 0)
        case DeliveryFailed():
            return (now.number, now.tries) in {(was.number + 1, 0), (was.number, was.tries + 1)}
        case _:
            return (now.number, now.tries) == (
                (was.number, was.tries) if was.waiting else (was.number + bool(now.waiting), 0)
            )


def counts_what_it_accepts(step: Transition) -> bool:
    """Every notification that waits was counted by its kind, once."""
    if step.before is None:
        return True
    before, after = dict(step.before.record.accepted), dict(step.after.record.accepted)
    new = [kind for kind, count in after.items() for _ in range(count - before.get(kind, 0))]
    appended = step.after.record.waiting[len(step.before.record.waiting) :]
    return new == [each.kind for each in appended]


def keeps_failures(step: Transition) -> bool:
    """A notification that is given up is kept as the last failure, and down is the notifier that gave it up."""
    if step.before is None or not isinstance(step.event, DeliveryFailed) or step.after.record.tries:
        return True
    now: Notifier = step.after.record
    return now.is_down and now.failures[-1].notification == step.before.record.waiting[0]


def is_given_up_late(step: Transition) -> bool:
    """A notification is given up only after its last try; a notifier that is down gives each one try."""
    if step.before is None or not isinstance(step.event, DeliveryFailed):
        return True
    was: Notifier = step.before.record
    gave_up = len(step.after.record.waiting) < len(was.waiting)
    return gave_up == (was.is_down or was.tries >= was.retries)


def listens_only(n: Notifier) -> bool:
    """What waits is of the kinds that the notifier listens to, and within the limit."""
    return all(each.kind in n.kinds for each in n.waiting) and len(n.waiting) <= n.most_waiting


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always(
        "a notifier is idle exactly while nothing waits",
        lambda e: (e.state is State.IDLE) is not bool(e.record.waiting),
    ),
    always("a notifier has notifications of its kinds only", lambda e: listens_only(e.record)),
    always_step("notifications are delivered in order, one at a time", goes_in_order),
    always_step("no notification is delivered again after its delivery", is_delivered_once),
    always_step("every accepted notification is counted once", counts_what_it_accepts),
    always_step("a notification that is given up is kept as a failure", keeps_failures),
    always_step("a notification is given up after its last try only", is_given_up_late),
    accepts("what is announced is accepted", {tuple(State): (Announced,)}, when=lambda e: bool(e.record.kinds)),
    *keeps_time({DeliveryDue: ((State.PENDING,), pause)}),
    goes_on("DeliverNotification", State.DELIVERING),
    leads_to(
        "every delivery that began is over",
        lambda e: e.find("DeliverNotification") is not None,
        lambda e: e.find("DeliverNotification") is None,
        given=weakly(DeliverNotification),
    ),
    is_transient(State.PENDING),
    *exits_on(State.DELIVERING, Delivered, DeliveryFailed),
    sometimes("a notification is given up", lambda e: e.record.is_down),
)

_BUSY: Final = (State.PENDING, State.DELIVERING)

machine: Machine[Any] = Machine(
    REF,
    Notifier(name="desktop", kinds=(NotificationKind.CLOSED, NotificationKind.BLOCKED_MERGE), retries=1),
    about="the notifications of one notifier: they wait, are delivered one at a time, or have failed",
    rows=(
        row(State.IDLE, Announced, State.PENDING, begin, when=listens),
        row(_BUSY, Announced, STAY, append, when=has_capacity),
        row(_BUSY, Announced, STAY, overflow, when=listens),
        row(State.IDLE, Observed, State.PENDING, begin_observed, when=is_new),
        row(_BUSY, Observed, STAY, append_observed, when=is_new),
        row(State.PENDING, DeliveryDue, State.DELIVERING),
        row(State.DELIVERING, Delivered, State.PENDING, succeed, when=has_more),
        row(State.DELIVERING, Delivered, State.IDLE, succeed),
        row(State.DELIVERING, DeliveryFailed, State.PENDING, try_again, when=may_retry),
        row(State.DELIVERING, DeliveryFailed, State.PENDING, give_up, when=has_more_waiting),
        row(State.DELIVERING, DeliveryFailed, State.IDLE, give_up),
    ),
    during={
        State.PENDING: after(pause, DeliveryDue),
        State.DELIVERING: does(deliver, last=(Delivered, DeliveryFailed)),
    },
    properties=PROPERTIES,
    rests=rests,
)
