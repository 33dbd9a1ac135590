"""The coarse status that operators and budgets see: RUNNING, STOPPED, FAILED. The table is document 001's.

Its first line, Spawn Agent, is the birth of the record: ``spawned`` makes it, with the effects of that line. The other
four are the rows below; the FAILED line stands for every event there is. A row without a State as target (``STAY``) is
no line of the document: the agent takes up tasks, loses them, is told something too late. There is no IDLE, though the
document's purpose mentions it (B18).

*Stop has a guard*, "no active tasks", and the document leaves open what happens otherwise: it is refused (B2), unless
the stop is forced. In the profile ``draining`` it may wait, too: then no new task is taken, and the agent stops with
the last of those it has, which is the document's line for Stop Agent, taken late. Stopping what is stopped changes
nothing and tells nobody (B3).

*FAILED has a producer*, ``FatalError`` (B20), and is immutable: it takes every event and makes nothing of any, neither
a stop (B4) nor a restart; whoever asks for one is told to replace the agent (B8). Why it failed and its exit code stand
in the record and in ``agent_failed`` (B13, B14). A fatal error that is reported of a stopped agent is counted, and
changes nothing else (B15). So is personal data that was found before it stopped; the end of a task that a forced stop
has cut off changes nothing at all.

*A restart keeps the id*, counts the incarnation, and keeps the counters (B6, B7). ``successor`` is the other way: a new
id, new counters, and the name of its predecessor (B8).

*Kept, then told.* ``SaveState`` comes before ``EmitTelemetry`` in every step (B10); whoever performs them commits the
transition by keeping it, so what cannot be kept has not happened (B11). The hook ``launch`` stands before both.

Money is not in this record: an agent's incarnation has a ``lease``; see ``budget.agent`` for what the two do together.
"""

from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import (
    STAY,
    Event,
    Machine,
    Property,
    Record,
    Row,
    Step,
    Transition,
    always_step,
    leads_to,
    replace,
    row,
    sometimes,
    weakly,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.effects import CallHook, EmitTelemetry, SaveState

LAUNCH: Final = "launch"
"""The hook that begins the agent's work, called with its id and incarnation; it prevents a start by failing."""

RELEASE: Final = "release"
"""The hook that ends the agent's work and frees its resources, called with the same when it has stopped or failed."""

ORPHANED: Final = "orphaned"
"""The reason of an agent that was RUNNING in the store when nothing of it was alive any more (B17)."""


class State(AnyLifecycleState):
    """The three states of an agent."""

    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    FAILED = "FAILED"


class Spawn(Event, frozen=True):
    """The agent is to run again."""


class Stop(Event, frozen=True):
    """The agent is to stop: once its tasks are done (``drain``), or at once (``force``), or if it has none.

    Only the profile ``draining`` knows how to wait.
    """

    drain: bool = False
    force: bool = False

    @classmethod
    def examples(cls) -> tuple["Stop", ...]:
        """Return one of each kind."""
        return cls(), cls(drain=True), cls(force=True)


class FatalError(Event, frozen=True):
    """The agent crashed, or met something that it cannot go on with. ``exit_code`` is None if there is none."""

    reason: str = ""
    exit_code: int | None = None

    @classmethod
    def examples(cls) -> tuple["FatalError", ...]:
        """Return one with a reason and one without."""
        return cls("out of memory", 137), cls()


class TaskBegan(Event, frozen=True):
    """The agent is at work on a task."""

    task: str = "task"

    @classmethod
    def examples(cls) -> tuple["TaskBegan", ...]:
        """Return two tasks."""
        return cls("a"), cls("b")


class TaskEnded(Event, frozen=True):
    """The agent is done with a task, whatever came of it."""

    task: str = "task"

    @classmethod
    def examples(cls) -> tuple["TaskEnded", ...]:
        """Return the ends of two tasks."""
        return cls("a"), cls("b")


class PiiDetected(Event, frozen=True):
    """Personal data was found in what the agent sends or gets."""


class Status(Record, frozen=True):
    """An agent. ``reason`` says why it is where it is; ``late_reports`` counts fatal errors reported after a stop.

    ``budget_microusd`` is what all incarnations together may spend, ``lease_ms`` how long the lease of one lasts.
    """

    serials: ClassVar[tuple[str, ...]] = ("incarnation", "pii_detections", "late_reports")

    state: State = State.RUNNING
    agent_id: str = ""
    name: str = ""
    incarnation: int = 1
    tasks: tuple[str, ...] = ()
    draining: bool = False
    reason: str = ""
    exit_code: int | None = None
    replaces: str = ""
    pii_detections: int = 0
    late_reports: int = 0
    last_late_report: str = ""
    budget_microusd: int = 0
    lease_ms: int | None = None


# Guards


def may_stop(a: Status, e: Stop) -> bool:
    """The agent has no active tasks, or the stop is forced (B2)."""
    return e.force or not a.tasks


def drains(a: Status, e: Stop) -> bool:
    """There are active tasks, and the stop waits for them."""
    return e.drain and not may_stop(a, e)


def takes_tasks(a: Status, e: TaskBegan) -> bool:
    """The agent is not to stop soon, and the task is not one that it has."""
    return not a.draining and e.task not in a.tasks


def has_task(a: Status, e: TaskEnded) -> bool:
    """The agent has this task."""
    return e.task in a.tasks


def was_last_of_draining(a: Status, e: TaskEnded) -> bool:
    """It is the last task that a stop has waited for."""
    return a.draining and a.tasks == (e.task,)


# Actions

Told = SaveState | EmitTelemetry | CallHook


def spawned(record: Status) -> Step[Status, Told]:
    """Begin an agent's life: the document's first line. Its effects are those of a restart."""
    return Step(record, _started(record))


def restart(a: Status, _e: Spawn) -> Step[Status, SaveState | EmitTelemetry | CallHook]:
    """Count the incarnation; the counters stay (B6, B7)."""
    record = replace(a, incarnation=a.incarnation + 1)
    return Step(record, _started(record))


def stop(a: Status, e: Stop) -> Step[Status, SaveState | EmitTelemetry | CallHook]:
    """Stop; what a forced stop has cut off is told."""
    return _stopped(a, {"forced": len(a.tasks)} if e.force and a.tasks else {})


def finish_draining(a: Status, _e: TaskEnded) -> Step[Status, SaveState | EmitTelemetry | CallHook]:
    """Stop with the end of the last task."""
    return _stopped(a, {})


def begin_draining(a: Status, _e: Stop) -> Step[Status, SaveState]:
    """Take no new tasks."""
    return Step(replace(a, draining=True), (SaveState(a.agent_id),))


def fail(a: Status, e: FatalError) -> Step[Status, SaveState | EmitTelemetry | CallHook]:
    """Keep the reason and the exit code, and tell both (B13, B14, B20)."""
    reason = e.reason or "unknown"
    record = replace(a, tasks=(), draining=False, reason=reason, exit_code=e.exit_code)
    told: dict[str, str | int | None] = {
        "incarnation": a.incarnation, "reason": reason, "exit_code": e.exit_code
    }  # fmt: skip
    return Step(record, (SaveState(a.agent_id), EmitTelemetry(a.agent_id, "agent_failed", told), _release(a)))


def record_late(a: Status, e: FatalError) -> Step[Status, SaveState]:
    """Count the report, and keep its reason: it came too late to change anything (B15)."""
    late = replace(a, late_reports=a.late_reports + 1, last_late_report=e.reason or "unknown")
    return Step(late, (SaveState(a.agent_id),))


def begin_task(a: Status, e: TaskBegan) -> Step[Status, SaveState]:
    """Add the task."""
    return Step(replace(a, tasks=(*a.tasks, e.task)), (SaveState(a.agent_id),))


def end_task(a: Status, e: TaskEnded) -> Step[Status, SaveState]:
    """Take the task away."""
    return Step(replace(a, tasks=tuple(each for each in a.tasks if each != e.task)), (SaveState(a.agent_id),))


def count_pii(a: Status, _e: PiiDetected) -> Step[Status, SaveState | EmitTelemetry]:
    """Count it, and tell."""
    record = replace(a, pii_detections=a.pii_detections + 1)
    told: dict[str, str | int | None] = {"pii_detections": record.pii_detections}
    return Step(record, (SaveState(a.agent_id), EmitTelemetry(a.agent_id, "pii_detected", told)))


def ignore(a: Status, _e: Event) -> Step[Status, Never]:
    """Take it, and make nothing of it (B3, B4)."""
    return Step(a)


def _started(a: Status) -> tuple[Told, ...]:
    told: dict[str, str | int | None] = {"incarnation": a.incarnation}
    told |= {"replaces": a.replaces} if a.replaces else {}
    launch = CallHook(LAUNCH, (a.agent_id, a.incarnation), before=True)
    return launch, SaveState(a.agent_id), EmitTelemetry(a.agent_id, "agent_started", told)


def _stopped(a: Status, more: dict[str, str | int | None]) -> Step[Status, Told]:
    told: dict[str, str | int | None] = {"incarnation": a.incarnation, **more}
    record = replace(a, tasks=(), draining=False)
    return Step(record, (SaveState(a.agent_id), EmitTelemetry(a.agent_id, "agent_stopped", told), _release(a)))


def _release(a: Status) -> CallHook:
    return CallHook(RELEASE, (a.agent_id, a.incarnation))


def successor(a: Status, agent_id: str) -> Status:
    """Return the record of a new agent in place of this one: a new id, new counters, the same settings (B7, B8)."""
    return Status(
        agent_id=agent_id, name=a.name, replaces=a.agent_id, budget_microusd=a.budget_microusd, lease_ms=a.lease_ms
    )


def is_replaceable(a: Status) -> bool:
    """Tell whether another agent may take this one's place: only if it does not run (B8, B9)."""
    return a.state is not State.RUNNING


# What holds of every agent


def works_only_while_running(a: Status) -> bool:
    """Only a running agent has tasks, or is to stop when they are done (I2)."""
    return a.state is State.RUNNING or not (a.tasks or a.draining)


def drains_for_something(a: Status) -> bool:
    """Whoever drains has a task to wait for."""
    return bool(a.tasks) or not a.draining


def failure_is_explained(a: Status) -> bool:
    """A failed agent says why; another one has nothing to explain (B14)."""
    return bool(a.reason) is (a.state is State.FAILED)


# What holds of every step


def failure_is_immutable(step: Transition) -> bool:
    """What has failed stays as it is, whatever comes (B4, B20)."""
    before = step.before
    return before is None or before.state is not State.FAILED or (before.record == step.after.record)


def stop_waits_for_work(step: Transition) -> bool:
    """An agent with tasks stops at once only if somebody forces it (B2)."""
    if step.before is None or step.entered is not State.STOPPED:
        return True
    tasks = step.before.record.tasks
    last = isinstance(step.event, TaskEnded) and tasks == (step.event.task,) and step.before.record.draining
    return last or (isinstance(step.event, Stop) and (not tasks or step.event.force))


def restart_keeps_everything(step: Transition) -> bool:
    """A restart counts the incarnation and changes nothing else (B6, B7)."""
    if step.before is None or step.entered is not State.RUNNING:
        return True
    before: Status = step.before.record
    restarted: bool = step.after.record == replace(before, state=State.RUNNING, incarnation=before.incarnation + 1)
    return restarted


def draining_takes_no_task(step: Transition) -> bool:
    """Who is to stop when its tasks are done gets no other one (B2)."""
    before = step.before
    return before is None or not before.record.draining or set(step.after.record.tasks) <= set(before.record.tasks)


def drain_ends_only_with_the_agent(step: Transition) -> bool:
    """A stop that waits is not forgotten: nothing but the agent's end takes it back."""
    before = step.before
    return before is None or not before.record.draining or step.after.record.draining or step.entered is not None


def end_releases(step: Transition) -> bool:
    """The work of every agent that stops or fails is ended, and of every one that starts it is launched."""
    if step.before is None or step.entered is None:
        return True
    hook = LAUNCH if step.entered is State.RUNNING else RELEASE
    return [each.name for each in step.effects if isinstance(each, CallHook)] == [hook]


def change_is_kept_then_told(step: Transition) -> bool:
    """What changes is kept, and told only after that; what changes nothing is not told (B3, B10)."""
    if step.before is None:
        return True
    kinds = [type(each) for each in step.effects if isinstance(each, SaveState | EmitTelemetry)]
    changed = step.before.record != step.after.record
    return kinds in ([SaveState], [SaveState, EmitTelemetry]) if changed else EmitTelemetry not in kinds


PROMISES: Final[tuple[Property[Any], ...]] = (
    always_step("what has failed stays as it is", failure_is_immutable),
    always_step("nobody's tasks are cut off by a stop that is not forced", stop_waits_for_work),
    always_step("a restart counts the incarnation and changes nothing else", restart_keeps_everything),
    always_step("every start launches the agent's work, and every end releases it, once", end_releases),
    always_step(
        "what changes is kept before it is told, and what changes nothing is not told", change_is_kept_then_told
    ),
    sometimes("an agent stops", lambda e: e.state is State.STOPPED),
    sometimes("an agent fails, and says why", lambda e: e.state is State.FAILED and bool(e.record.reason)),
    sometimes("an agent that has stopped fails too late", lambda e: e.record.late_reports > 0),
)

DRAINING_PROMISES: Final[tuple[Property[Any], ...]] = (
    always_step("who is to stop when its tasks are done gets no other one", draining_takes_no_task),
    always_step("a stop that waits is not forgotten", drain_ends_only_with_the_agent),
    leads_to(
        "whoever is to stop when its tasks are done stops, if they end",
        lambda e: e.record.draining,
        lambda e: e.state is not State.RUNNING,
        given=weakly(TaskEnded),
    ),
    sometimes("a stop waits for tasks", lambda e: e.record.draining),
)


EVENTS: Final[tuple[type[Event], ...]] = (Spawn, Stop, FatalError, TaskBegan, TaskEnded, PiiDetected)

ROWS: tuple[Row[Status], ...] = (
    row(State.RUNNING, Stop, State.STOPPED, stop, when=may_stop),
    row(State.RUNNING, FatalError, State.FAILED, fail),
    row(State.STOPPED, Spawn, State.RUNNING, restart),
    *(row(State.FAILED, event, State.FAILED, ignore) for event in EVENTS),
    row(State.RUNNING, TaskBegan, STAY, begin_task, when=takes_tasks),
    row(State.RUNNING, TaskEnded, STAY, end_task, when=has_task),
    row(State.RUNNING, PiiDetected, STAY, count_pii),
    row(State.STOPPED, Stop, STAY, ignore),
    row(State.STOPPED, FatalError, STAY, record_late),
    row(State.STOPPED, TaskEnded, STAY, ignore),
    row(State.STOPPED, PiiDetected, STAY, count_pii),
)

machine = Machine(
    "status",
    Status(),
    about="what operators and budgets see of an agent: running, stopped, failed",
    rows=ROWS,
    final={State.FAILED},
    invariants=(works_only_while_running, drains_for_something, failure_is_explained),
    properties=PROMISES,
)

draining = machine.with_rows(
    row(State.RUNNING, TaskEnded, State.STOPPED, finish_draining, when=was_last_of_draining),
    row(State.RUNNING, Stop, STAY, begin_draining, when=drains),
    name="status-draining",
).promising(*DRAINING_PROMISES)
"""The profile in which a stop may wait for the active tasks: the agent stops with the last of them (B2)."""
