"""``run --dry-run``: what a run would do, without any of it."""

from pathlib import Path

import pytest

from fleet_sandbox import Sandbox
from lifefold.core.fleet import TaskPlan
from lifefold.interpreters.cli.dry_run import steps


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def _files(sandbox: Sandbox) -> dict[str, int]:
    """Every file below the sandbox with the time of its last change; SQLite adds and removes its own meanwhile."""
    return {str(path): path.stat().st_mtime_ns for path in sandbox.folder.rglob("*") if path.is_file()}


def _dry(sandbox: Sandbox, *options: str, code: int = 0) -> str:
    """Rehearse a run, which must change no file; return what it prints."""
    before = _files(sandbox)
    done = sandbox.call("run", str(sandbox.fleet), "--dry-run", *options, code=code)
    assert _files(sandbox) == before
    return done.stdout + done.stderr


def test_a_new_fleet_is_described_and_nothing_is_changed(sandbox: Sandbox) -> None:
    """Log, worktrees, limits, agents, order, and what an operator will be asked."""
    sandbox.prepare("plain-1", "plain-2", "plain-3", agents=2)
    sandbox.demand("", "approve_plan = true").demand("plain-1", 'depends_on = ["plain-3"]', 'approval = "merge"')
    sandbox.demand("plain-2", 'role = "writer"').settle("count = 2\n", 'count = 2\nroles = ["writer"]\n')
    sandbox.demand("plain-3", "priority = 1")
    said = _dry(sandbox)
    assert f"log: {sandbox.log}, which is new" in said
    assert f"repository: {sandbox.folder}/repo; work is merged into its branch main" in said
    assert f"worktrees: {sandbox.log}.files/worktrees, one for each agent" in said
    assert "a session takes at most 1m00s" in said
    order = [line.strip() for line in said.splitlines() if "plain-" in line and "for agent" in line]
    assert [line.partition(":")[0] for line in order] == ["1. plain-3", "1. plain-2", "2. plain-1"]
    assert order[0].startswith("1. plain-3: priority 1; for ")
    assert order[1].startswith("1. plain-2: priority 2; for ")
    assert "for agent-1 or agent-2; after plain-3; verified by test -s plain-1.txt" in order[2]
    assert "the plan, before its first task: lifefold approve" in said
    assert "the work of plain-1, before its merge" in said
    assert said.endswith("nothing was begun, and nothing is changed\n")


def test_folders_within_a_repository_refuse_a_rehearsal_as_they_refuse_a_run(sandbox: Sandbox) -> None:
    """A fleet file in a repository that it does not name: agents would commit on its branch."""
    sandbox.prepare("plain-1", repository=False)
    (sandbox.folder / "repo").mkdir(exist_ok=True)
    sandbox.git("init", "--quiet", str(sandbox.folder))
    assert "fleet.repository: No repository is named" in _dry(sandbox, code=2)


def test_what_refuses_a_run_refuses_its_rehearsal(sandbox: Sandbox) -> None:
    """All mistakes of the file, and a repository in which no fleet can work."""
    sandbox.prepare("plain-1")
    sandbox.git("checkout", "--quiet", "--detach")
    assert "No branch is checked out" in _dry(sandbox, code=2)
    sandbox.demand("plain-1", 'role = "writer"', "priority = 0")
    said = _dry(sandbox, code=2)
    assert "tasks.plain-1.role" in said
    assert "tasks.plain-1.priority" in said


def test_a_begun_fleet_is_described_with_what_is_left_and_with_changes_of_its_file(sandbox: Sandbox) -> None:
    """Tasks that are closed are not named again; after the end ``--again`` describes the next log."""
    sandbox.prepare("plain-1", "plain-2", gates=("plain-2",))
    with sandbox.running() as run:
        run.until("task plain-1", "CLOSED")
        with sandbox.at_gate("plain-2"):
            run.process.kill()
    sandbox.kill_all()
    sandbox.settle('prompt = "Write plain-2.txt"', 'prompt = "Write it to plain-2.txt"')
    sandbox.call("status")  # SQLite ends what the killed writer has left; every reader of the log does that
    said = _dry(sandbox)
    assert "1 task to do" in said
    assert f"log: {sandbox.log}, which the run continues" in said
    assert "tasks.plain-2.prompt: was" in said
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--accept")
    sandbox.fleet.write_text(sandbox.fleet.read_text() + '\n[[tasks]]\nid = "plain-3"\nprompt = "x"\n')
    said = _dry(sandbox, "--again")
    assert f"log: {sandbox.log.with_name('sandbox.run-2.db')}, which is new" in said
    assert "1. plain-3: for agent; not verified" in said
    assert "plain-2" not in said


def test_the_steps_are_in_the_order_in_which_the_board_claims_tasks() -> None:
    """By dependency, then by priority, then as in the file; a dependency outside the list is done already."""
    tasks = [
        TaskPlan("late", "x", depends_on=("last", "done")),
        TaskPlan("low", "x", priority=5),
        TaskPlan("last", "x", depends_on=("low",)),
        TaskPlan("high", "x", priority=1),
    ]
    assert [[each.id for each in step] for step in steps(tasks)] == [["high", "low"], ["last"], ["late"]]
