"""A worker: one aggregate with an agent's session, its assignment, its mailbox, and its desired state.

The session's table knows nothing of tasks. These rules connect the session with the assignment. They write its prompts,
start its next round, and report the outcome of its work to the board. So rules serve BuildPrompt and RefreshWorktree,
not an interpreter. If the worktree of a task cannot be made, there is no prompt. The session is told so
(``PromptFailed``, D6), and backs off and gives up as after any other error.
"""

from collections.abc import Iterator
from typing import Final, cast

from lifefold.core.fleet.board import adaptive_timeout, fleet_task, worker_slot
from lifefold.core.fleet.system.worker_properties import PROPERTIES
from lifefold.core.fleet.worker import (
    announcer,
    assignment,
    conversation,
    conversations,
    desired_state,
    mailbox,
    nothing_done,
    orphans,
    output,
    output_receivers,
    question,
    quota,
    restarts,
    shutdown,
    stall_detector,
    steering,
    supervisor,
    turns,
    usage,
    usage_meter,
)
from lifefold.core.fleet.worker.prompt import compose
from lifefold.core.kernel import ActivityEnded, Aggregate, AggregateType, Dispatch, Transition, rule
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.lifecycles.session_yielding import YieldWanted
from lifefold.effects import Tell

KIND = "worker"

agent = session_profiles.supervised.starting(session_profiles.SupervisedSession(), session.machine.name).serving(
    "BuildPrompt", "RefreshWorktree"
)
"""The session as a worker runs it: its prompts can fail (D6), it may suspend itself (D28), stall, and be restarted."""


_URGENT: Final = session.UrgentMessage()


def go_on(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Serve a session that waits for its prompt: ask for work, write the prompt, or report that it failed."""
    if isinstance(transition.event, assignment.CheckoutFailed):
        place = worker.record("assignment").brief.task
        yield Dispatch("session", session_profiles.PromptFailed(f"no place for {place}: {transition.event.reason}"))
        return
    if worker.record("session").state is not session.State.BUILDING_PROMPT:
        return
    wanted = worker.record("desired_state").state
    waits = usage.is_counting(worker) or quota.is_given_back(worker, transition)
    if wanted not in desired_state.WORKS or waits:
        return
    work: assignment.Assignment = worker.record("assignment")
    if work.state is assignment.State.IDLE and wanted is desired_state.State.RUN and not _is_ending(worker):
        yield Dispatch("assignment", assignment.WorkRequested())
    elif work.state is assignment.State.WORKING and quota.rests(worker):
        yield Dispatch("assignment", assignment.Dropped(quota.reason_of(worker)))
    elif work.state is assignment.State.WORKING and work.sessions and usage.is_used_up(worker):
        yield Dispatch("assignment", assignment.Dropped("its share of the budget is used up"))
    elif work.state is assignment.State.WORKING and adaptive_timeout.differs(worker):
        yield Dispatch("session", session_profiles.TimeLimited(work.brief.timeout_ms))
    elif work.state is assignment.State.WORKING:
        box: mailbox.Mailbox = worker.record("mailbox")
        prompt = compose(
            work.brief,
            box.messages,
            continued=work.sessions > 0,
            repeated=steering.taken_by(worker, transition),
            anew=conversations.is_to_begin_anew(worker, transition),
        )
        yield Dispatch("session", session.PromptReady(prompt))
        yield Dispatch("assignment", assignment.Prompted())
        if box.messages:
            yield Dispatch("mailbox", mailbox.MessagesTaken())


@rule(on=assignment.machine, event=ActivityEnded)
def go_on_alone(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Go on when nothing is left of the last step of the assignment."""
    yield from go_on(worker, transition)


def _is_ending(worker: Aggregate) -> bool:
    """Tell whether something of the last session is being ended, or is about to be.

    Its output may still be watched and read. Other rules answer the end of the session before those that end that: a
    closed question leads here, for example.
    """
    watch, followed = worker.entities.get(stall_detector.REF), worker.entities.get(output.REF)
    is_watched = watch is not None and watch.state in stall_detector.WATCHED
    is_followed = followed is not None and followed.state is output.State.FOLLOWED
    return is_watched or is_followed or shutdown.is_ending(worker)


@rule(on=desired_state.machine, enters=(*desired_state.RESTS, desired_state.State.STOP))
def obey(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Interrupt a running session on pause and hold, which is no error; stop it on stop."""
    event = transition.event
    if transition.entered is desired_state.State.STOP:
        yield Dispatch("session", session.OperatorStop(getattr(event, "abort_reason", None)))
    else:
        wanted = cast("desired_state.PauseWanted | desired_state.HoldWanted", event)
        yield from _interrupt(worker, session.UrgentMessage(wanted.abort_reason))
        yield from decline(worker)


@rule(on=assignment.machine, enters=assignment.State.PREPARING)
def leave_to_others(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Give a task back that arrives while the agent is paused."""
    yield from decline(worker)


def decline(worker: Aggregate) -> Iterator[Dispatch]:
    """Give a task back that has not begun, if the agent is paused: another worker may be free."""
    paused = worker.record("desired_state").state is desired_state.State.PAUSE
    if paused and worker.record("assignment").state is assignment.State.PREPARING:
        yield Dispatch("assignment", assignment.Dropped(f"{worker.key} is paused"))


@rule(on=mailbox.machine, event=mailbox.OperatorMessageArrived)
def interrupt(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Interrupt the session for an urgent message, unless it reaches the session; the next prompt has it."""
    arrived = cast("mailbox.OperatorMessageArrived", transition.event)
    if arrived.urgent and not steering.reaches(worker, urgent=True):
        yield from _interrupt(worker)


@rule(on=assignment.machine, event=assignment.Recalled)
def abandon(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Interrupt a session whose task was recalled, which is no error (E20), within the given time."""
    recalled = cast("assignment.Recalled", transition.event)
    urgent = session.UrgentMessage(recalled.abort_reason)
    yield from _interrupt(worker, YieldWanted(recalled.within_ms) if recalled.within_ms else urgent)


def _interrupt(worker: Aggregate, by: session.UrgentMessage | YieldWanted = _URGENT) -> Iterator[Dispatch]:
    """Interrupt a running session. A session that is being spawned is interrupted once it runs (D14)."""
    agent_now = worker.entities["session"]
    spawning = agent_now.state is session.State.SPAWNING and not agent_now.postponed
    if spawning or agent_now.state is session.State.RUNNING:
        yield Dispatch("session", by)


@rule(on=agent, enters=session.State.RUNNING)
def work_begins(worker: Aggregate, _transition: Transition) -> Iterator[Tell]:
    """Report to the board that work has begun, once for each claim."""
    work: assignment.Assignment = worker.record("assignment")
    if work.state is assignment.State.WORKING and work.sessions == 1:
        yield Tell("board", f"task:{work.brief.task}", task.Started(work.brief.epoch))


@rule(on=agent, enters=(session.State.SESSION_COMPLETE, session.State.COOLING_DOWN, session.State.STOPPED))
def work_ends(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Report the end of a session to the assignment: finished, failed, orphaned, or given back with the agent.

    A suspended session keeps its work, under the same claim and in the same worktree (D28). So does a session that has
    lost its conversation, once, and one that has not taken an urgent message. Its work is finished if the budget or the
    account allows no other session: a task that is given back is restarted, and the next prompt has the message.
    """
    exited = transition.event if isinstance(transition.event, session.SessionExited) else None
    if exited and (
        session_profiles.may_go_on(transition.was, exited)
        or conversations.replaces_lost_conversation(worker, transition)
    ):
        return
    working = worker.record("assignment").state is assignment.State.WORKING
    match transition.entered:
        case session.State.SESSION_COMPLETE if (
            working and steering.leaves_urgent(worker, transition) and _may_begin_another(worker, transition)
        ):
            yield Dispatch("assignment", assignment.WorkContinued())
            yield Dispatch("session", session.WorktreeReady())
        case session.State.SESSION_COMPLETE if working:
            brief: task.Brief = worker.record("assignment").brief
            yield Dispatch("assignment", assignment.WorkFinished(adaptive_timeout.took_ms(brief, transition)))
        case session.State.COOLING_DOWN | session.State.STOPPED if working and (failed := _failure(worker, transition)):
            yield Dispatch("assignment", orphans.ending(worker, transition, failed))
        case session.State.STOPPED if worker.record("assignment").state in _GIVEN_UP:
            yield Dispatch("assignment", assignment.Dropped(_stopped_by(worker, transition)))
        case _:
            pass


def _may_begin_another(worker: Aggregate, transition: Transition) -> bool:
    """Tell whether budget and account allow another session of the claim after the one that ends here."""
    return not quota.rests(worker) and not usage.is_used_up_by(worker, transition)


def _failure(worker: Aggregate, transition: Transition) -> str:
    """Return the reason why a session has failed; empty if it has not."""
    return stall_detector.nudged_reason(worker, transition.event, session_profiles.failure_reason(transition.event))


def _stopped_by(worker: Aggregate, transition: Transition) -> str:
    """Return the reason why a stopped agent gives its task back."""
    event = transition.event
    why: str = event.msg if isinstance(event, session.FatalError) else worker.record("desired_state").reason
    return f"its agent has stopped{f': {why}' if why else ''}"


_GIVEN_UP = frozenset({assignment.State.WANTING, assignment.State.PREPARING, assignment.State.WORKING})
"""In these states of its assignment an agent that stops gives its task back."""


@rule(
    on=assignment.machine,
    event=(
        assignment.WorkFinished,
        assignment.Parked,
        assignment.Merged,
        assignment.Rejected,
        assignment.ParkingFailed,
        assignment.Conflicted,
        assignment.WorkFailed,
        assignment.CheckoutFailed,
        assignment.Dropped,
        assignment.WorkRequested,
    ),
)
def report(worker: Aggregate, transition: Transition) -> Iterator[Tell]:
    """Report the outcome of the work to the board, under the epoch of its claim."""
    before, brief = transition.was, transition.after.record.brief
    to = f"task:{brief.task}"
    match transition.event:
        case assignment.WorkFinished(took_ms=took_ms):
            yield Tell("board", to, task.Completed(brief.epoch, took_ms))
        case assignment.Parked(commit=commit):
            yield Tell("board", to, fleet_task.Parked(brief.epoch, commit))
        case assignment.Merged(commit=commit, branch=branch):
            yield Tell("board", to, task.Verified(brief.epoch, commit, branch))
        case (
            assignment.Rejected(reason=reason)
            | assignment.ParkingFailed(reason=reason)
            | assignment.Conflicted(reason=reason)
        ) if not before.is_orphan:
            yield Tell("board", to, task.Rejected(brief.epoch, reason))
        case assignment.WorkFailed(reason=reason, diagnosis=diagnosis):
            yield Tell("board", to, task.Failed(brief.epoch, reason, diagnosis))
        case assignment.CheckoutFailed(reason=reason):
            yield Tell("board", to, _given_back(brief, f"{worker.key} could not make its place: {reason}"))
        case assignment.Dropped(reason=reason) if before.state is not assignment.State.WANTING:
            yield Tell("board", to, _given_back(brief, reason))
        case assignment.WorkRequested():
            yield Tell("board", f"worker_slot:{worker.key}", worker_slot.WorkWanted(*usage.spent(worker)))
        case _:
            pass


def _given_back(brief: task.Brief, reason: str) -> task.Released | fleet_task.Returned:
    """Return the event that gives a task back: released to be worked at, or returned with its finished work."""
    is_work = brief.stage is task.Stage.WORK
    return task.Released(brief.epoch, reason) if is_work else fleet_task.Returned(brief.epoch, reason)


@rule(on=assignment.machine, enters=assignment.State.IDLE)
def next_round(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """Start the next round of an agent whose session has completed, when its work is merged."""
    if worker.record("session").state is session.State.SESSION_COMPLETE:
        yield Dispatch("session", session.WorktreeReady())


@rule(on=agent, enters=session.State.SESSION_COMPLETE)
def deliver(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Mark messages as delivered when a session with them completes, and not before (D14)."""
    if steering.taken_by(worker, transition):
        yield Dispatch("mailbox", mailbox.MessagesDelivered())


aggregate = AggregateType(
    KIND,
    machines=(
        agent,
        assignment.machine,
        mailbox.machine,
        desired_state.machine,
        usage_meter.machine,
        stall_detector.machine,
        supervisor.machine,
        conversation.machine,
        quota.machine,
        output.machine,
        turns.machine,
        question.machine,
        announcer.machine,
        steering.machine,
    ),
    rules=(
        # Before `deliver`: a session that ends tells which messages it has taken.
        *steering.of_sessions(agent),
        # Before `measuring`: the next session, which `go_on` begins at once, gets the conversation as it is now.
        rule(on=agent, event=session.SessionExited, beside=conversation.REF)(conversations.listen),
        conversations.keep,
        conversations.take_up,
        conversations.choose,
        # Before `measuring`: the next session may begin as soon as the last one is counted.
        quota.counting(agent),
        quota.reporting(agent),
        usage.measuring(agent),
        # Before `keep_watch`, which asks whether a question waits.
        *(rule(on=each, beside=question.REF)(question.keep_open) for each in (agent, assignment.machine)),
        rule(on=steering.machine, event=(steering.MessagePosted, steering.UrgentTaken), beside=question.REF)(
            question.keep_open
        ),
        # Not when a silence after the nudge ends the session: what is given up asks nothing.
        rule(on=stall_detector.machine, enters=stall_detector.AFTER_NUDGE, beside=question.REF)(question.keep_open),
        *(rule(on=each, beside=stall_detector.REF)(stall_detector.keep_watch) for each in (agent, question.machine)),
        # Before `work_ends`: the end of a session ends its tool, and the turn can then be verified.
        *turns.of_sessions(agent),
        *turns.OF_CLAIMS,
        *output_receivers.RULES,
        stall_detector.give_up,
        obey,
        interrupt,
        abandon,
        leave_to_others,
        work_begins,
        deliver,
        work_ends,
        rule(on=agent)(orphans.begin_inspection),
        rule(on=assignment.machine, enters=assignment.State.ORPHANED)(orphans.begin_inspection),
        # Before `next_round` and `go_on`: the board gets the outcome of a claim before the worker's next request. No
        # other order of these rules is known to matter.
        orphans.report_death,
        orphans.report_rescue,
        orphans.report_loss,
        nothing_done.report_nothing_done,
        report,
        usage.clear_meter,
        next_round,
        rule(on=assignment.machine, enters=(assignment.State.IDLE, assignment.State.WORKING))(go_on),
        go_on_alone,
        *(
            rule(on=each)(go_on)
            for each in (
                agent,
                desired_state.machine,
                usage_meter.machine,
                stall_detector.machine,
                output.machine,
            )
        ),
        rule(on=assignment.machine, enters=shutdown.NOT_BEGUN)(shutdown.drained),
        rule(on=desired_state.machine, enters=desired_state.State.DRAIN)(shutdown.drained),
        rule(on=agent, enters=session.State.STOPPED)(restarts.on_agent_stopped),
        restarts.dismiss,
        rule(on=supervisor.machine, enters=supervisor.State.ASKING)(restarts.ask),
        rule(on=assignment.machine, enters=assignment.State.IDLE)(restarts.ask),
        restarts.restart_agent,
        rule(on=agent, enters=session.State.STOPPED)(shutdown.close_mailbox),
        rule(on=supervisor.machine, enters=supervisor.OVER)(shutdown.close_mailbox),
        rule(on=assignment.machine, enters=assignment.State.IDLE)(shutdown.step_back),
        rule(on=desired_state.machine, enters=desired_state.RESTS)(shutdown.step_back),
        rule(on=usage_meter.machine, event=usage_meter.SessionEnded)(shutdown.step_back),
        rule(on=agent, enters=session.State.STOPPED)(shutdown.leave),
        rule(on=assignment.machine, enters=assignment.State.IDLE)(shutdown.leave),
        rule(on=supervisor.machine, enters=supervisor.OVER)(shutdown.leave),
        announcer.note_question,
        announcer.note_silence,
        announcer.pass_on,
    ),
    commands={
        agent.name: (),
        "assignment": (assignment.BranchAccepted,),
        "mailbox": (mailbox.OperatorMessageArrived,),
        usage_meter.machine.name: (),
        supervisor.REF: (),
        conversation.REF: (),
        desired_state.machine.name: desired_state.COMMANDS,
        stall_detector.machine.name: (),
        quota.REF: (),
        output.REF: (),
        turns.REF: (),
        question.REF: (question.QuestionAsked, question.QuestionAnswered),
        announcer.REF: (),
        steering.REF: (),
    },
    properties=PROPERTIES,
)
