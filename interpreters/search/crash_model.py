"""The crash model: the durable state, the volatile state, and the outside effects, at one moment of a runner.

*Durable* is the log: the state of each aggregate, the intended effects, and the record of the performed ones.
*Volatile* is the knowledge of a runner: decisions that are not persisted, effects that are not performed or not
recorded, timers and handlers. *Outside* is the world: the effects that were performed, by their identity (aggregate,
version, index), and the started activities.

The order of a runner's stages is a value (``Discipline``), so that a check can try other orders.
"""

from enum import StrEnum
from typing import Final, Literal, NamedTuple

import msgspec

from lifefold.effects import Begin, CancelTimer, End, StartTimer


class Stage(StrEnum):
    """A stage of a runner for an input, or an event that can interrupt it at any time."""

    DECIDE = "decide"
    PERSIST = "persist"
    PERFORM = "perform"
    RECORD = "record"
    CRASH = "crash"


class Discipline(msgspec.Struct, frozen=True):
    """The order in which a runner takes the stages of each input.

    ``together``: the transaction that persists the next decisions also records performed effects. Otherwise the two
    are written independently, in any order. ``recovers_first``: a runner after a restart performs no owed effect
    before all aggregates have got ``RunnerRecovered``. ``restores_timers``: it sets the timers that this input
    requests.

    Raises ``ValueError`` if ``order`` does not begin with ``DECIDE``, or has a stage twice, or a crash.
    """

    order: tuple[Stage, ...]
    together: bool = True
    recovers_first: bool = True
    restores_timers: bool = True

    def __post_init__(self) -> None:
        """Check the order."""
        if self.order[:1] != (Stage.DECIDE,) or len(set(self.order)) < len(self.order) or Stage.CRASH in self.order:
            message = f"not an order of stages: {', '.join(self.order)}"
            raise ValueError(message)


SHIPPED: Final = Discipline((Stage.DECIDE, Stage.PERSIST, Stage.PERFORM, Stage.RECORD))
"""The discipline of ``interpreters.engine``; a test compares the engine with it."""


class CrashBounds(msgspec.Struct, frozen=True):
    """The bounds of a crash search.

    ``inputs`` is the most inputs of operators, activities and timers, ``crashes`` the most crashes, ``batch`` the most
    decisions that wait to be persisted. A search ends after so many ``states`` or ``seconds``.
    """

    inputs: int = 3
    crashes: int = 2
    batch: int = 2
    states: int = 1_000_000
    seconds: float | None = None


CRASHES: Final = CrashBounds(inputs=2, crashes=1, batch=1, states=60_000)
"""The default bounds, from each of many states: a few seconds of work."""


class Fault(StrEnum):
    """A fault of a runner. The value is the property that it breaks."""

    LOST = "every effect that is persisted is performed"
    UNPERSISTED = "nothing is performed that is not persisted"
    TWICE = "nothing is performed twice that is not idempotent"
    PAST = "nothing is performed again that the log is past"
    UNATTENDED = "nothing is performed again before what goes on is taken up"
    STRANDED = "every timer in the log is set by the runner that comes back"


class Activity(NamedTuple):
    """The identity of an activity or a timer."""

    component: int
    ref: str
    slot: str
    generation: int


class Handler(NamedTuple):
    """The handler of an activity in a runner: to be started or resumed, running, or asked to end.

    A timer has its ``deadline_ms``, which is 0 for activities.
    """

    kind: Literal["begin", "resume", "live", "ended", "timer"]
    of: Activity
    deadline_ms: int = 0


Derived = Begin | End | StartTimer | CancelTimer
"""Effects that a runner performs without a record: after a crash ``RunnerRecovered`` requests them again."""

Entry = tuple[int, int]
"""The number of an aggregate, and the version of its entry in the log."""


class Outcome(NamedTuple):
    """A decision: the next state, the numbers of the effects, the derived effects, and the messages."""

    component: int
    to: int
    version: int
    deeds: tuple[int, ...]
    derived: tuple[tuple[str, Derived], ...]
    messages: tuple[int, ...]
    took: int

    @property
    def entry(self) -> Entry:
        """Its entry in the log."""
        return self.component, self.version


class Flight(NamedTuple):
    """A decision on its way through the remaining ``stages``.

    ``done`` counts the performed effects. ``fresh``: its derived effects are not started yet. ``follows`` are the
    entries whose effects the runner knew to be performed when it decided. An ``owed`` decision is one of an earlier
    runner.
    """

    outcome: int
    stages: tuple[Stage, ...]
    done: int = 0
    fresh: bool = True
    follows: frozenset[Entry] = frozenset()
    owed: bool = False


class Durable(NamedTuple):
    """The contents of the disk. ``past``: entries without a record although later decisions knew of their effects."""

    log: tuple[int, ...]
    entries: tuple[int, ...]
    recorded: tuple[int, ...]
    untaken: tuple[int, ...]
    past: frozenset[Entry]


class Volatile(NamedTuple):
    """The volatile knowledge of a runner. ``pending``: aggregates that wait for an opening or ``RunnerRecovered``."""

    now: tuple[int, ...]
    pending: tuple[int, ...]
    flights: tuple[Flight, ...]
    mail: tuple[int, ...]
    handlers: frozenset[Handler]
    known: frozenset[Entry]


class OutsideWorld(NamedTuple):
    """The effects and activities that were really performed."""

    performed: frozenset[int]
    begun: frozenset[Activity]


class CrashModel(NamedTuple):
    """The whole crash model at one moment, with the numbers of inputs and crashes so far."""

    durable: Durable
    volatile: Volatile
    outside: OutsideWorld
    inputs: int = 0
    crashes: int = 0


class Step(NamedTuple):
    """A stage or a crash: in which aggregate, and on what.

    A decision is on the input of that number, on a message, or else on the opening or ``RunnerRecovered``. A performed
    stage is an effect, or the start of a handler.
    """

    stage: Stage
    component: int = -1
    number: int = -1
    sent_message: int = -1
    deed: int = -1
    handler: Handler | None = None
