"""What an agent's sessions have cost since the board was told: only where something is limited, a worker has one.

A session says at its end what it has cost, if it can. What one that says nothing is to be taken for is the board's to
say. How long it took is known in any case. The sessions of one claim, each going on where the one before was
interrupted, count as one.
"""

from typing import Any, Final, Never

from lifefold.core.budget.amounts import Amounts, Resource
from lifefold.core.kernel import (
    Event,
    Machine,
    Property,
    Record,
    Step,
    Transition,
    always_step,
    anywhere,
    replace,
    row,
    takes,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.policy.promises import is_over_with, leads_where
from lifefold.core.session import Usage

REF: Final = "meter"


class State(AnyLifecycleState):
    """The two states of a meter."""

    AT_REST = "AtRest"
    COUNTING = "Counting"


class SessionBegan(Event, frozen=True):
    """A session was begun, at this Unix time in milliseconds."""

    began_ms: int = 0

    @classmethod
    def examples(cls) -> tuple["SessionBegan", ...]:
        """Return one, at some time."""
        return (cls(5),)


class SessionEnded(Event, frozen=True):
    """It is over, and has said so much; nothing, if it was ended before it could."""

    ended_ms: int = 0
    usage: Usage = Usage()

    @classmethod
    def examples(cls) -> tuple["SessionEnded", ...]:
        """Return one that has said nothing, and one that has."""
        return cls(6), cls(7, Usage(3, 1, 1))


class Told(Event, frozen=True):
    """The board was told."""


class Meter(Record, frozen=True):
    """What was spent since the board was told. ``silent``: a session has not said what it has cost.

    ``keeps_time``: time is limited, too, so how long sessions take has to be known.
    """

    state: State = State.AT_REST
    spent: Amounts = Amounts()
    silent: bool = False
    began_ms: int = 0
    keeps_time: bool = False


def begin(m: Meter, e: SessionBegan) -> Step[Meter, Never]:
    """Keep when it began."""
    return Step(replace(m, began_ms=e.began_ms if m.keeps_time else 0))


def count(m: Meter, e: SessionEnded) -> Step[Meter, Never]:
    """Add what it has cost."""
    took_ms = max(0, e.ended_ms - m.began_ms) if m.keeps_time else 0
    cost = Amounts(e.usage.cost_microusd, e.usage.input_tokens + e.usage.output_tokens, took_ms)
    spent = m.spent.plus(cost).but(Resource.SESSIONS, 1)
    return Step(replace(m, spent=spent, silent=m.silent or e.usage == Usage(), began_ms=0))


def forget(m: Meter, _e: Told) -> Step[Meter, Never]:
    """Begin to count anew."""
    return Step(replace(m, spent=Amounts(), silent=False))


def adds_up(step: Transition) -> bool:
    """Every session is counted once, with what it has said and how long it took; who was told knows of it all."""
    if step.before is None:
        return True
    was, now = step.before.record, step.after.record
    match step.event:
        case SessionEnded(ended_ms=ended_ms, usage=usage):
            took_ms = max(0, ended_ms - was.began_ms) if was.keeps_time else 0
            tokens = usage.input_tokens + usage.output_tokens
            cost = Amounts(usage.cost_microusd, tokens, took_ms, 1 - was.spent.sessions)
            expected = was.spent.plus(cost), was.silent or usage == Usage(), 0
        case SessionBegan(began_ms=began_ms):
            expected = was.spent, was.silent, began_ms if was.keeps_time else 0
        case _:
            expected = Amounts(), False, was.began_ms
    return bool((now.spent, now.silent, now.began_ms) == expected)


PROMISES: Final[tuple[Property[Any], ...]] = (
    always_step("every session is counted once, with all that is known of it", adds_up),
    leads_where(
        "a session is counted from its beginning to its end",
        {SessionBegan: (State.COUNTING,), SessionEnded: (State.AT_REST,), Told: (State.AT_REST,)},
    ),
    takes("the board can be told whenever no session is counted", {State.AT_REST: (Told,)}),
    *is_over_with(State.COUNTING, SessionEnded),
)

machine: Machine[Any] = Machine(
    "meter",
    Meter(),
    about="what an agent's sessions have cost since the board was told",
    rows=(
        row(State.AT_REST, SessionBegan, State.COUNTING, begin),
        row(State.COUNTING, SessionEnded, State.AT_REST, count),
        row(State.AT_REST, Told, State.AT_REST, forget),
    ),
    properties=PROMISES,
    rests=anywhere,
)
