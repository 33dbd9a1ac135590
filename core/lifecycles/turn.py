"""One handling of one task by one worker: claimed, spawned, at work, verified, reaped. The table is document 004's.

It has eighteen lines, taken literally. ``verify_requested`` means two things, and ``compact_needed`` in VERIFYING leads
to RUNNING although the document's note speaks of compaction (E25). An event that is not listed for a tool in use is
illegal (E28). A failure while COMPLETING is in no line; ``completing_fails`` is the profile with one (E24).

*A repeated report is recognised* (E26). ``agent_spawned`` happens twice, at launch and at readiness, so a launch that
is delivered twice would look like readiness. A report with a known ``id`` of this turn changes nothing, in any state,
also when the turn is over. The last ``SEEN_LIMIT`` ids are remembered.

*A turn has a number* (E27). REAPED is final; ``following`` makes the next turn out of it. Late reports of the process
of an earlier turn are refused.
"""

from typing import Any, ClassVar, Final, Never

from lifefold.core.kernel import (
    ANY,
    STAY,
    Event,
    Machine,
    Property,
    Record,
    Row,
    Step,
    Transition,
    accepts,
    always_step,
    leads_to,
    replace,
    row,
    sometimes,
    weakly,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles.property_forms import exits_on, follows_table
from lifefold.core.policy.reasons import AbortReason, TransitionReason

SEEN_LIMIT: Final = 256
"""The number of report ids that a turn remembers."""


class State(AnyLifecycleState):
    """The ten states of a turn."""

    IDLE = "IDLE"
    CLAIMING = "CLAIMING"
    SPAWNING = "SPAWNING"
    RUNNING = "RUNNING"
    TOOL_USE = "TOOL_USE"
    COMPACTING = "COMPACTING"
    VERIFYING = "VERIFYING"
    COMPLETING = "COMPLETING"
    FAILED = "FAILED"
    REAPED = "REAPED"


class _Report(Event, frozen=True):
    """A report of turn number ``turn``; a repetition has the same ``id``, if there is one."""

    turn: int = 1
    id: str = ""

    @classmethod
    def examples(cls) -> tuple["_Report", ...]:
        """Return a report of the first turn, one that can be repeated, and one of a turn that never was."""
        return cls(), cls(id="x"), cls(turn=0)

    @classmethod
    def examples_for(cls, record: Any) -> tuple["_Report", ...]:
        """Return the same of a turn with any number."""
        return cls(record.number), cls(record.number, "x"), cls(record.number - 1)

    @classmethod
    def label(cls) -> str:
        """Return the document's spelling."""
        return str(cls.__struct_config__.tag)


class TaskClaimed(_Report, frozen=True, tag="task_claimed"):
    """A task was reserved for this agent."""

    task: str = ""

    @classmethod
    def examples(cls) -> tuple["TaskClaimed", ...]:
        """Return such claims for the first turn, and one of the second."""
        return cls(), cls(id="x"), cls(turn=0), cls(turn=2)

    @classmethod
    def examples_for(cls, record: Any) -> tuple["TaskClaimed", ...]:
        """Return claims of this turn, one of the turn before, and one of the turn after it."""
        return cls(record.number), cls(record.number, "x"), cls(record.number - 1), cls(record.number + 1)


class AgentSpawned(_Report, frozen=True, tag="agent_spawned"):
    """The process was launched; and again, when it is ready."""


class ToolStarted(_Report, frozen=True, tag="tool_started"):
    """The agent began a tool call."""


class ToolCompleted(_Report, frozen=True, tag="tool_completed"):
    """The tool call returned."""


class CompactNeeded(_Report, frozen=True, tag="compact_needed"):
    """The context crossed the threshold for compaction."""


class VerifyRequested(_Report, frozen=True, tag="verify_requested"):
    """The agent declared the task finished; or the compaction is done."""


class TaskCompleted(_Report, frozen=True, tag="task_completed"):
    """All completion signals are confirmed."""


class TaskFailed(_Report, frozen=True, tag="task_failed"):
    """The present work cannot be continued."""

    reason: str = ""
    transition_reason: TransitionReason | None = None
    abort_reason: AbortReason | None = None


class AgentReaped(_Report, frozen=True, tag="agent_reaped"):
    """Process and worktree are cleaned up."""


EVENTS: Final = (
    TaskClaimed, AgentSpawned, ToolStarted, ToolCompleted, CompactNeeded, VerifyRequested, TaskCompleted, TaskFailed,
    AgentReaped,
)  # fmt: skip
"""The nine events, in the document's order."""


class Turn(Record, frozen=True):
    """A turn. ``seen`` has the ids of its reports, the oldest first. A failed turn has the reasons of its failure."""

    identifiers: ClassVar[tuple[str, ...]] = ("tool_calls", "compactions")

    state: State = State.IDLE
    agent: str = ""
    number: int = 1
    task: str = ""
    tool_calls: int = 0
    compactions: int = 0
    reason: str = ""
    transition_reason: TransitionReason | None = None
    abort_reason: AbortReason | None = None
    seen: tuple[str, ...] = ()


def following(t: Turn) -> Turn | None:
    """Return the turn after this one, of the same agent; None while this one is not reaped (E27)."""
    return Turn(agent=t.agent, number=t.number + 1) if t.state is State.REAPED else None


# Guards


def is_repeated(t: Turn, e: _Report) -> bool:
    """This turn has accepted the same report before (E26)."""
    return e.turn == t.number and e.id in t.seen


def is_news(t: Turn, e: _Report) -> bool:
    """The report is of this turn and of no earlier one (E27), and comes for the first time (E26)."""
    return e.turn == t.number and e.id not in t.seen


# Actions


def remember(t: Turn, e: _Report) -> Step[Turn, Never]:
    """Remember the report's id, if it has one."""
    return Step(noted(t, e))


def noted(t: Turn, e: _Report) -> Turn:
    """Return the turn with the report's id among those seen."""
    return replace(t, seen=(*t.seen, e.id)[-SEEN_LIMIT:]) if e.id else t


def take_on(t: Turn, e: TaskClaimed) -> Step[Turn, Never]:
    """Keep the task of the turn."""
    return Step(replace(noted(t, e), task=e.task))


def use_tool(t: Turn, e: ToolStarted) -> Step[Turn, Never]:
    """Count the tool call."""
    return Step(replace(noted(t, e), tool_calls=t.tool_calls + 1))


def compact(t: Turn, e: CompactNeeded) -> Step[Turn, Never]:
    """Count the compaction."""
    return Step(replace(noted(t, e), compactions=t.compactions + 1))


def fail(t: Turn, e: TaskFailed) -> Step[Turn, Never]:
    """Keep why."""
    why = {"reason": e.reason, "transition_reason": e.transition_reason, "abort_reason": e.abort_reason}
    return Step(replace(noted(t, e), **why))


# The table


def failed_only_with_a_reason(t: Turn) -> bool:
    """Only a failed turn has the reasons of a failure."""
    has_one = bool(t.reason) or t.transition_reason is not None or t.abort_reason is not None
    return t.state in {State.FAILED, State.REAPED} or not has_one


def remembers_within_bounds(t: Turn) -> bool:
    """The number of remembered ids is bounded, and each is there once."""
    return len(t.seen) <= SEEN_LIMIT and len(set(t.seen)) == len(t.seen) and "" not in t.seen


def repetitions_change_nothing(step: Transition) -> bool:
    """A repeated report, and one of another turn, changes nothing (E26, E27)."""
    before: Turn = step.was
    old = isinstance(step.event, _Report) and (step.event.turn != before.number or step.event.id in before.seen)
    return not old or bool(before == step.after.record)


def reports_are_remembered(step: Transition) -> bool:
    """A report that can be repeated is recognised when it is (E26)."""
    return not isinstance(step.event, _Report) or not step.event.id or step.event.id in step.after.record.seen


def is_no_news(step: Transition) -> bool:
    """The report is a repetition (E26)."""
    return step.before is not None and isinstance(step.event, _Report) and step.event.id in step.before.record.seen


def counts_what_is_done(step: Transition) -> bool:
    """Every tool call and every compaction counts, once."""
    before: Turn = step.was
    after: Turn = step.after.record
    tools, compactions = after.tool_calls - before.tool_calls, after.compactions - before.compactions
    return (tools, compactions) == (step.entered is State.TOOL_USE, step.entered is State.COMPACTING)


def failure_is_reaped(step: Transition) -> bool:
    """A failed turn is cleaned up, and nothing else happens to it."""
    return step.entered is None or not _came_from(step, State.FAILED) or step.entered is State.REAPED


def _came_from(step: Transition, *states: State) -> bool:
    return step.before is not None and step.before.state in states


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a repeated report, or one of another turn, changes nothing", repetitions_change_nothing, on=Event),
    always_step("every report that can be repeated is remembered", reports_are_remembered, on=Event),
    always_step("every tool call and every compaction counts", counts_what_is_done, on=Event),
    always_step(
        "a turn completes only from its verification",
        lambda step: step.entered is not State.COMPLETING or _came_from(step, State.VERIFYING),
    ),
    always_step(
        "a turn is reaped only when it has completed or failed",
        lambda step: step.entered is not State.REAPED or _came_from(step, State.COMPLETING, State.FAILED),
    ),
    always_step("a failed turn is reaped, and nothing else", failure_is_reaped),
    leads_to(
        "every turn that began is reaped, if a failure is reported and an ended turn is cleaned up",
        lambda e: e.state is not State.IDLE,
        lambda e: e.state is State.REAPED,
        given=weakly(TaskFailed, AgentReaped),
    ),
    *exits_on(State.RUNNING, ToolStarted, CompactNeeded),
    *exits_on(State.TOOL_USE, ToolCompleted),
    *exits_on(State.COMPACTING, VerifyRequested),
    *exits_on(State.VERIFYING, CompactNeeded),
    sometimes("a turn completes", lambda e: e.state is State.COMPLETING),
    sometimes("a turn fails", lambda e: e.state is State.FAILED),
    sometimes("a turn is reaped", lambda e: e.state is State.REAPED),
)


ROWS: Final[tuple[Row[Turn], ...]] = (
    row(State.IDLE, TaskClaimed, State.CLAIMING, take_on, when=is_news),
    row(State.CLAIMING, AgentSpawned, State.SPAWNING, remember, when=is_news),
    row(State.CLAIMING, TaskFailed, State.FAILED, fail, when=is_news),
    row(State.SPAWNING, AgentSpawned, State.RUNNING, remember, when=is_news),
    row(State.SPAWNING, TaskFailed, State.FAILED, fail, when=is_news),
    row(State.RUNNING, ToolStarted, State.TOOL_USE, use_tool, when=is_news),
    row(State.RUNNING, CompactNeeded, State.COMPACTING, compact, when=is_news),
    row(State.RUNNING, VerifyRequested, State.VERIFYING, remember, when=is_news),
    row(State.RUNNING, TaskFailed, State.FAILED, fail, when=is_news),
    row(State.TOOL_USE, ToolCompleted, State.RUNNING, remember, when=is_news),
    row(State.TOOL_USE, TaskFailed, State.FAILED, fail, when=is_news),
    row(State.COMPACTING, VerifyRequested, State.RUNNING, remember, when=is_news),
    row(State.COMPACTING, TaskFailed, State.FAILED, fail, when=is_news),
    row(State.VERIFYING, TaskCompleted, State.COMPLETING, remember, when=is_news),
    row(State.VERIFYING, CompactNeeded, State.RUNNING, remember, when=is_news),
    row(State.VERIFYING, TaskFailed, State.FAILED, fail, when=is_news),
    row(State.COMPLETING, AgentReaped, State.REAPED, remember, when=is_news),
    row(State.FAILED, AgentReaped, State.REAPED, remember, when=is_news),
)
"""The document's eighteen lines."""

machine = Machine(
    "turn",
    Turn(),
    about="one handling of one task by one worker",
    rows=(*ROWS, *(row(ANY, event, STAY, when=is_repeated) for event in EVENTS)),
    final={State.REAPED},
    invariants=(failed_only_with_a_reason, remembers_within_bounds),
    properties=(*PROPERTIES, *follows_table(ROWS, unless=is_no_news)),
)

completing_fails = machine.with_rows(
    row(State.COMPLETING, TaskFailed, State.FAILED, fail, when=is_news), name="turn-completing-fails"
).with_properties(accepts("a crash while COMPLETING is accepted", {State.COMPLETING: (TaskFailed,)}))
"""The profile in which a crash while COMPLETING fails the turn instead of leaving it where it is (E24)."""
