"""People and agents act on fleets that really run: everything goes through the log, and the runner obeys."""

import pytest

from fleet_log import ME
from fleet_sandbox import Sandbox

SAYS_WHAT_IT_KNOWS = r"""
import os
with open(os.path.join(os.environ["COUNTS"], "known"), "a") as file:
    print(*(os.environ[f"LIFEFOLD_{name}"] for name in ("TASK", "CLAIM", "DB")), file=file)
"""

SPLITTER = r"""
import os, pathlib, subprocess, sys
prompt = pathlib.Path(sys.argv[1]).read_text()
if "PLAIN" in prompt.upper():
    parts = [word for name in ("one", "two") for word in ("--part", f"write {name}")]
    done = subprocess.run([sys.executable, "-m", "lifefold.interpreters.cli", "split", *parts], capture_output=True)
    pathlib.Path(os.environ["COUNTS"], "said").write_bytes(done.stdout + done.stderr)
else:
    pathlib.Path(prompt.split()[1] + ".txt").write_text(prompt)
"""


def _say_of(sandbox: Sandbox, task: str, *lines: str) -> None:
    """Add keys to a task in the fleet file."""
    place = f'id = "{task}"'
    sandbox.fleet.write_text(sandbox.fleet.read_text().replace(place, "\n".join([place, *lines])))


def test_finished_work_is_merged_when_a_person_agrees_and_what_is_added_is_done(sandbox: Sandbox) -> None:
    """Its agent is free meanwhile: a task that is put on the board of the running fleet is done before.

    A session knows by its environment what it needs to split its task: the log, and the number of the claim.
    """
    sandbox.prepare("plain-1")
    agent = sandbox.folder / "agent.py"
    agent.write_text(SAYS_WHAT_IT_KNOWS + agent.read_text())
    _say_of(sandbox, "plain-1", 'approval = "merge"')
    with sandbox.running() as run:
        run.until("task plain-1", "PENDING_APPROVAL")
        assert "refused in" not in sandbox.call("tasks").stdout, "no time-out was asked for"
        added = sandbox.call(
            "task", "add", "--id", "plain-2", "--prompt", "x", "--verify", "test -s plain-2.txt"
        ).stdout
        assert added == "plain-2: added\n"
        run.until("task plain-2", "CLOSED")
        assert len(sandbox.merges()) == 1
        assert sandbox.call("approve", "plain-1", "--reason", "good").stdout == "plain-1: approved: it is merged next\n"
        assert f"ApprovalGranted: good (by {ME})" in run.until("task plain-1", "DONE")
        assert "2 of 2 tasks closed" in run.rest()
    assert len(sandbox.merges()) == 2
    known = (sandbox.folder / "counts" / "known").read_text().splitlines()
    assert known == [f"plain-{number} 1 {sandbox.log}" for number in (1, 2)]


@pytest.mark.campaign
def test_an_agent_splits_its_task_from_within_its_session(sandbox: Sandbox) -> None:
    """With nothing but its environment; the parts are done and merged, and then the whole is verified."""
    sandbox.prepare("plain-1")
    (sandbox.folder / "agent.py").write_text(SPLITTER)
    text = sandbox.fleet.read_text().replace(
        '["test", "-s", "plain-1.txt"]', '["test", "-s", "one.txt", "-a", "-s", "two.txt"]'
    )
    sandbox.fleet.write_text(text)
    _say_of(sandbox, "plain-1", "max_subtasks = 2")
    assert "3 of 3 tasks closed" in sandbox.run()
    assert sorted(task["id"] for task in sandbox.json("tasks")) == ["plain-1", "plain-1+1", "plain-1+2"]
    assert [task["parent"] for task in sandbox.json("tasks")].count("plain-1") == 2
