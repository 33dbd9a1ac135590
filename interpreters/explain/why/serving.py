"""The state of a service, in sentences: what it does, what waits, and what moves it on."""

from collections.abc import Iterator
from typing import assert_never

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.service import inbox, trigger
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Aggregate, Entity
from lifefold.core.lifecycles.process import Process, State, SuspendReason
from lifefold.core.lifecycles.process_restart import Comeback
from lifefold.effects import Changed, Cron, Every
from lifefold.interpreters.explain.why.phrases import brief, count, duration, enumerated, in_brackets, in_time


class ServiceExplanation(msgspec.Struct, frozen=True):
    """Why a service is in its state. ``waits`` has its waiting items, ``onward`` what happens next."""

    service: str
    state: str
    sentence: str
    waits: str
    onward: str


def explain_service(of: Aggregate, now_ms: int) -> ServiceExplanation:
    """Explain a service at a moment."""
    life = of.entities[service.PROCESS]
    said = " ".join(_where(of, now_ms))
    return ServiceExplanation(of.key, life.state, f"{of.key} {said}.", _waits(of), _onward(of, now_ms))


def _where(of: Aggregate, now_ms: int) -> Iterator[str]:
    p: Process = of.record(service.PROCESS)
    waits: inbox.Inbox = of.record(inbox.REF)
    since_ms = now_ms - of.entities[service.PROCESS].entered_ms
    if service.is_down(of):
        yield f"is down, for good{in_brackets(service.reason_of(p))}"
    elif p.state in {State.STOPPED, State.FAILED}:
        yield f"is down and comes back{in_brackets(p.failure or p.stop_reason)}"
    elif p.state is State.SUSPENDED:
        reason = of.record("desired_state").reason if p.suspended_for is SuspendReason.MANUAL else ""
        yield f"is suspended for {duration(since_ms)} ({p.suspended_for}){in_brackets(reason)}"
    elif p.state is State.AWAITING:
        yield f"has waited for its triggers for {duration(since_ms)}"
    else:
        yield f"is {p.state}"
    if waits.in_hand is not None:
        yield f"and runs {_named(waits.in_hand)}"
    if p.consecutive_failures and not service.is_down(of):
        yield f"after {count(p.consecutive_failures, 'failed run')} in a row{in_brackets(p.failure)}"


def _named(item: inbox.Item) -> str:
    return brief(repr(item.text)) if not item.source else item.text


def _waits(of: Aggregate) -> str:
    return enumerated([_named(each) for each in of.record(inbox.REF).items])


def _onward(of: Aggregate, now_ms: int) -> str:
    p: Process = of.record(service.PROCESS)
    wanted: desired_state.DesiredState = of.record("desired_state")
    if service.is_down(of):
        return "Nothing: it is not restarted within this log."
    if wanted.state is desired_state.State.PAUSE:
        return f"lifefold resume {of.key}"
    if wanted.state is desired_state.State.HOLD:
        return "A runner: lifefold run FLEET.toml"
    if wanted.state is desired_state.State.DRAIN:
        return "The end of its run; then it is gone."
    if p.comeback is not Comeback.NONE:
        due_ms = min((e.deadline_ms for e in of.entities[service.PROCESS].running if e.deadline_ms), default=now_ms)
        return f"Time: it is started again {in_time(due_ms - now_ms)}."
    watched = trigger.of_service(of.entities)
    messages = [f'lifefold send {of.key} "..."'] if of.record(inbox.REF).takes_messages else []
    return f"{enumerated([*(_coming(each, now_ms) for each in watched), *messages])}."


def _coming(watched: Entity[trigger.Trigger], now_ms: int) -> str:
    """Return when a trigger fires, as far as that is known."""
    match watched.record.source:
        case Every(every_ms=every_ms):
            begun_ms = min(watched.record.last_ms or watched.entered_ms, now_ms)
            due_ms = trigger.next_due_ms(every_ms, begun_ms)
            return f"its interval, due {in_time(due_ms - now_ms)}"
        case Cron(expression=expression, timezone=timezone):
            return f"the next time of {expression} ({timezone})"
        case Changed(path=path):
            return f"a change of {path}"
        case _ as unknown:
            assert_never(unknown)
