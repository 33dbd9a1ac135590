"""The supervisor of an agent: it restarts an agent that has stopped because of errors, if the fleet file asks for it.

The supervisor of a stopped agent asks the board, which counts the restarts. The board grants a restart after a rest, or
refuses it. A refused agent is *quarantined*: it stays down for good, with a reason. An agent that an operator stops, or
that cannot work at all, is *dismissed*, and is never restarted.
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


class AgentFailed(Event, frozen=True):
    """The agent has stopped because of errors."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = "too many errors"


class Granted(Event, frozen=True):
    """The board grants a restart, the ``recent``-th one within its window."""

    recent: int = 1


class Refused(Event, frozen=True):
    """The board refuses a restart: there were too many."""

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str = "too often"


class RestartDue(Event, frozen=True):
    """The rest before the restart is over."""


class Dismissed(Event, frozen=True):
    """The agent has stopped or will stop, and is not restarted."""


class Supervisor(Record, frozen=True):
    """The restarts of the agent ``name``.

    ``reason`` is the reason of its last stop or of its quarantine. ``recent`` is the number of restarts within the
    window at the last grant. ``pause`` decides the length of its rest.
    """

    opaque: ClassVar[tuple[str, ...]] = ("reason",)

    state: State = State.UP
    name: str = ""
    reason: str = ""
    recent: int = 0
    pause: Retry = Retry()

    def normal_form(self) -> "Supervisor":
        """Return the record without the fields that only a rest needs."""
        return self if self.state is State.RESTING else replace(self, recent=0)

    @property
    def why_quarantined(self) -> str:
        """The reason of the quarantine; empty without one."""
        return self.reason if self.state is State.QUARANTINED else ""


def on_agent_stopped(s: Supervisor, e: AgentFailed) -> Step[Supervisor, Never]:
    """Record the reason."""
    return Step(replace(s, reason=e.reason))


def rest(s: Supervisor, e: Granted) -> Step[Supervisor, Never]:
    """Record the number of recent restarts."""
    return Step(replace(s, recent=e.recent))


def quarantine(s: Supervisor, e: Refused) -> Step[Supervisor, LogFatal]:
    """Record both reasons, and tell the operator."""
    reason = f"{e.reason}; it stopped: {s.reason}"
    return Step(replace(s, reason=reason), (LogFatal(f"quarantined: {reason}"),))


def pause_ms(s: Supervisor) -> int:
    """Return the rest before the restart, in milliseconds."""
    return s.pause.delay_ms(s.recent, s.name)


def rests(s: Supervisor) -> bool:
    """An agent that is up needs nothing."""
    return s.state is State.UP


OVER: Final = frozenset({State.QUARANTINED, State.DISMISSED})
"""In these states the agent is never restarted."""


def records_its_reason(step: Transition) -> bool:
    """The reason of a stop is recorded; a quarantine has both reasons, and the operator is told."""
    s: Supervisor = step.after.record
    match step.event:
        case AgentFailed(reason=reason):
            return s.reason == reason
        case Refused(reason=reason):
            reported = [each.message for each in step.effects if isinstance(each, LogFatal)]
            was = step.before.record.reason if step.before else ""
            return reason in s.reason and was in s.reason and reported == [f"quarantined: {s.reason}"]
        case _:
            return step.before is None or s.reason == step.before.record.reason


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("the reason of a stop or a quarantine is recorded", records_its_reason),
    always_step(
        "the rest depends on the number of recent restarts",
        lambda step: not isinstance(step.event, Granted) or step.after.record.recent == step.event.recent,
    ),
    always("a quarantined agent has a reason", lambda e: e.state is not State.QUARANTINED or bool(e.record.reason)),
    leads_where(
        "a stopped agent asks, then rests and restarts, or is quarantined",
        {
            AgentFailed: (State.ASKING,),
            Granted: (State.RESTING,),
            Refused: (State.QUARANTINED,),
            RestartDue: (State.UP,),
            Dismissed: (State.DISMISSED,),
        },
    ),
    *keeps_time({RestartDue: ((State.RESTING,), pause_ms)}),
    accepts("a supervised agent can be dismissed", {(State.UP, State.ASKING, State.RESTING): (Dismissed,)}),
    *exits_on(State.UP, AgentFailed, Dismissed),
    *exits_on(State.ASKING, Granted, Refused, Dismissed),
    *exits_on(State.RESTING, Dismissed),
    is_transient(State.RESTING),
)

machine = Machine(
    REF,
    Supervisor(),
    about="restarts of an agent that stopped because of errors: up, asking, resting, quarantined, dismissed",
    rows=(
        row(State.UP, AgentFailed, State.ASKING, on_agent_stopped),
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
