"""Whether an agent that has stopped by its errors is restarted; a worker has one of these if its fleet file says so.

An agent that *fell* asks the board, which knows how often that has happened. It is told to rest and is then restarted,
or it is *quarantined*: it stays down for good, and says why. Whoever was told to stop, or could not go on whatever was
tried, is *dismissed*; nothing brings it back.
"""

from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import (
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
    replace,
    row,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import exits_on, is_transient, keeps_time, leads_where
from lifefold.core.policy.recovery import Retry
from lifefold.effects import LogFatal

REF: Final = "supervisor"


class State(AnyLifecycleState):
    """The five states of a supervised agent."""

    UP = "Up"
    ASKING = "Asking"
    RESTING = "Resting"
    QUARANTINED = "Quarantined"
    DISMISSED = "Dismissed"


class Fell(Event, frozen=True):
    """The agent has stopped by its errors."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = "too many errors"


class Granted(Event, frozen=True):
    """The agent may be restarted; with this it is for the ``recent``-th time within its window."""

    recent: int = 1


class Refused(Event, frozen=True):
    """It has happened too often."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = "too often"


class RestartDue(Event, frozen=True):
    """The rest before the restart is over."""


class Dismissed(Event, frozen=True):
    """The agent has stopped, or is to stop, and nobody wants it back."""


class Supervisor(Record, frozen=True):
    """What is known of an agent's restarts.

    ``reason`` says why it fell last, or is quarantined; ``recent`` counts the restarts within its window when it was
    granted the last one. ``pause`` says how long it rests, and ``name`` is the agent's.
    """

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    state: State = State.UP
    name: str = ""
    reason: str = ""
    recent: int = 0
    pause: Retry = Retry()

    def normal_form(self) -> "Supervisor":
        """Return it without what only a rest depends on."""
        return self if self.state is State.RESTING else replace(self, recent=0)

    @property
    def why_quarantined(self) -> str:
        """Why it is quarantined; empty if it is not."""
        return self.reason if self.state is State.QUARANTINED else ""


def fall(s: Supervisor, e: Fell) -> Step[Supervisor, Never]:
    """Remember why."""
    return Step(replace(s, reason=e.reason))


def rest(s: Supervisor, e: Granted) -> Step[Supervisor, Never]:
    """Remember for the how many-th time that is."""
    return Step(replace(s, recent=e.recent))


def quarantine(s: Supervisor, e: Refused) -> Step[Supervisor, LogFatal]:
    """Say why it stays down, and what it fell by."""
    reason = f"{e.reason}; it fell by {s.reason}"
    return Step(replace(s, reason=reason), (LogFatal(f"quarantined: {reason}"),))


def pause_ms(s: Supervisor) -> int:
    """Return how many milliseconds to rest before the restart."""
    return s.pause.delay_ms(s.recent, s.name)


def rests(s: Supervisor) -> bool:
    """Nothing need happen to an agent that is up."""
    return s.state is State.UP


OVER: Final = frozenset({State.QUARANTINED, State.DISMISSED})
"""From these nothing brings it back."""


def says_why(step: Transition) -> bool:
    """Why an agent fell, and is quarantined, is said: both reasons, to people too."""
    s: Supervisor = step.after.record
    match step.event:
        case Fell(reason=reason):
            return s.reason == reason
        case Refused(reason=reason):
            told = [each.message for each in step.effects if isinstance(each, LogFatal)]
            was = step.before.record.reason if step.before else ""
            return reason in s.reason and was in s.reason and told == [f"quarantined: {s.reason}"]
        case _:
            return step.before is None or s.reason == step.before.record.reason


def rests_by_how_often(step: Transition) -> bool:
    """How long an agent rests depends on how often it was restarted lately."""
    return not isinstance(step.event, Granted) or step.after.record.recent == step.event.recent


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("why an agent fell, or is quarantined, is said", says_why),
    always_step("how long an agent rests depends on how often it was restarted", rests_by_how_often),
    always("whoever is quarantined has a reason", lambda e: e.state is not State.QUARANTINED or bool(e.record.reason)),
    leads_where(
        "who fell asks, and rests or is quarantined; who has rested is restarted",
        {
            Fell: (State.ASKING,),
            Granted: (State.RESTING,),
            Refused: (State.QUARANTINED,),
            RestartDue: (State.UP,),
            Dismissed: (State.DISMISSED,),
        },
    ),
    *keeps_time({RestartDue: ((State.RESTING,), pause_ms)}),
    accepts("nobody need come back", {(State.UP, State.ASKING, State.RESTING): (Dismissed,)}),
    *exits_on(State.UP, Fell, Dismissed),
    *exits_on(State.ASKING, Granted, Refused, Dismissed),
    *exits_on(State.RESTING, Dismissed),
    is_transient(State.RESTING),
)

machine = Machine(
    REF,
    Supervisor(),
    about="whether an agent that stopped by its errors is restarted: up, asking, resting, quarantined, dismissed",
    rows=(
        row(State.UP, Fell, State.ASKING, fall),
        row(State.ASKING, Granted, State.RESTING, rest),
        row(State.ASKING, Refused, State.QUARANTINED, quarantine),
        row(State.RESTING, RestartDue, State.UP),
        row((State.UP, State.ASKING, State.RESTING), Dismissed, State.DISMISSED),
    ),
    final={State.QUARANTINED, State.DISMISSED},
    during={State.RESTING: after(pause_ms, RestartDue)},
    properties=PROPERTIES,
    rests=rests,
)
