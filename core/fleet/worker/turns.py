"""Document 004's turn of a worker: the ten phases of each claim that the worker works at.

The table is the document's. The profile adds one row: after REAPED the next claim begins the following turn (E27). So a
worker has one entity for all of its claims. The rules below say how a fleet drives the table:

- A claim begins a turn (CLAIMING). A handover of done work, to be verified or merged, has no agent process and no turn.
- The first session of a claim makes it SPAWNING at its launch and RUNNING at its start. Further sessions of the same
  claim are a part of the run: the table has no way back from RUNNING.
- The output of the session decides between RUNNING, TOOL_USE and COMPACTING. The end of a session ends both.
- Finished work makes it VERIFYING, as does the work of a dead session that is to be verified. Verification, approval by
  parking, and the merge belong to it: the table has no failure in COMPLETING.
- Merged or parked work completes it. Whatever else ends the claim fails it, with the reasons of that end.
- It is reaped when no process of its session is left and nothing is at work in its worktree.

Every event of these rules is accepted: ``is_in_phase`` compares the turn with the claim in every state.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Final, Never, cast

from lifefold.core.fleet.worker import assignment, nothing_done, output, shutdown, stall_detector
from lifefold.core.kernel import (
    ActivityEnded,
    Aggregate,
    Dispatch,
    Machine,
    Phase,
    Property,
    PropertyKind,
    Row,
    Rule,
    Step,
    Transition,
    accepts,
    always,
    always_step,
    replace,
    row,
    rule,
)
from lifefold.core.lifecycles import session, task, turn
from lifefold.core.policy.ends import Diagnosis
from lifefold.core.policy.reasons import AbortReason, TransitionReason
from lifefold.effects import FollowOutput, RunSession

REF: Final = turn.machine.name

State = turn.State

RUNS: Final = frozenset({State.RUNNING, State.TOOL_USE, State.COMPACTING})
"""In these states a session works at the task, or will again."""

OVER: Final = frozenset({State.COMPLETING, State.FAILED})
"""In these states the claim is over, and what is left of it is cleaned up."""

NONE: Final = frozenset({State.IDLE, State.REAPED})
"""In these states there is no turn."""


class FleetTurn(turn.Turn, frozen=True):
    """A turn of a worker. What it says of a task and of a failure is for people."""

    identifiers: ClassVar[tuple[str, ...]] = (*turn.Turn.identifiers, "number")
    opaque: ClassVar[tuple[str, ...]] = ("task", "reason")

    def normal_form(self) -> "FleetTurn":
        """Return it without what only people read."""
        bare = replace(self, tool_calls=0, compactions=0, reason="", transition_reason=None, abort_reason=None)
        return replace(bare, task="") if self.state in NONE else bare


def is_following(t: turn.Turn, e: turn.TaskClaimed) -> bool:
    """The claim is of the turn after this one (E27)."""
    return e.turn == t.number + 1


def begin_following(t: turn.Turn, e: turn.TaskClaimed) -> Step[turn.Turn, Never]:
    """Begin the following turn with the task."""
    fresh = replace(t, number=e.turn, tool_calls=0, compactions=0, seen=())
    bare = replace(fresh, reason="", transition_reason=None, abort_reason=None)
    return turn.take_on(bare, e)


FOLLOWING: Final[Row[Any]] = row(State.REAPED, turn.TaskClaimed, State.CLAIMING, begin_following, when=is_following)


def _is_following(step: Transition) -> bool:
    return step.before is not None and step.before.state is State.REAPED and step.entered is State.CLAIMING


def _outside_of_turn_changes(properties: Iterable[Property[Any]]) -> Iterator[Property[Any]]:
    """Yield the document's properties; those of steps hold for all but the step from one turn to the next."""
    for each in properties:
        if each.property_kind is PropertyKind.ALWAYS_STEP:
            yield replace(each, holds=partial(_or_next_turn, each.holds))
        else:
            yield each


def _or_next_turn(holds: Any, step: Transition) -> bool:
    return _is_following(step) or bool(holds(step))


def next_turn_is_new(step: Transition) -> bool:
    """A reaped turn is left by the next claim only: the turn has the next number, its task, and nothing else."""
    if step.before is None or step.before.state is not State.REAPED:
        return True
    now: turn.Turn = step.after.record
    if step.entered is None:
        return True
    event = step.event
    if not isinstance(event, turn.TaskClaimed) or event.turn != step.before.record.number + 1:
        return False
    bare = (now.tool_calls, now.compactions, now.reason, now.transition_reason, now.abort_reason)
    return (now.number, now.task, *bare) == (event.turn, event.task, 0, 0, "", None, None)


in_fleet: Machine[Any] = Machine(
    "turn-in-fleet",
    FleetTurn(),
    about="turn, but the next claim of the worker begins the following turn",
    rows=(*turn.machine.rows, FOLLOWING),
    invariants=turn.machine.invariants,
    properties=(
        *_outside_of_turn_changes(turn.machine.properties),
        always_step("the following turn has nothing of the turn before", next_turn_is_new),
        accepts("a reaped turn can be followed", {State.REAPED: (turn.TaskClaimed,)}),
    ),
    rests=lambda t: t.state in NONE,
)
"""The profile of a worker's turn."""

machine = in_fleet.starting(FleetTurn(), REF)
"""The turn as a worker has it, under the document's name."""


# The rules


@rule(on=assignment.machine, event=assignment.Assigned, beside=REF)
def begin_turn(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Begin the turn of a claim that is to be worked at."""
    assigned = cast("assignment.Assigned", transition.event)
    if assigned.brief.stage is task.Stage.WORK:
        t: turn.Turn = worker.record(REF)
        number = t.number + 1 if t.state is State.REAPED else t.number
        yield Dispatch(REF, turn.TaskClaimed(number, task=assigned.brief.task))


def launch_turn(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Report the launch of the claim's first session."""
    if _is_in(worker, State.CLAIMING):
        yield Dispatch(REF, turn.AgentSpawned(_number(worker)))


def run_turn(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Report that the claim's first session runs."""
    if _is_in(worker, State.SPAWNING):
        yield Dispatch(REF, turn.AgentSpawned(_number(worker)))


@rule(on=output.machine, beside=REF)
def follow_work(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Bring a running turn into the phase that the output tells.

    A tool that began and ended between two looks is a phase of its own, so that it is seen.
    """
    if not _is_in(worker, *RUNS):
        return
    number, there = _number(worker), worker.record(REF).state
    wanted = worker.record(output.REF).phase
    seen = transition.event
    passed = isinstance(seen, output.WorkSeen) and seen.tools > 0
    if there is not wanted and there is not State.RUNNING:
        yield Dispatch(REF, _end_of(there, number))
    if there is not wanted and wanted is not State.RUNNING:
        yield Dispatch(REF, _begin_of(wanted, number))
    elif there is wanted is State.RUNNING and passed:
        yield Dispatch(REF, turn.ToolStarted(number))
        yield Dispatch(REF, turn.ToolCompleted(number))


def _begin_of(phase: State, number: int) -> turn.ToolStarted | turn.CompactNeeded:
    return turn.ToolStarted(number) if phase is State.TOOL_USE else turn.CompactNeeded(number)


def _end_of(phase: State, number: int) -> turn.ToolCompleted | turn.VerifyRequested:
    return turn.ToolCompleted(number) if phase is State.TOOL_USE else turn.VerifyRequested(number)


@rule(on=assignment.machine, leaves=assignment.State.WORKING, enters=assignment.ON_ITS_WAY, beside=REF)
def verify_turn(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Report that the work of the claim is to be verified."""
    if _is_in(worker, State.RUNNING):
        yield Dispatch(REF, turn.VerifyRequested(_number(worker)))


@rule(on=assignment.machine, enters=assignment.State.IDLE, beside=REF)
def end_turn(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Complete or fail the turn with its claim."""
    if worker.record(REF).state in NONE | OVER:
        return
    if isinstance(transition.event, assignment.Merged | assignment.Parked):
        yield Dispatch(REF, turn.TaskCompleted(_number(worker)))
    else:
        yield Dispatch(REF, failure(transition, _number(worker)))


def failure(transition: Transition, number: int) -> turn.TaskFailed:
    """Return the failure of a turn whose claim has ended so, with the reasons in the words of document 004."""
    event, was = transition.event, transition.was
    match event:
        case (
            assignment.WorkFailed(reason=reason, diagnosis=found)
            | assignment.SessionDied(reason=reason, diagnosis=found)
        ):
            return _failed(number, reason, found)
        case assignment.Recalled(reason=reason, abort_reason=by):
            siblings = by is AbortReason.SIBLING_ABORTED
            why = TransitionReason.SIBLING_ABORTED if siblings else TransitionReason.ABORTED
            return turn.TaskFailed(number, reason=reason, transition_reason=why, abort_reason=by)
        case assignment.Dropped(reason=reason):
            return turn.TaskFailed(number, reason=reason, transition_reason=TransitionReason.ABORTED)
        case assignment.Inspected(hidden=hidden, said=said):
            reason = was.death if was.is_orphan else nothing_done.reason_of(hidden, said)
            return _failed(number, reason, was.diagnosis)
        case _:
            return _failed(number, getattr(event, "reason", ""), was.diagnosis)


def _failed(number: int, reason: str, found: Diagnosis | None) -> turn.TaskFailed:
    if found is None:
        return turn.TaskFailed(number, reason=reason, transition_reason=TransitionReason.RETRY)
    return turn.TaskFailed(
        number, reason=reason, transition_reason=found.transition_reason, abort_reason=found.abort_reason
    )


def reap_turn(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Reap a turn that is over when nothing of it is left."""
    if _is_in(worker, *OVER) and not is_left(worker):
        yield Dispatch(REF, turn.AgentReaped(_number(worker)))


def reap_after_end(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Reap a turn whose last activity has ended."""
    yield from reap_turn(worker, transition)


def is_left(worker: Aggregate) -> bool:
    """Tell whether a process of the session is left, or an activity goes on or is still being ended."""
    lives = worker.record("session").state in session.SESSION_LIVES
    return lives or worker.record(output.REF).state is output.State.FOLLOWED or shutdown.is_ending(worker)


def _is_in(worker: Aggregate, *states: State) -> bool:
    return worker.record(REF).state in states


def _number(worker: Aggregate) -> int:
    number: int = worker.record(REF).number
    return number


def of_sessions(agent: Machine[Any]) -> tuple[Rule, ...]:
    """Return the rules that sessions of this lifecycle drive a turn by, and those by which a turn is reaped."""
    return (
        rule(on=agent, enters=session.State.SPAWNING, beside=REF)(launch_turn),
        rule(on=agent, enters=session.State.RUNNING, beside=REF)(run_turn),
        rule(on=agent, enters=session.State.RUNNING, beside=output.REF)(output.keep_following),
        rule(on=agent, leaves=session.State.RUNNING, beside=output.REF)(output.stop_following),
        rule(on=agent, leaves=session.SESSION_LIVES, beside=REF)(reap_turn),
        *(
            rule(on=each, event=ActivityEnded, beside=REF)(reap_after_end)
            for each in (agent, assignment.machine, stall_detector.machine, output.machine)
        ),
        rule(on=machine, enters=OVER)(reap_turn),
    )


OF_CLAIMS: Final = (follow_work, begin_turn, verify_turn, end_turn)
"""The rules that claims and outputs drive a turn by."""


# Properties


def is_in_phase(worker: Aggregate) -> bool:
    """The turn is in the phase that the claim says; a refused event of a rule would leave it behind."""
    return REF not in worker.entities or worker.record(REF).state in _phases(worker)


def _phases(worker: Aggregate) -> frozenset[State]:
    """Return the states that a turn may have, by the claim, the session and the output."""
    work: assignment.Assignment = worker.record("assignment")
    if work.state in {assignment.State.IDLE, assignment.State.WANTING}:
        return OVER if is_left(worker) and worker.record(REF).state in OVER else NONE
    if work.brief.stage is not task.Stage.WORK:
        return NONE
    if work.state in assignment.ON_ITS_WAY:
        return frozenset({State.VERIFYING})
    if work.state is assignment.State.PREPARING or not work.sessions:
        return frozenset({State.CLAIMING})
    if work.sessions == 1 and worker.record("session").state is session.State.SPAWNING:
        return frozenset({State.SPAWNING})
    seen = worker.entities.get(output.REF)
    return frozenset({State.RUNNING if seen is None else seen.record.phase})


def has_no_process(worker: Aggregate) -> bool:
    """Without a turn no session lives or is being ended, and nothing reads its output."""
    if REF not in worker.entities or worker.record(REF).state not in NONE:
        return True
    return not any(worker.entities[ref].find(slot, phase) for ref, slot in _OF_SESSIONS for phase in _BEGUN)


_OF_SESSIONS: Final = (("session", RunSession.__name__), (output.REF, FollowOutput.__name__))
_BEGUN: Final = (Phase.LIVE, Phase.ENDING)


PROPERTIES: Final[tuple[Property[Aggregate], ...]] = (
    always("the turn is in the phase of its claim", is_in_phase),
    always("a reaped turn has no process", has_no_process),
)
