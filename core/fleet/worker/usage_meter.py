"""What an agent's sessions have cost since the board was told: only where something is limited, a worker has one.

A session says at its end what it has cost, if it can. What one that says nothing is to be taken for is the board's to
say. How long it took is known in any case, but clocks jump, and nobody may have been there when it ended: no session is
charged more time than it could have taken. The sessions of one claim, each going on where the one before was
interrupted, count as one.
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
    """The two states of a meter."""

    AT_REST = "AtRest"
    COUNTING = "Counting"


class SessionBegan(Event, frozen=True):
    """A session was begun, at this Unix time in milliseconds, and is ended after ``most_ms``, if ever."""

    began_ms: int = 0
    most_ms: int | None = None

    @classmethod
    def examples(cls) -> tuple["SessionBegan", ...]:
        """Return one that may take as long as it likes, and one that may not."""
        return cls(5), cls(5, 1)


class SessionEnded(Event, frozen=True):
    """It is over, and has said so much; nothing, if it was ended before it could."""

    ended_ms: int = 0
    usage: Usage = Usage()

    @classmethod
    def examples(cls) -> tuple["SessionEnded", ...]:
        """Return one that has said nothing, one that has, and one that the clock has jumped back in."""
        return cls(6), cls(7, Usage(3, 1, 1)), cls(4)


class Told(Event, frozen=True):
    """The board was told."""


class UsageMeter(Record, frozen=True):
    """What was spent since the board was told. ``silent``: a session has not said what it has cost.

    ``keeps_time``: time is limited, too, so how long sessions take has to be known; the one that is counted takes no
    longer than ``most_ms``.
    """

    state: State = State.AT_REST
    spent: Amounts = Amounts()
    silent: bool = False
    began_ms: int = 0
    most_ms: int | None = None
    keeps_time: bool = False


def begin(m: UsageMeter, e: SessionBegan) -> Step[UsageMeter, Never]:
    """Keep when it began, and how long it may take."""
    return Step(replace(m, began_ms=e.began_ms, most_ms=e.most_ms) if m.keeps_time else m)


def count(m: UsageMeter, e: SessionEnded) -> Step[UsageMeter, Never]:
    """Add what it has cost."""
    lasted_ms = max(0, e.ended_ms - m.began_ms) if m.keeps_time else 0
    took_ms = lasted_ms if m.most_ms is None else min(lasted_ms, m.most_ms)
    cost = Amounts(e.usage.cost_microusd, e.usage.input_tokens + e.usage.output_tokens, took_ms)
    spent = m.spent.plus(cost).but(Resource.SESSIONS, 1)
    return Step(replace(m, spent=spent, silent=m.silent or e.usage == Usage(), began_ms=0, most_ms=None))


def forget(m: UsageMeter, _e: Told) -> Step[UsageMeter, Never]:
    """Begin to count anew."""
    return Step(replace(m, spent=Amounts(), silent=False))


def adds_up(step: Transition) -> bool:
    """Every session is counted once, with what it has said and how long it took; who was told knows of it all."""
    if step.before is None:
        return True
    was, now = step.before.record, step.after.record
    match step.event:
        case SessionEnded(ended_ms=ended_ms, usage=usage):
            lasted_ms = max(0, ended_ms - was.began_ms)
            took_ms = min(lasted_ms, lasted_ms if was.most_ms is None else was.most_ms) if was.keeps_time else 0
            tokens = usage.input_tokens + usage.output_tokens
            cost = Amounts(usage.cost_microusd, tokens, took_ms, 1 - was.spent.sessions)
            paid, silent, began_ms, most_ms = was.spent.plus(cost), was.silent or usage == Usage(), 0, None
        case SessionBegan(began_ms=began_ms, most_ms=most_ms):
            paid, silent = was.spent, was.silent
            began_ms, most_ms = (began_ms, most_ms) if was.keeps_time else (0, None)
        case _:
            paid, silent, began_ms, most_ms = Amounts(), False, was.began_ms, was.most_ms
    return bool((now.spent, now.silent, now.began_ms, now.most_ms) == (paid, silent, began_ms, most_ms))


def charges_no_more_than_there_was(step: Transition) -> bool:
    """No session is charged more time than it may take."""
    if step.before is None or not isinstance(step.event, SessionEnded):
        return True
    was, now = step.before.record, step.after.record
    return was.most_ms is None or bool(now.spent.time_ms - was.spent.time_ms <= was.most_ms)


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("every session is counted once, with all that is known of it", adds_up),
    always_step("no session is charged more time than it may take", charges_no_more_than_there_was),
    leads_where(
        "a session is counted from its beginning to its end",
        {SessionBegan: (State.COUNTING,), SessionEnded: (State.AT_REST,), Told: (State.AT_REST,)},
    ),
    accepts("the board can be told whenever no session is counted", {State.AT_REST: (Told,)}),
    *exits_on(State.COUNTING, SessionEnded),
)

machine: Machine[Any] = Machine(
    "usage_meter",
    UsageMeter(),
    about="what an agent's sessions have cost since the board was told",
    rows=(
        row(State.AT_REST, SessionBegan, State.COUNTING, begin),
        row(State.COUNTING, SessionEnded, State.AT_REST, count),
        row(State.AT_REST, Told, State.AT_REST, forget),
    ),
    properties=PROPERTIES,
    rests=anywhere,
)
