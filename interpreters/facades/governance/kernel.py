"""Document 004's governance kernel: ``transition_task`` and ``transition_agent``, and everybody who listens.

A call names the status that it wants; the row that leads there is looked up in the table, and its event is sent. What
no row allows raises ``IllegalTransitionError``, and nothing has changed (E13). Every transition yields one
``LifecycleEvent``, which is returned, and told to all listeners: one after the other, in the order in which transitions
happened, also those that a listener causes; what a listener raises is kept in ``failures`` (E42).

Errors: ``IllegalTransitionError``, ``DuplicateTransitionError``, ``AccessDeniedError`` and ``PlanConflictError``;
``TypeError`` and ``ValueError`` for arguments that are none.
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
"""How many late reports are kept; the oldest go first."""

CLAIMS: Final = range(2**63)
"""The numbers that a claim can have."""

Listener = Callable[[LifecycleEvent], None]


class Said(msgspec.Struct, frozen=True):
    """What a caller says about a transition."""

    actor: str = ""
    reason: str = ""
    transition_reason: TransitionReason | None = None
    abort_reason: AbortReason | None = None
    token: int | None = None

    def about(self, subject: Subject) -> dict[str, Any]:
        """Return it by the names that the events of the core have for it."""
        epoch = subject.claim_of(self.actor) if self.token is None else self.token
        words = {"owner": claims.owner(self.actor), "reason": self.reason, "epoch": epoch}
        return words | {"transition_reason": self.transition_reason, "abort_reason": self.abort_reason}


TIMER: Final = Said(actor="timer")


class Governance:
    """A kernel of one's own. ``gates`` says which transitions need which level, and ``level_of`` who has which (E34).

    ``level_of`` is asked while the subject is held, so it must not wait for anybody who moves it.

    ``perform`` is called with the effects that a task's profile asks for, as ``AbortSession``, after the transition and
    in the order of transitions; late reports are in ``dead_letters`` (E12). Without it, such an effect is a failure.
    """

    def __init__(
        self,
        *,
        gates: Gates | None = None,
        level_of: Callable[[str], AccessLevel] = lambda _actor: AccessLevel.UNTRUSTED,
        perform: Callable[[Effect], None] | None = None,
    ) -> None:
        """Begin without listeners and without a memory. Raises ``TypeError`` for what cannot be called."""
        self.dead_letters: Final[deque[KeepDeadLetter]] = deque(maxlen=DEAD_LETTERS_KEPT)
        self._gates: Final = dict(gates or {})
        self._level_of: Final = function("level_of", level_of)
        self._perform: Final = None if perform is None else function("perform", perform)
        self._listeners: tuple[Listener, ...] = ()
        self._ledger: Ledger[LifecycleEvent] = Ledger()
        self._lock: Final = RLock()
        self._calls: Final[Outbox[Callable[[], None]]] = Outbox(lambda call: call())

    def __repr__(self) -> str:
        """Say how many listeners it has, and how many transitions need trust."""
        return f"<Governance: {len(self._listeners)} listeners, {len(self._gates)} gates>"

    @property
    def failures(self) -> deque[Exception]:
        """What listeners and the performer have raised, the oldest first; the transitions stand."""
        return self._calls.failures

    def add_listener(self, listener: Listener) -> None:
        """Tell this function of every transition from now on. Raises ``TypeError`` for what cannot be called."""
        function("a listener", listener)
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def remove_listener(self, listener: Listener) -> None:
        """Do not tell this function any more; one that was never told is no error."""
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
        """Move a task. ``token`` is the claim that is reported of, if the caller can prove it (E12).

        Without it, an actor who has claimed the task speaks of its own claim, and anybody else of the present one.
        """
        instance(Task, task)
        said = _said(actor, reason, transition_reason, None, token)
        return self._move(task, new_status, said, transition_id)

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
        said = _said(actor, reason, transition_reason, abort_reason, None)
        return self._move(session, new_status, said, transition_id)

    def heartbeat(self, session: AgentSession) -> LifecycleEvent | None:
        """Note a sign of life: the first one makes the session work, a dead one's is refused (E23).

        One that changes the state needs the level that this change needs, of the session itself (E34).
        """
        instance(AgentSession, session)
        return self._settle(session, lambda: self._heard(session, Said(session.id)))

    def request_approval(self, task: Task, actor: str = "", reason: str = "") -> LifecycleEvent:
        """Let a task that is done wait for a person's word (E2)."""
        return self._approval(task, approval.ApprovalRequested(), TaskStatus.PENDING_APPROVAL, _said(actor, reason))

    def approve(self, task: Task, actor: str = "", reason: str = "") -> LifecycleEvent:
        """Let a task that waits for it be done (E2)."""
        return self._approval(task, approval.ApprovalGranted(), TaskStatus.DONE, _said(actor, reason))

    def reject(self, task: Task, actor: str = "", reason: str = "") -> LifecycleEvent:
        """Let a task that waits for approval fail (E2)."""
        return self._approval(task, approval.ApprovalRefused(reason), TaskStatus.FAILED, _said(actor, reason))

    def approve_plan(self, tasks: Iterable[Task], actor: str = "", reason: str = "") -> list[LifecycleEvent]:
        """Open all tasks of a plan that are still planned, or none (E43)."""
        return self._plan(tuple(tasks), task.Approved(), _said(actor, reason))

    def reject_plan(self, tasks: Iterable[Task], actor: str = "", reason: str = "") -> list[LifecycleEvent]:
        """Cancel all tasks of a plan that are still planned, or none (E43)."""
        return self._plan(tuple(tasks), task.Declined(), _said(actor, reason))

    def tick(self, subject: Task | AgentSession) -> None:
        """Let a subject's timers happen that are due: a lease, a limit of time, an approval that nobody gave."""
        instance(Subject, subject)
        self._settle(subject, subject.driver.tick)

    def _move(self, subject: Subject, status: str, said: Said, transition_id: str | None) -> LifecycleEvent:
        wanted = text("new_status", status)
        if transition_id is not None:
            text("transition_id", transition_id, empty=False)
        return self._settle(subject, lambda: self._once(subject, wanted, said, transition_id))

    def _settle(self, subject: Subject, act: Callable[[], T]) -> T:
        """Act with the subject to oneself, and tell what came of it when it is free again."""
        try:
            with subject.lock:
                return act()
        finally:
            with subject.lock:
                self._collect(subject, None, TIMER)
            self._calls.flush()

    def _once(self, subject: Subject, status: str, said: Said, transition_id: str | None) -> LifecycleEvent:
        """Take the transition, or return what came of it under the same id before (E14)."""
        subject.driver.tick()
        entity = f"{subject.entity_type}:{subject.id}"
        payload = (status, said)
        if transition_id is not None:
            with self._lock:
                recalled = self._ledger.recall(entity, transition_id, payload)
            if isinstance(recalled, Failure):
                raise DuplicateTransitionError(str(recalled.failure()), transition_id, subject.id)
            original = recalled.unwrap()
            if original is not None:
                return original
        event = self._moved(subject, status, said)
        if transition_id is not None:
            with self._lock:
                self._ledger = self._ledger.with_success(entity, transition_id, payload, event)
        return event

    def _moved(self, subject: Subject, status: str, said: Said) -> LifecycleEvent:
        event = subject.event_towards(status, said.about(subject))
        if event is None:
            raise self._illegal(subject, status)
        self._must_be_admitted(subject, status, said)
        moved = self._take(subject, event, status, said)
        if moved is None:
            over = subject.claim_of(said.actor) if said.token is None else said.token
            raise self._illegal(subject, status, f"claim {over} is over")
        return moved

    def _must_be_admitted(self, subject: Subject, status: str, said: Said) -> None:
        source = subject.spelled(subject.record.state)
        if not may(self._level_of(said.actor), source, status, self._gates):
            raise AccessDeniedError(said.actor, subject.id, source, status)

    def _heard(self, session: AgentSession, said: Said) -> LifecycleEvent | None:
        session.driver.tick()
        entered = session.driver.would_enter(agent.Heartbeat())
        if entered is not None:
            self._must_be_admitted(session, session.spelled(entered), said)
        return self._take(session, agent.Heartbeat(), "heartbeat", said)

    def _take(self, subject: Subject, event: Event, status: str, said: Said) -> LifecycleEvent | None:
        try:
            subject.driver.take(event, said.actor)
        except RefusedError as refused:
            raise self._illegal(subject, status, str(refused)) from refused
        return self._collect(subject, event, said)

    def _illegal(self, subject: Subject, status: str, detail: str = "") -> IllegalTransitionError:
        source = subject.spelled(subject.record.state)
        return IllegalTransitionError(subject.entity_type, subject.id, source, str(status), detail)

    def _collect(self, subject: Subject, event: Event | None, said: Said) -> LifecycleEvent | None:
        """Queue what a subject has to tell; return what is told of this event, if its state has changed by it."""
        mine: LifecycleEvent | None = None
        for transition in subject.taken:
            if transition.entered is None:
                continue
            told = _lifecycle_event(subject, transition, said if transition.event is event else TIMER)
            mine = told if transition.event is event else mine
            self._calls.put(*(partial(listener, told) for listener in self._listeners))
        for effect in subject.asked:
            self._calls.put(partial(self._do, effect))
        subject.taken.clear()
        subject.asked.clear()
        return mine

    def _approval(self, subject: Task, event: Event, status: TaskStatus, said: Said) -> LifecycleEvent:
        instance(Task, subject)
        told = self._settle(subject, lambda: self._admitted_take(subject, event, status, said))
        return cast("LifecycleEvent", told)  # what it enters is another state

    def _admitted_take(self, subject: Subject, event: Event, status: str, said: Said) -> LifecycleEvent | None:
        subject.driver.tick()
        self._must_be_admitted(subject, status, said)
        return self._take(subject, event, status, said)

    def _plan(
        self, tasks: tuple[Task, ...], decision: task.Approved | task.Declined, said: Said
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
                self._must_be_admitted(each, status, said)
            return [event for each, status in moving if (event := self._take(each, decision, status, said))]

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, KeepDeadLetter):
            self.dead_letters.append(effect)
        elif self._perform is None:
            raise LookupError(f"nobody performs {effect}: give the kernel a function for it, perform=")
        else:
            self._perform(effect)


def _lifecycle_event(subject: Subject, transition: Transition, said: Said) -> LifecycleEvent:
    """Return the document's nine fields; what else a restart needs to know stands in the metadata (E44, E46)."""
    record = transition.after.record
    kept = {name: getattr(record, name) for name in ("epoch", "owner", "priority", "retries") if hasattr(record, name)}
    event = transition.event
    return LifecycleEvent(
        timestamp=transition.at_ms / 1_000,
        entity_type=subject.entity_type,
        entity_id=subject.id,
        from_status=subject.spelled(transition.before.state) if transition.before else "",
        to_status=subject.spelled(transition.after.state),
        actor=said.actor,
        reason=said.reason,
        transition_reason=said.transition_reason or getattr(event, "transition_reason", None),
        abort_reason=said.abort_reason or getattr(event, "abort_reason", None),
        metadata={"event": type(event).__name__, "version": transition.after.version, **kept},
    )


def _said(
    actor: str,
    reason: str,
    transition_reason: TransitionReason | str | None = None,
    abort_reason: AbortReason | str | None = None,
    token: int | None = None,
) -> Said:
    """Check what a caller says. Raises ``TypeError`` and ``ValueError``."""
    if token is not None:
        whole("token", token, CLAIMS)
    because = None if transition_reason is None else one_of("transition_reason", TransitionReason, transition_reason)
    aborted = None if abort_reason is None else one_of("abort_reason", AbortReason, abort_reason)
    return Said(text("actor", actor), text("reason", reason), because, aborted, token)


_GOVERNANCE: Final = Governance()
"""The kernel that the functions below share."""

add_listener = _GOVERNANCE.add_listener
remove_listener = _GOVERNANCE.remove_listener
transition_task = _GOVERNANCE.transition_task
transition_agent = _GOVERNANCE.transition_agent
