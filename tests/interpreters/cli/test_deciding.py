"""Decisions of operators about tasks: accepted ones, refused ones with their reasons, and the alternatives."""

from pathlib import Path

import pytest

from fleet_log import ME, FleetLog, folded, said
from lifefold.core.fleet import AgentPlan, TaskPlan
from lifefold.core.fleet.board import fleet_task, worker_slot
from lifefold.core.fleet.dispatch import plan_approval
from lifefold.core.kernel import Event
from lifefold.core.lifecycles import approval, session, task
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.explain.task_words import is_in
from lifefold.interpreters.store import SqliteStore

T1 = TaskPlan("T1", "do it", max_retries=0)
T2 = TaskPlan("T2", "do that")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "fleet.db"


class Told:
    """Gives commands, and keeps what was printed."""

    def __init__(self, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._log, self._capsys = log, capsys

    def __call__(self, words: str, code: int = 0) -> str:
        """Return what a command prints, its complaint included."""
        assert main([*words.split(), "--db", str(self._log)]) == code
        printed = self._capsys.readouterr()
        return printed.out + printed.err

    def state(self, name: str) -> str:
        """Return the state of a task."""
        return str(folded(self._log).record("board", f"task:{name}").state)


@pytest.fixture
def tell(log: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    return Told(log, capsys)


def test_a_plan_is_approved_as_a_whole_and_once(log: Path, tell: Told) -> None:
    """All its tasks at once; a second time it is said that it was decided."""
    FleetLog(log, T1, T2, approve_plan=True)
    assert "plan: approved: agents get its tasks; the next run acts on it\n" in tell("approve --reason fine")
    assert [tell.state(name) for name in ("T1", "T2")] == ["OPEN", "OPEN"]
    assert [(each.entity, each.event, each.actor) for each in said(log)] == [
        ("plan", plan_approval.PlanApproved("fine"), ME)
    ]
    assert "plan: refused: the plan is Approved already" in tell("approve", 2)


def test_a_plan_is_rejected_with_a_reason(log: Path, tell: Told) -> None:
    """Its tasks are cancelled; without a reason, or with both the plan and a task, nothing is done."""
    FleetLog(log, T1, T2, approve_plan=True)
    assert "--plan" in tell("reject --reason no", 2)
    assert "--plan" in tell("reject --plan T1 --reason no", 2)
    assert "plan: rejected" in tell("reject --plan --reason no")
    assert [tell.state(name) for name in ("T1", "T2")] == ["CANCELLED", "CANCELLED"]


def test_planned_tasks_are_decided_one_by_one_and_then_the_plan_has_none_left(log: Path, tell: Told) -> None:
    """Several names in one command, a line for each; what was decided is not decided again."""
    FleetLog(log, T1, T2, TaskPlan("T3", "x"), approve_plan=True)
    assert len(tell("approve T1 T2 T1").splitlines()) == 2
    assert tell("reject T3 --reason no").startswith("T3: rejected: it is not done")
    assert [tell.state(name) for name in ("T1", "T2", "T3")] == ["OPEN", "OPEN", "CANCELLED"]
    assert next(line for line in tell("tasks").splitlines() if line.startswith("T3")).endswith(" no")
    assert "is cancelled: no" in tell("why T3")
    assert "all its tasks were decided one by one" in tell("approve", 2)
    assert "T1: refused: it is not begun: it does not wait for an approval now" in tell("approve T1", 2)


def test_a_fleet_without_a_plan_to_approve_says_so(log: Path, tell: Told) -> None:
    """And names the tasks whose work waits."""
    log_of_finished_work(log)
    printed = tell("approve", 2)
    assert "this fleet's plan needs no approval" in printed
    assert "waits for your approval: T1" in printed
    assert "nothing has changed; lifefold tasks --db" in printed


def log_of_finished_work(log: Path) -> FleetLog:
    """Write a log in which T1 is finished and waits for a person, and T2 is open."""
    asking = TaskPlan("T1", "do it", needs_approval=True, max_retries=1)
    return (
        FleetLog(log, asking, T2, approval_ms=3_600_000)
        .claimed("T1")
        .happens("board", "task:T1", task.Completed(1), fleet_task.Parked(1))
    )


def test_where_no_agent_is_left_no_task_is_said_to_wait_for_anything(log: Path, tell: Told) -> None:
    """Neither for a word, which would be refused, nor for a time at which nothing happens."""
    of = log_of_finished_work(log)
    assert "refused due" in tell("tasks")
    of.happens("worker/ann", "session", session.FatalError("no worktree"))
    of.happens("board", "worker_slot:ann", worker_slot.WorkerGone("its session has stopped"))
    assert "refused now" not in tell("tasks")
    assert "T1" not in tell("approve", 2).partition("nothing has changed")[0]


def test_finished_work_is_approved_and_nothing_is_completed_by_that(log: Path, tell: Told) -> None:
    """It is done, and is merged by a free worker. A second approval and a late rejection are answered with that."""
    log_of_finished_work(log)
    assert tell("approve T1").startswith("T1: approved: it is merged next")
    assert tell.state("T1") == "DONE"
    assert said(log)[0].event == approval.ApprovalGranted()
    assert "T1: refused: it is done, not merged: it is approved already" in tell("approve T1", 2)
    assert "T1: refused: it is done, not merged: it was approved" in tell("reject T1 --reason no", 2)


def test_finished_work_that_is_rejected_has_failed_for_that_reason(log: Path, tell: Told) -> None:
    """And is tried again with it, after a rest that is shown."""
    log_of_finished_work(log)
    assert tell("reject T1 --reason ugly").startswith("T1: rejected: it is tried again after a pause")
    record = folded(log).record("board", "task:T1")
    assert (record.state, record.failure) == ("FAILED", "ugly")
    assert "next try" in tell("tasks")


def test_a_rejection_without_a_reason_names_the_option_only_where_it_would_help(log: Path, tell: Told) -> None:
    """Work that waits needs a reason; another task is refused for its state, whatever the reason."""
    log_of_finished_work(log)
    assert f'a rejection needs a reason: lifefold reject T1 --reason "..." --db {log}' in tell("reject T1", 2)
    assert tell("reject T2", 2).startswith("T2: refused: it is not begun: it does not wait for an approval now")
    assert tell.state("T1") == "PENDING_APPROVAL"


def test_one_of_several_that_is_refused_is_told_beside_those_that_are_taken(log: Path, tell: Told) -> None:
    """The exit code is 0 as long as something was done."""
    log_of_finished_work(log)
    first, second = tell("cancel T1 T2").splitlines()
    assert first.startswith("T1: refused: it is waiting for approval")
    assert second.startswith("T2: cancelled;")


def test_a_word_without_text_is_bad_input(log: Path, tell: Told) -> None:
    """A reason that says nothing would be the reason of the next attempt."""
    FleetLog(log, T1)
    for words in (["reject", "T1", "--reason", " "], ["cancel", "T1", "--reason", "x" * 10_001]):
        assert main([*words, "--db", str(log)]) == 2
    assert tell.state("T1") == "OPEN"


def test_an_unknown_task_is_bad_input_and_names_those_that_are_like_it(log: Path, tell: Told) -> None:
    """Nothing is done then, not even to those that are known."""
    FleetLog(log, TaskPlan("parser", "x"), TaskPlan("printer", "x"))
    for command in ("approve", "cancel", "retry"):
        assert "there is no task 'parsr'; did you mean parser?" in tell(f"{command} printer parsr", 2)
    assert tell.state("printer") == "OPEN"


def test_a_log_without_a_fleet_says_so(log: Path, tell: Told) -> None:
    """No agent is there; a run has to begin first."""
    SqliteStore.create(log, {"fleet": "fleet"}).close()
    assert "begin with lifefold run FLEET.toml" in tell("cancel T1", 2)


def test_cancelling_says_what_is_blocked_by_it(log: Path, tell: Told) -> None:
    """A running session is ended by the next run; what depends on the task waits for nothing any more."""
    FleetLog(log, T1, TaskPlan("T2", "x", depends_on=("T1",)), TaskPlan("T3", "x")).claimed("T1")
    assert tell("cancel T1 --reason enough").startswith("T1: cancelled; blocked by that: T2;")
    assert (tell.state("T1"), tell.state("T2")) == ("CANCELLED", "BLOCKED")
    assert folded(log).record("board", "task:T1").reason == "enough"
    assert "T1: refused: it is cancelled: that is final" in tell("cancel T1", 2)


INSTEAD: dict[str, tuple[str, tuple[Event, ...], str]] = {
    "asking": ("PENDING_APPROVAL", (task.Completed(1), fleet_task.Parked(1)), "lifefold reject asking --reason"),
    "done": ("DONE", (task.Completed(1),), "when it is closed, git revert undoes the merge"),
    "merged": ("CLOSED", (task.Completed(1), task.Verified(1, "c0ffee")), "git revert -m 1 c0ffee undoes that"),
    "plain": ("CLOSED", (task.Completed(1), task.Verified(1)), "its work is done"),
    "rests": ("FAILED", (task.Failed(1, "no"),), "it can be cancelled when that begins"),
    "hopeless": ("FAILED", (task.Failed(1, "permission denied"),), "only lifefold retry hopeless"),
}
"""Tasks that cannot be cancelled: their states, their past, and the refusal."""


def test_what_cannot_be_cancelled_says_what_can_be_done_instead(log: Path, tell: Told) -> None:
    """A done or failed task cannot be (E16). Neither can one that waits for an operator, who can reject it."""
    agents = tuple(AgentPlan(f"agent-{name}") for name in INSTEAD)
    of = FleetLog(log, *(TaskPlan(name, "x", needs_approval=name == "asking") for name in INSTEAD), T2, agents=agents)
    for name, (_, events, _) in INSTEAD.items():
        of.claimed(name, f"agent-{name}").happens("board", f"task:{name}", *events)
    lines = tell(f"cancel {' '.join(INSTEAD)}", 2).splitlines()
    for line, (name, (state, _, words)) in zip(lines, INSTEAD.items(), strict=False):
        assert line.startswith(f"{name}: refused: it {is_in(state)}: ")
        assert words in line
    assert said(log) == []
    planned = FleetLog(log.with_name("planned.db"), T1, approve_plan=True)
    assert main(["cancel", "T1", "--db", str(planned.path)]) == 2
    assert planned.task("T1").state == "PLANNED"


@pytest.mark.parametrize(
    ("orphaned", "words"),
    [(task.OnDeath.VERIFY, "the work it has left is verified"), (task.OnDeath.REQUEUE, "its agent has given it back")],
)
def test_an_orphan_is_not_cancelled_and_it_is_said_what_becomes_of_it(
    log: Path, tell: Told, orphaned: task.OnDeath, words: str
) -> None:
    """What is left of it is looked at only where its task wants that."""
    of = FleetLog(log, TaskPlan("T1", "do it", (("true",),), orphaned=orphaned)).claimed("T1")
    of.happens("board", "task:T1", task.Orphaned(1, "it was killed"))
    told = tell("cancel T1", 2)
    assert told.startswith("T1: refused: it has lost its session: its session has died")
    assert words in told
    assert ("given it back" in told) is (orphaned is task.OnDeath.REQUEUE)


def test_a_failed_task_is_tried_once_more_at_once(log: Path, tell: Told) -> None:
    """Also one without retries, and at each command."""
    of = FleetLog(log, T1, T2).failed("T1")
    assert tell("retry T1").startswith("T1: is tried once more, at once")
    record = folded(log).record("board", "task:T1")
    assert (record.state, record.retries, record.max_retries) == ("OPEN", 1, 1)
    assert "T1: refused: it is not begun: it has not failed; lifefold why T1" in tell("retry T1", 2)
    assert of.task("T2").state == "OPEN"


def test_what_is_blocked_because_of_another_task_names_the_one_to_be_retried(log: Path, tell: Told) -> None:
    """Down to where the cause lies; when that is retried, everything goes on by itself."""
    third = TaskPlan("T3", "x", depends_on=("T2",))
    FleetLog(log, T1, TaskPlan("T2", "x", depends_on=("T1",)), third, TaskPlan("T4", "x")).failed("T1")
    printed = tell("retry T3", 2)
    assert "T3: refused: it is blocked: because of T2 because of T1, which has failed;" in printed
    assert "lifefold retry T1" in printed
    tell("retry T1")
    assert [tell.state(name) for name in ("T1", "T2", "T3")] == ["OPEN"] * 3


def test_a_task_blocked_by_a_cancelled_one_can_only_be_cancelled(log: Path, tell: Told) -> None:
    """Retrying it would be asking for nothing."""
    FleetLog(log, T1, TaskPlan("T2", "x", depends_on=("T1",)), TaskPlan("T3", "x"))
    tell("cancel T1")
    printed = tell("retry T2", 2)
    assert "because of T1, which is cancelled, for good; cancel this one: lifefold cancel T2" in printed


def test_a_task_that_is_blocked_by_no_other_one_goes_on(log: Path, tell: Told) -> None:
    """What it needs is there: a person says so."""
    FleetLog(log, T1, T2).claimed("T1").happens("board", "task:T1", task.Blocked("no key", 1))
    assert tell("retry T1").startswith("T1: goes on")
    assert tell.state("T1") == "OPEN"


def test_what_is_over_is_not_retried(log: Path, tell: Told, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with what can be done instead."""
    of = FleetLog(log, T1, T2, TaskPlan("T3", "x")).claimed("T1")
    of.happens("board", "task:T1", task.Completed(1), task.Verified(1, "c0ffee"))
    of.happens("board", "task:T2", task.Cancelled())
    printed = tell("retry T1 T2", 2)
    assert printed.count("lifefold task add --id") == 2
    over = FleetLog(log.with_name("over.db"), T1).claimed("T1")
    over.happens("board", "task:T1", task.Completed(1), task.Verified(1, "c0ffee"))
    assert "lifefold run FLEET.toml --again" in Told(over.path, capsys)("retry T1", 2)


def test_after_the_end_of_a_fleet_nothing_is_accepted_that_no_agent_will_do(log: Path, tell: Told) -> None:
    """Agents that have stopped stay so: it is said what to do instead."""
    FleetLog(log, T1).failed("T1")
    printed = tell("retry T1", 2)
    assert "all tasks are settled, and the fleet is over" in printed
    assert "lifefold run FLEET.toml --again" in printed
    assert "T1: refused: it has failed: all tasks are settled" in tell("cancel T1", 2)
    assert "retry T1 has it tried once more" not in tell("approve T1", 2)
    gone = FleetLog(log.with_name("gone.db"), T1, approve_plan=True, agents=(AgentPlan("bob"),))
    gone.happens("board", "worker_slot:bob", worker_slot.WorkerGone("enough"))
    assert main(["approve", "--db", str(gone.path)]) == 2
    assert main(["approve", "T1", "--db", str(gone.path)]) == 2
    assert said(gone.path) == []
    assert main(["reject", "--plan", "--reason", "no", "--db", str(gone.path)]) == 0


def test_a_task_that_is_cancelled_after_the_end_of_a_fleet_is_said_to_be_left_out_by_the_next_log(
    log: Path, tell: Told
) -> None:
    """No run with this log acts on it; what depends on a failed task is not retried there, either."""
    FleetLog(log, T1, TaskPlan("T2", "do that", depends_on=("T1",))).failed("T1")
    refused = tell("retry T2", 2)
    assert "T2: refused: it is blocked: it depends on T1, which has failed; all tasks are settled" in refused
    assert "lifefold retry T1" not in refused
    assert "a run with --again leaves it out, with the tasks that depend on it" in tell("why T2")
    assert tell("cancel T2").startswith(
        "T2: cancelled; the fleet is over, and lifefold run FLEET.toml --again leaves it out, with what depends on it"
    )


def test_work_that_no_agent_is_left_to_merge_is_neither_approved_nor_cancelled(log: Path, tell: Told) -> None:
    """Nothing is said to come that does not come."""
    of = log_of_finished_work(log)
    of.happens("board", "worker_slot:ann", worker_slot.WorkerGone("enough"))
    of.happens("board", "task:T1", approval.ApprovalGranted())
    for command in ("approve T1", "cancel T1", "retry T1"):
        assert "T1: refused: it is done, not merged: all agents have stopped for good" in tell(command, 2)
