"""A service: one aggregate with a long-lived process, what triggers it, what waits to be run, and the run itself.

The life is document 002's ``process``, whose table is as it was. Its activities are served here: to *start* is to begin
to wait for triggers, to *serve* is to take what waits in its order and have it run, one at a time, to *drain* is to let
the run in flight come to its end. So every decision is a rule of this page, and the interpreter does two things only:
it waits for triggers (``AwaitTrigger``), and it runs a command (``RunSession``).

Who is paused, or held by a runner that goes away, begins no other run; the one in flight ends by itself, and what comes
meanwhile waits. Who is to drain lets it end, too, and stops then. Who is to stop has it ended. A service that has come
down and will not come back is *gone*: what waits is given back, and the board hears why.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from lifefold.core import process, session
from lifefold.core.fleet import duty, inbox, intent, invocation, trigger
from lifefold.core.kernel import (
    Aggregate,
    AggregateType,
    Dispatch,
    Overview,
    Phase,
    Property,
    Scene,
    Transition,
    always,
    always_step,
    leads_to,
    rule,
    seeing,
    sometimes,
    weakly,
)
from lifefold.core.process.restart import Comeback
from lifefold.effects import RunSession, Tell

KIND: Final = "service"

PROCESS: Final = process.machine.name

life = process.machine.serving("StartProcess", "ServeTriggers", "DrainProcess")
"""The process as a service lives it: what its states stand for is done by rules."""


# What the rules look at


def is_idle(service: Aggregate) -> bool:
    """Tell whether nothing is being run."""
    return service.record(invocation.REF).state is invocation.State.IDLE


def is_down(service: Aggregate) -> bool:
    """Tell whether the process is down, and will not come back by itself."""
    p: process.Process = service.record(PROCESS)
    return p.state in process.DOWN and p.comeback is Comeback.NONE


def may_begin(service: Aggregate) -> bool:
    """Tell whether something may be run now, if anything waits."""
    p: process.Process = service.record(PROCESS)
    up = p.state in {process.State.RUNNING, process.State.AWAITING} and p.suspended_for is None
    return up and service.record("intent").state is intent.State.RUN and is_idle(service)


# The life


@rule(on=life)
def come_up(_service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A service begins with its fleet, and there is nothing to be built before it can wait for triggers."""
    if transition.before is None:
        yield Dispatch(PROCESS, process.StartRequested("the fleet begins"))
    elif transition.entered is process.State.STARTING:
        yield Dispatch(PROCESS, process.StartSucceeded())


@rule(on=life)
def watch(service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Triggers are waited for as long as the process is up, also while it is suspended."""
    if transition.entered is None:
        return
    up = transition.entered in process.SERVING
    for ref in sorted(each for each in service.entities if each.startswith(f"{trigger.REF}:")):
        watched = service.record(ref).state is trigger.State.WATCHING
        if up is not watched:
            yield Dispatch(ref, trigger.Armed() if up else trigger.Disarmed())


@rule(on=life)
def cut_off(service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What is still being run when the process is down is ended."""
    if transition.entered in process.DOWN and not is_idle(service):
        yield Dispatch(invocation.REF, invocation.Cancelled("the service is down"))


def serve(service: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """What has waited longest is run, as soon as nothing else is."""
    waiting: inbox.Inbox = service.record(inbox.REF)
    if waiting.items and may_begin(service):
        yield Dispatch(inbox.REF, inbox.Taken())
        yield Dispatch(invocation.REF, invocation.Invoked(waiting.items[0].text))


@rule(on=life)
def rest(service: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """A process that has nothing to run and nothing waiting awaits its triggers."""
    p: process.Process = service.record(PROCESS)
    free = is_idle(service) and not service.record(inbox.REF).items
    if p.state is process.State.RUNNING and p.suspended_for is None and free:
        yield Dispatch(PROCESS, process.QueueEmptied())


@rule(on=life)
def drain(service: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """A process that stops is down when its run has ended."""
    if service.record(PROCESS).state is process.State.STOPPING and is_idle(service):
        yield Dispatch(PROCESS, process.Drained())


@rule(on=life)
def leave(service: Aggregate, _transition: Transition) -> Iterator[Dispatch | Tell]:
    """Who is down for good takes nothing more, and the board hears why."""
    if not is_down(service) or service.record(inbox.REF).state is inbox.State.CLOSED:
        return
    p: process.Process = service.record(PROCESS)
    yield Dispatch(inbox.REF, inbox.InboxClosed(reason_of(p)))
    yield Tell("board", f"{duty.REF}:{service.key}", duty.ServiceGone(reason_of(p), failed=has_failed(p)))


def reason_of(p: process.Process) -> str:
    """Say why a process is down."""
    return (p.failure or "it has failed") if has_failed(p) else (p.stop_reason or "it has stopped")


def has_failed(p: process.Process) -> bool:
    """Tell whether a process has come down by itself, and nobody wanted that."""
    return p.state is process.State.FAILED and not p.stop_requested


# What comes, and what becomes of it


@rule(on=trigger.machine)
def fire(_service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A trigger that has come waits to be run."""
    if isinstance(transition.event, trigger.Triggered):
        yield Dispatch(inbox.REF, inbox.Fired(transition.entity, transition.event.what))


@rule(on=inbox.machine)
def wake(service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """The process hears of what has come."""
    came = isinstance(transition.event, inbox.MessageArrived | inbox.Fired)
    if came and service.record(PROCESS).state in process.SERVING:
        yield Dispatch(PROCESS, process.TriggerArrived())


@rule(on=invocation.machine)
def end(service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A run that is over is done with, however it went; the process hears how."""
    match transition.event:
        case session.SessionExited(outcome=session.Success()):
            event: process.RunSucceeded | process.RunFailed = process.RunSucceeded()
        case session.SessionExited(outcome=outcome):
            event = process.RunFailed(session.describe(outcome))
        case invocation.Cancelled():
            yield Dispatch(inbox.REF, inbox.Finished())
            return
        case _:
            return
    yield Dispatch(inbox.REF, inbox.Finished())
    if service.record(PROCESS).state in {*process.SERVING, process.State.STOPPING}:
        yield Dispatch(PROCESS, event)


# What people want


@rule(on=intent.machine)
def obey(service: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A pause suspends, and binds also who will come back; a stop ends what is being run, and the process."""
    p: process.Process = service.record(PROCESS)
    if transition.entered is intent.State.PAUSE and not is_down(service):
        yield Dispatch(PROCESS, process.SuspendRequested())
    elif isinstance(transition.event, intent.ResumeWanted) and p.suspended_for is not None and not is_down(service):
        yield Dispatch(PROCESS, process.ResumeRequested())
    elif transition.entered is intent.State.STOP:
        reason = service.record("intent").reason
        if not is_idle(service):
            yield Dispatch(invocation.REF, invocation.Cancelled(reason))
        yield Dispatch(PROCESS, process.StopRequested(reason))


def drained(service: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Who is to drain stops as soon as nothing is being run, also while it is held."""
    wanted: intent.Intent = service.record("intent")
    if wanted.state is intent.State.STOP or not is_idle(service):
        return
    if wanted.state is intent.State.DRAIN:
        yield Dispatch("intent", intent.Drained())
    elif wanted.drains:
        yield Dispatch("intent", intent.StopWanted(wanted.reason))


# The promises


def settled(service: Aggregate) -> bool:
    """The service is gone and nothing of it is left."""
    served = life.served
    parts = [part for each in service.entities.values() for part in each.running if part.slot not in served]
    return is_down(service) and not parts


def quiet(service: Aggregate) -> bool:
    """No run of the service lives, and none will while it holds."""
    return service.entities[invocation.REF].find(RunSession.__name__, Phase.ENDING) is None and is_idle(service)


def hand_is_full(service: Aggregate) -> bool:
    """Something is in hand exactly while it is being run."""
    return (service.record(inbox.REF).in_hand is None) is is_idle(service)


def runs_what_waits(service: Aggregate) -> bool:
    """Nothing waits but behind what is being run, for a person, or for the process to be up and allowed to go on."""
    p: process.Process = service.record(PROCESS)
    is_held = service.record("intent").state is not intent.State.RUN or p.suspended_for is not None
    waits = bool(service.record(inbox.REF).items) and service.record(invocation.REF).state is invocation.State.IDLE
    return not waits or is_held or p.state not in {process.State.RUNNING, process.State.AWAITING}


def is_up_at_once(service: Aggregate) -> bool:
    """No service is on its way up: there is nothing that this could wait for."""
    return service.record(PROCESS).state not in {process.State.CREATED, process.State.STARTING}


def fails_by_its_runs(step: Transition) -> bool:
    """Nothing but a run that has failed says that a service fails."""
    came_down = step.machine == PROCESS and step.entered is process.State.FAILED
    return not came_down or isinstance(step.event, process.RunFailed)


def watches_while_up(service: Aggregate) -> bool:
    """Every trigger is waited for exactly while the process is up."""
    up = service.record(PROCESS).state in process.SERVING
    triggers = [each for ref, each in service.entities.items() if ref.startswith(f"{trigger.REF}:")]
    return all((each.state is trigger.State.WATCHING) is up for each in triggers)


def awaits_with_nothing_to_do(service: Aggregate) -> bool:
    """Whoever awaits its triggers runs nothing, and who is up and has something to do does not."""
    p: process.Process = service.record(PROCESS)
    busy = not is_idle(service) or bool(service.record(inbox.REF).items)
    if p.state is process.State.AWAITING:
        return is_idle(service)
    return p.state is not process.State.RUNNING or busy or p.suspended_for is not None


def gone_takes_nothing(service: Aggregate) -> bool:
    """Whoever is down for good runs nothing and takes nothing more, and only he."""
    closed = service.record(inbox.REF).state is inbox.State.CLOSED
    return closed is is_down(service) and (not closed or is_idle(service))


def wishes_are_obeyed(service: Aggregate) -> bool:
    """Who is to stop is down for good, who is to drain runs something, and who is paused is suspended, or will be."""
    p: process.Process = service.record(PROCESS)
    match service.record("intent").state:
        case intent.State.STOP:
            return is_down(service)
        case intent.State.DRAIN:
            return not is_idle(service)
        case intent.State.PAUSE:
            return is_down(service) or p.suspended_for is process.SuspendReason.MANUAL
        case intent.State.RUN:
            return p.suspended_for is not process.SuspendReason.MANUAL or is_down(service)
        case _:
            return True


PROMISES: Final[tuple[Property[Aggregate], ...]] = (
    always("what is in hand is what is being run, and that alone", hand_is_full),
    always("nothing waits that may be run", runs_what_waits),
    always("a service that begins is up at once", is_up_at_once),
    always_step("a service fails by its runs, and by nothing else", fails_by_its_runs),
    always("triggers are waited for exactly while the service is up", watches_while_up),
    always("a service awaits its triggers when it has nothing to do", awaits_with_nothing_to_do),
    always("who is down for good runs nothing and takes nothing", gone_takes_nothing),
    always("a service that is to stop is down, and one that is paused begins nothing", wishes_are_obeyed),
    leads_to(
        "every wish to stop or to drain ends with nothing left, if what is being run ends",
        lambda s: intent.is_to_end(s.record("intent")),
        settled,
        given=weakly(RunSession),
    ),
    leads_to(
        "whoever is down for good leaves nothing behind",
        is_down,
        settled,
    ),
    sometimes("a service is down by its failures", lambda s: is_down(s) and has_failed(s.record(PROCESS))),
    sometimes("something waits while something is being run", lambda s: bool(s.record(inbox.REF).items)),
)


class Ending(msgspec.Struct, frozen=True):
    """How services have ended, by their names, as a board has it, or a service itself; True of one that has failed.

    Of one that had failed before it was told to stop, or has come down when it was, either may be said.
    """

    failed: tuple[tuple[str, bool], ...] = ()
    is_board: bool = False


def ending(of: Aggregate) -> Ending:
    """Return what is looked at to see that the board knows how services have ended."""
    if of.kind == KIND:
        p: process.Process = of.record(PROCESS)
        failed = (False,) if p.state is not process.State.FAILED else (True, False) if p.stop_requested else (True,)
        return Ending(tuple((of.key, each) for each in failed) if is_down(of) else ())
    duties = ((ref.partition(":")[2], each) for ref, each in of.entities.items() if ref.startswith(f"{duty.REF}:"))
    gone = ((name, each.record.failed) for name, each in duties if each.state is duty.State.GONE)
    return Ending(tuple(sorted(gone)), is_board=True)


def endings_are_known(fleet: Overview) -> bool:
    """When nothing is under way, the board knows which services are gone, and which of them have failed."""
    seen = [each for each in fleet.aggregates.values() if isinstance(each, Ending)]
    known = {end for each in seen if each.is_board for end in each.failed}
    are_so = {end for each in seen if not each.is_board for end in each.failed}
    return bool(fleet.under_way) or (known <= are_so and {name for name, _ in known} == {name for name, _ in are_so})


OF_FLEETS: Final[tuple[Property[Scene], ...]] = seeing(
    ending,
    always(
        "when every message has arrived, it is known which services are gone, and which have failed", endings_are_known
    ),
)

aggregate = AggregateType(
    KIND,
    machines=(life, invocation.machine, inbox.machine, trigger.machine, intent.machine),
    rules=(
        come_up,
        watch,
        cut_off,
        *(rule(on=each)(serve) for each in (life, intent.machine)),
        rest,
        drain,
        leave,
        fire,
        wake,
        end,
        obey,
        *(rule(on=each)(drained) for each in (invocation.machine, intent.machine)),
    ),
    commands={
        life.name: (),
        invocation.REF: (),
        trigger.REF: (),
        inbox.REF: (inbox.MessageArrived,),
        "intent": (
            intent.StopWanted,
            intent.DrainWanted,
            intent.KillWanted,
            intent.PauseWanted,
            intent.ResumeWanted,
            intent.HoldWanted,
            intent.RunWanted,
        ),
    },
    properties=PROMISES,
)
