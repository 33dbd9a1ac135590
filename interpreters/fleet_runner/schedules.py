"""Due times of triggers: pure functions of the last due time and of now."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from lifefold.core.fleet.service import trigger
from lifefold.effects.service import Cron, Every

_SECOND = timedelta(seconds=1)


def next_due_ms(source: Every | Cron, last_ms: int) -> int:
    """Return the next due time of a trigger that was due, or began, at ``last_ms``."""
    if isinstance(source, Every):
        return trigger.next_due_ms(source.every_ms, last_ms)
    return _in_ms(next(CronSim(source.expression, _moment(source, last_ms))))


def last_due_ms(source: Every | Cron, last_ms: int, now_ms: int) -> int:
    """Return the last due time of a trigger between ``last_ms`` and now; ``last_ms`` without one.

    If ``last_ms`` is in the future, because the clock was ahead, the result is now.
    """
    if isinstance(source, Every):
        return trigger.last_due_ms(source.every_ms, last_ms, now_ms)
    # CronSim returns times before its start, and a due time of this second must be found, too.
    before = CronSim(source.expression, _moment(source, now_ms).replace(microsecond=0) + _SECOND, reverse=True)
    return max(min(last_ms, now_ms), _in_ms(next(before)))


def _moment(source: Cron, at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).astimezone(ZoneInfo(source.timezone))


def _in_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)
