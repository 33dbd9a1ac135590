"""The activity of a notifier: it tells people by a command or a web hook that something waits or has happened."""

from enum import StrEnum
from typing import ClassVar

import msgspec

from lifefold.effects.base import Activity


class NotificationKind(StrEnum):
    """What a notification is about, in the words of a fleet file."""

    PLAN = "plan"
    APPROVAL = "approval"
    QUESTION = "question"
    PERMISSION = "permission"
    LIMIT = "limit"
    BUDGET = "budget"
    BLOCKED = "blocked"
    BLOCKED_MERGE = "blocked merge"
    STALLED = "stalled"
    FAILED = "failed"
    CLOSED = "closed"
    STOPPED = "stopped"
    SERVICE = "service"
    OVER = "over"


class Notification(msgspec.Struct, frozen=True):
    """Something that waits for people or has happened; ``text`` is a sentence about it.

    ``task`` and ``agent`` are empty if it is about none. ``agent`` may be a service.
    """

    opaque: ClassVar[tuple[str, ...]] = ("text",)

    kind: NotificationKind
    text: str
    task: str = ""
    agent: str = ""


class DeliverNotification(Activity, frozen=True):
    """Deliver a notification, and report the delivery or its failure. It may be delivered twice after a crash.

    ``notifier`` is the name of a table ``[[notify]]``. ``number`` identifies the notification among those of its
    notifier, in every try; ``tries`` counts the failed ones.
    """

    notifier: str
    number: int
    tries: int
    notification: Notification
