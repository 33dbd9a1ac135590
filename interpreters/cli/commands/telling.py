"""The commands ``send``, ``stop``, ``pause`` and ``resume``: operator messages and desired states of agents."""

import shlex
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
from lifefold.interpreters.cli.addressees import addressee, agent_names
from lifefold.interpreters.cli.commands.resting import lift_rest
from lifefold.interpreters.cli.confirming import must_be_confirmed
from lifefold.interpreters.cli.errors import BadInput
from lifefold.interpreters.cli.logs import LOG
from lifefold.interpreters.cli.names import must_be_there
from lifefold.interpreters.cli.operator_commands import Refused, Said
from lifefold.interpreters.cli.task_mail import for_task, naming_task
from lifefold.interpreters.engine import REFUSED
from lifefold.interpreters.explain import plain_reasons
from lifefold.interpreters.explain.why.phrases import brief, enumerated

ALL: Final = "all"

_STOPPED: Final = f"{REFUSED}it has stopped, for good"
NAME: Final = "\1"
"""The place of the agent's name in a text that is printed for each agent."""

_STOPS: Final = (
    f"stops for good: its processes are asked to end, and killed after their grace; lifefold status{LOG} shows progress"
)


def send(arguments: Namespace) -> int:
    """Send an operator message to one agent, to all, or for a task. A service runs once for it, in its turn."""
    operator_commands.must_be_text("the text", arguments.text)
    event = mailbox.OperatorMessageArrived(arguments.text, urgent=not arguments.no_interrupt)
    message = _to_all("mailbox", event, "accepted; its next prompt has it")

    def judge(there: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        found = None if arguments.agent == ALL else addressee(there, arguments.agent)
        if found is not None and found.is_task:
            return for_task(there, found.name, event)
        names = agent_names(there) if found is None else [found.name]
        judged = _judged(there, names, message, partial(_takes_no_message, arguments.text))
        return (naming_task(there, each, urgent=event.urgent) for each in judged)

    return operator_commands.say(arguments.db, judge, "status")


def stop(arguments: Namespace) -> int:
    """Stop agents for good: with grace, after their present task (``--drain``), or at once (``--kill``)."""
    if arguments.all and arguments.agents:
        raise BadInput("name the agents to stop, or give --all; not both")
    if not (arguments.agents or arguments.all or arguments.yes):
        names = agent_names(operator_commands.present(arguments.db))
        must_be_confirmed(f"stop {_all(names)}, for good?", "the names of agents, or --all")
    if arguments.drain:
        event: Event = desired_state.DrainWanted(plain_reasons.DRAINED)
        return _tell(
            arguments.db, arguments.agents, _to_all("desired_state", event, "finishes its task, and stops"), _ends
        )
    if arguments.kill:
        event = desired_state.KillWanted(plain_reasons.KILLED)
        return _tell(arguments.db, arguments.agents, _to_all("desired_state", event, "killed"), _killed)
    event = desired_state.StopWanted(plain_reasons.STOPPED)
    return _tell(arguments.db, arguments.agents, _to_all("desired_state", event, _STOPS), _stopped)


def _all(names: Sequence[str]) -> str:
    return enumerated(names) if len(names) == 1 else f"all {len(names)} agents ({brief(enumerated(names))})"


def pause(arguments: Namespace) -> int:
    """Interrupt agents; they begin nothing until they are resumed."""
    if arguments.reason:
        operator_commands.must_be_text("the reason", arguments.reason)
    event = desired_state.PauseWanted(arguments.reason)
    done = f"paused, until lifefold resume {NAME}{LOG}"
    return _tell(arguments.db, arguments.agents, _to_all("desired_state", event, done), _paused)


def resume(arguments: Namespace) -> int:
    """Resume paused agents, or try a resting account again."""
    if arguments.account:
        return lift_rest(arguments)
    return _tell(
        arguments.db, arguments.agents, _to_all("desired_state", desired_state.ResumeWanted(), "goes on"), _not_paused
    )


def _to_all(ref: str, event: Event, done: str) -> Said:
    return Said(ALL, "", ref, event, done)


Obstacle = Callable[[Aggregate], str]
"""Returns why a worker would refuse an event; empty if it accepts it."""


def _takes_no_message(text: str, of: Aggregate) -> str:
    if of.kind == service.KIND:
        return _does_not_take(text, of)
    return _STOPPED if of.record("mailbox").state is mailbox.State.CLOSED else ""


def _does_not_take(text: str, of: Aggregate) -> str:
    """Return why a service refuses this message; empty if it accepts it."""
    waits: inbox.Inbox = of.record(inbox.REF)
    if waits.state is inbox.State.CLOSED:
        return f"{REFUSED}it has stopped, for good"
    if desired_state.is_to_end(of.record("desired_state")):
        return _DRAINS
    if not waits.takes_messages:
        return f"{REFUSED}{inbox.NO_MESSAGES}"
    return "" if inbox.has_capacity(waits, inbox.MessageArrived(text)) else f"{REFUSED}{inbox.FULL}"


def _is_gone(of: Aggregate) -> bool:
    """Tell whether an agent is stopped for good, by its errors or by an operator."""
    return service.is_down(of) if of.kind == service.KIND else shutdown.is_gone(of)


def _is_settled(of: Aggregate) -> bool:
    """Tell whether an agent is stopped for good and none of its processes is left to end."""
    return service.settled(of) if of.kind == service.KIND else shutdown.settled(of)


_ALREADY: Final = "has stopped already, and for good"


def _stopped(of: Aggregate) -> str:
    return _ALREADY if of.record("desired_state").state is desired_state.State.STOP or _is_settled(of) else ""


def _ends(of: Aggregate) -> str:
    return "is draining already" if of.record("desired_state").drains else _stopped(of)


def _killed(of: Aggregate) -> str:
    killed = "was killed already, and for good" if of.record("desired_state").at_once else ""
    return killed or (_ALREADY if _is_settled(of) else "")


_DRAINS: Final = (
    f"{REFUSED}it is draining, and stops after its task; lifefold stop {NAME}{LOG}, or"
    f" lifefold stop {NAME} --kill{LOG}, ends it sooner"
)


def obstacle_to_pause(of: Aggregate, name: str) -> str:
    """Return why an agent cannot be paused; empty if it can."""
    return _paused(of).replace(NAME, shlex.quote(name))


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
    """Give one command to each of the agents named."""

    def judge(there: Mapping[str, Aggregate]) -> Iterator[Said | Refused]:
        return _judged(there, _agents(there, wanted), said, obstacle)

    return operator_commands.say(db, judge, "status")


def _judged(
    there: Mapping[str, Aggregate], names: Sequence[str], said: Said, obstacle: Obstacle
) -> Iterator[Said | Refused]:
    """Yield the command for each of these agents, or its refusal."""
    for name in names:
        to = f"{service.KIND}/{name}" if f"{service.KIND}/{name}" in there else f"{worker.KIND}/{name}"
        why = obstacle(there[to])
        done = said.done.replace(NAME, shlex.quote(name))
        refused = Refused(name, why.replace(NAME, shlex.quote(name)))
        yield refused if why else _put(replace(said, name=name, to=to, done=done))


def _put(said: Said) -> Said:
    """Return a command in the form that its receiver accepts: a service has an inbox instead of a mailbox."""
    if said.to.startswith(f"{service.KIND}/") and isinstance(said.event, mailbox.OperatorMessageArrived):
        event = inbox.MessageArrived(said.event.text)
        return replace(said, entity=inbox.REF, event=event, done="accepted; it is run once, in its turn")
    return said


def _agents(aggregates: Mapping[str, Aggregate], wanted: Sequence[str]) -> list[str]:
    """Return the agents named, each once; all agents if none or ``all`` is named."""
    there = agent_names(aggregates)
    if not wanted or ALL in wanted:
        return there
    must_be_there("agent", wanted, there)
    return [*dict.fromkeys(wanted)]
