"""Rules of a service: when it begins a run, suspends, drains and ends."""

from collections.abc import Iterator
from typing import Final, cast

from lifefold.core.fleet.board import service_slot
from lifefold.core.fleet.service import inbox, invocation, trigger
from lifefold.core.fleet.service.model import KIND, PROCESS, has_failed, is_down, is_idle, life, may_begin, reason_of
from lifefold.core.fleet.service.properties import PROPERTIES
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Aggregate, AggregateType, Dispatch, Transition, rule
from lifefold.core.lifecycles import process, session
from lifefold.effects import Tell

# The life


@rule(on=life)
def come_up(_service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Start a service with its fleet; nothing needs to be built before it can wait for triggers."""
    if transition.before is None:
        yield Dispatch(PROCESS, process.StartRequested("the fleet begins"))
    elif transition.entered is process.State.STARTING:
        yield Dispatch(PROCESS, process.StartSucceeded())


@rule(on=life)
def watch(service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Arm the triggers while the process is up, also while it is suspended."""
    if transition.entered is None:
        return
    up = transition.entered in process.SERVING
    for ref in sorted(each for each in service.entities if each.startswith(f"{trigger.REF}:")):
        watched = service.record(ref).state is trigger.State.WATCHING
        if up is not watched:
            yield Dispatch(ref, trigger.Armed() if up else trigger.Disarmed())


@rule(on=life, enters=process.DOWN)
def cut_off(service: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Cancel a run when its process is down."""
    if not is_idle(service):
        yield Dispatch(invocation.REF, invocation.Cancelled("the service is down"))


def serve(service: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Run the longest waiting item as soon as nothing else runs."""
    waiting: inbox.Inbox = service.record(inbox.REF)
    if waiting.items and may_begin(service):
        yield Dispatch(inbox.REF, inbox.Taken())
        yield Dispatch(invocation.REF, invocation.Invoked(waiting.items[0].text))


@rule(on=life)
def rest(service: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Let a process without runs and waiting items await its triggers."""
    p: process.Process = service.record(PROCESS)
    free = is_idle(service) and not service.record(inbox.REF).items
    if p.state is process.State.RUNNING and p.suspended_for is None and free:
        yield Dispatch(PROCESS, process.QueueEmptied())


@rule(on=life)
def drain(service: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Let a stopping process end when its run has ended."""
    if service.record(PROCESS).state is process.State.STOPPING and is_idle(service):
        yield Dispatch(PROCESS, process.Drained())


@rule(on=life)
def leave(service: Aggregate, _transition: Transition) -> Iterator[Dispatch | Tell]:
    """Close the inbox of a service that is down for good, and report the reason to the board."""
    if not is_down(service) or service.record(inbox.REF).state is inbox.State.CLOSED:
        return
    p: process.Process = service.record(PROCESS)
    yield Dispatch(inbox.REF, inbox.InboxClosed(reason_of(p)))
    yield Tell(
        "board", f"{service_slot.REF}:{service.key}", service_slot.ServiceGone(reason_of(p), failed=has_failed(p))
    )


# What comes, and what becomes of it


@rule(on=trigger.machine, event=trigger.Triggered)
def fire(_service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Put what a trigger reports into the inbox."""
    triggered = cast("trigger.Triggered", transition.event)
    yield Dispatch(inbox.REF, inbox.Fired(transition.entity, triggered.what))


@rule(on=inbox.machine, event=(inbox.MessageArrived, inbox.Fired))
def wake(service: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Report new items of the inbox to the process."""
    if service.record(PROCESS).state in process.SERVING:
        yield Dispatch(PROCESS, process.TriggerArrived())


@rule(on=invocation.machine, event=(session.SessionExited, invocation.Cancelled))
def end(service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Finish a run, and report its outcome to the process."""
    yield Dispatch(inbox.REF, inbox.Finished())
    exited = transition.event
    if isinstance(exited, session.SessionExited) and service.record(PROCESS).state in _HEARS:
        succeeded = isinstance(exited.outcome, session.Success)
        yield Dispatch(
            PROCESS, process.RunSucceeded() if succeeded else process.RunFailed(session.describe(exited.outcome))
        )


_HEARS: Final = frozenset({*process.SERVING, process.State.STOPPING})
"""In these a process takes in how a run went."""


# What people want


@rule(on=desired_state.machine)
def obey(service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Apply the desired state: a pause suspends, also a process that will restart; a stop ends run and process."""
    p: process.Process = service.record(PROCESS)
    if transition.entered is desired_state.State.PAUSE and not is_down(service):
        yield Dispatch(PROCESS, process.SuspendRequested())
    elif (
        isinstance(transition.event, desired_state.ResumeWanted)
        and p.suspended_for is not None
        and not is_down(service)
    ):
        yield Dispatch(PROCESS, process.ResumeRequested())
    elif transition.entered is desired_state.State.STOP:
        reason = service.record("desired_state").reason
        if not is_idle(service):
            yield Dispatch(invocation.REF, invocation.Cancelled(reason))
        yield Dispatch(PROCESS, process.StopRequested(reason))


def drained(service: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Stop a draining service as soon as nothing runs, also while it is held."""
    wanted: desired_state.DesiredState = service.record("desired_state")
    if wanted.state is desired_state.State.STOP or not is_idle(service):
        return
    if wanted.state is desired_state.State.DRAIN:
        yield Dispatch("desired_state", desired_state.Drained())
    elif wanted.drains:
        yield Dispatch("desired_state", desired_state.StopWanted(wanted.reason, None))


aggregate = AggregateType(
    KIND,
    machines=(life, invocation.machine, inbox.machine, trigger.machine, desired_state.machine),
    rules=(
        come_up,
        watch,
        cut_off,
        *(rule(on=each)(serve) for each in (life, desired_state.machine)),
        rest,
        drain,
        leave,
        fire,
        wake,
        # Before `drained`: a run is finished before its service stops and closes the inbox.
        end,
        obey,
        *(rule(on=each)(drained) for each in (invocation.machine, desired_state.machine)),
    ),
    commands={
        life.name: (),
        invocation.REF: (),
        trigger.REF: (),
        inbox.REF: (inbox.MessageArrived,),
        desired_state.machine.name: desired_state.COMMANDS,
    },
    properties=PROPERTIES,
)
