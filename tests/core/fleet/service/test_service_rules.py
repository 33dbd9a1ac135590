"""Services: what waits is run in its order and once, wishes bind, failures count; and no rule of it can be lost."""

from typing import Any, Final

import pytest

from aggregate_hand import Hand
from declared import must_hold, rebuilt
from lifefold.core.fleet import Plan, ServicePlan, opening, service, system
from lifefold.core.fleet.board import service_slot
from lifefold.core.fleet.service import inbox, invocation, rules, trigger
from lifefold.core.fleet.worker import desired_state
from lifefold.core.kernel import Dispatch, Entity, InvalidMachine, Machine, System, Transition
from lifefold.core.lifecycles import process, session
from lifefold.effects import AwaitTrigger, Begin, End, Every, LogFatal, NotifyProcess, RunSession, Tell
from lifefold.interpreters.check import Bounds, check
from lifefold.interpreters.explain import status
from lifefold.interpreters.targets.bounded import one_message
from lifefold.interpreters.targets.check_targets import named
from lost_rules import SERVICE, without
from service_hand import TRIGGER, ends, fire, send, serving

MACHINES: Final[dict[str, Machine[Any]]] = {
    each.name: each for each in (invocation.machine, inbox.machine, trigger.machine, service_slot.machine)
}


def running(of: Hand) -> str:
    """Return what is being run; empty if nothing is."""
    prompt: str = of.record("invocation").prompt
    return prompt if of.state("invocation") != "Idle" else ""


def gone(of: Hand) -> list[service_slot.ServiceGone]:
    """Return what the board was told."""
    return [each.event for each in of.effects(Tell) if isinstance(each, Tell) and each.entity == "service_slot:web"]


@pytest.mark.parametrize("name", MACHINES)
def test_every_part_of_a_service_has_its_properties(name: str) -> None:
    """None of them idly."""
    of = named(name)
    assert isinstance(of.subject, Machine)
    must_hold(of.subject, of.bounds)


@pytest.mark.no_cover
@pytest.mark.parametrize(("name", "place"), [(n, p) for n, each in MACHINES.items() for p in range(len(each.rows))])
def test_a_row_that_is_lost_breaks_a_property(name: str, place: int) -> None:
    """Of every machine that is a service's own."""
    machine = MACHINES[name]
    if name == "inbox":
        machine = machine.starting(inbox.Inbox(takes_messages=True))
    rows = tuple(each for number, each in enumerate(machine.rows) if number != place)
    try:
        lost = rebuilt(machine, rows=rows)
    except InvalidMachine:
        return
    report = check(lost, bounds=Bounds(within={"inbox": one_message}, states=2_000, compared=0))
    assert report.broken() or report.missing, report


NEVER_HERE: Final = {
    "what is not settled can go on",
    "a worker whose task was taken learns it, if merges end",
    "a worker that lost its task is free at last, or gone",
}
"""What a fleet of one service breaks as it is: nothing is taken from anybody, and a process that has stopped can be
started again by hand only."""

SAME: Final = {"cut_off"}
"""Rules without which this fleet is the same in its nearest states: other rules end the run first."""


def checked(of: System) -> set[str]:
    """Return what is broken, in its nearest states, of what a fleet of one service promises."""
    life = process.Limits(restart_policy="on_failure", max_restarts=1, max_consecutive_failures=2)
    served = ServicePlan("web", life, triggers=(Every(1),), takes_messages=True)
    plan = Plan("serving", (), (), watch=True, services=(served,))
    bounds = Bounds(within={"inbox": one_message}, commands=2, states=1_500, compared=0)
    report = check(of, opening=tuple(opening(plan, 0)), bounds=bounds)
    return {each.name for each in report.broken()} - NEVER_HERE


@pytest.mark.cover
def test_a_fleet_that_serves_has_its_properties() -> None:
    """As it is shipped; of what is farther away there is a certificate."""
    assert checked(system) == set()


@pytest.mark.no_cover
@pytest.mark.parametrize("name", [each for each in SERVICE if each not in SAME])
def test_a_rule_that_is_lost_breaks_a_property_of_a_fleet_that_serves(name: str) -> None:
    """Waiting runs begin, desired states hold, and a stopped service says so, since every rule is there."""
    assert checked(without(name)), name


# What waits


def test_messages_are_run_one_after_the_other_in_their_order() -> None:
    """One at a time, and each once."""
    of = send(serving(), "one", "two", "three")
    seen: list[str] = []
    while running(of):
        seen.append(running(of))
        ends(of)
    assert seen == ["one", "two", "three"]
    assert of.state("process") == "awaiting"
    assert of.record("inbox").items == ()


def test_a_trigger_that_comes_while_it_waits_is_run_once_and_one_that_comes_while_it_runs_once_more() -> None:
    """A run that has begun may not have seen what came later."""
    of = send(serving(), "one")
    for _ in range(3):
        fire(of)
    assert [each.source for each in of.record("inbox").items] == [TRIGGER]
    ends(of)
    assert running(of) == "every 1m"
    for _ in range(3):
        fire(of)
    ends(of)
    assert running(of) == "every 1m"
    ends(of)
    assert running(of) == ""


def test_a_full_inbox_refuses_a_message() -> None:
    """And so is any where no messages are taken."""
    full = Hand("service/web", {**_records(), "inbox": inbox.Inbox(takes_messages=True)})
    full.give("desired_state", desired_state.HoldWanted())
    for number in range(inbox.MESSAGES_LIMIT):
        send(full, str(number))
    full.must_refuse("inbox", inbox.MessageArrived("one more"))
    none = Hand("service/web", {**_records(), "inbox": inbox.Inbox()})
    none.must_refuse("inbox", inbox.MessageArrived("one"))
    long = serving()
    long.must_refuse("inbox", inbox.MessageArrived("x" * (inbox.MESSAGES_BYTES + 1)))


def _records() -> dict[str, Any]:
    of = serving()
    return {ref: of.of.machines[ref.partition(":")[0]].initial for ref in of.aggregate.entities}


def test_triggers_missed_without_a_runner_are_due_once_on_the_same_schedule() -> None:
    """From a minute past on, every ten minutes; after twenty-five it was due last at twenty-one."""
    minute_ms = 60_000
    every_ms, begun_ms = 10 * minute_ms, minute_ms
    assert trigger.last_due_ms(every_ms, begun_ms, begun_ms) == begun_ms
    assert trigger.last_due_ms(every_ms, begun_ms, begun_ms + every_ms - 1) == begun_ms
    assert trigger.last_due_ms(every_ms, begun_ms, begun_ms + every_ms) == begun_ms + every_ms
    assert trigger.last_due_ms(every_ms, begun_ms, 25 * minute_ms) == 21 * minute_ms
    assert trigger.last_due_ms(every_ms, begun_ms, 0) == 0, "a clock that was ahead"
    assert trigger.next_due_ms(every_ms, 21 * minute_ms) == 31 * minute_ms


# What people want


def test_a_service_that_is_paused_lets_its_run_end_and_begins_nothing() -> None:
    """What comes meanwhile waits, and is run in its order afterwards."""
    of = send(serving(), "one", "two")
    of.give("desired_state", desired_state.PauseWanted("look"))
    assert of.effects(End) == []
    ends(fire(of))
    assert (running(of), of.state("process")) == ("", "suspended")
    of.give("desired_state", desired_state.ResumeWanted())
    assert running(of) == "two"
    ends(of)
    assert running(of) == "every 1m"


def test_a_pause_of_a_service_that_is_down_holds_after_its_restart() -> None:
    """Nothing is run by who comes back."""
    of = send(serving(restart_policy="on_failure", max_consecutive_failures=1), "one", "two")
    ends(of, session.Error("no"))
    of.give("desired_state", desired_state.PauseWanted())
    of.elapse("process", "BackoffElapsed")
    assert (running(of), of.record("process").suspended_for) == ("", "manual")
    of.give("desired_state", desired_state.ResumeWanted())
    assert running(of) == "two"


def test_a_service_that_is_held_begins_nothing_and_goes_on_afterwards() -> None:
    """Its run ends by itself: no message is run twice because a runner goes."""
    of = send(serving(), "one", "two")
    of.give("desired_state", desired_state.HoldWanted())
    assert not service.quiet(of.aggregate)
    ends(of)
    assert (running(of), service.quiet(of.aggregate)) == ("", True)
    of.give("desired_state", desired_state.RunWanted())
    assert running(of) == "two"


@pytest.mark.parametrize("held", [False, True], ids=["at work", "held"])
def test_a_service_that_drains_lets_its_run_end_and_is_gone(*, held: bool) -> None:
    """What waits is given back to people."""
    of = send(serving(), "one", "two")
    if held:
        of.give("desired_state", desired_state.HoldWanted())
    of.give("desired_state", desired_state.DrainWanted("enough"))
    assert running(of) == "one"
    ends(of)
    assert gone(of) == [service_slot.ServiceGone("enough")]
    assert of.effects(LogFatal) == [LogFatal("message 'two' was not run: enough")]
    of.confirm(TRIGGER, "AwaitTrigger")
    assert service.settled(of.aggregate)
    of.must_refuse("inbox", inbox.MessageArrived("three"))


def test_a_service_that_is_stopped_has_its_run_ended_and_is_gone() -> None:
    """It is gone at once, and nothing of it is left when the ends are confirmed."""
    of = send(serving(), "one", "two")
    of.give("desired_state", desired_state.StopWanted("enough"))
    assert {each.slot for each in of.effects(End) if isinstance(each, End)} == {"RunSession", "AwaitTrigger"}
    assert (running(of), of.state("process"), gone(of)) == ("", "stopped", [service_slot.ServiceGone("enough")])
    assert not service.settled(of.aggregate)
    of.confirm("invocation", "RunSession").confirm(TRIGGER, "AwaitTrigger")
    assert service.settled(of.aggregate)


def test_messages_that_are_given_back_are_all_told_and_those_with_the_same_text_are_counted() -> None:
    """People are told once of each text, and how many there were."""
    of = send(serving(), "one", "two", "three", "two", "two")
    of.give("desired_state", desired_state.StopWanted("enough"))
    given_back = [each for each in of.effects(LogFatal) if isinstance(each, LogFatal) and "not run" in each.message]
    assert given_back == [
        LogFatal("message 'two' (3 times) was not run: enough"),
        LogFatal("message 'three' was not run: enough"),
    ]


# What goes wrong


def test_a_service_whose_runs_fail_too_often_stays_down_with_a_reason() -> None:
    """By its policy never to come back; one that succeeds in between clears the count."""
    of = serving(max_consecutive_failures=2)
    for text, outcome in (("a", "no"), ("b", ""), ("c", "no")):
        ends(send(of, text), session.Error(outcome) if outcome else None)
    assert of.state("process") == "awaiting"
    ends(send(of, "d"), session.Timeout())
    assert of.state("process") == "failed"
    assert gone(of) == [service_slot.ServiceGone("max consecutive failures reached (2): Timeout", failed=True)]
    seen = status.service_status(of.aggregate)
    assert (seen.state, seen.reason) == ("failed", "max consecutive failures reached (2): Timeout")


def test_a_service_comes_back_as_often_as_it_may_without_a_run_that_succeeds() -> None:
    """It rests before, longer each time, takes messages meanwhile, and says when it will not come back."""
    of = serving(restart_policy="on_failure", max_consecutive_failures=1, max_restarts=2)
    send(of, "a", "b", "c", "d")
    rests: list[int] = []
    for _ in range(2):
        ends(of, session.Error("no"))
        rests.append(of.part("process", "BackoffElapsed").deadline_ms - of.now_ms)
        assert of.state(TRIGGER) == "Off"
        of.confirm(TRIGGER, "AwaitTrigger")
        of.elapse("process", "BackoffElapsed")
        assert of.state(TRIGGER) == "Watching"
    assert rests == [1_000, 2_000]
    ends(of, session.Error("no"))
    told = [each.kind for each in of.effects(NotifyProcess) if isinstance(each, NotifyProcess)]
    assert told == ["failed", "restart_exhausted"]
    assert [each.failed for each in gone(of)] == [True]


def test_a_service_beyond_its_lifetime_ends_its_run_and_restarts() -> None:
    """The run is ended when that is over; the next one begins when its end is confirmed."""
    of = send(serving(restart_policy="always", max_lifetime_ms=10, drain_timeout_ms=5), "one", "two")
    of.elapse("process", "LifetimeElapsed")
    assert running(of) == "one"
    of.elapse("process", "DrainElapsed")
    assert running(of) == ""
    of.elapse("process", "BackoffElapsed")
    assert (of.state("process"), of.begun()) == ("running", [])
    of.confirm("invocation", "RunSession")
    assert of.begun() == ["RunSession"]
    assert running(of) == "two"


def test_a_service_for_which_nothing_comes_is_suspended_until_something_does() -> None:
    """Idleness ends with the next trigger, and with nothing else."""
    of = serving(idle_timeout_ms=10)
    of.elapse("process", "IdleElapsed")
    of.elapse("process", "SuspendDue")
    assert of.state("process") == "suspended"
    fire(of)
    assert (of.state("process"), running(of)) == ("running", "every 1m")


@pytest.mark.parametrize("started", [False, True], ids=["launched", "running"])
def test_a_crash_of_the_runner_runs_nothing_twice_and_forgets_nothing(*, started: bool) -> None:
    """The run is taken up as the same one, and the trigger is waited for again."""
    of = send(serving(), "one", "two")
    if started:
        of.report("invocation", "RunSession", session.SessionStarted(1))
    of.crash()
    begun = [each for each in of.effects(Begin) if isinstance(each, Begin)]
    assert {(type(each.activity), each.resumed) for each in begun} == {(RunSession, True), (AwaitTrigger, True)}
    assert (running(of), of.record("inbox").messages) == ("one", ("two",))
    ends(of)
    assert running(of) == "two"


def test_the_status_of_a_service_says_what_it_runs_what_waits_and_when_it_was_due() -> None:
    """For people and for programs."""
    of = send(serving(), "one", "two")
    of.now_ms = 5
    fire(of)
    seen = status.service_status(of.aggregate)
    assert (seen.kind, seen.state, seen.doing, seen.messages, seen.waiting) == ("service", "running", "one", 1, 2)
    assert (seen.processes, seen.sessions) == (1, 1)
    assert seen.triggers == (status.TriggerStatus(Every(60_000), 5),)


def test_a_run_has_the_grace_of_its_service_and_nothing_is_owed_to_one_that_rests() -> None:
    """To one that is begun it is."""
    limits = session.Limits(grace_ms=7)
    assert invocation.Invocation(limits=limits).present_grace_ms == 7
    settled = {state for state in invocation.State if invocation.machine.settled(invocation.Invocation(state))}
    assert invocation.State.IDLE in settled
    assert invocation.State.SPAWNING not in settled


def test_a_run_that_ends_when_its_service_is_down_counts_no_more() -> None:
    """The service is down already, for another reason; its run is done with all the same."""
    down = serving().give("desired_state", desired_state.StopWanted("enough")).aggregate
    before, after = (
        Entity("invocation", invocation.Invocation(state))
        for state in (invocation.State.RUNNING, invocation.State.IDLE)
    )
    ended = Transition("invocation", before, after, session.SessionExited(session.Error("no")), 0, "runner", ())
    assert list(rules.end(down, ended)) == [Dispatch(inbox.REF, inbox.Finished())]
