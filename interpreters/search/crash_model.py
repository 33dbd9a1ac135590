"""A runner and its world at one moment: what is durable, what is volatile, what has been done outside.

*Durable* is the log: what each aggregate folds to, which effects were intended, how far they are recorded as
performed. *Volatile* is what a runner knows: what is decided and not persisted, what is let go and not performed, what
is performed and not recorded, which timers and handlers it has. *Outside* is the world: the effects that were really
performed, by their identity (aggregate, version, place), and the activities that were begun.

The order in which a runner goes through its stages is a value (``Discipline``), so that others than ours can be tried.
"""

from enum import StrEnum
from typing import Final, Literal, NamedTuple

import msgspec

from lifefold.effects import Begin, CancelTimer, End, StartTimer


class Stage(StrEnum):
    """What a runner does about an input, and what may happen to it at any time."""

    DECIDE = "decide"
    PERSIST = "persist"
    PERFORM = "perform"
    RECORD = "record"
    CRASH = "crash"


class Discipline(msgspec.Struct, frozen=True):
    """In what order a runner goes through the stages with each input.

    ``together``: what has been performed is recorded in the transaction that persists the next decisions, if it was not
    before. Otherwise the two are written independently, and who of them is first is chance. ``recovers_first``: a
    runner that comes back performs nothing again before all aggregates are told ``RunnerRecovered``.
    ``restores_timers``: it sets the timers that this asks for.

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
"""What ``interpreters.engine`` does; a test holds the engine to it."""


class CrashBounds(msgspec.Struct, frozen=True):
    """How much of what could happen is looked at.

    ``inputs`` is how many inputs are taken from people, activities and timers, ``crashes`` how many runners die,
    ``batch`` how many decisions wait for being persisted, at most. A search ends after so many ``states`` or
    ``seconds``.
    """

    inputs: int = 3
    crashes: int = 2
    batch: int = 2
    states: int = 1_000_000
    seconds: float | None = None


CRASHES: Final = CrashBounds(inputs=2, crashes=1, batch=1, states=60_000)
"""How much is looked at from each of many states, unless somebody says otherwise: a few seconds' work."""


class Fault(StrEnum):
    """What a runner must not do. The value is the property that it breaks."""

    LOST = "every effect that is persisted is performed"
    UNPERSISTED = "nothing is performed that is not persisted"
    TWICE = "nothing is performed twice that is not idempotent"
    PAST = "nothing is performed again that the log is past"
    UNATTENDED = "nothing is performed again before what goes on is taken up"
    STRANDED = "every timer in the log is set by the runner that comes back"


class Activity(NamedTuple):
    """Which activity or timer, of all that ever were."""

    component: int
    ref: str
    slot: str
    generation: int


class Handler(NamedTuple):
    """What a runner has let go for an activity: it is to be begun or resumed, it is live, its end is asked for.

    A timer has its ``deadline_ms``, which is 0 for all others.
    """

    kind: Literal["begin", "resume", "live", "ended", "timer"]
    of: Activity
    deadline_ms: int = 0


Derived = Begin | End | StartTimer | CancelTimer
"""What a runner does for an entity itself, without a record of it: after a crash ``RunnerRecovered`` asks for it again."""

Entry = tuple[int, int]
"""An aggregate's place, and the version of its entry in the log."""


class Outcome(NamedTuple):
    """A decision: where it leads, the effects to be performed, by number, what else it asks for, and its messages."""

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
    """A decision on its way through the ``stages`` that are left.

    ``done`` counts the effects that were performed, ``fresh`` is whether what it derives has still to be let go, and
    ``follows`` are the entries whose effects the runner knew to be performed when it decided. One that is ``owed`` was
    decided by an earlier runner.
    """

    outcome: int
    stages: tuple[Stage, ...]
    done: int = 0
    fresh: bool = True
    follows: frozenset[Entry] = frozenset()
    owed: bool = False


class Durable(NamedTuple):
    """What is on the disk. ``past`` are entries that are not recorded although later ones were decided knowing them."""

    log: tuple[int, ...]
    entries: tuple[int, ...]
    recorded: tuple[int, ...]
    untaken: tuple[int, ...]
    past: frozenset[Entry]


class Volatile(NamedTuple):
    """What a runner knows, and what dies with it. ``pending``: aggregates to be opened, or told ``RunnerRecovered``."""

    now: tuple[int, ...]
    pending: tuple[int, ...]
    flights: tuple[Flight, ...]
    mail: tuple[int, ...]
    handlers: frozenset[Handler]
    known: frozenset[Entry]


class OutsideWorld(NamedTuple):
    """What has been done to the world, whoever remembers it."""

    performed: frozenset[int]
    begun: frozenset[Activity]


class CrashModel(NamedTuple):
    """Everything at one moment, and how many inputs and crashes there were."""

    durable: Durable
    volatile: Volatile
    outside: OutsideWorld
    inputs: int = 0
    crashes: int = 0


class Step(NamedTuple):
    """What a runner does, or what happens to it: in which aggregate, and there what.

    A decision is on the input of that number, on a message, or else on what opens the aggregate or tells it
    ``RunnerRecovered``. What is performed is an effect, or the beginning of what a handler is for.
    """

    stage: Stage
    component: int = -1
    number: int = -1
    sent_message: int = -1
    deed: int = -1
    handler: Handler | None = None
