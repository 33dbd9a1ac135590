"""Operator messages for a running session: each is posted once, counts when it is taken, and is never lost."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from aggregate_hand import Hand
from declared import Mutants, instead, must_be_found, must_hold
from fleet_worker import BRIEF, exit_with, following, next_task, prompt_of, start, states
from lifefold.core.fleet import AgentPlan, Budget, Caps, Plan, TaskPlan
from lifefold.core.fleet.system import plan as plans
from lifefold.core.fleet.system import worker, worker_properties
from lifefold.core.fleet.worker import (
    assignment,
    desired_state,
    mailbox,
    output,
    question,
    quota,
    steering,
    usage_meter,
)
from lifefold.core.fleet.worker.prompt import steered
from lifefold.core.fleet.worker.question_model import QuestionAsked
from lifefold.core.fleet.worker.steering import MessagePosted, State, Steering, SteeringOpened, machine
from lifefold.core.kernel import STAY, Aggregate, PropertyKind, Record, Step, replace, row
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.lifecycles.budget.amounts import Amounts
from lifefold.effects import CancelSession, FollowOutput, SteerSession
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.targets.bounded import few_letters, few_posted
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without
from mutated_fleet import plan as small
from mutated_fleet import way_through

BOUNDS: Final = Bounds(within={steering.REF: few_posted})
ASKED: Final = QuestionAsked(BRIEF.task, BRIEF.epoch, BRIEF.token, id="q", text="which?")


def steerable(**more: Record) -> Hand:
    """Return a worker whose agent can be steered, and that has asked for work."""
    return following(more={steering.REF: Steering(), **more})


def running(**more: Record) -> Hand:
    """Return a worker whose running session takes messages."""
    return start(next_task(steerable(**more)))


def send(of: Hand, text: str, *, urgent: bool = False) -> Hand:
    """Send the worker an operator message."""
    return of.give("mailbox", mailbox.OperatorMessageArrived(text, urgent=urgent))


def tell_taken(of: Hand, number: int) -> Hand:
    """Let the output of the session tell that it has taken a message."""
    position = of.record(output.REF).position + 1
    return of.report(output.REF, FollowOutput.__name__, output.MessageTaken(position, number))


def end(of: Hand, outcome: session.Success | session.Error, messages: int) -> Hand:
    """Let the session end, with the number of the last message that it has taken."""
    return of.report("session", "RunSession", session.SessionExited(outcome, messages=messages))


def test_steering_has_all_its_properties_and_uses_every_row() -> None:
    """In all of its states, with every guard used both ways."""
    assert must_hold(machine, BOUNDS).missing == ()


@pytest.mark.parametrize("urgent", [False, True])
def test_a_message_is_posted_to_a_running_session_which_goes_on(*, urgent: bool) -> None:
    of = send(running(), "look", urgent=urgent)
    assert states(of) == ("Running", "Working")
    assert of.effects(SteerSession) == [SteerSession(1, "look", urgent)]
    assert of.effects(CancelSession) == []
    assert (of.record("mailbox").messages, of.record("mailbox").taken) == (("look",), 0)


def test_messages_have_the_numbers_of_their_places_in_the_mailbox() -> None:
    """The prompt had the first one."""
    of = steerable()
    send(of, "one")
    start(next_task(of))
    assert of.record(steering.REF) == Steering(State.OPEN, 1)
    assert send(of, "two").effects(SteerSession) == [SteerSession(2, "two")]
    assert send(of, "three").effects(SteerSession) == [SteerSession(3, "three")]


def test_a_message_counts_when_the_session_has_taken_it_and_is_delivered_when_it_completes() -> None:
    of = send(send(running(), "one"), "two")
    assert tell_taken(of, 1).record("mailbox").taken == 1
    exit_with(of, session.Success())
    assert (of.state("mailbox"), of.record("mailbox").messages) == ("Holding", ("two",))
    assert of.record(steering.REF).state is State.CLOSED


def test_the_end_of_a_session_tells_what_its_output_was_not_read_for() -> None:
    """No message is delivered again that a completed session has taken in its last moment."""
    of = end(send(running(), "one"), session.Success(), 1)
    assert (of.state("mailbox"), of.record("mailbox").messages) == ("Empty", ())


def test_a_message_that_an_interrupted_session_has_taken_is_in_the_next_prompt_as_a_repeated_one() -> None:
    of = send(send(running(), "one"), "two")
    of.give("desired_state", desired_state.PauseWanted())
    assert of.record(steering.REF).state is State.CLOSED
    end(of, session.Error("asked to end"), 1)
    of.give("desired_state", desired_state.ResumeWanted())
    assert "An earlier session had the first of your messages too" in prompt_of(of)
    assert prompt_of(of).endswith("You have messages:\n- one\n- two")


def test_the_prompt_right_after_an_end_names_the_messages_of_that_end() -> None:
    """The session is interrupted because a question waits, and the next one begins in the same step."""
    of = send(running(**{question.REF: question.Questions()}), "one")
    of.give(question.REF, ASKED)
    send(of, "two", urgent=True)
    end(of, session.Error("asked to end"), 1)
    assert "An earlier session had the first of your messages too" in prompt_of(of)


@pytest.mark.parametrize("number", [0, 2])
def test_a_session_takes_no_message_that_it_was_not_given(number: int) -> None:
    """Any process of an agent can write to the output."""
    of = send(running(), "one")
    assert tell_taken(of, number).record("mailbox").taken == 0
    end(of, session.Success(), number)
    assert of.record("mailbox").messages == ("one",)


def test_a_message_that_is_told_again_counts_once() -> None:
    of = tell_taken(tell_taken(send(running(), "one"), 1), 1)
    assert of.record("mailbox").taken == 1
    assert end(of, session.Success(), 1).state("mailbox") == "Empty"


def test_an_urgent_message_interrupts_a_session_whose_question_waits() -> None:
    """Without its turn, no process would wait for the answer. Other messages are posted."""
    of = running(**{question.REF: question.Questions()})
    of.give(question.REF, ASKED)
    assert send(of, "by the way").effects(SteerSession) == [SteerSession(1, "by the way")]
    send(of, "look", urgent=True)
    assert states(of) == ("Interrupting", "Working")
    assert of.effects(SteerSession) == []
    assert of.state(question.REF) == "Closed"


def test_a_question_is_refused_while_an_urgent_message_ends_the_turn_of_its_session() -> None:
    """No process would wait for the answer. The session can ask when it has taken the message."""
    of = send(running(**{question.REF: question.Questions()}), "look", urgent=True)
    assert (states(of), of.state(question.REF)) == (("Running", "Working"), "Closed")
    assert question.refused_ask(of.record(question.REF), ASKED).startswith("nothing can be asked now")
    of.must_refuse(question.REF, ASKED)
    tell_taken(of, 1).give(question.REF, ASKED)
    assert (states(of), of.state(question.REF)) == (("Running", "Working"), "Waiting")


def test_the_next_session_can_ask_although_the_last_one_has_not_taken_an_urgent_message() -> None:
    of = send(running(**{question.REF: question.Questions()}), "look", urgent=True)
    end(of, session.Success(), 0)
    assert (states(of), of.state(question.REF)) == (("Spawning", "Working"), "Open")
    assert start(of).state(question.REF) == "Open"


def test_messages_that_come_while_the_session_is_started_are_posted_when_it_runs() -> None:
    of = send(next_task(steerable()), "by the way")
    assert of.effects(SteerSession) == []
    assert start(of).effects(SteerSession) == [SteerSession(1, "by the way")]


def test_an_urgent_message_while_the_session_is_started_interrupts_it_once_it_runs() -> None:
    """It is in the next prompt, and no session is given it."""
    of = start(send(next_task(steerable()), "look", urgent=True))
    assert states(of) == ("Interrupting", "Working")
    assert of.effects(SteerSession) == []
    assert of.record(steering.REF).state is State.CLOSED


@pytest.mark.parametrize("urgent", [False, True])
def test_a_session_that_is_verified_is_given_no_message(*, urgent: bool) -> None:
    of = exit_with(running(), session.Success())
    assert of.state("assignment") == assignment.State.VERIFYING
    assert send(of, "look", urgent=urgent).effects(SteerSession) == []


def test_a_plan_says_which_agents_are_steered() -> None:
    """Other workers have no steering, so that their fleets have no more states."""
    agents = (AgentPlan("ann", follows=True, steers=True), AgentPlan("ben", follows=True))
    of = Plan("mixed", agents, (TaskPlan("T1", "do it"),))
    ann, ben = (plans.working(each, of) for each in agents)
    assert ann[steering.REF] == Steering()
    assert isinstance(ann["session"], session_profiles.SupervisedSession)
    assert ann["session"].steers
    assert ann[output.REF] == output.Output(steers=True)
    assert steering.REF not in ben


def test_another_prompt_has_the_messages_and_says_what_became_of_the_turn() -> None:
    assert steered(("one", "two"), interrupted=False) == "You have messages:\n- one\n- two\n\nGo on with your task."
    assert steered(("one",), interrupted=True).startswith("Your turn was interrupted.")


def test_a_small_mailbox_has_all_its_properties() -> None:
    """Also where a running session takes its messages one by one."""
    small = mailbox.machine.without_properties("a mailbox is full")
    must_hold(small, Bounds(within={"mailbox": few_letters}, compared=0))


def test_the_properties_of_a_worker_hold_on_the_way_of_a_message() -> None:
    """And for a worker without steering, and for the board."""
    of = running()
    states_seen = [of.aggregate]
    steps: tuple[Callable[[], object], ...] = (
        lambda: send(of, "one"),
        lambda: tell_taken(of, 1),
        lambda: exit_with(of, session.Success()),
    )
    for step in steps:
        step()
        states_seen.append(of.aggregate)
    plain = start(next_task(following())).aggregate
    assert all(each.holds(seen) for each in steering.OF_WORKERS for seen in (*states_seen, plain))
    assert [steering.has_posted(each) for each in (*states_seen, plain)] == [False, True, False, False, False]
    assert not steering.has_posted(Aggregate("board"))
    (reachable,) = steering.AT_LAST
    assert reachable.property_kind is PropertyKind.SOMETIMES


# What the properties find


def _skip(s: Steering, e: MessagePosted) -> Step[Steering, SteerSession]:
    return Step(replace(s, posted=e.number))


def _repeat(s: Steering, e: MessagePosted) -> Step[Steering, SteerSession]:
    return Step(s, (SteerSession(e.number, e.text, e.urgent),))


def _forget(s: Steering, _e: SteeringOpened) -> Step[Steering, Any]:
    return Step(replace(s, posted=0))


def _forgets_urgency(s: Steering, e: MessagePosted) -> Step[Steering, SteerSession]:
    return Step(replace(steering.post(s, e).record, urgent=s.urgent), steering.post(s, e).effects)


def _calm(s: Steering, e: MessagePosted) -> Step[Steering, SteerSession]:
    return Step(replace(s, posted=e.number), (SteerSession(e.number, e.text),))


EACH_ONCE: Final = "a session is given each message once, in order"

MUTANTS: Mutants = {
    "a message is not given": (
        EACH_ONCE,
        lambda: instead(machine, row(State.OPEN, MessagePosted, STAY, _skip, when=steering.is_next)),
    ),
    "a message is given again": (
        EACH_ONCE,
        lambda: instead(machine, row(State.OPEN, MessagePosted, STAY, _repeat, when=steering.is_next)),
    ),
    "an urgent message is given like another": (
        EACH_ONCE,
        lambda: instead(machine, row(State.OPEN, MessagePosted, STAY, _calm, when=steering.is_next)),
    ),
    "an urgent message is not remembered": (
        "an urgent message is known until it is taken",
        lambda: instead(machine, row(State.OPEN, MessagePosted, STAY, _forgets_urgency, when=steering.is_next)),
    ),
    "a message comes before its turn": (
        EACH_ONCE,
        lambda: instead(machine, row(State.OPEN, MessagePosted, STAY, steering.post)),
    ),
    "the messages of the prompt are forgotten": (
        EACH_ONCE,
        lambda: instead(machine, row(State.CLOSED, SteeringOpened, State.OPEN, _forget)),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_of_the_machine_is_found(name: str) -> None:
    must_be_found(MUTANTS[name], BOUNDS)


LOST: Final = {
    "open_steering": "messages are posted exactly while a session runs at its task",
    "close_steering": "messages are posted exactly while a session runs at its task",
    "post_message": "a session that can be steered was given every message",
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", LOST)
def test_a_lost_rule_is_found(name: str) -> None:
    opening = named("fleet-steering").opening
    report = check(without(name), opening=opening, bounds=Bounds(states=3_000, compared=0))
    assert LOST[name] in {each.name for each in report.broken()}


def test_a_message_that_is_only_posted_is_not_delivered_by_a_completed_session() -> None:
    """The next prompt has it."""
    of = send(running(), "one")
    exit_with(of, session.Success())
    assert of.record("mailbox").messages == ("one",)


def test_an_urgent_message_that_a_completed_session_has_not_taken_begins_another_session_of_the_claim() -> None:
    """It has come while the session was ending. Its work is verified after that other session."""
    of = send(send(running(), "one"), "look", urgent=True)
    end(of, session.Success(), 1)
    assert states(of) == ("Spawning", "Working")
    assert prompt_of(of).endswith("You have messages:\n- look")
    assert "go on" in prompt_of(of).lower()
    end(start(of), session.Success(), 0)
    assert (of.state("assignment"), of.state("mailbox")) == ("Verifying", "Empty")


def finished_with_an_urgent_message(cost_microusd: int, *, rests: bool = False) -> Hand:
    """Return a worker whose session has completed without an urgent message that came late.

    The claim may cost ten micro-dollars. The account of the agent may rest meanwhile.
    """
    of = steerable(**{usage_meter.REF: usage_meter.UsageMeter()}, **({quota.REF: quota.Quota()} if rests else {}))
    of.hear("board", "assignment", assignment.Assigned(replace(BRIEF, share=Amounts(microusd=10))))
    start(of.report("assignment", "CheckOutWork", assignment.CheckedOut()))
    send(of, "look", urgent=True)
    if rests:
        of.hear("board", quota.REF, quota.AccountRests())
    exited = session.SessionExited(session.Success(), usage=session.Usage(cost_microusd=cost_microusd))
    return of.report("session", "RunSession", exited)


def test_finished_work_is_verified_without_its_urgent_message_if_the_budget_is_used_up() -> None:
    """No other session of the claim may begin, and a dropped task is restarted. The next prompt has the message."""
    of = finished_with_an_urgent_message(10)
    assert states(of) == ("SessionComplete", "Verifying")
    assert of.told() == [("board", "task:T1", task.Completed(2))]
    assert (of.record("mailbox").messages, of.record("mailbox").taken) == (("look",), 0)
    assert all(each.holds(of.aggregate) for each in steering.OF_WORKERS)


def test_finished_work_is_verified_without_its_urgent_message_if_the_account_rests() -> None:
    of = finished_with_an_urgent_message(0, rests=True)
    assert (states(of), of.record("mailbox").messages) == (("SessionComplete", "Verifying"), ("look",))
    assert all(each.holds(of.aggregate) for each in steering.OF_WORKERS)


def test_a_task_is_given_back_if_the_session_with_its_urgent_message_meets_a_limit() -> None:
    """Its work is under way again, and is not verified half changed. The next prompt of the agent has the message."""
    of = following(account="claude", more={steering.REF: Steering(), quota.REF: quota.Quota()})
    send(start(next_task(of)), "look", urgent=True)
    end(of, session.Success(), 0)
    assert states(of) == ("Spawning", "Working")
    exit_with(start(of), session.Limited())
    assert of.state("assignment") == "Idle"
    assert task.Released(2, "account claude rests") in [each for _, _, each in of.told()]
    assert of.record("mailbox").messages == ("look",)
    assert all(each.holds(of.aggregate) for each in steering.OF_WORKERS)


KEPT: Final = "finished work is not given back because a budget is used up or an account rests"


def always(*_of: object) -> bool:
    """Answer yes, whatever is asked."""
    return True


@pytest.mark.no_cover
def test_a_check_finds_that_finished_work_is_given_back_when_the_budget_is_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rule began another session for an urgent message without a look at the budget."""
    monkeypatch.setattr(worker, "_may_begin_another", always)
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    agent = AgentPlan("a0", limits, follows=True, steers=True)
    of = replace(small(), agents=(agent,), budget=Budget(Caps(microusd=2), Amounts(microusd=2, sessions=1)))
    way = way_through(KEPT, of, {"mailbox": (mailbox.OperatorMessageArrived,)}, states=1_000)
    assert "OperatorMessageArrived(text='a', urgent=True)" in way[-2]
    assert "assignment Working → Idle" in way[-1]


@pytest.mark.no_cover
def test_a_check_finds_that_finished_work_is_given_back_when_the_account_rests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another agent of the account has met its limit."""
    monkeypatch.setattr(worker, "_may_begin_another", always)
    limits = session.Limits(max_consecutive_errors=1, max_total_errors=1)
    steered_one = AgentPlan("a0", limits, follows=True, steers=True, account="x")
    of = replace(small(tasks=2), agents=(steered_one, AgentPlan("a1", limits, account="x")))
    way = way_through(KEPT, of, {"mailbox": (mailbox.OperatorMessageArrived,)}, states=200_000, longest=16)
    assert any("worker/a1 session: RunSession says SessionExited(outcome=Limited" in each for each in way)
    assert "worker/a0 session: RunSession says SessionExited(outcome=Success" in way[-1]
    assert "assignment Working → Idle" in way[-1]


@pytest.mark.parametrize(("cost_microusd", "rests"), [(10, False), (0, True)])
def test_finished_work_that_is_given_back_breaks_a_property(
    monkeypatch: pytest.MonkeyPatch, cost_microusd: int, *, rests: bool
) -> None:
    """By the budget, and by the account."""
    monkeypatch.setattr(worker, "_may_begin_another", always)
    of = finished_with_an_urgent_message(cost_microusd, rests=rests)
    dropped = [each for each in of.reaction.transitions if isinstance(each.event, assignment.Dropped)]
    assert [worker_properties.keeps_finished_work(each) for each in dropped] == [False]


def test_a_claim_continues_until_its_next_session_has_its_prompt() -> None:
    of = finished_with_an_urgent_message(9)
    assert [type(each.event).__name__ for each in of.reaction.transitions if each.machine == "assignment"][-2:] == [
        "WorkContinued",
        "Prompted",
    ]
    assert not of.record("assignment").continues


def test_a_session_with_an_urgent_message_begins_if_something_of_the_budget_is_left() -> None:
    of = finished_with_an_urgent_message(9)
    assert states(of) == ("Spawning", "Working")
    assert prompt_of(of).endswith("You have messages:\n- look")


@pytest.mark.parametrize(
    ("brief", "holds"),
    [
        (BRIEF, False),
        (replace(BRIEF, stage=task.Stage.VERIFY), True),
        (replace(BRIEF, orphaned=task.OnDeath.VERIFY), True),
    ],
)
def test_finished_work_whose_session_had_an_urgent_message_left_breaks_a_property(
    brief: task.Brief, *, holds: bool
) -> None:
    """Not work that only its verification is left of, or that a dead session may have left."""
    work = assignment.Assignment(assignment.State.VERIFYING, brief)
    records: dict[str, Record] = {
        "session": session_profiles.SupervisedSession(),
        "assignment": work,
        steering.REF: Steering(urgent=1),
    }
    of = Hand("worker/ann", records).aggregate
    assert steering.finishes_after_urgent_messages(of) is holds


@pytest.mark.parametrize("told", [True, False], ids=["while it ran", "at its end"])
def test_an_urgent_message_that_was_taken_begins_no_other_session(*, told: bool) -> None:
    """The session had it, whether its output was read in time or not."""
    of = send(running(), "look", urgent=True)
    if told:
        tell_taken(of, 1)
        assert of.record(steering.REF).urgent == 0
    end(of, session.Success(), 1)
    assert (of.state("assignment"), of.state("mailbox")) == ("Verifying", "Empty")


def test_an_earlier_message_that_was_taken_is_no_urgent_one() -> None:
    of = tell_taken(send(send(running(), "one"), "look", urgent=True), 1)
    assert of.record(steering.REF).urgent == 2
    assert states(exit_with(of, session.Success())) == ("Spawning", "Working")


def test_an_interrupted_session_takes_no_message_that_has_come_since() -> None:
    """The message is in the mailbox, but was not posted, whatever the end of the session says."""
    of = send(running(), "one")
    of.give("desired_state", desired_state.PauseWanted())
    assert send(of, "two").effects(SteerSession) == []
    end(of, session.Success(), 2)
    assert (of.record("mailbox").messages, of.record("mailbox").taken) == (("one", "two"), 0)


def test_the_prompt_right_after_an_end_counts_no_message_that_was_not_posted() -> None:
    """The end of the session repeats a number that any process may have written."""
    of = send(running(**{question.REF: question.Questions()}), "one")
    of.give(question.REF, ASKED)
    send(of, "two", urgent=True)
    end(of, session.Error("asked to end"), 2)
    assert "An earlier session" not in prompt_of(of)
