"""`lifefold diff`: what the work at a task changes, in each state in which there is work, and nothing is touched."""

import hashlib
import json
import sys
from pathlib import Path

import pytest

from desk_sandbox import talking
from fleet_sandbox import Sandbox
from terminal import Terminal


def held(sandbox: Sandbox) -> None:
    """Run a fleet until only an operator can move it on."""
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait", code=4)


def test_parked_work_is_compared_as_an_approval_merges_it_and_then_as_it_was_merged(tmp_path: Path) -> None:
    """The commit that waits is the second parent of the later merge; its verification's output stands below."""
    sandbox = talking(tmp_path, "asks").demand("asks", 'approval = "merge"')
    held(sandbox)
    done = sandbox.call("diff", "asks", "--verification")
    assert done.stderr.startswith("asks waits for your approval: commit ")
    assert " of lifefold/sandbox/asks/1 against its base " in done.stderr
    assert "+done by asks\n" in done.stdout
    assert "\nverification of claim 1: `cat asks.txt` succeeded" in done.stdout
    assert done.stdout.endswith("  begun by asks\n  done by asks\n")
    waits = sandbox.json("diff", "asks")
    assert (waits["changes"]["kind"], waits["changes"]["branch"]) == ("parked", "lifefold/sandbox/asks/1")
    sandbox.call("approve", "asks")
    sandbox.run()
    merged = sandbox.json("diff", "asks")
    assert merged["changes"]["kind"] == "merge"
    assert merged["diff"] == waits["diff"]
    assert sandbox.git("rev-parse", f"{merged['changes']['head']}^2").strip() == waits["changes"]["head"]
    assert " asks.txt | 2 ++\n" in sandbox.call("diff", "asks", "--stat").stdout


def test_work_that_waits_and_changes_nothing_is_told_so(tmp_path: Path) -> None:
    """An approval would merge an empty commit; an empty screen alone does not say that."""
    sandbox = Sandbox(tmp_path).prepare("plain-1").demand("plain-1", 'approval = "merge"')
    command = next(line for line in sandbox.fleet.read_text().splitlines() if line.startswith("command = "))
    sandbox.settle(command, 'command = ["true"]')
    sandbox.settle('verify = [["test", "-s", "plain-1.txt"]]', 'verify = [["true"]]')
    held(sandbox)
    done = sandbox.call("diff", "plain-1")
    assert done.stderr.strip().endswith("; it changes nothing")
    assert not done.stdout.strip()


def test_the_worktree_of_running_work_is_compared_with_new_files_and_is_not_touched(tmp_path: Path) -> None:
    """An uncommitted file is shown; the index of the agent's worktree stays byte for byte as it was."""
    sandbox = talking(tmp_path, "one", gates=("one",))
    with sandbox.running() as run:
        with sandbox.at_gate("one"):
            run.until("task one", "IN_PROGRESS")  # its file is written before the gate opens
            worktree = Path(sandbox.log.with_name("sandbox.db.files") / "worktrees" / "agent")
            before = indices(sandbox)
            done = sandbox.call("diff", "one")
            assert "+begun by one\n" in done.stdout
            assert f"the files in {worktree}, uncommitted ones included, against its base " in done.stderr
            assert indices(sandbox) == before
            assert (
                "+begun by one\n" in sandbox.call("diff", "one", "--tool", f"{sys.executable} -c {show_tool()}").stdout
            )
        run.rest()


def show_tool() -> str:
    """Return a program that prints the files of the second folder as added lines."""
    return (
        '\'import pathlib,sys; [print("+" + p.read_text(), end="") for p in pathlib.Path(sys.argv[2]).glob("*.txt")]\''
    )


def indices(sandbox: Sandbox) -> dict[str, str]:
    """Return the digests of all indices of the repository's worktrees."""
    found = (sandbox.folder / "repo" / ".git" / "worktrees").glob("*/index")
    return {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in found}


def test_the_work_of_a_failed_task_is_found_in_its_worktree_and_later_as_salvage(tmp_path: Path) -> None:
    """The next claim of the agent takes the worktree; the failed work is kept, and still compared."""
    sandbox = talking(tmp_path, "fails-1", "two", gates=("two",))
    with sandbox.running() as run:
        with sandbox.at_gate("two"):
            run.until("task two", "IN_PROGRESS")
            kept = sandbox.json("diff", "fails-1")
        run.rest()
    assert kept["changes"]["kind"] == "salvage"
    assert "+begun by fails-1\n" in kept["diff"]
    (tmp_path / "alone").mkdir()
    alone = talking(tmp_path / "alone", "fails-1")
    alone.run(code=1)
    left = alone.json("diff", "fails-1")
    assert left["changes"]["kind"] == "worktree"
    assert left["diff"] == kept["diff"]


def test_no_work_is_an_error_that_says_why(tmp_path: Path) -> None:
    """A task that was not begun, an unknown one, a tool that is not there, a fleet without a repository."""
    sandbox = talking(tmp_path, "fails-1", "two").demand("two", 'depends_on = ["fails-1"]')
    sandbox.run(code=1)
    refused = sandbox.call("diff", "two", code=2).stderr
    assert "no agent has begun two yet; it is blocked; lifefold why two explains its state" in refused
    assert "there is no task 'too'; did you mean two?" in sandbox.call("diff", "too", code=2).stderr
    assert "there is no such program" in sandbox.call("diff", "fails-1", "--tool", "no-such-tool", code=2).stderr
    (tmp_path / "plain").mkdir()
    plain = talking(tmp_path / "plain", "one", repository=False)
    plain.run()
    assert "this fleet has no repository; its agents work in folders below " in plain.call("diff", "one", code=2).stderr


@pytest.mark.parametrize(
    ("colour", "added"), [({}, "\x1b[32m+done by asks\x1b[m"), ({"NO_COLOR": "1"}, "+done by asks")]
)
def test_a_terminal_gets_colours_and_no_control_code_of_a_file(
    tmp_path: Path, colour: dict[str, str], added: str
) -> None:
    """A file of an agent cannot hide a part of the difference that an operator approves."""
    sandbox = talking(tmp_path, "asks").demand("asks", 'approval = "merge"')
    talker = tmp_path / "talker.sh"
    hides = "printf 'shown\\033[8mhidden\\033[2K\\342\\200\\256 bidi\\n' > evil.txt\n"
    talker.write_text(talker.read_text().replace("ends false", f"{hides}ends false"))
    held(sandbox)
    with Terminal(tmp_path, "diff", "asks", env=colour) as terminal:
        terminal.rest()
        assert "+shown^[[8mhidden^[[2K<U+202E> bidi" in terminal.text
        assert b"\x1b[8m" not in terminal.raw
        assert added in terminal.raw.decode()
    assert b"\x1b[8m" in json.dumps(sandbox.json("diff", "asks")["diff"], ensure_ascii=False).encode().replace(
        b"\\u001b", b"\x1b"
    )
