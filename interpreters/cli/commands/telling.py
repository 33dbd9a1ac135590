"""Commands that tell agents something: ``send``, ``stop``, ``pause`` and ``resume``."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from lifefold.core.fleet import service
from lifefold.core.fleet.service import inbox
from lifefold.core.fleet.system import worker
from lifefold.core.fleet.worker import desired_state, mailbox, shutdown
from lifefold.core.kernel import Aggregate, Event, replace
from lifefold.interpreters.cli import operator_commands
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.operator_commands import REFUSED, Refused, Said
from lifefold.interpreters.cli.wording import by_number

ALL: Final = "all"

_STOPPED: Final = f"{REFUSED}it has stopped, for good"
_STOPS: Final = (
    "stops for good: what runs of it is asked to end, and killed after its grace; lifefold status shows how far it is"
)


def send(arguments: Namespace) -> int:
    """Say something to one agent, or to all. A service runs what it is told once, after what waits already."""
    operator_commands.must_be_text("the text", arguments.text)
    event = mailbox.OperatorMessageArrived(arguments.text, urgent=not arguments.no_interrupt)
    message = _to_all("mailbox", event, "accepted; its next prompt has it")
    return _tell(arguments.db, [arguments.agent], message, partial(_deaf, arguments.text))


def stop(arguments: Namespace) -> int:
    """Stop agents for good: with grace, when they are through with what they have in hand, or at once."""
    if arguments.drain:
        event: Event = desired_state.DrainWanted("drained by the operator")
        return _tell(
            arguments.db, arguments.agents, _to_all("desired_state", event, "finishes what it has, and stops"), _ends
        )
    if arguments.kill:
        event = desired_state.KillWanted("killed by the operator")
        return _tell(arguments.db, arguments.agents, _to_all("desired_state", event, "killed"), _killed)
    event = desired_state.StopWanted("stopped by the operator")
    return _tell(arguments.db, arguments.agents, _to_all("desired_state", event, _STOPS), _stopped)


def pause(arguments: Namespace) -> int:
    """Interrupt agents, and let them begin nothing until they are resumed."""
    if arguments.reason:
        operator_commands.must_be_text("the reason", arguments.reason)
    event = desired_state.PauseWanted(arguments.reason)
    return _tell(
        arguments.db, arguments.agents, _to_all("desired_state", event, "paused, until lifefold resume"), _paused
    )


def resume(arguments: Namespace) -> int:
    """Let agents that were paused go on."""
    return _tell(
        arguments.db, arguments.agents, _to_all("desired_state", desired_state.ResumeWanted(), "goes on"), _not_paused
    )


def _to_all(ref: str, event: Event, done: str) -> Said:
    return Said(ALL, "", ref, event, done)


Obstacle = Callable[[Aggregate], str]
"""Why a worker would not take what is said; empty if it takes it."""


def _deaf(text: str, of: Aggregate) -> str:
    if of.kind == service.KIND:
        return _does_not_take(text, of)
    return _STOPPED if of.record("mailbox").state is mailbox.State.CLOSED else ""


def _does_not_take(text: str, of: Aggregate) -> str:
    """Say why a service would not take this message."""
    waits: inbox.Inbox = of.record(inbox.REF)
    if waits.state is inbox.State.CLOSED:
        return f"{REFUSED}it is down, for good"
    if desired_state.is_to_end(of.record("desired_state")):
        return _DRAINS
    if not waits.takes_messages:
        return f"{REFUSED}{inbox.NO_MESSAGES}"
    return "" if inbox.has_room(waits, inbox.MessageArrived(text)) else f"{REFUSED}{inbox.FULL}"


def _is_gone(of: Aggregate) -> bool:
    """Tell whether an agent does not come back: because of its errors, or of a word."""
    return service.is_down(of) if of.kind == service.KIND else shutdown.is_gone(of)


def _is_settled(of: Aggregate) -> bool:
    """Tell whether it does not come back, and nothing of it is left that could be ended sooner."""
    return service.settled(of) if of.kind == service.KIND else shutdown.settled(of)


_ALREADY: Final = "has stopped already, and for good"


def _stopped(of: Aggregate) -> str:
    return _ALREADY if of.record("desired_state").state is desired_state.State.STOP or _is_settled(of) else ""


def _ends(of: Aggregate) -> str:
    return "is draining already" if of.record("desired_state").drains else _stopped(of)


def _killed(of: Aggregate) -> str:
    killed = "was killed already, and for good" if of.record("desired_state").at_once else ""
    return killed or (_ALREADY if _is_settled(of) else "")


_DRAINS: Final = f"{REFUSED}it is draining, and stops then; lifefold stop, or stop --kill, ends it sooner"


def _paused(of: Aggregate) -> str:
    wanted: desired_state.DesiredState = of.record("desired_state")
    if wanted.state is desired_state.State.STOP or _is_gone(of):
        return _STOPPED
    if wanted.drains:
        return _DRAINS
    if wanted.state is desired_state.State.PAUSE:
        return f"is paused already{f': {wanted.reason}' if wanted.reason else ''}"
    return ""


def _not_paused(of: Aggregate) -> str:
    state = of.record("desired_state").state
    if state is desired_state.State.STOP or _is_gone(of):
        return _STOPPED
    return "" if state is desired_state.State.PAUSE else "is not paused"


def _tell(db: str | None, wanted: Sequence[str], said: Said, obstacle: Obstacle) -> int:
    """Say the same to all the agents that are wanted."""

    def judge(aggregates: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        for name in _agents(aggregates, wanted):
            to = f"{service.KIND}/{name}" if f"{service.KIND}/{name}" in aggregates else f"{worker.KIND}/{name}"
            why = obstacle(aggregates[to])
            yield Refused(name, why) if why else _put(replace(said, name=name, to=to))

    return operator_commands.say(db, judge, "status")


def _put(said: Said) -> Said:
    """Return what is said as whom it is said to takes it: a message is a message to a service."""
    if said.to.startswith(f"{service.KIND}/") and isinstance(said.event, mailbox.OperatorMessageArrived):
        event = inbox.MessageArrived(said.event.text)
        return replace(said, entity=inbox.REF, event=event, done="accepted; it is run once, in its turn")
    return said


_AGENTS: Final = frozenset({worker.KIND, service.KIND})


def _agents(aggregates: Mapping[str, Aggregate], wanted: Sequence[str]) -> list[str]:
    """Return the agents that are meant: those named, each once; all if none or ``all`` is."""
    there = sorted((each.key for each in aggregates.values() if each.kind in _AGENTS), key=by_number)
    if not wanted or ALL in wanted:
        return there
    must_be_there("agent", wanted, there)
    return [*dict.fromkeys(wanted)]
