"""The spans of a fleet: a trace for each task, with its attempts, and in them the sessions, verifications and merges.

- *A task* is the root of its trace. It begins with the task and ends when nothing more happens to it by itself. A task
  that an operator tries again after that has a further span in the same trace.
- *An attempt* is one claim of one agent, from its assignment to its end. Its children are the activities of the worker
  meanwhile: the checkout, each session, the verification, the merge.
- *A session* has the names of the GenAI conventions (``genai``), and is known to its processes by ``TRACEPARENT``.
- *A run of a service* is a trace of its own.

Transitions are events of the innermost span that they belong to. Links name causes: the tasks that a task has waited
for, and the attempt before an attempt. The bookkeeping of the board and of idle workers has no spans.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lifefold.core.fleet import service
from lifefold.core.fleet.board import fleet_task
from lifefold.core.fleet.service import invocation
from lifefold.core.fleet.system import board, worker
from lifefold.core.fleet.worker import assignment, conversation
from lifefold.core.kernel import Aggregate, Reaction, RunnerRecovered, Transition
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.session import Usage, describe
from lifefold.effects import FollowOutput, RunSession, WatchOutput
from lifefold.interpreters.engine import Decision
from lifefold.interpreters.explain.spending import Spending, spend
from lifefold.interpreters.telemetry import genai
from lifefold.interpreters.telemetry.identifiers import Begun, Place, session_place, span_of, task_trace
from lifefold.interpreters.telemetry.spans import Draft, Span, Value, activities, moved, reason_of, unfinished

ASSIGNMENT: Final = "assignment"

OUTSIDE: Final = frozenset({assignment.State.IDLE, assignment.State.WANTING})
"""In these states an assignment has no task."""

QUIET: Final = frozenset({FollowOutput.__name__, WatchOutput.__name__})
"""Activities that only look at a session."""

FAILURES: Final = (
    assignment.CheckoutFailed,
    assignment.Conflicted,
    assignment.ParkingFailed,
    assignment.Rejected,
    assignment.SessionDied,
    assignment.WorkFailed,
)
"""The events by which a step of a worker fails."""


class FleetSpans:
    """Folds the decisions of a fleet's log into spans, each when it ends. ``log`` is the identity of the log."""

    def __init__(self, log: str) -> None:
        """Begin before the first entry."""
        self._log: Final = log
        self._aggregates: Final[dict[str, Aggregate]] = {}
        self._tasks: Final[dict[str, Draft]] = {}
        self._task_places: Final[dict[str, Place]] = {}
        """The newest span of each task."""
        self._attempts: Final[dict[str, Draft]] = {}
        """The present attempt of each worker."""
        self._attempt_of: Final[dict[str, Place]] = {}
        """The newest attempt at each task."""
        self._running: Final[dict[tuple[str, str, str, int], Draft]] = {}
        self._spending = Spending()
        self.last_ms = 0

    def take(self, decision: Decision) -> Iterator[Span]:
        """Take the next entry, and yield the spans that have ended with it."""
        stream, reaction, at_ms = decision.entry.stream, decision.reaction, decision.entry.at_ms
        self.last_ms = max(self.last_ms, at_ms)
        kind, _, name = stream.partition("/")
        if kind == board.NAME:
            yield from self._on_board(reaction)
        elif kind == worker.KIND:
            yield from self._of_worker(stream, name, reaction, at_ms)
        elif kind == service.KIND:
            yield from self._of_service(stream, name, reaction, at_ms)
        if isinstance(decision.envelope.event, RunnerRecovered):
            self._note_recovery(stream, decision.envelope.event, at_ms)
        self._aggregates[stream] = reaction.aggregate

    def rest(self) -> Iterator[Span]:
        """Yield the spans that have not ended, until the last entry."""
        for drafts in (self._running.values(), self._attempts.values(), self._tasks.values()):
            yield from unfinished(drafts, self.last_ms)

    def _on_board(self, reaction: Reaction) -> Iterator[Span]:
        for step in reaction.transitions:
            if step.machine != task.machine.name:
                continue
            record: fleet_task.FleetTask = step.after.record
            draft = self._tasks.get(record.id)
            if draft is None:
                draft = self._begin_task(record, step)
            if draft is None:
                continue
            draft.events.append(moved(board.NAME, step))
            draft.attributes.update(_of_task(record))
            if step.entered is task.State.CLAIMED:
                for each in record.depends_on:
                    draft.link(self._task_places.get(each), "depends on")
            if task.settled(record) and step.entered is not None:
                draft.error = record.reason or str(record.state) if record.state in _FAILED else None
                del self._tasks[record.id]
                yield draft.ended(step.at_ms)

    def _begin_task(self, record: fleet_task.FleetTask, step: Transition) -> Draft | None:
        """Begin the span of a task, or its next one; None for a task that stays over."""
        earlier = self._task_places.get(record.id)
        if earlier is not None and task.settled(record):
            return None
        place = Place(
            task_trace(self._log, record.id), span_of(self._log, board.NAME, step.entity, "", step.after.version)
        )
        draft = self._tasks[record.id] = Draft(place, f"task {record.id}", step.at_ms)
        draft.link(earlier, "earlier span of the task")
        draft.link(self._task_places.get(record.parent), "part of")
        self._task_places[record.id] = place
        return draft

    def _of_worker(self, stream: str, name: str, reaction: Reaction, at_ms: int) -> Iterator[Span]:
        earlier = self._spending.of_agent(name)
        for step in reaction.transitions:
            self._spending = spend(self._spending, stream, step)
            if isinstance(step.event, assignment.Assigned) and step.machine == ASSIGNMENT:
                self._begin_attempt(stream, name, step)
        spent = _less(self._spending.of_agent(name), earlier)
        ended = list(self._end_activities(stream, reaction))
        attempt = self._attempts.get(name)
        if attempt is not None and reaction.aggregate.record(ASSIGNMENT).state not in OUTSIDE:
            self._begin_activities(stream, name, attempt, reaction, at_ms)
        by_entity = {of: draft for (at, of, _slot, _n), draft in self._running.items() if at == stream}
        by_entity |= dict(ended)
        for step in reaction.transitions:
            if (draft := by_entity.get(step.entity, attempt)) is not None:
                draft.events.append(moved(stream, step))
            if (draft := dict(ended).get(step.entity)) is not None:
                _conclude(draft, step)
        for ref, draft in ended:
            if ref == session.machine.name:
                draft.attributes.update(_spent(spent, reaction.aggregate))
            yield draft.ended(at_ms)
        if attempt is not None:
            yield from self._end_attempt(name, attempt, spent, reaction)

    def _begin_attempt(self, stream: str, name: str, step: Transition) -> None:
        brief: task.Brief = step.after.record.brief
        place = Place(
            task_trace(self._log, brief.task), span_of(self._log, stream, ASSIGNMENT, "attempt", step.after.version)
        )
        of = self._task_places.get(brief.task)
        draft = Draft(place, f"attempt by {name}", step.at_ms, "" if of is None else of.span)
        draft.attributes.update(
            {
                "lifefold.task": brief.task,
                "lifefold.agent": name,
                "lifefold.claim": brief.epoch,
                "lifefold.stage": str(brief.stage),
            }
        )
        draft.link(self._attempt_of.get(brief.task), "earlier attempt")
        self._attempts[name] = draft
        self._attempt_of[brief.task] = place

    def _end_attempt(self, name: str, attempt: Draft, spent: Usage, reaction: Reaction) -> Iterator[Span]:
        """Add the costs to an attempt, and yield it if it is over."""
        if spent != Usage():
            attempt.attributes.update(_sum(attempt.attributes, spent))
        for step in reaction.transitions:
            if step.machine == ASSIGNMENT and step.after.state in OUTSIDE and step.left is not None:
                if step.before is not None and step.before.state in OUTSIDE:
                    continue
                attempt.attributes["lifefold.outcome"] = type(step.event).__name__
                if isinstance(step.event, FAILURES):
                    attempt.error = reason_of(step.event) or type(step.event).__name__
                if self._attempts.get(name) is attempt:
                    del self._attempts[name]
                    yield attempt.ended(step.at_ms)

    def _begin_activities(self, stream: str, name: str, attempt: Draft, reaction: Reaction, at_ms: int) -> None:
        brief_task = str(attempt.attributes["lifefold.task"])
        for ref, slot, generation in self._begun(stream, reaction):
            if slot in QUIET:
                continue
            if slot == RunSession.__name__:
                place = session_place(self._log, Begun(stream, ref, slot, generation), brief_task)
                draft = Draft(place, f"{genai.INVOKE_AGENT} {name}", at_ms, attempt.place.span)
                draft.attributes.update({genai.OPERATION: genai.INVOKE_AGENT, genai.AGENT: name})
            else:
                place = Place(attempt.place.trace, span_of(self._log, stream, ref, slot, generation))
                draft = Draft(place, in_words(slot), at_ms, attempt.place.span)
            draft.attributes.update({"lifefold.agent": name, "lifefold.task": brief_task})
            self._running[stream, ref, slot, generation] = draft

    def _of_service(self, stream: str, name: str, reaction: Reaction, at_ms: int) -> Iterator[Span]:
        ended = list(self._end_activities(stream, reaction))
        for ref, slot, generation in self._begun(stream, reaction):
            if slot == RunSession.__name__:
                place = session_place(self._log, Begun(stream, ref, slot, generation), "")
                draft = Draft(place, f"service {name}", at_ms)
                draft.attributes["lifefold.service"] = name
                self._running[stream, ref, slot, generation] = draft
        running = {of: draft for (at, of, _slot, _n), draft in self._running.items() if at == stream}
        by_entity = running | dict(ended)
        for step in reaction.transitions:
            run = by_entity.get(step.entity) if step.entity == invocation.REF else None
            if run is not None:
                run.events.append(moved(stream, step))
                _conclude(run, step)
        for _ref, draft in ended:
            yield draft.ended(at_ms)

    def _end_activities(self, stream: str, reaction: Reaction) -> Iterator[tuple[str, Draft]]:
        """Yield the spans of activities that run no more, each with its entity."""
        for ref in reaction.changed:
            now = activities(reaction.aggregate.entities.get(ref))
            was = activities(self._before(stream, ref))
            for slot, generation in (each for each in was if each not in now):
                draft = self._running.pop((stream, ref, slot, generation), None)
                if draft is not None:
                    yield ref, draft

    def _begun(self, stream: str, reaction: Reaction) -> Iterator[tuple[str, str, int]]:
        """Yield the activities that run since this entry: entity, slot, generation."""
        for ref in reaction.changed:
            was = activities(self._before(stream, ref))
            for slot, generation in activities(reaction.aggregate.entities.get(ref)):
                if (slot, generation) not in was:
                    yield ref, slot, generation

    def _before(self, stream: str, ref: str) -> Any:
        before = self._aggregates.get(stream)
        return None if before is None else before.entities.get(ref)

    def _note_recovery(self, stream: str, event: RunnerRecovered, at_ms: int) -> None:
        attributes: dict[str, Value] = {"lifefold.down_ms": event.down_ms}
        for (of, *_), draft in self._running.items():
            if of == stream:
                draft.note("RunnerRecovered", at_ms, attributes)


_FAILED: Final = frozenset({task.State.FAILED, task.State.BLOCKED})


def _of_task(record: fleet_task.FleetTask) -> Mapping[str, Value]:
    found: dict[str, Value] = {
        "lifefold.task": record.id,
        "lifefold.state": str(record.state),
        "lifefold.claims": record.epoch,
        "lifefold.retries": record.retries,
        "lifefold.priority": record.priority,
    }
    if record.commit:
        found["lifefold.commit"] = record.commit
    return found


def _conclude(draft: Draft, step: Transition) -> None:
    """Note how an activity has ended: by the outcome of a session, or by a failed step."""
    event = step.event
    if isinstance(event, session.SessionExited):
        draft.attributes["lifefold.outcome"] = type(event.outcome).__name__
        if isinstance(event.outcome, session.Error | session.Timeout | session.Limited):
            draft.error = describe(event.outcome)
            draft.attributes["error.type"] = type(event.outcome).__name__
    elif step.machine == ASSIGNMENT:
        draft.attributes.setdefault("lifefold.outcome", type(event).__name__)
        if isinstance(event, FAILURES):
            draft.error = reason_of(event) or type(event).__name__


def _spent(usage: Usage, within: Aggregate) -> Mapping[str, Value]:
    """Return what a session has cost, and its conversation if the program has one."""
    found: dict[str, Value] = {}
    if usage != Usage():
        found[genai.INPUT_TOKENS] = usage.input_tokens
        found[genai.OUTPUT_TOKENS] = usage.output_tokens
        found["lifefold.cost_usd"] = usage.cost_microusd / 1_000_000
    talk = within.entities.get(conversation.REF)
    if talk is not None and talk.record.id:
        found[genai.CONVERSATION] = talk.record.id
    return found


def _sum(known: Mapping[str, Value], usage: Usage) -> Mapping[str, Value]:
    cost = float(known.get("lifefold.cost_usd", 0.0)) + usage.cost_microusd / 1_000_000
    tokens = int(known.get("lifefold.tokens", 0)) + usage.input_tokens + usage.output_tokens
    return {"lifefold.cost_usd": round(cost, 6), "lifefold.tokens": tokens}


def _less(now: Usage, before: Usage) -> Usage:
    return Usage(
        now.cost_microusd - before.cost_microusd,
        now.input_tokens - before.input_tokens,
        now.output_tokens - before.output_tokens,
    )


def in_words(slot: str) -> str:
    """Return the name of an activity's type as words: ``VerifyWork`` is ``verify work``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", slot).lower()
