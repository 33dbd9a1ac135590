"""A worker: one aggregate with an agent's session, its assignment, its mailbox, and what was asked of it.

The session's own table knows nothing of tasks. These rules connect the two: they write its prompts and open its next
round, and they tell the board what came of the work. BuildPrompt and RefreshWorktree are therefore served here, not by
an interpreter. A task whose place cannot be made has no prompt: the session is told so (``PromptFailed``, D6), and
backs off and gives up as after any other error of its own.
"""

from collections.abc import Iterator

from lifefold.core import session, session_profiles, task
from lifefold.core.fleet import assignment, intent, mailbox, seat
from lifefold.core.fleet.prompt import compose
from lifefold.core.kernel import Aggregate, AggregateType, Dispatch, Phase, Transition, rule
from lifefold.effects import Tell

KIND = "worker"

agent = session_profiles.prompt_failures.starting(session.Session(), session.machine.name).serving(
    "BuildPrompt", "RefreshWorktree"
)
"""The session as a worker runs it: its prompts can fail (D6)."""


def go_on(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Do the next thing for a session that waits for its prompt: ask for work, write the prompt, or say it failed."""
    work: assignment.Assignment = worker.record("assignment")
    if isinstance(transition.event, assignment.CheckoutFailed):
        yield Dispatch(
            "session", session_profiles.PromptFailed(f"no place for {work.brief.task}: {transition.event.reason}")
        )
        return
    waits = worker.record("session").state is session.State.BUILDING_PROMPT
    if not waits or worker.record("intent").state is not intent.State.RUN:
        return
    if work.state is assignment.State.IDLE and not _ending(worker):
        yield Dispatch("assignment", assignment.Asked())
    elif work.state is assignment.State.WORKING:
        box: mailbox.Mailbox = worker.record("mailbox")
        prompt = compose(work.brief, box.letters, continued=work.sessions > 0, repeated=box.taken)
        yield Dispatch("session", session.PromptReady(prompt))
        yield Dispatch("assignment", assignment.Prompted())
        if box.letters:
            yield Dispatch("mailbox", mailbox.LettersTaken())


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


@rule(on=assignment.machine)
def abandon(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """A session whose task was recalled is interrupted, which is no error (E20)."""
    if isinstance(transition.event, assignment.Recalled):
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
    working = work.state is assignment.State.WORKING
    if transition.entered is session.State.RUNNING and working and work.sessions == 1:
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
        case session.State.STOPPED if worker.record("assignment").state in _GIVEN_UP:
            yield Dispatch("assignment", assignment.Dropped(f"stopped by {type(transition.event).__name__}"))
        case _:
            pass


_GIVEN_UP = frozenset({assignment.State.WANTING, assignment.State.PREPARING, assignment.State.WORKING})
"""What an agent that stops does not go on with."""


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
        case assignment.WorkFailed(reason=reason):
            yield Tell("board", to, task.Failed(brief.epoch, reason))
        case assignment.CheckoutFailed(reason=reason):
            yield Tell("board", to, task.Released(brief.epoch, f"{worker.key} could not make its place: {reason}"))
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
def deliver(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Letters are done with when a session that had them completes, and not before (D14)."""
    if transition.entered is session.State.SESSION_COMPLETE and worker.record("mailbox").taken:
        yield Dispatch("mailbox", mailbox.LettersDelivered())


@rule(on=agent)
def close_mailbox(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Nobody reads what is sent to a stopped agent: senders are told so (D14)."""
    del worker
    if transition.entered is session.State.STOPPED:
        yield Dispatch("mailbox", mailbox.MailboxClosed())


def leave(worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """The board hears that the worker is gone, as soon as it has stopped and has nothing in hand any more."""
    stopped = worker.record("session").state is session.State.STOPPED
    idle = worker.record("assignment").state is assignment.State.IDLE
    if stopped and idle and transition.entered in {session.State.STOPPED, assignment.State.IDLE}:
        reason = worker.record("intent").reason or "its session has stopped"
        yield Tell("board", f"seat:{worker.key}", seat.WorkerGone(reason))


def settled(worker: Aggregate) -> bool:
    """The agent has stopped and nothing of it is left: no process, no verification, no merge."""
    at_rest = worker.record("session").state is session.State.STOPPED
    return at_rest and not any(entity.running for entity in worker.entities.values())


def quiet(worker: Aggregate) -> bool:
    """No process of the agent runs, and none will while it holds; no work is on its way home."""
    at_work = worker.record("session").state in {*session.SESSION_LIVES, session.State.SESSION_COMPLETE}
    on_its_way = worker.record("assignment").state in {assignment.State.VERIFYING, assignment.State.MERGING}
    return not at_work and not on_its_way and not _ending(worker)


def _ending(worker: Aggregate) -> bool:
    return any(part.phase is Phase.ENDING for entity in worker.entities.values() for part in entity.running)


aggregate = AggregateType(
    KIND,
    machines=(agent, assignment.machine, mailbox.machine, intent.machine),
    rules=(
        obey,
        interrupt,
        abandon,
        work_begins,
        deliver,
        work_ends,
        report,
        next_round,
        *(rule(on=each)(go_on) for each in (agent, assignment.machine, intent.machine)),
        close_mailbox,
        *(rule(on=each)(leave) for each in (agent, assignment.machine)),
    ),
)
