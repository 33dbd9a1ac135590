"""Restart intensity: who fell by its errors is restarted, so often and no oftener, and then quarantined."""

from typing import Any

import pytest

from aggregate_hand import Hand
from board_hand import make
from board_hand import opened as board
from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.fleet.board import restart_permit, worker_slot
from lifefold.core.fleet.dispatch import restarts
from lifefold.core.fleet.worker import assignment, desired_state, mailbox, shutdown, supervisor
from lifefold.core.fleet.worker.supervisor import State
from lifefold.core.kernel import Opened, replace
from lifefold.core.lifecycles import session, session_profiles, task
from lifefold.core.policy.intensity import Intensity, Restart, span
from lifefold.core.policy.recovery import Retry
from lifefold.effects import LogFatal, Tell
from lifefold.interpreters.check import check
from lifefold.interpreters.explain import status as projection
from lifefold.interpreters.explain.plain_reasons import in_plain_words
from lifefold.interpreters.targets.check_targets import named
from lost_rules import without

LIMITS = session.Limits(max_consecutive_errors=1)
PAUSE = Retry(base_ms=10, cap_ms=1_000)
HOUR_MS = 3_600_000


def supervised() -> Hand:
    """Return a worker whose first error stops it, and who may be restarted."""
    return Hand(
        "worker/ann",
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(),
            "session": session_profiles.SupervisedSession(name="ann", limits=LIMITS, supervised=True),
            "supervisor": supervisor.Supervisor(name="ann", pause=PAUSE),
        },
    ).report("session", "PrepareWorktree", session.WorktreeReady())


def running(of: Hand) -> Hand:
    """Let a worker that has asked for work be given a task, and its session run."""
    of.hear("board", "assignment", assignment.Assigned(task.Brief("T1", 1)))
    of.report("assignment", "CheckOutWork", assignment.CheckedOut())
    return of.report("session", "RunSession", session.SessionStarted(of.record("session").session_seq))


def fallen(message: str = "exit status 1") -> Hand:
    """Return a worker whose agent has just stopped by its error."""
    return running(supervised()).report("session", "RunSession", session.SessionExited(session.Error(message)))


def resting(recent: int = 1) -> Hand:
    """Return one that may be restarted, and rests."""
    return fallen().hear("board", "supervisor", supervisor.Granted(recent))


def told(of: Hand) -> list[Any]:
    """Return what the last reaction tells the board of the worker slot."""
    return [
        each.event for each in of.effects(Tell) if isinstance(each, Tell) and each.entity.startswith("worker_slot:")
    ]


def test_an_agent_that_stops_by_errors_asks_for_a_restart() -> None:
    """It is not gone, and reads its messages when it is back."""
    of = fallen()
    assert (of.state("session"), of.state("supervisor"), of.state("assignment")) == ("Stopped", "Asking", "Idle")
    assert told(of) == [worker_slot.RestartWanted()]
    of.give("mailbox", mailbox.OperatorMessageArrived("look"))
    assert not shutdown.settled(of.aggregate)


def test_a_restart_follows_the_rest_and_keeps_numbers_but_no_errors() -> None:
    """Same name, same worktree, the next attempt (D15)."""
    of = resting()
    before = of.record("session")
    of.elapse("supervisor", "RestartDue")
    after = of.record("session")
    assert (of.state("session"), of.state("supervisor")) == ("Initializing", "Up")
    assert (after.consecutive_errors, after.total_errors, after.suspensions) == (0, 0, 0)
    assert (after.name, after.attempt, after.session_seq) == (before.name, before.attempt, before.session_seq)
    assert told(of) == [worker_slot.RestartDone()]
    of.report("session", "PrepareWorktree", session.WorktreeReady())
    assert told(of) == [worker_slot.WorkWanted()]


@pytest.mark.parametrize(("recent", "rest_ms"), [(1, 10), (2, 20), (3, 40), (20, 1_000)])
def test_the_rest_grows_with_every_restart(recent: int, rest_ms: int) -> None:
    """A capped pause of seconds would be a storm (gastown#649, buzz#5327)."""
    assert resting(recent).part("supervisor", "RestartDue").deadline_ms == rest_ms


def test_an_agent_whose_restart_is_refused_is_quarantined_with_both_reasons() -> None:
    """It has no task, its messages are not read, and the operator gets the reason."""
    of = fallen("no api key").hear("board", "supervisor", supervisor.Refused("it was restarted 3 times within 1 h"))
    reason = of.record("supervisor").reason
    assert of.state("supervisor") == "Quarantined"
    assert "it was restarted 3 times within 1 h; it stopped: " in reason
    assert "no api key" in reason
    assert of.effects(LogFatal) == [LogFatal(f"quarantined: {reason}")]
    assert told(of) == [worker_slot.WorkerGone(f"quarantined: {reason}")]
    assert of.state("mailbox") == "Closed"
    assert shutdown.settled(of.aggregate)
    seen = projection.agent_status(of.aggregate)
    assert (seen.supervisor, seen.reason) == ("Quarantined", in_plain_words(reason))


@pytest.mark.parametrize("down", [fallen, resting])
def test_an_agent_that_is_told_to_stop_while_it_is_down_is_not_brought_back(down: Any) -> None:
    """What the board says later, in whatever order, fits no row (gascity#76, PAINS 34)."""
    of: Hand = down().give("desired_state", desired_state.StopWanted("enough"))
    assert (of.state("session"), of.state("supervisor")) == ("Stopped", "Dismissed")
    assert told(of) == [worker_slot.WorkerGone("enough")]
    assert not of.aggregate.entities["supervisor"].running
    of.dismiss("board", "supervisor", supervisor.Granted(1))
    assert of.state("session") == "Stopped"


@pytest.mark.parametrize("of", [lambda: running(supervised()), supervised])
def test_neither_an_intended_stop_nor_a_fatal_error_is_a_fall(of: Any) -> None:
    """The one was wanted, the other says that no retry will mend it."""
    stopped: Hand = of().give("desired_state", desired_state.StopWanted("enough"))
    assert stopped.state("supervisor") == "Dismissed"


def test_a_fatal_error_is_no_fall() -> None:
    """No retry will mend it, and no restart: the agent is gone at once."""
    of = resting()
    of.elapse("supervisor", "RestartDue")
    of.report("session", "PrepareWorktree", session.FatalError("no space left"))
    assert of.state("supervisor") == "Dismissed"
    assert told(of) == [worker_slot.WorkerGone("its session has stopped")]


def test_a_place_that_cannot_be_made_too_often_is_a_fall() -> None:
    """It counts as an error of the agent (D6)."""
    of = supervised()
    of.hear("board", "assignment", assignment.Assigned(task.Brief("T1", 1)))
    of.report("assignment", "CheckOutWork", assignment.CheckoutFailed("locked"))
    assert of.state("supervisor") == "Asking"


def desk(own: int, of_all: int, window_ms: int = HOUR_MS) -> Hand:
    """Return a board with ann and bob at work, each with so many permits of its own, and so many of all."""
    every = {
        **restarts.restart_permits("ann", Intensity(own, window_ms)),
        **restarts.restart_permits("bob", Intensity(own, window_ms)),
        **restarts.restart_permits(restarts.OF_ALL, Intensity(of_all, window_ms)),
    }
    of = board(make("T1"), make("T2"), worker_slots=("ann", "bob"), **every)
    for name in ("ann", "bob"):
        of.hear(f"worker/{name}", f"worker_slot:{name}", worker_slot.WorkWanted())
    return of


def asks(of: Hand, name: str) -> Any:
    """Let a worker ask to be restarted; return the answer."""
    of.hear(f"worker/{name}", f"worker_slot:{name}", worker_slot.RestartWanted())
    (answer,) = (each.event for each in of.effects(Tell) if isinstance(each, Tell))
    return answer


def restart(of: Hand, name: str) -> Any:
    """Let a worker ask, and be restarted if it may."""
    answer = asks(of, name)
    if isinstance(answer, supervisor.Granted):
        of.hear(f"worker/{name}", f"worker_slot:{name}", worker_slot.RestartDone())
    return answer


def test_a_worker_is_restarted_as_often_as_its_own_intensity_allows() -> None:
    """And told how often that was."""
    of = desk(2, 10)
    assert [restart(of, "ann") for _ in range(3)] == [
        supervisor.Granted(1),
        supervisor.Granted(2),
        supervisor.Refused("it was restarted 2 times within 1 h"),
    ]
    assert restart(of, "bob") == supervisor.Granted(1)


def test_a_storm_over_many_agents_is_stopped_by_what_they_share() -> None:
    """However few restarts each of them has had."""
    of = desk(2, 1)
    assert restart(of, "ann") == supervisor.Granted(1)
    assert restart(of, "bob") == supervisor.Refused("agents of this fleet were restarted once within 1 h")


def test_only_time_frees_a_restart_permit() -> None:
    """A whole window after the worker has used the permit, neither sooner (hive#6578) nor by a success (tools#3631)."""
    of = desk(1, 1, window_ms=50)
    of.now_ms = 100
    assert restart(of, "ann") == supervisor.Granted(1)
    assert of.part("restart_permit:ann.1", "Renewed").deadline_ms == 150
    of.elapse("restart_permit:ann.1", "Renewed")
    of.elapse("restart_permit:*.1", "Renewed")
    assert restart(of, "ann") == supervisor.Granted(1)
    assert of.record("restart_permit:ann.1").used == 2


def test_a_permit_is_held_from_the_answer_to_the_restart() -> None:
    """However long the worker rests, and however late its messages are."""
    of = desk(1, 1)
    assert asks(of, "ann") == supervisor.Granted(1)
    assert of.record("restart_permit:*.1").worker == "ann"
    assert isinstance(asks(of, "bob"), supervisor.Refused)


def test_a_gone_worker_returns_its_unused_permits() -> None:
    """So that another one may use those of all."""
    of = desk(1, 1)
    asks(of, "ann")
    of.hear("worker/ann", "worker_slot:ann", worker_slot.WorkerGone("enough"))
    assert {of.state("restart_permit:ann.1"), of.state("restart_permit:*.1")} == {"Free"}
    assert restart(of, "bob") == supervisor.Granted(1)


def test_a_fleet_without_permits_restarts_no_agent() -> None:
    """An agent that asks all the same is told so."""
    of = board(make("T1"))
    of.hear("worker/ann", "worker_slot:ann", worker_slot.WorkWanted())
    assert asks(of, "ann") == supervisor.Refused("it is not restarted")


def test_restart_permits_exist_only_in_a_plan_with_restarts() -> None:
    """One that says so has permits on its board, and a supervision for each agent that may be restarted at all."""
    agents = (AgentPlan("ann", restart=Restart(2, 7, PAUSE)), AgentPlan("bob", restart=Restart(0)))
    plan = Plan("p", agents, (TaskPlan("T1", "do it"),), restarts=Intensity(1, 9))
    desk_of, ann, bob = (envelope.event for _, envelope in opening(plan, 0))
    assert isinstance(desk_of, Opened)
    assert {ref: each.window_ms for ref, each in desk_of.records.items() if ref.startswith("restart_permit:")} == {
        "restart_permit:ann.1": 7,
        "restart_permit:ann.2": 7,
        "restart_permit:*.1": 9,
    }
    assert isinstance(ann, Opened)
    assert ann.records["supervisor"] == supervisor.Supervisor(name="ann", pause=PAUSE)
    assert ann.records["session"].supervised
    assert isinstance(bob, Opened)
    assert "supervisor" not in bob.records
    assert not bob.records["session"].supervised
    for _, envelope in opening(Plan("p", agents, ()), 0):
        assert isinstance(envelope.event, Opened)
        assert not [ref for ref in envelope.event.records if ref.startswith(("restart_permit", "supervisor"))]


@pytest.mark.parametrize(
    ("duration_ms", "said"), [(3_600_000, "1 h"), (5_400_000, "90 min"), (30_000, "30 s"), (1_500, "1500 ms")]
)
def test_a_window_is_said_in_its_largest_whole_unit(duration_ms: int, said: str) -> None:
    """It is in the reason of a quarantine."""
    assert span(duration_ms) == said


@pytest.mark.parametrize("wrong", [{"max_restarts": -1}, {"window_ms": 0}])
def test_an_intensity_that_could_never_be_is_refused(wrong: dict[str, int]) -> None:
    """By the name of its field."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Intensity(**wrong)


def test_nothing_is_owed_to_an_agent_that_is_up() -> None:
    """To one that is down it is: it is brought back, or quarantined."""
    owed = {state for state in State if not supervisor.machine.settled(supervisor.Supervisor(state))}
    assert owed == {State.ASKING, State.RESTING}


def test_a_held_or_spent_permit_is_not_given_out() -> None:
    """And one that is free has nothing to be given back."""
    for state in (restart_permit.State.HELD, restart_permit.State.SPENT):
        assert not hasattr(
            restart_permit.machine.step(restart_permit.RestartPermit(state, "ann"), restart_permit.Reserved("bob")),
            "record",
        )
    assert State.QUARANTINED in supervisor.machine.final


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("rule", "prop"),
    [
        ("dismiss", "an agent that was told to stop is not restarted"),
        ("give_back", "with no message in flight, only agents about to restart hold permits"),
    ],
)
def test_a_rule_that_is_lost_breaks_a_property(rule: str, prop: str) -> None:
    """What simulations hardly ever come to, the check does: a stop in the moment in which an agent is down."""
    target = named("fleet-restarts")
    bounds = replace(target.bounds, states=3_000, compared=0)
    assert prop in [each.name for each in check(without(rule), opening=target.opening, bounds=bounds).broken()]
