"""Plans: the events that bring a fleet to life."""

from lifefold.core.fleet import AgentPlan, Plan, TaskPlan, opening
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.worker import assignment, desired_state, mailbox
from lifefold.core.kernel import Envelope, Opened
from lifefold.core.lifecycles import session, session_profiles, task

LIMITS = session.Limits(grace_ms=7)
PLAN = Plan(
    "plan",
    (AgentPlan("ann", LIMITS, 5), AgentPlan("bob")),
    (TaskPlan("T1", "do it", (("true",),), (), 1, 0), TaskPlan("T2", "do that", depends_on=("T1",))),
)


def test_a_fleet_is_opened_board_first_then_each_worker() -> None:
    """One input for each aggregate, so that no reader sees a half of it; its key makes a repetition recognisable."""
    inputs = list(opening(PLAN, 42))
    assert [name for name, _ in inputs] == ["board", "worker/ann", "worker/bob"]
    assert {(e.entity, e.at_ms, e.actor, e.key) for _, e in inputs} == {("", 42, "plan", "opened")}


def test_the_board_gets_all_tasks_open_and_a_seat_for_every_agent() -> None:
    """A task's place in the plan is its ordinal."""
    (_, envelope), *_ = opening(PLAN, 0)
    assert envelope == Envelope(
        "",
        Opened(
            {
                "task:T1": fleet_task.FleetTask(
                    task.State.OPEN, "T1", "do it", (("true",),), (), 1, 0, 0, limit=0, retry=PLAN.retry
                ),
                "task:T2": fleet_task.FleetTask(
                    task.State.OPEN, "T2", "do that", (), ("T1",), 2, 1, 3, retry=PLAN.retry
                ),
                "worker_slot:ann": worker_slot.WorkerSlot(),
                "worker_slot:bob": worker_slot.WorkerSlot(),
            }
        ),
        0,
        "plan",
        "opened",
    )


def test_a_worker_gets_its_four_parts_with_its_agents_limits() -> None:
    """The session has the agent's name and limits, the assignment the time that verification may take."""
    _, (_, ann), (_, bob) = opening(PLAN, 0)
    assert ann.event == Opened(
        {
            "desired_state": desired_state.DesiredState(),
            "mailbox": mailbox.Mailbox(),
            "assignment": assignment.Assignment(verify_timeout_ms=5),
            "session": session_profiles.SupervisedSession(name="ann", limits=LIMITS),
        }
    )
    assert isinstance(bob.event, Opened)
    assert bob.event.records["session"] == session_profiles.SupervisedSession(name="bob")
