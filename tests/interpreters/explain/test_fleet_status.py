"""Status: what the log says of a fleet, computed from its aggregates."""

from functools import partial

import pytest

from aggregate_hand import Hand
from fleet_driver import Driver
from lifefold.core.fleet import AgentPlan, Plan, Talks, TaskPlan, opening
from lifefold.core.fleet.board import budget, fleet_task, intake, worker_slot
from lifefold.core.fleet.dispatch import budgets, plan_approval
from lifefold.core.fleet.system import plan_change
from lifefold.core.fleet.system.plan_difference import TaskChange
from lifefold.core.fleet.worker import desired_state, mailbox, question
from lifefold.core.fleet.worker.conversation_model import Began
from lifefold.core.fleet.worker.question import Answer, Kind, QuestionAnswered, QuestionAsked, Terms, Verdict
from lifefold.core.kernel import Entity, Envelope, Opened, Reaction, Record, RunnerRecovered
from lifefold.core.lifecycles import approval, session, task
from lifefold.core.lifecycles.budget.account import Account
from lifefold.core.lifecycles.budget.amounts import Resource
from lifefold.core.lifecycles.session import Limits
from lifefold.core.lifecycles.session_profiles import LimitsChanged
from lifefold.effects import Begin, RunSession
from lifefold.interpreters.cli.wording import next_of
from lifefold.interpreters.explain import pending, status, task_status, timers
from lifefold.interpreters.explain.why.fleet_view import look
from lifefold.interpreters.explain.why.options import onward
from service_hand import ends, send, serving

PLAN = Plan(
    "plan",
    (AgentPlan("bob"), AgentPlan("ann")),
    (TaskPlan("T2", "do that", (), (), 1, 2), TaskPlan("T1", "do it", depends_on=("T2",), max_retries=0)),
)


def stopped_when(state: str) -> Driver:
    """Return a fleet at the moment when bob's session has come to a state."""
    return Driver(PLAN).run(until=lambda driver: bob_state(driver) == state)


def bob_state(driver: Driver) -> str:
    """Return the state of bob's session; empty before there is one."""
    return driver.record("worker/bob", "session").state.value if "worker/bob" in driver.aggregates else ""


def bob(driver: Driver) -> status.AgentStatus:
    """Return bob's status."""
    return status.agent_status(driver.aggregates["worker/bob"])


def test_a_working_agent_shows_its_task_and_its_process() -> None:
    """Who, what was asked, what it does, since when."""
    shown = bob(stopped_when("Running"))
    assert (shown.name, shown.desired_state, shown.state, shown.task, shown.doing) == (
        "bob",
        "Run",
        "Running",
        "T2",
        "Working",
    )
    assert (shown.session_seq, shown.sessions, shown.processes, shown.timer, shown.reason) == (0, 1, 1, None, "")
    assert (shown.consecutive_errors, shown.total_errors, shown.messages) == (0, 0, 0)


def test_a_working_agent_shows_the_conversation_that_its_session_has() -> None:
    """One that its program has not named yet begins; an agent without a task shows none."""
    talks = AgentPlan("bob", talks=Talks(chooses=True, resumes=True))
    driver = Driver(Plan("plan", (talks,), PLAN.tasks)).run(until=lambda driver: bob_state(driver) == "Running")
    chosen = driver.record("worker/bob", "conversation").id
    assert bob(driver).conversation == f"begins conversation {chosen}"
    driver.deliver("worker/bob", Envelope("conversation", Began("C1"), driver.now_ms + 1))
    assert bob(driver).conversation == "begins conversation C1"
    driver.deliver("worker/bob", Envelope("session", session.UrgentMessage(), driver.now_ms + 2))
    assert bob(driver).conversation == "resumes conversation C1"
    assert bob(stopped_when("Running")).conversation == ""
    assert bob(driver.run()).conversation == ""


def test_an_agent_without_work_shows_no_task() -> None:
    """Also after it has had one."""
    driver = stopped_when("BuildingPrompt")
    assert (bob(driver).doing, bob(driver).task, bob(driver).processes) == ("Wanting", "", 0)
    done = bob(driver.run())
    assert (done.state, done.doing, done.task, done.desired_state, done.reason) == (
        "Stopped",
        "Idle",
        "",
        "Stop",
        "no work is left",
    )


def test_an_interrupted_agent_shows_its_messages_and_the_timer_that_comes_next() -> None:
    """The timer with its deadline; the process is there until its end is confirmed."""
    driver = stopped_when("Running")
    driver.post("worker/bob", "mailbox", mailbox.OperatorMessageArrived("look"))
    driver.run(until=lambda now: bob_state(now) == "Interrupting")
    shown = bob(driver)
    assert (shown.messages, shown.processes) == (1, 1)
    assert shown.timer == timers.Timer("GraceExceeded", shown.since_ms + 5_000)


def test_a_running_session_shows_when_its_time_is_up() -> None:
    """Its time-out comes from the start; where there is none, nothing is shown."""
    plan = Plan("plan", (AgentPlan("bob", Limits(session_timeout_ms=60_000)),), PLAN.tasks)
    driver = Driver(plan).run(until=lambda now: bob_state(now) == "Running")
    shown = bob(driver)
    assert shown.timer == timers.Timer("SessionTimeout", shown.since_ms + 60_000)


def test_a_running_session_keeps_the_time_limit_that_it_began_with() -> None:
    """The changed limits of its agent hold from the next session on, and `status` and `why` do not show them before."""
    plan = Plan("plan", (AgentPlan("bob", Limits(session_timeout_ms=60_000)),), PLAN.tasks)
    driver = Driver(plan).run(until=lambda now: bob_state(now) == "Running")
    driver.post("worker/bob", "session", LimitsChanged(Limits(session_timeout_ms=30_000)))
    driver.run(until=lambda now: now.record("worker/bob", "session").limits.session_timeout_ms == 30_000)
    shown = bob(driver)
    assert shown.timer == timers.Timer("SessionTimeout", shown.since_ms + 60_000)
    assert look(driver.aggregates, "T2", shown.since_ms).time_limit_ms("bob") == 60_000


def test_an_adopted_session_keeps_the_time_limit_that_it_began_with() -> None:
    """The next runner is asked for the session that was begun, and `status` and `why` show its limit."""
    plan = Plan("plan", (AgentPlan("bob", Limits(session_timeout_ms=60_000)),), PLAN.tasks)
    driver = Driver(plan).run(until=lambda now: bob_state(now) == "Running")
    since_ms = bob(driver).since_ms
    driver.deliver("worker/bob", Envelope("session", LimitsChanged(Limits(session_timeout_ms=30_000)), driver.now_ms))
    found = driver.deliver("worker/bob", Envelope("", RunnerRecovered(10), driver.now_ms, "runner"))
    assert isinstance(found, Reaction)
    (begun,) = (each.effect for each in found.effects if isinstance(each.effect, Begin) and each.entity == "session")
    assert isinstance(begun.activity, RunSession)
    assert (begun.activity.timeout_ms, begun.resumed) == (60_000, True)
    assert bob(driver).timer == timers.Timer("SessionTimeout", since_ms + 60_000)
    assert look(driver.aggregates, "T2", since_ms).time_limit_ms("bob") == 60_000


def test_why_says_of_a_changed_time_limit_that_it_is_not_that_of_the_present_session() -> None:
    """Each session is ended after the same time only while the limit is unchanged."""
    plan = Plan("plan", (AgentPlan("bob", Limits(session_timeout_ms=60_000)),), PLAN.tasks)
    driver = Driver(plan).run(until=lambda now: bob_state(now) == "Running")
    view = partial(look, driver.aggregates, "T2", driver.now_ms)
    assert onward(view()).endswith("has ended; each is ended after 1 min at the latest.")
    driver.deliver("worker/bob", Envelope("session", LimitsChanged(Limits(session_timeout_ms=90_000)), driver.now_ms))
    assert onward(view()).endswith("has ended; the present one is ended after 1 min at the latest.")


def test_a_session_whose_question_has_waited_shows_no_time_limit() -> None:
    """The log does not have how long the limit has stood still."""
    limited = AgentPlan("bob", Limits(session_timeout_ms=60_000))
    driver = Driver(Plan("plan", (limited,), PLAN.tasks, questions=Terms())).run(
        until=lambda now: bob_state(now) == "Running"
    )
    shown = bob(driver).timer
    assert shown is not None
    assert shown.event == "SessionTimeout"
    q = driver.record("worker/bob", question.REF)
    asked = QuestionAsked(q.task, q.epoch, q.token, "a", Kind.QUESTION, text="Which?")
    assert isinstance(driver.deliver("worker/bob", Envelope(question.REF, asked, driver.now_ms + 1)), Reaction)
    assert bob(driver).timer is None
    answer = QuestionAnswered(1, Answer(Verdict.ANSWERED, "this"))
    assert isinstance(driver.deliver("worker/bob", Envelope(question.REF, answer, driver.now_ms + 2)), Reaction)
    assert bob(driver).timer is None


def test_agents_come_by_name_and_tasks_in_the_order_of_the_plan() -> None:
    """Whatever the order in which they were made."""
    driver = Driver(PLAN).run()
    assert [each.name for each in status.agents(driver.aggregates)] == ["ann", "bob"]
    assert [each.id for each in task_status.tasks(driver.aggregates)] == ["T2", "T1"]


@pytest.mark.parametrize("when", ["Running", "end"])
def test_a_task_shows_what_the_board_has_of_it(when: str) -> None:
    """Owner and claims while it is worked on, its commit when it is closed."""
    driver = stopped_when("Running") if when == "Running" else Driver(PLAN).run()
    first, second = task_status.tasks(driver.aggregates)
    assert (first.id, first.priority, first.depends_on, first.max_retries) == ("T2", 1, (), 2)
    assert (second.id, second.priority, second.depends_on, second.max_retries) == ("T1", 2, ("T2",), 0)
    if when == "Running":
        assert (first.state, first.settled, first.owner, first.attempts, first.commit) == (
            "CLAIMED",
            False,
            "bob",
            1,
            "",
        )
        assert (second.state, second.settled, second.attempts) == ("OPEN", False, 0)
    else:
        assert [(each.state, each.settled, each.owner, each.commit) for each in (first, second)] == [
            ("CLOSED", True, "", "c0ffee")
        ] * 2
        assert (first.retries, first.reason) == (0, "")
        assert first.since_ms <= second.since_ms


def statuses(board: Hand) -> dict[str, task_status.TaskStatus]:
    """Return the status of every task on a board."""
    return {each.id: each for each in task_status.tasks({"board": board.aggregate})}


def test_a_failed_task_shows_its_next_retry_and_the_tasks_that_it_blocks() -> None:
    """Until it is opened again; one that is tried no more has nothing to wait for."""
    first = fleet_task.FleetTask(state=task.State.OPEN, id="T1", role="cook", files=("a", "b"), max_retries=1, limit=1)
    second = fleet_task.FleetTask(state=task.State.OPEN, id="T2", ordinal=1, depends_on=("T1",))
    board = Hand(
        "board", {"task:T1": first, "task:T2": second, "worker_slot:ann": worker_slot.WorkerSlot(roles=("cook",))}
    )
    board.give("worker_slot:ann", worker_slot.WorkWanted()).give("task:T1", task.Failed(1, "no"))
    shown = statuses(board)["T1"]
    assert (shown.role, shown.files, shown.parent, shown.blocked_by) == ("cook", ("a", "b"), "", "")
    assert shown.timer == timers.Timer("Rested", board.now_ms + 30_000)
    board.give("task:T1", fleet_task.RetryGranted())
    assert statuses(board)["T1"].timer is None
    board.give("worker_slot:ann", worker_slot.WorkWanted()).give("task:T1", task.Failed(2, "no"))
    assert (statuses(board)["T1"].timer, statuses(board)["T2"].blocked_by) == (None, "T1")


REASONED = (task.State.OPEN, task.State.FAILED, task.State.BLOCKED, task.State.CANCELLED, task.State.ORPHANED)


@pytest.mark.parametrize("state", list(task.State))
def test_a_task_shows_a_reason_in_the_states_that_it_is_a_reason_of(state: task.State) -> None:
    """An earlier attempt's failure is not shown as the reason why verified work waits for approval, or is done."""
    record = fleet_task.FleetTask(state=state, id="T1", owner="bob", reason="Error(Killed (signal 9))")
    shown = task_status.task_status(Entity("task:T1", record)).reason
    assert shown == ("Killed (signal 9)" if state in REASONED else "")


def test_done_work_that_was_given_back_shows_why() -> None:
    """It has no owner then, and waits for an agent to merge it."""
    record = fleet_task.FleetTask(state=task.State.DONE, id="T1", reason="its agent has stopped")
    assert task_status.task_status(Entity("task:T1", record)).reason == "its agent has stopped"


def test_a_split_task_shows_its_wait_and_its_parts() -> None:
    """As one that waits for an operator does."""
    whole = fleet_task.FleetTask(state=task.State.OPEN, id="T1", most_subtasks=1, subtasks_ms=7)
    asking = fleet_task.FleetTask(state=task.State.OPEN, id="T2", ordinal=1, needs_approval=True, approval_ms=9)
    board = Hand(
        "board",
        {
            "task:T1": whole,
            "task:T2": asking,
            "worker_slot:ann": worker_slot.WorkerSlot(),
            "worker_slot:bob": worker_slot.WorkerSlot(),
        },
    )
    board.give("worker_slot:ann", worker_slot.WorkWanted()).give("worker_slot:bob", worker_slot.WorkWanted())
    board.give("task:T2", task.Completed(1)).give("task:T2", fleet_task.Parked(1))
    board.give("task:T1", fleet_task.Split(1, (fleet_task.Subtask("a part"),)))
    shown = statuses(board)
    assert (shown["T1"].timer, shown["T2"].timer) == (
        timers.Timer("SubtasksOverdue", board.now_ms + 7),
        timers.Timer("ApprovalExpired", board.now_ms + 9),
    )
    assert (shown["T1+1"].parent, shown["T1+1"].timer) == ("T1", None)


def waits(board: Hand, *workers: Hand) -> list[tuple[str, tuple[str, ...], str]]:
    """Return what waits for an operator: about what, which, and the command."""
    there = {each.aggregate.name: each.aggregate for each in (board, *workers)}
    return [(each.about, each.names, each.command) for each in pending.waiting(there)]


def planned(name: str, ordinal: int = 0) -> fleet_task.FleetTask:
    """Return an undecided task."""
    return fleet_task.FleetTask(id=name, ordinal=ordinal)


def test_a_plan_waits_for_a_word_until_nothing_of_it_is_undecided() -> None:
    """As a whole, with the tasks that are left of it; decided one by one it waits no more."""
    board = Hand(
        "board",
        {
            "task:T2": planned("T2", 1),
            "task:T1": planned("T1"),
            "plan": plan_approval.Proposal(),
            "worker_slot:ann": worker_slot.WorkerSlot(),
        },
    )
    assert waits(board) == [("plan", ("T1", "T2"), "approve")]
    board.give("task:T1", task.Approved())
    assert waits(board) == [("plan", ("T2",), "approve")]
    one_by_one = Hand(
        "board",
        {"task:T1": planned("T1"), "plan": plan_approval.Proposal(), "worker_slot:ann": worker_slot.WorkerSlot()},
    )
    one_by_one.give("task:T1", task.Approved())
    assert waits(one_by_one) == []
    board.give("plan", plan_approval.PlanApproved())
    assert waits(board) == []


def test_tasks_with_the_same_place_in_the_plan_come_by_name() -> None:
    """The parts of a task have its place: shown, and approved with the plan, in the same order on every run."""
    names = [f"T{number}" for number in range(8, 0, -1)]
    undecided: dict[str, Record] = {f"task:{each}": planned(each) for each in names}
    board = Hand("board", undecided | {"plan": plan_approval.Proposal(), "worker_slot:ann": worker_slot.WorkerSlot()})
    assert [each.id for each in task_status.tasks({"board": board.aggregate})] == sorted(names)
    board.give("plan", plan_approval.PlanApproved())
    opened = [each.entity for each in board.reaction.transitions if each.machine == "task"]
    assert opened == [f"task:{each}" for each in sorted(names)]


def test_finished_work_waits_for_a_word_until_its_time_is_up() -> None:
    """With the moment at which silence becomes a refusal; agreed to, it waits no more."""
    asking = fleet_task.FleetTask(state=task.State.OPEN, id="T1", needs_approval=True, approval_ms=9)
    board = Hand("board", {"task:T1": asking, "worker_slot:ann": worker_slot.WorkerSlot()})
    board.give("worker_slot:ann", worker_slot.WorkWanted()).give("task:T1", task.Completed(1)).give(
        "task:T1", fleet_task.Parked(1)
    )
    (found,) = pending.waiting({"board": board.aggregate})
    assert found == pending.Waiting(pending.Awaited.TASK, ("T1",), "approve", board.now_ms, board.now_ms + 9)
    board.give("task:T1", approval.ApprovalGranted())
    assert waits(board) == []


def test_a_paused_agent_waits_for_a_word_with_the_reason_why_it_is() -> None:
    """And one that is held for a runner, or works, does not."""
    driver = stopped_when("Running")
    driver.post("worker/bob", "desired_state", desired_state.PauseWanted("lunch"))
    driver.post("worker/ann", "desired_state", desired_state.HoldWanted())
    driver.run(until=lambda now: now.record("worker/bob", "desired_state").state == "Pause")
    (found,) = pending.waiting(driver.aggregates)
    assert (found.about, found.names, found.command, found.reason, found.until_ms) == (
        "agent",
        ("bob",),
        "resume",
        "lunch",
        0,
    )


def test_no_operator_is_asked_to_resume_an_agent_that_is_gone() -> None:
    """A worker whose place cannot be made, and a service whose run fails once too often, while they are paused."""
    board = Hand(
        "board",
        {"task:T1": fleet_task.FleetTask(state=task.State.OPEN, id="T1"), "worker_slot:ann": worker_slot.WorkerSlot()},
    )
    records = dict(opening(PLAN, 0))["worker/bob"].event
    assert isinstance(records, Opened)
    worker, web = Hand("worker/bob", dict(records.records)), send(serving(max_consecutive_failures=1), "one")
    for each in (worker, web):
        each.give("desired_state", desired_state.PauseWanted("lunch"))

    def asked() -> list[tuple[str, ...]]:
        every = {"board": board.aggregate, "worker/bob": worker.aggregate, "service/web": web.aggregate}
        return [each.names for each in pending.waiting(every)]

    assert asked() == [("web",), ("bob",)]
    worker.report("session", "PrepareWorktree", session.FatalError("no disk"))
    assert asked() == [("web",)]
    ends(web, session.Error("I fail"))
    assert asked() == []


def test_a_fleet_that_is_kept_alive_says_that_it_waits_for_tasks() -> None:
    """As soon as all are settled, and until its intake is closed."""
    first = fleet_task.FleetTask(state=task.State.OPEN, id="T1")
    board = Hand("board", {"task:T1": first, "intake": intake.Intake(), "worker_slot:ann": worker_slot.WorkerSlot()})
    assert waits(board) == []
    board.give("task:T1", task.Cancelled())
    assert waits(board) == [("tasks", (), "task add")]
    board.give("intake", intake.LastTaskIn())
    assert waits(board) == []


def test_no_operator_is_waited_for_where_no_agent_is_left() -> None:
    """No word would change anything; nor before there is a board."""
    board = Hand(
        "board",
        {"task:T1": planned("T1"), "plan": plan_approval.Proposal(), "worker_slot:ann": worker_slot.WorkerSlot()},
    )
    board.give("worker_slot:ann", worker_slot.WorkerGone())
    assert waits(board) == []
    assert pending.waiting({}) == ()


def test_an_agent_that_has_spent_its_own_budget_waits_for_more() -> None:
    """Until it has gone home; tasks of others go on, and are not named."""
    own = budgets.of_agent("ann")
    line = budget.Line(Resource.SESSIONS, 1, Account(cap=1, spent=1))
    spent = budget.Budget(budget.State.SPENT, lines=(line,))
    worker_slots: dict[str, Record] = {
        "worker_slot:ann": worker_slot.WorkerSlot(),
        "worker_slot:bob": worker_slot.WorkerSlot(),
    }
    board = Hand("board", {"task:T1": fleet_task.FleetTask(state=task.State.OPEN, id="T1"), own: spent, **worker_slots})
    assert waits(board) == [("budget", ("ann",), "budget --agent ann --add-sessions 1")]
    board.give("worker_slot:ann", worker_slot.WorkerGone())
    assert waits(board) == []


def short(*spent: str) -> dict[str, Record]:
    """Return budgets of which nothing is left, by their references."""
    lines = (budget.Line(Resource.SESSIONS, 1, Account(cap=1, spent=1)),)
    return dict.fromkeys(spent, budget.Budget(budget.State.SPENT, lines=lines))


@pytest.mark.parametrize(
    ("spent", "lacks", "waits_for"),
    [
        ((), "", "waits for a task"),
        (("budget:agent/bob",), "its", "waits for its budget"),
        (("budget:fleet",), "the fleet's", "waits for the fleet's budget"),
        (("budget:agent/bob", "budget:fleet"), "its", "waits for its budget"),
        (("budget:agent/ann",), "", "waits for a task"),
    ],
)
def test_an_agent_without_a_budget_does_not_wait_for_a_task(spent: tuple[str, ...], lacks: str, waits_for: str) -> None:
    """A task that is ready is not given to it before its budget, or the fleet's, has something left."""
    driver = stopped_when("BuildingPrompt")
    slots = {f"worker_slot:{name}": worker_slot.WorkerSlot() for name in ("ann", "bob")}
    board = Hand("board", {**slots, **short(*spent)}).aggregate
    shown = next(each for each in status.agents({**driver.aggregates, "board": board}) if each.name == "bob")
    assert (shown.lacks, next_of(shown, 0)) == (lacks, waits_for)


@pytest.mark.parametrize(
    ("state", "is_removed"), [(task.State.CLOSED, False), (task.State.CANCELLED, True), (task.State.BLOCKED, True)]
)
def test_a_task_that_is_no_longer_in_the_plan_is_shown_so_whatever_its_state(
    state: task.State, *, is_removed: bool
) -> None:
    """A closed one is counted all the same, because its work is merged."""
    done, other = TaskPlan("T1", "do it"), TaskPlan("T2", "do that")
    change = plan_change.PlanChange(
        plan_change.State.IN_FORCE, (TaskChange(done, None),), Plan("plan", (), (other,)), meaning="file"
    )
    first = fleet_task.FleetTask(state=state, id="T1", reason="not wanted" if state is task.State.CANCELLED else "")
    second = fleet_task.FleetTask(state=task.State.OPEN, id="T2", ordinal=1)
    board = Hand("board", {"task:T1": first, "task:T2": second, plan_change.ref_of(1): change})
    shown = statuses(board)
    assert shown["T1"].reason.endswith("removed from the fleet file")
    assert (shown["T1"].removed, shown["T2"].removed, shown["T2"].reason) == (is_removed, False, "")
