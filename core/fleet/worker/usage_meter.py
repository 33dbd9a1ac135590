"""The usage meter: what an agent's sessions have cost since the last report to the board.

A worker has a meter only in a fleet with budgets. A session reports its cost at its end, if it can; the board decides
the charge of a silent session. The duration is always known, but clocks jump, and a session may end without a runner.
So no session is charged more time than its time limit. The sessions of one claim count as one session: each continues
where the one before was interrupted.
"""

from typing import Any, Final, Never

from lifefold.core.kernel import (
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    accepts,
    always_step,
    anywhere,
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.budget.amounts import Amounts, Resource
from lifefold.core.lifecycles.property_forms import exits_on, leads_where
from lifefold.core.lifecycles.session import Usage

REF: Final = "usage_meter"


class State(AnyLifecycleState):
    """The two states of a usage meter."""

    AT_REST = "AtRest"
    COUNTING = "Counting"


class SessionBegan(Event, frozen=True):
    """A session has begun at this Unix time in milliseconds. Its time limit is ``most_ms``; None is no limit."""

    began_ms: int = 0
    most_ms: int | None = None

    @classmethod
    def examples(cls) -> tuple["SessionBegan", ...]:
        """Return a session without a time limit, and one with a limit."""
        return cls(5), cls(5, 1)


class SessionEnded(Event, frozen=True):
    """The session is over, and is charged its ``usage``; an empty one if it was ended before.

    ``reported``: the session has reported a cost, also if nothing of it is new.
    """

    ended_ms: int = 0
    usage: Usage = Usage()
    reported: bool = False

    @property
    def is_silent(self) -> bool:
        """Whether the session has reported no cost."""
        return self.usage == Usage() and not self.reported

    @classmethod
    def examples(cls) -> tuple["SessionEnded", ...]:
        """Return a session without usage, one with usage, one with nothing new, and one whose clock has jumped back."""
        return cls(6), cls(7, Usage(3, 1, 1)), cls(6, reported=True), cls(4)


class UsageReported(Event, frozen=True):
    """The usage was reported to the board."""


class UsageMeter(Record, frozen=True):
    """The usage since the last report. ``silent``: a session has not reported its cost.

    ``keeps_time``: time is limited too, so durations are metered. ``most_ms`` is the time limit of the metered session.
    """

    state: State = State.AT_REST
    spent: Amounts = Amounts()
    silent: bool = False
    began_ms: int = 0
    most_ms: int | None = None
    keeps_time: bool = False


def begin(m: UsageMeter, e: SessionBegan) -> Step[UsageMeter, Never]:
    """Record the start and the time limit."""
    return Step(replace(m, began_ms=e.began_ms, most_ms=e.most_ms) if m.keeps_time else m)


def count(m: UsageMeter, e: SessionEnded) -> Step[UsageMeter, Never]:
    """Add the cost of the session."""
    lasted_ms = max(0, e.ended_ms - m.began_ms) if m.keeps_time else 0
    took_ms = lasted_ms if m.most_ms is None else min(lasted_ms, m.most_ms)
    cost = Amounts(e.usage.cost_microusd, e.usage.input_tokens + e.usage.output_tokens, took_ms)
    spent = m.spent.plus(cost).but(Resource.SESSIONS, 1)
    return Step(replace(m, spent=spent, silent=m.silent or e.is_silent, began_ms=0, most_ms=None))


def forget(m: UsageMeter, _e: UsageReported) -> Step[UsageMeter, Never]:
    """Clear the usage."""
    return Step(replace(m, spent=Amounts(), silent=False))


def adds_up(step: Transition) -> bool:
    """Every session is counted once, with its usage and its duration, and a report clears the meter."""
    if step.before is None:
        return True
    was, now = step.before.record, step.after.record
    match step.event:
        case SessionEnded(ended_ms=ended_ms, usage=usage, reported=reported):
            lasted_ms = max(0, ended_ms - was.began_ms)
            took_ms = min(lasted_ms, lasted_ms if was.most_ms is None else was.most_ms) if was.keeps_time else 0
            tokens = usage.input_tokens + usage.output_tokens
            cost = Amounts(usage.cost_microusd, tokens, took_ms, 1 - was.spent.sessions)
            silent = was.silent or (usage == Usage() and not reported)
            paid, began_ms, most_ms = was.spent.plus(cost), 0, None
        case SessionBegan(began_ms=began_ms, most_ms=most_ms):
            paid, silent = was.spent, was.silent
            began_ms, most_ms = (began_ms, most_ms) if was.keeps_time else (0, None)
        case _:
            paid, silent, began_ms, most_ms = Amounts(), False, was.began_ms, was.most_ms
    return bool((now.spent, now.silent, now.began_ms, now.most_ms) == (paid, silent, began_ms, most_ms))


def charges_no_more_than_there_was(step: Transition) -> bool:
    """No session is charged more time than it may take."""
    was, now = step.was, step.after.record
    return was.most_ms is None or bool(now.spent.time_ms - was.spent.time_ms <= was.most_ms)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("every session is counted once, with its known usage", adds_up),
    always_step("no session is charged more than its time limit", charges_no_more_than_there_was, on=SessionEnded),
    leads_where(
        "a session is metered from its start to its end",
        {SessionBegan: (State.COUNTING,), SessionEnded: (State.AT_REST,), UsageReported: (State.AT_REST,)},
    ),
    accepts("usage can be reported whenever no session is metered", {State.AT_REST: (UsageReported,)}),
    *exits_on(State.COUNTING, SessionEnded),
)

machine: Machine[Any] = Machine(
    "usage_meter",
    UsageMeter(),
    about="the cost of an agent's sessions since the last report to the board",
    rows=(
        row(State.AT_REST, SessionBegan, State.COUNTING, begin),
        row(State.COUNTING, SessionEnded, State.AT_REST, count),
        row(State.AT_REST, UsageReported, State.AT_REST, forget),
    ),
    properties=PROPERTIES,
    rests=anywhere,
)
