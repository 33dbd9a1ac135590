"""A notifier delivers in order, each notification once; it repeats a failed try, and keeps the last failures."""

from typing import Any, Final, Never

import pytest
from returns.result import Success

from declared import STATES, Mutants, instead, must_be_found, must_hold, rebuilt
from lifefold.core.fleet.board import notifier
from lifefold.core.fleet.board.notifier import (
    LONGEST_PAUSE_MS,
    MOST_FAILURES,
    MOST_KEYS,
    PAUSE_MS,
    Announced,
    Delivered,
    DeliveryDue,
    DeliveryFailed,
    Notifier,
    Observed,
    State,
    machine,
)
from lifefold.core.kernel import STAY, Event, Step, does, replace, row
from lifefold.core.kernel import after as after_delay
from lifefold.effects import DeliverNotification, Notification, NotificationKind
from lifefold.interpreters.targets.check_targets import named

CLOSED, FAILED, MERGE = NotificationKind.CLOSED, NotificationKind.FAILED, NotificationKind.BLOCKED_MERGE
NEW: Final = Notifier(name="desk", kinds=(CLOSED, MERGE), retries=2)


def closed(task: str) -> Announced:
    """Return the announcement of a closed task."""
    return Announced(Notification(CLOSED, f"{task} is closed", task))


def after(*events: Event, of: Notifier = NEW) -> Notifier:
    """Return a notifier after these events, each of which it accepts."""
    for each in events:
        found = machine.reduce(of, each)
        assert isinstance(found, Success), each
        of = found.unwrap().record
    return of


def refuses(of: Notifier, event: Event) -> bool:
    """Tell whether a notifier refuses an event."""
    return not isinstance(machine.reduce(of, event), Success)


def waiting(of: Notifier) -> list[str]:
    """Return the tasks of the notifications that wait."""
    return [each.task for each in of.waiting]


def test_a_notification_is_delivered_at_once() -> None:
    """The first try has no pause, and its activity has the name of the notifier and the number."""
    of = after(closed("T1"))
    assert (of.state, notifier.pause(of)) == (State.PENDING, 0)
    of = after(DeliveryDue(), of=of)
    assert notifier.deliver(of) == DeliverNotification("desk", 1, 0, closed("T1").notification)
    assert after(Delivered(), of=of).state is State.IDLE


def test_notifications_are_delivered_in_order_one_at_a_time() -> None:
    """Each has the next number, also after a pause without any."""
    of = after(closed("T1"), closed("T2"), DeliveryDue(), closed("T3"))
    assert (waiting(of), of.number) == (["T1", "T2", "T3"], 1)
    of = after(Delivered(), of=of)
    assert (of.state, waiting(of), of.number) == (State.PENDING, ["T2", "T3"], 2)
    of = after(DeliveryDue(), Delivered(), DeliveryDue(), Delivered(), of=of)
    assert (of.state, waiting(of), of.number) == (State.IDLE, [], 3)
    assert after(closed("T4"), of=of).number == 4


def test_a_failed_try_is_repeated_after_a_pause_that_doubles() -> None:
    """The number stays, so that a receiver recognises the notification."""
    of, pauses = after(closed("T1")), list[int]()
    for _ in range(2):
        of = after(DeliveryDue(), DeliveryFailed("busy"), of=of)
        pauses.append(notifier.pause(of))
    assert (of.state, of.number, pauses) == (State.PENDING, 1, [PAUSE_MS, 2 * PAUSE_MS])
    assert notifier.pause(Notifier(tries=100)) == LONGEST_PAUSE_MS


def test_a_notification_fails_after_its_last_try_and_the_next_one_comes() -> None:
    """The failure is kept with its reason."""
    of = after(closed("T1"), closed("T2"), *(DeliveryDue(), DeliveryFailed("busy")) * 3)
    assert (of.state, waiting(of), of.number, of.tries, of.failed) == (State.PENDING, ["T2"], 2, 0, 1)
    assert [(each.number, each.notification.task, each.reason) for each in of.failures] == [(1, "T1", "busy")]


def test_a_notifier_that_is_down_tries_each_notification_once() -> None:
    """A delivery ends that: the next notification has all its tries."""
    down = after(closed("T1"), *(DeliveryDue(), DeliveryFailed("busy")) * 3)
    assert (down.state, down.is_down) == (State.IDLE, True)
    once = after(closed("T2"), DeliveryDue(), DeliveryFailed("busy"), of=down)
    assert (once.state, once.failed) == (State.IDLE, 2)
    up = after(closed("T2"), DeliveryDue(), Delivered(), closed("T3"), DeliveryDue(), DeliveryFailed(), of=down)
    assert (up.state, up.tries) == (State.PENDING, 1)


def test_a_notifier_hears_of_its_kinds_only() -> None:
    """Another kind is refused, announced or observed."""
    other = Notification(FAILED, "T1 has failed", "T1")
    assert refuses(NEW, Announced(other))
    assert refuses(after(closed("T1")), Announced(other))
    assert refuses(NEW, Observed(other, "T1/1"))


def test_an_observation_is_told_once_however_often_it_is_observed() -> None:
    """Also after its delivery; another key is another observation."""
    blocked = Notification(MERGE, "the merge of T1 waits", "T1")
    of = after(Observed(blocked, "T1/1"))
    assert refuses(of, Observed(blocked, "T1/1"))
    of = after(Observed(blocked, "T1/2"), DeliveryDue(), Delivered(), DeliveryDue(), Delivered(), of=of)
    assert refuses(of, Observed(blocked, "T1/1"))
    assert (of.number, of.count(MERGE)) == (2, 2)


def test_what_is_kept_is_bounded() -> None:
    """Waiting notifications, failures and keys have their limits; everything that was lost is counted."""
    full = after(closed("T1"), closed("T2"), closed("T3"), of=Notifier(kinds=(CLOSED, MERGE), most_waiting=2))
    assert (waiting(full), full.failed, full.failures[0].number) == (["T1", "T2"], 1, 0)
    assert refuses(full, Observed(Notification(MERGE, "a", "T1"), "T1/1"))
    of, none = Notifier(kinds=(CLOSED, MERGE), retries=0), MOST_FAILURES + 1
    for number in range(none):
        of = after(closed(f"T{number}"), DeliveryDue(), DeliveryFailed(), of=of)
    assert (of.failed, len(of.failures), of.failures[-1].number) == (none, MOST_FAILURES, none)
    for number in range(MOST_KEYS + 1):
        of = after(Observed(Notification(MERGE, "a", "T1"), str(number)), DeliveryDue(), Delivered(), of=of)
    assert (len(of.keys), of.keys[0]) == (MOST_KEYS, "1")


def test_a_notifier_keeps_its_properties() -> None:
    """In every state within the bounds of its check."""
    target = named("notifier")
    assert target.record is not None
    must_hold(machine.starting(target.record), target.bounds)


def _keep(n: Notifier, _e: Delivered) -> Step[Notifier, Never]:
    return Step(n)


def _is_first(n: Notifier, _e: Delivered) -> bool:
    return len(n.waiting) > 1


def _has_more(n: Notifier, _e: DeliveryFailed) -> bool:
    return len(n.waiting) > 1


def _count_twice(n: Notifier, e: Announced) -> Step[Notifier, Never]:
    once = notifier.append(n, e).record
    return Step(replace(notifier.append(once, e).record, waiting=once.waiting))


def _paused() -> dict[Any, Any]:
    """Return the activities and timers of a notifier whose pauses are all alike."""
    delivering = does(notifier.deliver, last=(Delivered, DeliveryFailed))
    return {State.PENDING: after_delay(7, DeliveryDue), State.DELIVERING: delivering}


SMALL: Final = machine.starting(named("notifier").record)
MISTAKES: Mutants = {
    "a delivered notification is delivered again": (
        "again after its delivery",
        lambda: instead(
            SMALL, row(State.DELIVERING, Delivered, State.PENDING, _keep, when=_is_first), notifier.has_more
        ),
    ),
    "a failed try is the last one": (
        "after its last try only",
        lambda: instead(
            SMALL,
            row(State.DELIVERING, DeliveryFailed, State.PENDING, notifier.give_up, when=_has_more),
            notifier.may_retry,
        ),
    ),
    "a notification is counted twice": (
        "counted once",
        lambda: instead(SMALL, row(State.DELIVERING, Announced, STAY, _count_twice), notifier.has_capacity),
    ),
    "a pause is as long as any other": (
        "every timer lasts",
        lambda: rebuilt(SMALL, during=_paused()),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_notifier_breaks_a_property(name: str) -> None:
    """The properties find what they are about."""
    must_be_found(MISTAKES[name], replace(named("notifier").bounds, states=STATES))
