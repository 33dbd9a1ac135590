"""The announcer of a worker: it passes on to the board's notifiers what only the worker knows.

An agent that waits for an answer, or makes no progress, is known to its worker alone; the notifiers are on the board. A
worker has an announcer if a notifier listens to one of these kinds. A notification is one message to each such
notifier, so it arrives once and in order.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from lifefold.core.fleet.board import notifier
from lifefold.core.fleet.worker import question, stall_detector
from lifefold.core.fleet.worker.question_model import Kind
from lifefold.core.kernel import (
    STAY,
    Aggregate,
    Dispatch,
    Event,
    Machine,
    Projection,
    Property,
    Record,
    SystemState,
    Transition,
    accepts,
    always,
    always_step,
    projected,
    row,
    rule,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.effects import Notification, NotificationKind, Tell

REF: Final = "announcer"

MOST_CHARACTERS: Final = 500
"""The most characters of the text of a notification about a question."""


class State(AnyLifecycleState):
    """The only state of an announcer."""

    READY = "Ready"


class Noted(Event, frozen=True):
    """Something about the worker's agent waits for people, or has happened."""

    notification: Notification = Notification(NotificationKind.QUESTION, "ann asks", "T1", "ann")


class Announcer(Record, frozen=True):
    """The notifiers of the board that listen to each kind, by their references."""

    state: State = State.READY
    listeners: tuple[tuple[NotificationKind, str], ...] = ((NotificationKind.QUESTION, notifier.FIRST),)


def is_heard(a: Announcer, e: Noted) -> bool:
    """A notifier listens to this kind."""
    return any(kind is e.notification.kind for kind, _ in a.listeners)


def changes_nothing(step: Transition) -> bool:
    """The listeners stay those of the beginning."""
    return step.before is None or step.after.record == step.before.record


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("an announcer keeps its listeners", changes_nothing),
    accepts("a notification that is heard is accepted", {State.READY: (Noted,)}, when=lambda e: e.record.listeners),
)

machine: Machine[Any] = Machine(
    REF,
    Announcer(),
    about="the notifiers that a worker's news go to",
    rows=(row(State.READY, Noted, STAY, when=is_heard),),
    properties=PROPERTIES,
    final={State.READY},
)

_OF_QUESTIONS: Final = {
    Kind.PERMISSION: (NotificationKind.PERMISSION, "asks for a permission", "approve"),
    Kind.QUESTION: (NotificationKind.QUESTION, "asks a question", "answer"),
}


@rule(on=question.machine, event=question.QuestionAsked, beside=REF)
def note_question(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Note a question that begins to wait. One that is asked again, or has a standing answer, is no news."""
    before, asked = transition.was.asked, cast("question.Questions", transition.after.record)
    if asked.asked == before or asked.questions[-1].answer is not None:
        return
    latest = asked.questions[-1]
    kind, verb, command = _OF_QUESTIONS[latest.kind]
    about = f"{latest.tool} {latest.subject}" if latest.kind is Kind.PERMISSION else latest.text
    text = f"{worker.key} {verb} at {asked.task}, lifefold {command} {worker.key}/Q{latest.number}: {about}"
    yield Dispatch(REF, Noted(Notification(kind, text[:MOST_CHARACTERS], asked.task, worker.key)))


@rule(on=stall_detector.machine, enters=stall_detector.State.WARNED, beside=REF)
def note_silence(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Note a session without a sign of progress, once in a silence."""
    task = worker.record("assignment").brief.task
    text = f"{worker.key} makes no progress at {task}"
    yield Dispatch(REF, Noted(Notification(NotificationKind.STALLED, text, task, worker.key)))


@rule(on=machine, event=Noted)
def pass_on(_worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Announce a notification to every notifier that listens."""
    noted, listeners = cast("Noted", transition.event).notification, transition.after.record.listeners
    for kind, ref in listeners:
        if kind is noted.kind:
            yield Tell("board", ref, notifier.Announced(noted))


class News(msgspec.Struct, frozen=True):
    """The projection of a worker: the kinds of which something waits, with a listener; of a board: the unheard ones."""

    present: frozenset[NotificationKind] = frozenset()
    unheard: frozenset[NotificationKind] = frozenset()


def news(of: Aggregate) -> News:
    """Return the projection of a worker or a board about what workers announce."""
    if of.kind == "board":
        every = (each.record for ref, each in of.entities.items() if ref.startswith(f"{notifier.REF}:"))
        return News(unheard=frozenset(kind for each in every for kind in each.kinds if not each.count(kind)))
    if of.kind != "worker" or REF not in of.entities:
        return News()
    heard = frozenset(kind for kind, _ in of.record(REF).listeners)
    return News(heard.intersection(_present(of)))


def _present(worker: Aggregate) -> Iterator[NotificationKind]:
    """Yield the kinds of which something waits now, or holds now."""
    if question.REF in worker.entities:
        yield from (_OF_QUESTIONS[each.kind][0] for each in worker.record(question.REF).waiting)
    watched = worker.entities.get(stall_detector.REF)
    if watched is not None and watched.state in stall_detector.ON_LADDER:
        yield NotificationKind.STALLED


def is_announced(fleet: Projection) -> bool:
    """With no message in flight, each notifier has heard of each of its kinds of which something waits."""
    seen: list[News] = list(fleet.aggregates.values())
    present = frozenset[NotificationKind]().union(*(each.present for each in seen))
    unheard = frozenset[NotificationKind]().union(*(each.unheard for each in seen))
    return bool(fleet.under_way) or not present & unheard


OF_FLEETS: Final[tuple[Property[SystemState], ...]] = projected(
    news, always("with no message in flight, what waits at an agent was announced to those that listen", is_announced)
)
