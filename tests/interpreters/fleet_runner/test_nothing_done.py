"""Sessions of real processes that say they are done and changed nothing: said, retried, and never silently closed."""

import re
from pathlib import Path
from typing import Final

from fleet_sandbox import Sandbox

AGENT: Final = r"""
import os, pathlib, sys

task = os.environ["LIFEFOLD_TASK"]
with (pathlib.Path(os.environ["COUNTS"]) / task).open("a") as file:
    file.write("session\n")
if task.startswith("hidden"):
    pathlib.Path("build").mkdir(exist_ok=True)
    pathlib.Path("build/out.txt").write_text("made")
if task.startswith("second") and "nothing was changed" in pathlib.Path(sys.argv[1]).read_text():
    pathlib.Path(task + ".txt").write_text("made")
"""


KEPT: Final = r"""
import os, pathlib

pathlib.Path(os.environ["LIFEFOLD_TASK"] + ".out").write_text("made")
"""


def sandbox(folder: Path, *tasks: str, more: str = "") -> Sandbox:
    """Return a fleet whose tasks have no commands, and whose agent does little."""
    of = Sandbox(folder).prepare(*tasks)
    (folder / "agent.py").write_text(AGENT)
    of.fleet.write_text(re.sub(r"verify = .*", f"max_retries = 1\n{more}", of.fleet.read_text()))
    return of


def test_a_task_for_which_nothing_was_changed_fails_and_says_so(tmp_path: Path) -> None:
    """It is tried again as often as it may be; the fleet says what it was, and is not done."""
    of = sandbox(tmp_path, "empty-1")
    told = of.run(code=1)
    assert "0 of 1 tasks closed" in told
    assert "empty-1: failed: nothing was changed" in told
    assert of.sessions("empty-1") == 2
    assert "nothing was changed" in of.call("why", "empty-1").stdout
    assert "reported as done, but nothing has changed" in of.call("why", "empty-1").stdout
    assert any(each["metadata"]["event"] == "NothingDone" for each in of.json("log"))


def test_a_limit_that_an_agent_has_printed_is_told_though_it_exited_with_0(tmp_path: Path) -> None:
    """The operator need not look for it in the output."""
    of = sandbox(tmp_path, "empty-1")
    (of.folder / "agent.py").write_text('print("Rate limit exceeded, try again in 5 minutes")')
    assert (
        "empty-1: failed: nothing was changed; the agent's last words: Rate limit exceeded, try again in 5 minutes\n"
        in of.run(code=1)
    )


def test_a_limit_that_an_agent_has_printed_is_told_beside_what_its_verification_has_found(tmp_path: Path) -> None:
    """The commands see only that the work is missing."""
    of = sandbox(tmp_path, "empty-1", more='verify = [["test", "-s", "out.txt"]]')
    (of.folder / "agent.py").write_text('print("Rate limit exceeded")')
    assert "empty-1: failed: The agent's last words: Rate limit exceeded. The command `test -s" in of.run(code=1)


def test_the_next_session_is_told_and_may_do_it(tmp_path: Path) -> None:
    """Its prompt has what the last one came to."""
    of = sandbox(tmp_path, "second-1")
    assert "1 of 1 tasks closed" in of.run()
    assert (of.sessions("second-1"), of.git("show", "main:second-1.txt")) == (2, "made")


def test_work_that_git_ignores_is_nothing_and_is_named(tmp_path: Path) -> None:
    """It would not be merged."""
    of = sandbox(tmp_path, "hidden-1")
    (of.folder / "repo" / ".gitignore").write_text("build/\n")
    of.git("add", ".gitignore")
    of.git("commit", "--quiet", "--message", "Ignore what is built")
    told = of.run(code=1)
    assert "nothing was changed; git ignores what is there besides: build/" in told


def test_only_what_is_of_this_session_is_named(tmp_path: Path) -> None:
    """What an earlier session has left in the same worktree is no work of this one."""
    of = sandbox(tmp_path, "hidden-1", "hidden-2")
    (of.folder / "agent.py").write_text(KEPT)
    (of.folder / "repo" / ".gitignore").write_text("*.out\n")
    of.git("add", ".gitignore")
    of.git("commit", "--quiet", "--message", "Ignore what is built")
    told = of.run(code=1)
    for task in ("hidden-1", "hidden-2"):
        assert f"{task}: failed: nothing was changed; git ignores what is there besides: {task}.out\n" in told


def test_work_that_git_ignores_is_named_also_where_commands_agree_to_it(tmp_path: Path) -> None:
    """The task is closed, since its commands decide; that nothing was merged is said, with what they have found."""
    of = sandbox(tmp_path, "hidden-1", more='verify = [["test", "-s", "build/out.txt"]]')
    (of.folder / "repo" / ".gitignore").write_text("build/\n")
    of.git("add", ".gitignore")
    of.git("commit", "--quiet", "--message", "Ignore what is built")
    told = of.run()
    assert "hidden-1: closed, and nothing was changed" in told
    assert "hidden-1 is done, and nothing was changed; git ignores what is there besides: build/" in told


def test_a_task_that_is_meant_to_change_nothing_is_closed_and_named(tmp_path: Path) -> None:
    """No warning is given of it: its author has said so."""
    of = sandbox(tmp_path, "empty-1", more='on_nothing = "close"')
    done = of.call("run", str(of.fleet), "--transitions")
    assert "1 of 1 tasks closed" in done.stdout
    assert "empty-1: closed, and nothing was changed" in done.stdout
    assert "has no verify" not in done.stderr


def test_a_run_warns_of_tasks_without_commands_when_it_begins_and_then_no_more(tmp_path: Path) -> None:
    """One line for all of them."""
    of = sandbox(tmp_path, "second-1", "second-2")
    merged = "the work of a session that succeeds is merged unverified, and one without a change has failed"
    warning = f"warning: second-1 and second-2 have no verify: {merged}\n"
    assert warning in of.call("run", str(of.fleet), "--transitions").stderr
    assert "have no verify" not in of.call("run", str(of.fleet), "--transitions").stderr


def test_without_a_repository_the_warning_speaks_of_no_merge(tmp_path: Path) -> None:
    """There nothing is known of what a session has changed."""
    of = sandbox(tmp_path, "empty-1")
    of.settle('repository = "repo"', "")
    counts = "a session that succeeds counts as done unverified, also if it has changed nothing"
    done = of.call("run", str(of.fleet), "--transitions")
    assert f"warning: empty-1 has no verify: {counts}\n" in done.stderr
    assert "1 of 1 tasks closed" in done.stdout
