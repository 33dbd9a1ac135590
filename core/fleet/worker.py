"""A worker: one aggregate with an agent's session, its assignment, its mailbox, and what was asked of it.

The session's own table knows nothing of tasks. These rules connect the two: they write its prompts and open its next
round, and they tell the board what came of the work. BuildPrompt and RefreshWorktree are therefore served here, not by
an interpreter.
"""

from collections.abc import Iterator

from lifefold.core import session, task
from lifefold.core.fleet import assignment, intent, mailbox, seat
from lifefold.core.fleet.prompt import compose
from lifefold.core.kernel import Aggregate, AggregateType, Dispatch, Phase, Transition, rule
from lifefold.effects import Tell

KIND = "worker"

agent = session.machine.serving("BuildPrompt", "RefreshWorktree")
"""The session as a worker runs it."""


def _on_work(worker: Aggregate) -> Iterator[Dispatch]:
    """Do the next thing for a session that waits for its prompt: ask for work, or write the prompt for it."""
    work: assignment.Assignment = worker.record("assignment")
    if worker.record("session").state is not session.State.BUILDING_PROMPT:
        return
    if worker.record("intent").state is not intent.State.RUN:
        return
    if work.state is assignment.State.IDLE:
        yield Dispatch("assignment", assignment.Asked())
    elif work.state is assignment.State.WORKING:
        letters = worker.record("mailbox").letters
        yield Dispatch("session", session.PromptReady(compose(work.brief, letters, continued=work.sessions > 0)))
        yield Dispatch("assignment", assignment.Prompted())
        if letters:
            yield Dispatch("mailbox", mailbox.LettersTaken())


@rule(on=agent)
def prompt_session(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A session that comes to BuildingPrompt gets its prompt as soon as there is something to do."""
    if transition.entered is session.State.BUILDING_PROMPT:
        yield from _on_work(worker)


@rule(on=assignment.machine)
def prompt_assignment(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Work that can begin, or that is over, lets a waiting session go on."""
    if transition.entered in {assignment.State.WORKING, assignment.State.IDLE}:
        yield from _on_work(worker)


@rule(on=intent.machine)
def resume(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A worker that is told to go on goes on."""
    if transition.entered is intent.State.RUN:
        yield from _on_work(worker)


@rule(on=intent.machine)
def obey(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Hold interrupts what runs, which is no error; stop stops."""
    if transition.entered is intent.State.HOLD:
        yield from _interrupt(worker)
    elif transition.entered is intent.State.STOP:
        yield Dispatch("session", session.OperatorStop())


@rule(on=mailbox.machine)
def interrupt(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """An urgent letter interrupts; the next prompt has it."""
    if isinstance(transition.event, mailbox.LetterArrived) and transition.event.urgent:
        yield from _interrupt(worker)


def _interrupt(worker: Aggregate) -> Iterator[Dispatch]:
    """Interrupt a session that runs. One that is being spawned is interrupted as soon as it runs, and once (D14)."""
    agent_now = worker.entities["session"]
    spawning = agent_now.state is session.State.SPAWNING and not agent_now.postponed
    if spawning or agent_now.state is session.State.RUNNING:
        yield Dispatch("session", session.UrgentMessage())


@rule(on=agent)
def work_begins(worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """The board hears that the work has begun, once for each claim."""
    work: assignment.Assignment = worker.record("assignment")
    if transition.entered is session.State.RUNNING and work.sessions == 1:
        yield Tell("board", f"task:{work.brief.task}", task.Started(work.brief.epoch))


@rule(on=agent)
def work_ends(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """What a session's end means for the work: finished, failed, or given up with the agent."""
    exited = transition.event if isinstance(transition.event, session.SessionExited) else None
    working = worker.record("assignment").state is assignment.State.WORKING
    match transition.entered:
        case session.State.SESSION_COMPLETE if working:
            yield Dispatch("assignment", assignment.WorkFinished())
        case session.State.COOLING_DOWN | session.State.STOPPED if exited and working:
            yield Dispatch("assignment", assignment.WorkFailed(session.describe(exited.outcome)))
        case session.State.STOPPED if worker.record("assignment").state not in _KEPT:
            yield Dispatch("assignment", assignment.Dropped(f"stopped by {type(transition.event).__name__}"))
        case _:
            pass


_KEPT = frozenset({assignment.State.IDLE, assignment.State.MERGING})


@rule(on=assignment.machine)
def report(worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """The board hears what came of the work, under the epoch of its claim."""
    if transition.before is None:
        return
    before, brief = transition.before.state, transition.after.record.brief
    to = f"task:{brief.task}"
    match transition.event:
        case assignment.WorkFinished():
            yield Tell("board", to, task.Completed(brief.epoch))
        case assignment.Merged(commit=commit):
            yield Tell("board", to, task.Verified(brief.epoch, commit))
        case assignment.Rejected(reason=reason) | assignment.Conflicted(reason=reason):
            yield Tell("board", to, task.Rejected(brief.epoch, reason))
        case assignment.WorkFailed(reason=reason) | assignment.CheckoutFailed(reason=reason):
            yield Tell("board", to, task.Failed(brief.epoch, reason))
        case assignment.Dropped(reason=reason) if before is assignment.State.VERIFYING:
            yield Tell("board", to, task.Rejected(brief.epoch, reason))
        case assignment.Dropped(reason=reason) if before is not assignment.State.WANTING:
            yield Tell("board", to, task.Released(brief.epoch, reason))
        case assignment.Asked():
            yield Tell("board", f"seat:{worker.key}", seat.WorkWanted())
        case _:
            pass


@rule(on=assignment.machine)
def next_round(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A completed session's agent goes on when its work is home."""
    completed = worker.record("session").state is session.State.SESSION_COMPLETE
    if transition.entered is assignment.State.IDLE and completed:
        yield Dispatch("session", session.WorktreeReady())


@rule(on=agent)
def close_mailbox(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Nobody reads what is sent to a stopped agent: senders are told so (D14)."""
    del worker
    if transition.entered is session.State.STOPPED:
        yield Dispatch("mailbox", mailbox.MailboxClosed())


@rule(on=agent)
def leave_stopped(worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """The board hears that the worker is gone, if it stops with nothing in hand."""
    if transition.entered is session.State.STOPPED:
        yield from _leave(worker)


@rule(on=assignment.machine)
def leave_empty_handed(worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """The board hears that the worker is gone, when a stopped one has nothing in hand any more."""
    if transition.entered is assignment.State.IDLE and transition.before is not None:
        yield from _leave(worker)


def _leave(worker: Aggregate) -> Iterator[Tell]:
    stopped = worker.record("session").state is session.State.STOPPED
    if stopped and worker.record("assignment").state is assignment.State.IDLE:
        reason = worker.record("intent").reason or "its session has stopped"
        yield Tell("board", f"seat:{worker.key}", seat.WorkerGone(reason))


def settled(worker: Aggregate) -> bool:
    """The agent has stopped and nothing of it is left: no process, no merge."""
    at_rest = worker.record("session").state is session.State.STOPPED
    return at_rest and not any(entity.running for entity in worker.entities.values())


def quiet(worker: Aggregate) -> bool:
    """No process of the agent runs, and none will while it holds; no work is on its way home."""
    state = worker.record("session").state
    on_its_way = (
        state is session.State.SESSION_COMPLETE or worker.record("assignment").state is assignment.State.MERGING
    )
    return state not in session.SESSION_LIVES and not on_its_way and not _ending(worker)


def _ending(worker: Aggregate) -> bool:
    return any(part.phase is Phase.ENDING for entity in worker.entities.values() for part in entity.running)


aggregate = AggregateType(
    KIND,
    machines=(agent, assignment.machine, mailbox.machine, intent.machine),
    rules=(
        obey,
        interrupt,
        work_begins,
        work_ends,
        report,
        next_round,
        prompt_session,
        prompt_assignment,
        resume,
        close_mailbox,
        leave_stopped,
        leave_empty_handed,
    ),
)
