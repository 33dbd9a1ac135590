"""`lifefold show`: everything about a task or an agent on a page, at 80 columns, and what can be done next."""

import os
from pathlib import Path

from desk_sandbox import talking
from fleet_sandbox import Sandbox

WIDTH = 80


def shown(sandbox: Sandbox, name: str) -> str:
    """Return a page, whose lines fit the screen unless they are one word or a command."""
    text = sandbox.call("show", name, COLUMNS=str(WIDTH)).stdout
    for line in text.partition("What can be done next:")[0].splitlines():
        assert len(line) <= WIDTH or len(line.split()) <= 2, line
    return text


def test_the_page_of_a_task_has_its_work_and_each_command_that_it_names_is_there(tmp_path: Path) -> None:
    """State and why, prompt, claims, work, cost, output, verification, and what can be done next."""
    sandbox = talking(tmp_path, "fails-1", "asks").demand("asks", 'approval = "merge"', 'depends_on = ["later"]')
    sandbox.settle('depends_on = ["later"]\n', "")
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait", code=4)
    text = shown(sandbox, "asks")
    for words in (
        "asks is waiting for approval: it is done and verified, and is merged",
        "prompt        Write asks.txt",
        "conversation  c-asks",
        "cost          $0.25, 1,200 tokens in, 340 out",
        " agent, ",
        "attempts      1  ",
        "; session 2: success",
        "work          asks waits for your approval: commit ",
        "branch        lifefold/sandbox/asks/1",
        "verified by   cat asks.txt",
        "end: success: All done.",
        "verification of claim 1: `cat asks.txt` succeeded",
        "  lifefold approve asks ",
        "  lifefold diff asks ",
    ):
        assert words in text, words
    failed = shown(sandbox, "fails-1")
    assert "fails-1 has failed (I give up) and has no retries left." in failed
    assert "  lifefold retry fails-1 " in failed
    assert "end: failed: I give up." in failed
    page = sandbox.json("show", "asks")
    assert (page["task"]["state"], page["changes"]["kind"], page["cost"]["cost_usd"]) == (
        "PENDING_APPROVAL",
        "parked",
        0.25,
    )
    assert [each["command"] for each in page["options"]] == ["approve", "reject", "output", "diff", "why"]
    assert [each["number"] for each in page["claims"]] == [1]


def test_the_page_of_an_agent_keeps_apart_what_is_asked_believed_and_evident(tmp_path: Path) -> None:
    """A working agent: its turn, its process with the age of the look, its messages; a paused one can be resumed."""
    sandbox = talking(tmp_path, "one", gates=("one",))
    with sandbox.running() as run:
        with sandbox.at_gate("one"):
            run.until("task one", "IN_PROGRESS")
            sandbox.call("send", "agent", "Mind the gap", "--no-interrupt")
            text = shown(sandbox, "agent")
            page = sandbox.json("show", "agent")
        run.rest()
    assert "asked of it   Run" in text
    assert "in the log    running since " in text
    assert " is alive, last sign of life " in text
    assert "task          one, working" in text
    assert "messages      Mind the gap" in text
    assert page["evidence"]["alive"]
    assert page["messages"] == ["Mind the gap"]
    assert page["runs"]
    assert {"pause", "send", "stop", "output"} == {each["command"] for each in page["options"]}
    after = shown(sandbox, "agent")
    assert "closed tasks  one" in after
    assert " is gone" in after
    assert "lifefold pause" not in after


def test_an_unknown_name_is_refused_and_a_task_without_work_says_why(tmp_path: Path) -> None:
    """A mistyped name finds its like; a fleet without a repository is shown, too."""
    sandbox = talking(tmp_path, "one", repository=False)
    sandbox.run()
    assert "there is no agent or task 'onne'; did you mean one?" in sandbox.call("show", "onne", code=2).stderr
    assert "work          this fleet has no repository; " in shown(sandbox, "one")
    assert os.sep in sandbox.json("show", "one")["output_path"]
