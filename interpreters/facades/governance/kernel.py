"""The governance kernel of document 004: ``transition_task`` and ``transition_agent``, with listeners.

A call names the requested status. The kernel looks up the row that leads there, and sends its event. If no row does,
``IllegalTransitionError`` is raised, and nothing has changed (E13). Every transition yields one ``LifecycleEvent``. It
is returned, and passed to all listeners in sequence, in the order of transitions. That includes transitions that a
listener causes. Errors of listeners are kept in ``failures`` (E42).

Errors: ``IllegalTransitionError``, ``DuplicateTransitionError``, ``AccessDeniedError`` and ``PlanConflictError``;
``TypeError`` and ``ValueError`` for invalid arguments.
"""

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from threading import RLock
from typing import Any, Final, TypeVar, cast

import msgspec
from returns.result import Failure

from lifefold.core.kernel import Event, LifecycleEvent, Transition
from lifefold.core.lifecycles import agent, approval, claims, task
from lifefold.core.policy.access import AccessLevel, Gates, may
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.core.policy.replayed import Ledger
from lifefold.effects import Effect, KeepDeadLetter
from lifefold.interpreters.facades.arguments import function, instance, one_of, text, whole
from lifefold.interpreters.facades.driver import RefusedError
from lifefold.interpreters.facades.governance.errors import (
    AccessDeniedError,
    DuplicateTransitionError,
    IllegalTransitionError,
    PlanConflictError,
)
from lifefold.interpreters.facades.governance.tasks import AgentSession, Subject, Task, TaskStatus
from lifefold.interpreters.facades.outbox import Outbox

T = TypeVar("T")

DEAD_LETTERS_KEPT: Final = 1_000
"""The number of late reports that are kept; the oldest are dropped first."""

CLAIMS: Final = range(2**63)
"""The possible numbers of a claim."""

Listener = Callable[[LifecycleEvent], None]


class Details(msgspec.Struct, frozen=True):
    """A caller's details of a transition."""

    actor: str = ""
    reason: str = ""
    transition_reason: TransitionReason | None = None
    abort_reason: AbortReason | None = None
    token: int | None = None

    def about(self, subject: Subject) -> dict[str, Any]:
        """Return the details by the field names of the core's events."""
        epoch = subject.claim_of(self.actor) if self.token is None else self.token
        words = {"owner": claims.owner(self.actor), "reason": self.reason, "epoch": epoch}
        return words | {"transition_reason": self.transition_reason, "abort_reason": self.abort_reason}


TIMER: Final = Details(actor="timer")


class Governance:
    """A separate kernel. ``gates`` has the transitions that need a level, ``level_of`` the level of an actor (E34).

    ``level_of`` is called while the subject is locked, so it must not wait for another call that moves the subject.

    ``perform`` is called with the effects of a task's profile, such as ``AbortSession``, after the transition and in
    the order of transitions. Without it, such an effect is a failure. Late reports are in ``dead_letters`` (E12).
    """

    def __init__(
        self,
        *,
        gates: Gates | None = None,
        level_of: Callable[[str], AccessLevel] = lambda _actor: AccessLevel.UNTRUSTED,
        perform: Callable[[Effect], None] | None = None,
    ) -> None:
        """Start without listeners and without a ledger. Raises ``TypeError`` for a function that is not callable."""
        self.dead_letters: Final[deque[KeepDeadLetter]] = deque(maxlen=DEAD_LETTERS_KEPT)
        self._gates: Final = dict(gates or {})
        self._level_of: Final = function("level_of", level_of)
        self._perform: Final = None if perform is None else function("perform", perform)
        self._listeners: tuple[Listener, ...] = ()
        self._ledger: Ledger[LifecycleEvent] = Ledger()
        self._lock: Final = RLock()
        self._calls: Final[Outbox[Callable[[], None]]] = Outbox(lambda call: call())

    def __repr__(self) -> str:
        """Return the number of listeners, and of transitions that need trust."""
        return f"<Governance: {len(self._listeners)} listeners, {len(self._gates)} gates>"

    @property
    def failures(self) -> deque[Exception]:
        """The errors of listeners and of the performer, the oldest first; the transitions stand."""
        return self._calls.failures

    def add_listener(self, listener: Listener) -> None:
        """Call this function for every transition from now on. Raises ``TypeError`` if it is not callable."""
        function("a listener", listener)
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def remove_listener(self, listener: Listener) -> None:
        """Stop calling this function; an unknown one is no error."""
        with self._lock:
            self._listeners = tuple(each for each in self._listeners if each != listener)

    def transition_task(  # noqa: PLR0913, PLR0917 - the document's signature
        self,
        task: Task,
        new_status: TaskStatus | str,
        actor: str = "",
        reason: str = "",
        transition_reason: TransitionReason | str | None = None,
        transition_id: str | None = None,
        *,
        token: int | None = None,
    ) -> LifecycleEvent:
        """Move a task. ``token`` is the number of the claim that the report belongs to (E12).

        Without it, the report of an actor that has claimed the task belongs to its own claim, and any other report to
        the present claim.
        """
        instance(Task, task)
        details = _details(actor, reason, transition_reason, None, token)
        return self._move(task, new_status, details, transition_id)

    def transition_agent(  # noqa: PLR0913, PLR0917 - the document's signature
        self,
        session: AgentSession,
        new_status: str,
        actor: str = "",
        reason: str = "",
        transition_reason: TransitionReason | str | None = None,
        abort_reason: AbortReason | str | None = None,
        transition_id: str | None = None,
    ) -> LifecycleEvent:
        """Move an agent session."""
        instance(AgentSession, session)
        details = _details(actor, reason, transition_reason, abort_reason, None)
        return self._move(session, new_status, details, transition_id)

    def heartbeat(self, session: AgentSession) -> LifecycleEvent | None:
        """Record a heartbeat: the first one makes the session work; that of a dead session is refused (E23).

        If it changes the state, the session itself needs the level of that transition (E34).
        """
        instance(AgentSession, session)
        return self._settle(session, lambda: self._heard(session, Details(session.id)))

    def request_approval(self, task: Task, actor: str = "", reason: str = "") -> LifecycleEvent:
        """Move a task that is done to PENDING_APPROVAL (E2)."""
        return self._approval(task, approval.ApprovalRequested(), TaskStatus.PENDING_APPROVAL, _details(actor, reason))

    def approve(self, task: Task, actor: str = "", reason: str = "") -> LifecycleEvent:
        """Approve a task that waits for approval: it is DONE (E2)."""
        return self._approval(task, approval.ApprovalGranted(), TaskStatus.DONE, _details(actor, reason))

    def reject(self, task: Task, actor: str = "", reason: str = "") -> LifecycleEvent:
        """Reject a task that waits for approval: it is FAILED (E2)."""
        return self._approval(task, approval.ApprovalRefused(reason), TaskStatus.FAILED, _details(actor, reason))

    def approve_plan(self, tasks: Iterable[Task], actor: str = "", reason: str = "") -> list[LifecycleEvent]:
        """Open all tasks of a plan that are still planned, or none of them (E43)."""
        return self._plan(tuple(tasks), task.Approved(), _details(actor, reason))

    def reject_plan(self, tasks: Iterable[Task], actor: str = "", reason: str = "") -> list[LifecycleEvent]:
        """Cancel all tasks of a plan that are still planned, or none of them (E43)."""
        return self._plan(tuple(tasks), task.Declined(), _details(actor, reason))

    def tick(self, subject: Task | AgentSession) -> None:
        """Fire a subject's due timers: of a lease, of a time limit, of an approval."""
        instance(Subject, subject)
        self._settle(subject, subject.driver.tick)

    def _move(self, subject: Subject, status: str, details: Details, transition_id: str | None) -> LifecycleEvent:
        wanted = text("new_status", status)
        if transition_id is not None:
            text("transition_id", transition_id, empty=False)
        return self._settle(subject, lambda: self._once(subject, wanted, details, transition_id))

    def _settle(self, subject: Subject, act: Callable[[], T]) -> T:
        """Act with the subject locked, and call the listeners after it is unlocked."""
        try:
            with subject.lock:
                return act()
        finally:
            with subject.lock:
                self._collect(subject, None, TIMER)
            self._calls.flush()

    def _once(self, subject: Subject, status: str, details: Details, transition_id: str | None) -> LifecycleEvent:
        """Perform the transition, or return its earlier result under the same id (E14)."""
        subject.driver.tick()
        entity = f"{subject.entity_type}:{subject.id}"
        payload = (status, details)
        if transition_id is not None:
            with self._lock:
                recalled = self._ledger.recall(entity, transition_id, payload)
            if isinstance(recalled, Failure):
                raise DuplicateTransitionError(str(recalled.failure()), transition_id, subject.id)
            original = recalled.unwrap()
            if original is not None:
                return original
        event = self._moved(subject, status, details)
        if transition_id is not None:
            with self._lock:
                self._ledger = self._ledger.with_success(entity, transition_id, payload, event)
        return event

    def _moved(self, subject: Subject, status: str, details: Details) -> LifecycleEvent:
        event = subject.event_towards(status, details.about(subject))
        if event is None:
            raise self._illegal(subject, status)
        self._must_be_admitted(subject, status, details)
        moved = self._take(subject, event, status, details)
        if moved is None:
            over = subject.claim_of(details.actor) if details.token is None else details.token
            raise self._illegal(subject, status, f"claim {over} is over")
        return moved

    def _must_be_admitted(self, subject: Subject, status: str, details: Details) -> None:
        source = subject.spelled(subject.record.state)
        if not may(self._level_of(details.actor), source, status, self._gates):
            raise AccessDeniedError(details.actor, subject.id, source, status)

    def _heard(self, session: AgentSession, details: Details) -> LifecycleEvent | None:
        session.driver.tick()
        entered = session.driver.would_enter(agent.Heartbeat())
        if entered is not None:
            self._must_be_admitted(session, session.spelled(entered), details)
        return self._take(session, agent.Heartbeat(), "heartbeat", details)

    def _take(self, subject: Subject, event: Event, status: str, details: Details) -> LifecycleEvent | None:
        try:
            subject.driver.take(event, details.actor)
        except RefusedError as refused:
            raise self._illegal(subject, status, str(refused)) from refused
        return self._collect(subject, event, details)

    def _illegal(self, subject: Subject, status: str, detail: str = "") -> IllegalTransitionError:
        source = subject.spelled(subject.record.state)
        return IllegalTransitionError(subject.entity_type, subject.id, source, str(status), detail)

    def _collect(self, subject: Subject, event: Event | None, details: Details) -> LifecycleEvent | None:
        """Queue the notifications of a subject; return the one of this event, if it has changed the state."""
        mine: LifecycleEvent | None = None
        for transition in subject.taken:
            if transition.entered is None:
                continue
            entry = _lifecycle_event(subject, transition, details if transition.event is event else TIMER)
            mine = entry if transition.event is event else mine
            self._calls.put(*(partial(listener, entry) for listener in self._listeners))
        for effect in subject.requested:
            self._calls.put(partial(self._do, effect))
        subject.taken.clear()
        subject.requested.clear()
        return mine

    def _approval(self, subject: Task, event: Event, status: TaskStatus, details: Details) -> LifecycleEvent:
        instance(Task, subject)
        entry = self._settle(subject, lambda: self._admitted_take(subject, event, status, details))
        return cast("LifecycleEvent", entry)  # an approval always changes the state

    def _admitted_take(self, subject: Subject, event: Event, status: str, details: Details) -> LifecycleEvent | None:
        subject.driver.tick()
        self._must_be_admitted(subject, status, details)
        return self._take(subject, event, status, details)

    def _plan(
        self, tasks: tuple[Task, ...], decision: task.Approved | task.Declined, details: Details
    ) -> list[LifecycleEvent]:
        for each in tasks:
            instance(Task, each)
        tasks = tuple({id(each): each for each in tasks}.values())
        tables = {id(each.table): each.table for each in tasks}
        if len(tables) > 1:
            raise ValueError("the tasks of a plan must follow one table")
        with ExitStack() as held:
            held.callback(self._calls.flush)
            for each in sorted(tasks, key=id):
                held.enter_context(each.lock)
                held.callback(self._collect, each, None, TIMER)
                each.driver.tick()
            decided = approval.decide_plan([each.record for each in tasks], decision, *tables.values())
            if isinstance(decided, Failure):
                raise PlanConflictError(decided.failure())
            moving = [
                (each, each.spelled(became.state))
                for each, became in zip(tasks, decided.unwrap(), strict=True)
                if became is not None
            ]
            for each, status in moving:
                self._must_be_admitted(each, status, details)
            return [event for each, status in moving if (event := self._take(each, decision, status, details))]

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, KeepDeadLetter):
            self.dead_letters.append(effect)
        elif self._perform is None:
            raise LookupError(f"no function performs {effect}: pass one to the kernel, perform=")
        else:
            self._perform(effect)


def _lifecycle_event(subject: Subject, transition: Transition, details: Details) -> LifecycleEvent:
    """Return the document's nine fields; the metadata have the other data that a restart needs (E44, E46)."""
    record = transition.after.record
    kept = {name: getattr(record, name) for name in ("epoch", "owner", "priority", "retries") if hasattr(record, name)}
    event = transition.event
    return LifecycleEvent(
        timestamp=transition.at_ms / 1_000,
        entity_type=subject.entity_type,
        entity_id=subject.id,
        from_status=subject.spelled(transition.before.state) if transition.before else "",
        to_status=subject.spelled(transition.after.state),
        actor=details.actor,
        reason=details.reason,
        transition_reason=details.transition_reason or getattr(event, "transition_reason", None),
        abort_reason=details.abort_reason or getattr(event, "abort_reason", None),
        metadata={"event": type(event).__name__, "version": transition.after.version, **kept},
    )


def _details(
    actor: str,
    reason: str,
    transition_reason: TransitionReason | str | None = None,
    abort_reason: AbortReason | str | None = None,
    token: int | None = None,
) -> Details:
    """Check a caller's details. Raises ``TypeError`` and ``ValueError``."""
    if token is not None:
        whole("token", token, CLAIMS)
    because = None if transition_reason is None else one_of("transition_reason", TransitionReason, transition_reason)
    aborted = None if abort_reason is None else one_of("abort_reason", AbortReason, abort_reason)
    return Details(text("actor", actor), text("reason", reason), because, aborted, token)


_GOVERNANCE: Final = Governance()
"""The kernel of the module's functions."""

add_listener = _GOVERNANCE.add_listener
remove_listener = _GOVERNANCE.remove_listener
transition_task = _GOVERNANCE.transition_task
transition_agent = _GOVERNANCE.transition_agent
