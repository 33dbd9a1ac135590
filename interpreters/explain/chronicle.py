"""The story of a fleet for operators: what happened, one sentence each, without the bookkeeping of the machines.

A task was begun, verified, merged, or has failed. An agent has asked, was silent, or has stopped. Other facts are
limits, budgets, operator commands, and a runner that died. Reasons are whole, in one line: a screen wraps them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from lifefold.core.fleet import service
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.dispatch.task_index import work_of
from lifefold.core.fleet.system import board, plan_change, worker
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Aggregate, Created, Entity, Reaction, RulesChanged, RunnerRecovered, Transition
from lifefold.core.lifecycles import approval, task
from lifefold.effects import BuildPrompt
from lifefold.interpreters.explain.chronicle_words import (
    OPERATOR,
    SESSION,
    Mood,
    Said,
    colon,
    of_kernel,
    of_service,
    of_worker,
    on_board,
    whole,
)
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.explain.why.event_words import OF_TASK, as_it_is
from lifefold.interpreters.explain.why.phrases import count, duration


class News(msgspec.Struct, frozen=True):
    """One line of the story. ``about`` is a task, an agent, a service, an account, or a part of the fleet.

    ``by`` is the operator or the session that has caused it, else empty. ``at_ms`` is Unix time in milliseconds.
    """

    at_ms: int
    about: str
    said: str
    by: str = ""
    mood: Mood = Mood.PLAIN


class Chronicle:
    """Tells the story of a log; it is given every reaction in its order.

    ``attempts`` counts the attempts at each task so far: the handing-over of done work is none.
    """

    def __init__(self, attempts: Mapping[str, int] | None = None, there: Mapping[str, Aggregate] | None = None) -> None:
        """Begin with the attempts before the first reaction, and with the aggregates that were there."""
        there = there or {}
        self._attempts: Final = Counter(attempts or {})
        self._is_held = any(_is_held(each) for each in there.values())
        self._is_over = board.NAME in there and _is_over(there[board.NAME])
        self._busy: Final = {
            (name, ref)
            for name, of in there.items()
            for ref, entity in of.entities.unarchived().items()
            if _is_busy(entity)
        }
        """The entities with an activity that nothing has ended yet; an idle agent builds a prompt all the time."""

    def told(self, aggregate: str, reaction: Reaction) -> Iterator[tuple[News, Sequence[Transition]]]:
        """Yield the lines of one input, each with the transitions that it is about."""
        steps = reaction.transitions
        created = [each for each in steps if _is_new_task(each)]
        if len(created) > 1:
            said = f"begins with {count(len(created), 'task')}"
            yield News(created[0].at_ms, "the plan", said, _by(created[0].actor)), created
        self._note_activities(aggregate, steps)
        for step in steps:
            news = None if len(created) > 1 and _is_new_task(step) else self._of(aggregate, reaction, step)
            if news is not None:
                yield news, (step,)
        over = self._end(aggregate, reaction)
        if over is not None:
            yield over, steps[-1:]

    def recovered(self, event: RunnerRecovered, at_ms: int) -> News | None:
        """Tell that a runner recovers the board; None if the one before it has left in the ordinary way.

        Commands may have been given to the log in the meantime. A runner that only waited, and left, has interrupted
        nothing; the log does not tell its end from a death.
        """
        if self._is_held:
            return None
        if not self._busy:
            return News(at_ms, "the runner", f"goes on; the last entry was {duration(event.down_ms)} old")
        said = f"goes on after one that has died; the last entry was {duration(event.down_ms)} old"
        return News(at_ms, "the runner", said, mood=Mood.FAILED)

    @staticmethod
    def rules_changed(event: RulesChanged, at_ms: int) -> News:
        """Tell that other rules decide from here on."""
        before = event.before or "unnamed"
        return News(
            at_ms, "the rules", f"changed from version {before} to {event.now}; the past stays as it was decided"
        )

    def _note_activities(self, aggregate: str, steps: Sequence[Transition]) -> None:
        for step in steps:
            of = (aggregate, step.entity)
            if _is_busy(step.after):
                self._busy.add(of)
            else:
                self._busy.discard(of)

    def _of(self, aggregate: str, reaction: Reaction, step: Transition) -> News | None:
        """Return what a transition tells; a command of an operator without words is told by its name."""
        found = of_kernel(step) or self._runner(step) or self._of_aggregate(aggregate, reaction, step)
        if found is None and step.actor.startswith(OPERATOR) and type(step.event) not in _TOLD_ELSEWHERE:
            found = "", as_it_is(step.event, step), Mood.PLAIN
        if found is None or not found[1]:
            return None
        about, said, mood = found
        return News(step.at_ms, about or _name(aggregate, step), in_plain_words(said), _by(step.actor), mood)

    def _of_aggregate(self, aggregate: str, reaction: Reaction, step: Transition) -> Said | None:
        match aggregate.partition("/")[0]:
            case board.NAME:
                return self._task(step) if step.machine == "task" else on_board(reaction, step)
            case worker.KIND:
                return of_worker(reaction, step)
            case service.KIND:
                return of_service(step)
            case _:
                return None

    def _runner(self, step: Transition) -> Said | None:
        """Tell that a runner leaves or goes on: each agent is told, and the story has it once."""
        match step.event:
            case desired_state.HoldWanted() if not self._is_held:
                self._is_held = True
                return "the runner", "leaves; the next run goes on", Mood.PLAIN
            case desired_state.RunWanted() if self._is_held:
                self._is_held = False
                return "the runner", "goes on", Mood.PLAIN
            case _:
                return None

    def _task(self, step: Transition) -> Said | None:
        """Tell of a task: in the words of ``why``, with the number of the attempt and the whole reason."""
        event, record = step.event, step.after.record
        if isinstance(event, task.Claimed) and not isinstance(event, fleet_task.Handed):
            self._attempts[record.id] += 1
        number = self._attempts[record.id]
        if isinstance(event, task.Claimed):
            words = whole(OF_TASK.get(type(event), as_it_is), event, step)
            again = f", attempt {number}" if number > 1 and not isinstance(event, fleet_task.Handed) else ""
            return record.id, f"{'begun by' if words == 'given to' else words} {event.owner}{again}", Mood.PLAIN
        return record.id, *_of_task(f"attempt {number} " if number else "", step)

    def _end(self, aggregate: str, reaction: Reaction) -> News | None:
        """Tell once that the fleet is over."""
        if self._is_over or aggregate != board.NAME or not reaction.transitions:
            return None
        if not any(each.entered is worker_slot.State.GONE for each in reaction.transitions):
            return None
        if not _is_over(reaction.aggregate):
            return None
        self._is_over = True
        records = [each.record for ref, each in reaction.aggregate.entities.items() if ref.startswith("task:")]
        every = [each for each in records if not each.removed]
        closed = sum(each.state is task.State.CLOSED for each in every)
        mood = Mood.DONE if closed == len(every) else Mood.PLAIN
        said = f"is over: {closed} of {count(len(every), 'task')} closed"
        return News(reaction.transitions[-1].at_ms, "the fleet", said, mood=mood)


_MOODS: Final[Mapping[object, Mood]] = {
    task.State.CLOSED: Mood.DONE,
    task.State.FAILED: Mood.FAILED,
    task.State.BLOCKED: Mood.FAILED,
    task.State.PENDING_APPROVAL: Mood.WAITS,
}


def _of_task(attempt: str, step: Transition) -> tuple[str, Mood]:
    """Return what has happened to a task, and what it means; retries by the fleet are told by the next attempt."""
    event, record = step.event, step.after.record
    words = whole(OF_TASK.get(type(event), as_it_is), event, step)
    match event:
        case approval.ApprovalRefused(reason=reason):
            return f"{attempt}was rejected{colon(reason)}", Mood.FAILED
        case approval.ApprovalExpired():
            return f"{attempt}was not approved in time", Mood.FAILED
        case task.Failed() | task.Rejected() | task.Orphaned():
            return f"{attempt}{words}{' (it is not tried again)' if record.exhausted else ''}", Mood.FAILED
        case fleet_task.Parked():
            return "is done and verified, and waits for your approval", Mood.WAITS
        case task.Retried() | fleet_task.Rested() | fleet_task.ConversationKept() | fleet_task.Returned():
            return "is to be tried again" if step.actor.startswith(OPERATOR) else "", Mood.PLAIN
        case _:
            return words, _MOODS.get(step.entered, Mood.PLAIN) if step.entered is not None else Mood.PLAIN


_TOLD_ELSEWHERE: Final = frozenset({Created, plan_change.ChangeAccepted, fleet_task.Replanned})
"""Events of operators whose consequences are told."""


def _is_busy(of: Entity[Any]) -> bool:
    """Tell whether an activity goes on that is more than the building of a prompt."""
    return any(not isinstance(each.activity, BuildPrompt | None) for each in of.running)


def _is_held(of: Aggregate) -> bool:
    """Tell whether an agent is told to hold, because its runner leaves."""
    entity = of.entities.get(desired_state.machine.name)
    return entity is not None and entity.record.state is desired_state.State.HOLD


def _is_over(of: Aggregate) -> bool:
    """Tell whether the tasks of a board are over, and its workers are gone."""
    return not work_of(of).present and board.finished(of)


def _is_new_task(step: Transition) -> bool:
    return step.machine == "task" and isinstance(step.event, Created)


def _name(aggregate: str, step: Transition) -> str:
    """Return what a transition is about: the agent or service, or the entity of the board."""
    return aggregate.partition("/")[2] or step.entity.partition(":")[2] or step.entity


def _by(actor: str) -> str:
    if actor.startswith(OPERATOR):
        return actor.removeprefix(OPERATOR)
    return f"the session of {actor.removeprefix(SESSION)}" if actor.startswith(SESSION) else ""
