"""A whole fleet without a disk, a clock or a process: every activity succeeds at once, and messages arrive in order."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.fleet.worker import assignment
from lifefold.core.kernel import ActivityEnded, Envelope, Event, RequestedEffect
from lifefold.core.lifecycles import session
from lifefold.effects import (
    Activity,
    Begin,
    CheckOutWork,
    End,
    MergeWork,
    PrepareWorktree,
    RunSession,
    Tell,
    VerifyWork,
)

Input = tuple[str, Envelope]
"""An aggregate's name and its input."""

TEXT: Final = "Make the tests of the package pass, and say in two sentences what was wrong with them."


def plan(agents: int, tasks: int) -> Plan:
    """Return a fleet in which every second task depends on the one before it."""
    names = [f"T{number:04}" for number in range(tasks)]
    return Plan(
        "fleet",
        tuple(AgentPlan(f"agent-{number:03}") for number in range(agents)),
        tuple(
            TaskPlan(name, f"{name}: {TEXT}", (("make", "test"),), (names[number - 1],) if number % 2 else ())
            for number, name in enumerate(names)
        ),
    )


class World:
    """The outside of the reducers. ``inputs`` are those that are not decided on yet."""

    def __init__(self, fleet: Plan) -> None:
        """Start with the inputs that create the fleet."""
        self.at_ms = 1_700_000_000_000
        self.inputs: deque[Input] = deque(opening(fleet, self.at_ms))

    def perform(self, aggregate: str, requested: RequestedEffect) -> None:
        """Perform an effect at once."""
        self.at_ms += 1
        match requested.effect:
            case Tell() as tell:
                self._offer(tell.aggregate, tell.entity, tell.event, sender=aggregate, ordinal=tell.ordinal)
            case Begin(slot=slot, generation=generation, activity=activity):
                for event in outcome(activity):
                    self._offer(aggregate, requested.entity, event, slot=slot, generation=generation)
            case End(slot=slot, generation=generation):
                self._offer(aggregate, requested.entity, ActivityEnded(slot, generation))
            case _:
                pass

    def _offer(self, aggregate: str, entity: str, event: Event, **origin: Any) -> None:
        self.inputs.append((aggregate, Envelope(entity, event, self.at_ms, "world", **origin)))


def outcome(activity: Activity) -> Iterator[Event]:
    """Yield the events of a successful activity."""
    match activity:
        case PrepareWorktree():
            yield session.WorktreeReady()
        case RunSession(session_seq=session_seq):
            yield session.SessionStarted(session_seq)
            yield session.SessionExited(session.Success())
        case CheckOutWork():
            yield assignment.CheckedOut()
        case VerifyWork():
            yield assignment.Verified()
        case MergeWork():
            yield assignment.Merged("0123abcd")
        case _:
            raise AssertionError(activity)
