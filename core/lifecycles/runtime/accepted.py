"""The accepted inputs of an agent, in any state.

A refused input is no step, so no other property covers it. Requests and sections are beside the state, so every state
accepts them. Every edge of the document can be requested. An agent at work can report its failure, and a due deadline
is accepted.
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
    """Tell whether a section is running."""
    return bool(e.record.preemption.sections)


def is_within_none(e: Entity[Runtime]) -> bool:
    """Tell whether no section is running."""
    return not is_within_a_section(e)


def is_due(e: Entity[Runtime]) -> bool:
    """Tell whether a deadline is due."""
    due = due_ms(e.record)
    return due is not None and due <= e.record.at_ms


ACCEPTED: Final[tuple[Property[Any], ...]] = (
    accepts(
        "a request to yield is accepted in every state",
        {ANY: (PreemptionRequested,), State.RUNNING: (PreemptionForced,)},
    ),
    accepts("a section can begin in every state", {ANY: (SectionEntered,)}, when=is_within_none),
    accepts("a section can end in every state", {ANY: (SectionLeft,)}, when=is_within_a_section),
    accepts(
        "a failure at work, at shutdown or at recovery can be reported",
        {(State.RUNNING, State.SHUTTING_DOWN): (Fail,), State.RECOVERING: (Fail, FailRecovery)},
    ),
    accepts(
        "every edge of the document is accepted",
        {
            State.INITIALIZING: (Start,),
            State.RUNNABLE: (Schedule,),
            (State.SCHEDULED, State.WAITING, State.WAITING_RESOURCES, State.RESUMED): (Run,),
            State.RUNNING: (Wait, WaitResources, Suspend, Complete, Shutdown),
            State.SUSPENDED: (Resume,),
            State.RECOVERING: (CompleteRecovery,),
        },
    ),
    accepts("a due deadline is accepted", {State.RUNNING: (DeadlinePassed,)}, when=is_due),
)
"""Properties of all profiles."""

ABORTS: Final[Property[Any]] = accepts("a recovering agent can be shut down", {State.RECOVERING: (Shutdown,)})
"""A property of the profiles in which a shutdown may abort a recovery."""
