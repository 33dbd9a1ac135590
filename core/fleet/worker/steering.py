"""Steering: operator messages that reach the running session of an agent, whose conversation goes on.

Some agent programs take another prompt while their session runs (``AgentPlan.steers``). Only their workers have this
entity. An operator message is *posted* to the session with the number that is its place in the mailbox, from 1. The
session takes the messages in this order: an urgent one ends its turn, any other waits for the end of the turn. The
session then says which message it has *taken*, and the mailbox counts it as if the prompt had had it.

| the session | an urgent message | any other message |
|---|---|---|
| runs | is posted, and ends the turn of the agent | is posted, and is taken after the turn |
| runs, and a question of it waits | interrupts the session, which drops the question | is posted |
| is being started | interrupts the session once it runs | is posted when the session runs |
| runs, and ends without the message | begins another session of the claim, if it may | waits for the next prompt |
| is not there, or is ending | waits for the next prompt | waits for the next prompt |

*An urgent message belongs to the present work.* A session that completes without it has not finished its work: another
session of the claim goes on, unless the budget or the account allows none. *No message is lost.* A posted message stays
in the mailbox until a session that has taken it completes (D14). So a message that its session did not take is in the
next prompt. *No message is taken twice by a session.* The number identifies the message, so the session passes over a
repeated one. The last word about a session is its end, which repeats the number of the last taken message.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Never, cast

from lifefold.core.fleet.worker import assignment, mailbox, output, question_model, quota, usage
from lifefold.core.kernel import (
    STAY,
    Aggregate,
    Dispatch,
    Event,
    Machine,
    Property,
    Record,
    Rule,
    Step,
    SystemState,
    Transition,
    accepts,
    always,
    always_step,
    anywhere,
    projected,
    replace,
    row,
    rule,
    sometimes,
)
from lifefold.core.kernel import State as AnyLifecycleState
from lifefold.core.lifecycles import session, task
from lifefold.core.lifecycles.property_forms import leads_where
from lifefold.effects import SteerSession

REF: Final = "steering"


class State(AnyLifecycleState):
    """The two states: a session takes messages, or none does."""

    CLOSED = "Closed"
    OPEN = "Open"


class SteeringOpened(Event, frozen=True):
    """A session runs; its prompt has the first ``prompted`` messages of the mailbox."""

    prompted: int = 0

    @classmethod
    def examples(cls) -> tuple["SteeringOpened", ...]:
        """Return a prompt without messages, and one with a message."""
        return cls(), cls(1)


class MessagePosted(Event, frozen=True):
    """The message ``number`` of the mailbox is for the running session."""

    opaque: ClassVar[tuple[str, ...]] = ("text",)

    number: int = 1
    text: str = "look"
    urgent: bool = False

    @classmethod
    def examples_for(cls, record: Any) -> tuple["MessagePosted", ...]:
        """Return the next message, an urgent one, one that is posted already, and one that comes too early."""
        place = record.posted
        return cls(place + 1), cls(place + 1, urgent=True), cls(place), cls(place + 2)


class UrgentTaken(Event, frozen=True):
    """The session has taken all urgent messages that it was given."""


class SteeringClosed(Event, frozen=True):
    """The session no longer runs, or is being interrupted."""


class Steering(Record, frozen=True):
    """The messages of the running session, or of the last one: it was given the first ``posted`` of the mailbox.

    ``urgent`` is the number of the last urgent one that it was given while it ran; 0 if it has taken all of them.
    """

    state: State = State.CLOSED
    posted: int = 0
    urgent: int = 0


def is_next(s: Steering, e: MessagePosted) -> bool:
    """The message comes after the last posted one."""
    return e.number == s.posted + 1


def begin(s: Steering, e: SteeringOpened) -> Step[Steering, Never]:
    """Begin after the messages of the prompt."""
    return Step(replace(s, posted=e.prompted, urgent=0))


def post(s: Steering, e: MessagePosted) -> Step[Steering, SteerSession]:
    """Give the session the message."""
    urgent = e.number if e.urgent else s.urgent
    return Step(replace(s, posted=e.number, urgent=urgent), (SteerSession(e.number, e.text, e.urgent),))


def settle(s: Steering, _e: UrgentTaken) -> Step[Steering, Never]:
    """Forget the urgent messages."""
    return Step(replace(s, urgent=0))


def remembers_urgent_messages(step: Transition) -> bool:
    """The last urgent message of a session is known until it is taken, or until another session begins."""
    was: Steering = step.was
    now: Steering = step.after.record
    match step.event:
        case MessagePosted(number=number, urgent=True):
            return now.urgent == number
        case SteeringOpened() | UrgentTaken():
            return now.urgent == 0
        case _:
            return now.urgent == was.urgent


def posts_each_message_once(step: Transition) -> bool:
    """A session is given each message once, in the order of the mailbox, and none while it does not run."""
    was: Steering = step.was
    now: Steering = step.after.record
    given = [each for each in step.effects if isinstance(each, SteerSession)]
    if not isinstance(step.event, MessagePosted):
        return not given and now.posted == getattr(step.event, "prompted", was.posted)
    event = step.event
    expected = SteerSession(was.posted + 1, event.text, event.urgent)
    return was.state is State.OPEN and given == [expected] and now.posted == expected.number == event.number


PROPERTIES: Final[tuple[Property[Any], ...]] = (
    always_step("a session is given each message once, in order", posts_each_message_once, on=Event),
    always_step("an urgent message is known until it is taken", remembers_urgent_messages, on=Event),
    leads_where("steering is opened and closed", {SteeringOpened: (State.OPEN,), SteeringClosed: (State.CLOSED,)}),
    accepts("a session can begin and end", {State.CLOSED: (SteeringOpened,), State.OPEN: (SteeringClosed,)}),
)

machine: Machine[Any] = Machine(
    REF,
    Steering(),
    about="operator messages that reach the running session of an agent, in the order of its mailbox",
    rows=(
        row(State.CLOSED, SteeringOpened, State.OPEN, begin),
        row(State.OPEN, MessagePosted, STAY, post, when=is_next),
        row(State.OPEN, UrgentTaken, STAY, settle),
        row(State.OPEN, SteeringClosed, State.CLOSED),
    ),
    properties=PROPERTIES,
    rests=anywhere,
)


# The rules


def open_steering(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """A session that runs is given the messages that its prompt did not have, unless an interruption waited for it."""
    if worker.record("session").state is not session.State.RUNNING:
        return
    box: mailbox.Mailbox = worker.record("mailbox")
    yield Dispatch(REF, SteeringOpened(box.taken))
    for number, text in enumerate(box.messages[box.taken :], box.taken + 1):
        yield Dispatch(REF, MessagePosted(number, text))


def close_steering(worker: Aggregate, _transition: Transition) -> Iterator[Dispatch]:
    """A session that no longer runs is given no message."""
    if worker.record(REF).state is State.OPEN:
        yield Dispatch(REF, SteeringClosed())


@rule(on=mailbox.machine, event=mailbox.OperatorMessageArrived, beside=REF)
def post_message(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Give a running session the message that has arrived."""
    arrived = cast("mailbox.OperatorMessageArrived", transition.event)
    if reaches(worker, urgent=arrived.urgent):
        place = len(worker.record("mailbox").messages)
        yield Dispatch(REF, MessagePosted(place, arrived.text, arrived.urgent))


def reaches(worker: Aggregate, *, urgent: bool) -> bool:
    """Tell whether the running session gets a message that arrives now.

    An urgent one would end a turn that waits for an operator, and no process would wait for the answer any more.
    """
    found = worker.entities.get(REF)
    if found is None or found.state is not State.OPEN:
        return False
    return not (urgent and question_model.waits(worker))


def cancels(worker: Aggregate) -> bool:
    """Tell whether the turn of the running session is to end, for an urgent message that it has not taken yet."""
    found = worker.entities.get(REF)
    return found is not None and found.state is State.OPEN and found.record.urgent > 0


@rule(on=output.machine, event=output.MessageTaken, beside=REF)
def mark_taken(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Count the messages that the output of the session says to have taken."""
    yield from _taken(worker, cast("output.MessageTaken", transition.event).number)


def mark_taken_at_the_end(worker: Aggregate, transition: Transition) -> Iterator[Dispatch]:
    """Count the messages that a session had taken when it ended: its output is not followed any more."""
    yield from _taken(worker, cast("session.SessionExited", transition.event).messages)


def _taken(worker: Aggregate, number: int) -> Iterator[Dispatch]:
    """Take only what was posted: any process of an agent can write to its output."""
    given: Steering = worker.record(REF)
    if worker.record("mailbox").taken < number <= given.posted:
        yield Dispatch("mailbox", mailbox.MessagesReached(number))
        if 0 < given.urgent <= number:
            yield Dispatch(REF, UrgentTaken())


def taken_by(worker: Aggregate, transition: Transition) -> int:
    """Return how many messages of the mailbox the last session had, also if this transition is its end."""
    taken: int = worker.record("mailbox").taken
    event, found = transition.event, worker.entities.get(REF)
    if found is None or not isinstance(event, session.SessionExited) or event.messages > found.record.posted:
        return taken
    return max(taken, event.messages)


def leaves_urgent(worker: Aggregate, transition: Transition) -> bool:
    """Tell whether the session that ends here has not taken an urgent message that it was given."""
    found = worker.entities.get(REF)
    return found is not None and found.record.urgent > taken_by(worker, transition)


def of_sessions(agent: Machine[Any]) -> tuple[Rule, ...]:
    """Return the rules that follow sessions of this lifecycle. They come before the delivery of messages."""
    return (
        rule(on=agent, event=session.SessionExited, beside=REF)(mark_taken_at_the_end),
        rule(on=agent, enters=session.State.RUNNING, beside=REF)(open_steering),
        rule(on=agent, leaves=session.State.RUNNING, beside=REF)(close_steering),
        post_message,
        mark_taken,
    )


# Properties


def steers_what_runs(worker: Aggregate) -> bool:
    """Messages are posted exactly while a session runs at a task of the worker."""
    if REF not in worker.entities:
        return True
    runs = worker.record("session").state is session.State.RUNNING
    works = worker.record("assignment").state is assignment.State.WORKING
    is_open = worker.record(REF).state is State.OPEN
    return is_open == runs and (works or not is_open)


def has_every_message(worker: Aggregate) -> bool:
    """A session that can be steered was given every message of the mailbox."""
    if REF not in worker.entities or worker.record(REF).state is not State.OPEN:
        return True
    return bool(worker.record(REF).posted == len(worker.record("mailbox").messages))


def takes_what_was_posted(worker: Aggregate) -> bool:
    """A session has taken no message that it was not given."""
    if REF not in worker.entities or worker.record(REF).state is not State.OPEN:
        return True
    return bool(worker.record("mailbox").taken <= worker.record(REF).posted)


def finishes_after_urgent_messages(worker: Aggregate) -> bool:
    """The work of a session is not verified before an urgent message that the session was given is taken.

    A session that has died takes none, and its work may be verified (E40). Nor does a session whose claim may begin no
    other one: its budget is used up, or its account rests. The account can be open again before the end of the
    verification, so any worker with an account may have such work.
    """
    work: assignment.Assignment = worker.record("assignment")
    is_finished = work.state in assignment.ON_ITS_WAY and work.brief.stage is task.Stage.WORK
    if REF not in worker.entities or not is_finished or work.brief.orphaned is task.OnDeath.VERIFY:
        return True
    return not worker.record(REF).urgent or quota.REF in worker.entities or usage.is_used_up(worker)


OF_WORKERS: Final[tuple[Property[Aggregate], ...]] = (
    always("messages are posted exactly while a session runs at its task", steers_what_runs),
    always("a session that can be steered was given every message", has_every_message),
    always("a session takes only messages that it was given", takes_what_was_posted),
    always(
        "no work is verified before its urgent messages are taken, if another session may begin",
        finishes_after_urgent_messages,
    ),
)


def has_posted(of: Aggregate) -> bool:
    """Tell whether a running session was given a message that it has not taken yet."""
    if of.kind != "worker" or REF not in of.entities or of.record(REF).state is not State.OPEN:
        return False
    return bool(of.record("mailbox").taken < of.record(REF).posted)


AT_LAST: Final[tuple[Property[SystemState], ...]] = projected(
    has_posted,
    sometimes("a running session is given a message", lambda fleet: True in fleet.aggregates.values()),
)
"""Reachability in fleets whose agents can be steered."""
