"""Runs of fleets with ``merge = "branch"``: tasks are closed on branches, and nothing is merged."""

import shutil
from collections.abc import Sequence

import pytest

from fleet_sandbox import Sandbox
from git_sandbox import before_git

READY = "lifefold-ready/sandbox"


def branching(sandbox: Sandbox, *tasks: str, repository: bool = True, gates: Sequence[str] = ()) -> Sandbox:
    """Write a fleet whose work stays on branches."""
    sandbox.prepare(*tasks, repository=repository, gates=gates)
    return sandbox.settle("[fleet]\n", '[fleet]\nmerge = "branch"\n')


def branches(sandbox: Sandbox) -> list[str]:
    """Return the ready branches."""
    return sandbox.git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/lifefold-ready").split()


def test_verified_work_stays_on_a_branch_of_its_task(sandbox: Sandbox) -> None:
    """Run, tasks, show, why, log and diff name the branch; the target branch is as it was."""
    branching(sandbox, "plain-1", "crash-1")
    before = sandbox.git("rev-parse", "main")
    screen = sandbox.run()
    assert "2 of 2 tasks closed" in screen
    assert branches(sandbox) == [f"{READY}/crash-1", f"{READY}/plain-1"]
    assert sandbox.git("rev-parse", "main") == before
    assert sandbox.git("diff", "--name-only", "main", f"{READY}/plain-1").split() == ["plain-1.txt"]
    message = sandbox.git("log", "-1", "--format=%B", f"{READY}/crash-1")
    assert "Lifefold-Task: crash-1" in message
    assert "Lifefold-Claim: sandbox/crash-1/2" in message
    named = f"on branch {READY}/plain-1"
    for words in (screen, *(sandbox.call(*each).stdout for each in (("tasks",), ("show", "plain-1"), ("log",)))):
        assert named in words
    assert named in sandbox.call("why", "plain-1").stdout
    assert "+Write plain-1.txt" in sandbox.call("diff", "plain-1").stdout
    found = {each["id"]: each for each in sandbox.json("tasks")}
    assert found["plain-1"]["branch"] == f"{READY}/plain-1"
    assert found["plain-1"]["commit"] == sandbox.git("rev-parse", f"{READY}/plain-1").strip()


def test_approved_work_stays_on_a_branch_and_rejected_work_does_not(sandbox: Sandbox) -> None:
    """The approval is of the commit that becomes the branch."""
    gated = 'approval = "merge"\nmax_retries = 0\nprompt = "Write'
    branching(sandbox, "plain-1", "plain-2")
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace('prompt = "Write', gated))
    with sandbox.running() as run:
        run.until("task plain-1", "DONE -> PENDING_APPROVAL")
        sandbox.call("approve", "plain-1")
        run.until("task plain-2", "DONE -> PENDING_APPROVAL")
        sandbox.call("reject", "plain-2", "--reason", "not so")
        run.rest()
    assert branches(sandbox) == [f"{READY}/plain-1"]


def test_a_runner_that_dies_after_the_branch_leaves_one_branch(sandbox: Sandbox) -> None:
    """The next run finds the branch at the claim's commit, closes the task with it, and does no work again."""
    branching(sandbox, "plain-1")
    mark, git = sandbox.folder / "died", shutil.which("git")
    made = '*"update-ref "*refs/heads/lifefold-ready/*'
    dies = f'case "$*" in {made}) [ -e {mark} ] || {{ : > {mark}; {git} "$@"; kill -9 $PPID; exit 1; }} ;; esac'
    sandbox.run(code=-9, PATH=before_git(sandbox.folder, dies))
    assert mark.exists()
    assert branches(sandbox) == [f"{READY}/plain-1"]
    assert sandbox.json("tasks")[0]["state"] == "DONE"
    assert "1 of 1 tasks closed" in sandbox.run()
    assert branches(sandbox) == [f"{READY}/plain-1"]
    (closed,) = sandbox.json("tasks")
    assert (closed["branch"], closed["attempts"]) == (f"{READY}/plain-1", 1)
    assert sandbox.sessions("plain-1") == 1


def test_branches_outlive_what_a_fleet_has_left(sandbox: Sandbox) -> None:
    """`lifefold clean` removes all other references, because the ready branches have the work."""
    branching(sandbox, "plain-1", "plain-2").run()
    before = branches(sandbox)
    sandbox.call("clean", "--yes")
    assert branches(sandbox) == before
    assert sandbox.git("for-each-ref", "refs/heads/lifefold/", "refs/lifefold/") == ""


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ('depends_on = ["plain-1"]', "depends_on"),
        ("max_subtasks = 2", "max_subtasks"),
    ],
)
def test_a_task_that_needs_the_work_of_others_is_refused(sandbox: Sandbox, key: str, said: str) -> None:
    """The message names the task, the key and the reason; so does that of an added task."""
    branching(sandbox, "plain-1", "plain-2").settle('id = "plain-2"', f'id = "plain-2"\n{key}')
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2).stderr
    assert said in refused
    assert 'accepted: none, because merge = "branch" in [fleet] merges nothing' in " ".join(refused.split())


def test_branches_need_a_repository(sandbox: Sandbox) -> None:
    """Without one there is no branch to keep work on."""
    branching(sandbox, "plain-1", repository=False)
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", code=2).stderr
    assert 'found "branch"; accepted: "branch" in a fleet with a repository' in refused


def test_an_added_task_that_needs_the_work_of_others_is_refused(sandbox: Sandbox) -> None:
    """By option and by list, with the same reason."""
    branching(sandbox, "plain-1", gates=["plain-1"])
    with sandbox.running() as run, sandbox.at_gate("plain-1"):
        run.until("task plain-1", "CLAIMED -> IN_PROGRESS")
        one = ("task", "add", "--id", "plain-2", "--prompt", "more", "--depends-on", "plain-1")
        assert 'merge = "branch" in [fleet] merges nothing' in sandbox.call(*one, code=2).stderr
        source = sandbox.folder / "more.toml"
        source.write_text('[[tasks]]\nid = "plain-2"\nprompt = "more"\ndepends_on = ["plain-1"]\n')
        many = sandbox.call("task", "add", "--from", str(source), code=2).stderr
        assert 'merge = "branch" in [fleet] merges nothing' in " ".join(many.split())
