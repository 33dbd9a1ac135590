"""What is heard by an agent and of it, wherever it is.

What is refused is no step, so that no other property can speak of it. Requests and sections stand beside the state, so
they are taken in every one. The edges that the document draws can be asked for, whenever they are; who fails at
something can say so; and a deadline that is due is not missed.
"""

from typing import Any, Final

from lifefold.core.kernel import ANY, Entity, Property, accepts
from lifefold.core.lifecycles.runtime.events import (
    Complete,
    CompleteRecovery,
    DeadlinePassed,
    Fail,
    FailRecovery,
    PreemptionForced,
    PreemptionRequested,
    Resume,
    Run,
    Schedule,
    SectionEntered,
    SectionLeft,
    Shutdown,
    Start,
    Suspend,
    Wait,
    WaitResources,
)
from lifefold.core.lifecycles.runtime.record import Runtime, State, due_ms


def is_within_a_section(e: Entity[Runtime]) -> bool:
    """Say: something is executed that is not to be interrupted."""
    return bool(e.record.preemption.sections)


def is_within_none(e: Entity[Runtime]) -> bool:
    """Say: nothing is executed that is not to be interrupted."""
    return not is_within_a_section(e)


def is_due(e: Entity[Runtime]) -> bool:
    """Say: the time is there at which an agent is signalled, or failed."""
    due = due_ms(e.record)
    return due is not None and due <= e.record.at_ms


HEARD: Final[tuple[Property[Any], ...]] = (
    accepts(
        "whoever wants an agent to yield is heard, wherever it is",
        {ANY: (PreemptionRequested,), State.RUNNING: (PreemptionForced,)},
    ),
    accepts(
        "work that is not to be interrupted can begin wherever it is", {ANY: (SectionEntered,)}, when=is_within_none
    ),
    accepts("it can end wherever the agent is then", {ANY: (SectionLeft,)}, when=is_within_a_section),
    accepts(
        "who fails at his work, at ending or at recovering can say so",
        {(State.RUNNING, State.SHUTTING_DOWN): (Fail,), State.RECOVERING: (Fail, FailRecovery)},
    ),
    accepts(
        "what the document draws can be said of an agent",
        {
            State.INITIALIZING: (Start,),
            State.RUNNABLE: (Schedule,),
            (State.SCHEDULED, State.WAITING, State.WAITING_RESOURCES, State.RESUMED): (Run,),
            State.RUNNING: (Wait, WaitResources, Suspend, Complete, Shutdown),
            State.SUSPENDED: (Resume,),
            State.RECOVERING: (CompleteRecovery,),
        },
    ),
    accepts("a deadline that is due is not missed", {State.RUNNING: (DeadlinePassed,)}, when=is_due),
)
"""Promises of all profiles."""

ABORTS: Final[Property[Any]] = accepts("who recovers can be told to end", {State.RECOVERING: (Shutdown,)})
"""A property of those profiles in which a recovery may be given up for a shutdown."""
