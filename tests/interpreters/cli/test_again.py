"""The open tasks of an ended fleet are done in a new log. No closed task is done twice."""

from fleet_sandbox import Sandbox


def _again(sandbox: Sandbox, code: int = 0) -> str:
    """Run the fleet file with --again, and return what it says."""
    done = sandbox.call("run", str(sandbox.fleet), "--transitions", "--again", code=code)
    return done.stdout + done.stderr


def test_what_was_not_closed_is_done_in_a_new_log_with_what_it_has_failed_by(sandbox: Sandbox) -> None:
    """What depends on it, too; the fleet file may be another one, the old log stays, and commands find the new one.

    The agent crashes unless its prompt says that it has failed.
    """
    sandbox.prepare("plain-1", "crash-1", "plain-2")
    sandbox.demand("crash-1", "max_retries = 0").demand("plain-2", 'depends_on = ["plain-1", "crash-1"]')
    assert "--again" in sandbox.run(code=1)
    before = sandbox.log.read_bytes()
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace("300ms", "400ms"))
    told = _again(sandbox)
    assert "2 of 2 tasks closed" in told
    assert f"the log is {sandbox.log.with_name('sandbox.run-2.db')}" in told
    assert [sandbox.sessions(task) for task in ("plain-1", "crash-1", "plain-2")] == [1, 2, 1]
    assert len(sandbox.merges()) == 3
    assert sandbox.log.read_bytes() == before
    assert [task["id"] for task in sandbox.json("tasks")] == ["crash-1", "plain-2"]
    assert "2 of 2 tasks closed" in sandbox.call("run", str(sandbox.fleet), "--transitions").stdout
    assert "is left to do" in _again(sandbox, code=2)


def test_nothing_is_taken_up_from_a_log_that_is_not_over_or_was_taken_up_before(sandbox: Sandbox) -> None:
    """It is said what to do instead, and nothing has changed."""
    sandbox.prepare("crash-1", "plain-1", repository=False)
    sandbox.demand("crash-1", "max_retries = 0")
    assert "without --again this command begins the fleet" in _again(sandbox, code=2)
    assert not sandbox.log.exists()
    assert "crash-1: failed" in sandbox.run(code=1)
    _again(sandbox)
    old = sandbox.call("run", str(sandbox.fleet), "--again", "--db", str(sandbox.log), code=2).stderr
    assert "sandbox.run-2.db continues" in old
    assert sorted(sandbox.log.parent.glob("*.db")) == [sandbox.log, sandbox.log.with_name("sandbox.run-2.db")]


def test_what_is_closed_is_closed_on_the_branch_that_it_was_merged_into(sandbox: Sandbox) -> None:
    """So the next run goes on there, whatever is checked out; and not in another repository, or in none."""
    sandbox.prepare("plain-1", "crash-1")
    sandbox.demand("crash-1", "max_retries = 0")
    sandbox.run(code=1)
    sandbox.git("checkout", "--quiet", "-b", "other", "main~1")
    assert "the branch main" in _again(sandbox)
    assert {"plain-1.txt", "crash-1.txt"} <= set(sandbox.git("ls-tree", "--name-only", "main").split())


def test_what_is_closed_is_nothing_in_another_repository_or_in_none(sandbox: Sandbox) -> None:
    """It is refused to go on there."""
    sandbox.prepare("plain-1", "crash-1")
    sandbox.demand("crash-1", "max_retries = 0")
    sandbox.run(code=1)
    (sandbox.folder / "repo").rename(sandbox.folder / "gone")
    (sandbox.folder / "repo").mkdir()
    sandbox.git("init", "--quiet", "--initial-branch=main")
    sandbox.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "--allow-empty", "-m", "x")
    assert "another repository" in _again(sandbox, code=2)
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('repository = "repo"', ""))
    assert "had a repository" in _again(sandbox, code=2)


def test_what_the_first_run_has_left_uncommitted_is_kept_as_salvage(sandbox: Sandbox) -> None:
    """When the next one takes the fleet's name over."""
    sandbox.prepare("crash-1")
    sandbox.demand("crash-1", "max_retries = 0")
    agent = sandbox.folder / "agent.py"
    agent.write_text("import pathlib\npathlib.Path('half.txt').write_text('half')\n" + agent.read_text())
    sandbox.run(code=1)
    _again(sandbox)
    kept = sandbox.git("for-each-ref", "--format=%(refname)", "refs/lifefold/sandbox/salvage").split()
    assert any("half.txt" in sandbox.git("ls-tree", "--name-only", each).split() for each in kept), kept


def test_a_task_that_is_added_to_the_next_run_knows_what_was_closed_before(sandbox: Sandbox) -> None:
    """It has another name, and need not wait for it."""
    sandbox.prepare("plain-1", "crash-1", repository=False, gates=["plain-2"])
    sandbox.demand("crash-1", "max_retries = 0")
    sandbox.run(code=1)
    sandbox.fleet.write_text(sandbox.fleet.read_text() + '[[tasks]]\nid = "plain-2"\nprompt = "x"\n')
    with sandbox.running("--again") as run:
        with sandbox.at_gate("plain-2"):
            same = ("task", "add", "--prompt", "x", "--id")
            assert "there is a task plain-1 already" in sandbox.call(*same, "plain-1", code=2).stderr
            assert "plain-3: added" in sandbox.call(*same, "plain-3", "--depends-on", "plain-1").stdout
        assert "3 of 3 tasks closed" in run.rest()


def test_a_cancelled_task_is_not_done_again(sandbox: Sandbox) -> None:
    """Nor is what needs it: that is said."""
    sandbox.prepare("crash-1", "plain-1", "plain-2", repository=False, gates=["plain-2"])
    sandbox.demand("crash-1", "max_retries = 0").demand("plain-1", 'depends_on = ["plain-2"]')
    with sandbox.running() as run:
        with sandbox.at_gate("plain-2"):
            run.until("task crash-1", "FAILED")
            assert "the fleet of" in _again(sandbox, code=2)
            assert sandbox.call("cancel", "plain-2").stdout.startswith("plain-2: cancelled")
            run.until("task plain-2", "CANCELLED")
        run.rest()
    told = _again(sandbox)
    assert "left out: plain-1: it depends on a cancelled task" in told
    assert "1 of 1 tasks closed" in told


def test_a_task_of_an_earlier_log_is_found_there(sandbox: Sandbox) -> None:
    """Commands look into the latest log, which does not have it; they name the log and the command."""
    sandbox.prepare("plain-1", "crash-1", repository=False)
    sandbox.demand("crash-1", "max_retries = 0")
    sandbox.run(code=1)
    _again(sandbox)
    new = sandbox.log.with_name("sandbox.run-2.db")
    where = f"plain-1 is not in .lifefold/{new.name}: it is closed in the earlier log .lifefold/{sandbox.log.name}; "
    for command in (["why", "plain-1"], ["cancel", "plain-1"], ["log", "--task", "plain-1"]):
        assert where in sandbox.call(*command, code=2).stderr
    assert "plain-1 is closed" in sandbox.call("why", "plain-1", "--db", f".lifefold/{sandbox.log.name}").stdout
    assert "there is no task 'plain-9'" in sandbox.call("why", "plain-9", code=2).stderr
    new.with_name("sandbox.run-2.db").rename(new.with_name("sandbox.run-3.db"))
    sandbox.log.write_text("damaged")
    assert (
        "there is no task 'plain-1'"
        in sandbox.call("why", "plain-1", "--db", ".lifefold/sandbox.run-3.db", code=2).stderr
    )


def test_a_log_that_a_new_log_continues_says_so(sandbox: Sandbox) -> None:
    """A command for it would change nothing that happens."""
    sandbox.prepare("plain-1", "crash-1", repository=False)
    sandbox.demand("crash-1", "max_retries = 0")
    sandbox.run(code=1)
    _again(sandbox)
    old, new = f".lifefold/{sandbox.log.name}", ".lifefold/sandbox.run-2.db"
    refused = sandbox.call("cancel", "crash-1", "--db", old, code=2).stderr
    assert f"{old}: the fleet is over, and {new} continues it; give the command with --db {new}" in refused
    assert f"The fleet is over in this log; {new} continues it." in sandbox.call("why", "crash-1", "--db", old).stdout


def test_commands_for_a_fleet_that_is_over_promise_no_run_that_does_not_come(sandbox: Sandbox) -> None:
    """What they can still do is said, or why they are refused."""
    sandbox.prepare("plain-1", "crash-1", "plain-2", repository=False)
    sandbox.demand("crash-1", "max_retries = 0").demand("plain-2", 'depends_on = ["crash-1"]')
    sandbox.settle('name = "sandbox"\n', 'name = "sandbox"\n[fleet.budget]\nsessions = 50\n')
    sandbox.run(code=1)
    refused = sandbox.call("budget", "--add-sessions", "3", code=2).stdout
    assert "nothing more is spent in this log; a new log has the budgets of the fleet file" in refused
    told = sandbox.call("cancel", "plain-2").stdout
    assert "--again leaves it out, with what depends on it" in told
    assert "the next run acts on it" not in told
    left = _again(sandbox)
    assert "left out" not in left
    assert "1 of 1 tasks closed" in left
