"""When triggers of time are due: pure functions of when they were due last, and of now."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from lifefold.core.fleet.service import trigger
from lifefold.effects.service import Cron, Every

_SECOND = timedelta(seconds=1)


def next_due_ms(source: Every | Cron, last_ms: int) -> int:
    """Return when a trigger is due next that was due, or has begun, at ``last_ms``."""
    if isinstance(source, Every):
        return trigger.next_due_ms(source.every_ms, last_ms)
    return _in_ms(next(CronSim(source.expression, _moment(source, last_ms))))


def last_due_ms(source: Every | Cron, last_ms: int, now_ms: int) -> int:
    """Return when a trigger was due last, of the times between ``last_ms`` and now; ``last_ms`` if it was not.

    It is now if ``last_ms`` is still to come: the clock of the time was ahead.
    """
    if isinstance(source, Every):
        return trigger.last_due_ms(source.every_ms, last_ms, now_ms)
    # It looks for what is before its beginning, and a time that is now is to be found, too.
    before = CronSim(source.expression, _moment(source, now_ms).replace(microsecond=0) + _SECOND, reverse=True)
    return max(min(last_ms, now_ms), _in_ms(next(before)))


def _moment(source: Cron, at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).astimezone(ZoneInfo(source.timezone))


def _in_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)
