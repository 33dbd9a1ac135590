"""A fleet that is upgraded in the middle of its work: the later release goes on where this one was killed."""

import signal

from fleet_sandbox import Sandbox
from next_release import release


def test_a_fleet_in_the_middle_of_its_work_goes_on_with_other_rules(sandbox: Sandbox) -> None:
    """A session outlives its runner and its release. An event has another name; a field, a state and a rule are new."""
    sandbox.prepare("plain-1", "plain-2", gates=["plain-1"])
    later = str(release(sandbox.folder))
    with sandbox.running() as run, sandbox.at_gate("plain-1"):
        run.signal(signal.SIGKILL)
        run.rest()
        before = sandbox.json("log", "--all")
        tried = sandbox.call("upgrade", "--dry-run", str(sandbox.log), PYTHONPATH=later).stdout
        assert "Prompted as PromptGiven (1 entry)" in tried
        assert "their properties hold of its present state" in tried
        assert sandbox.json("log", "--all") == before
    printed = sandbox.run(PYTHONPATH=later)
    assert "1 task in progress" in printed
    assert "Stopped          all is done" in printed
    assert sandbox.sessions("plain-1") == sandbox.sessions("plain-2") == 1
    assert len(sandbox.merges()) == 2
    assert sandbox.processes() == []
    story = sandbox.call("log", "--all", PYTHONPATH=later).stdout
    for step in ("Working -> Working                 PromptGiven", "Preparing -> Settling", "Settling -> Working"):
        assert step in story
    assert "what these rules decided was allowed" in sandbox.call("verify", str(sandbox.log), PYTHONPATH=later).stdout


def test_a_release_that_is_too_old_for_a_log_changes_nothing_and_names_the_rules(sandbox: Sandbox) -> None:
    """The log is read by a program that has the rules that wrote it."""
    sandbox.prepare("plain-1")
    later = str(release(sandbox.folder))
    sandbox.run(PYTHONPATH=later)
    before = sandbox.log.read_bytes()
    for command in (["run", str(sandbox.fleet)], ["status"], ["send", "agent", "hello"]):
        refused = sandbox.call(*command, code=2).stderr
        assert "Assignment has no field 'settled'" in refused
        assert "decided it, and a program that has them can read it" in refused
    assert sandbox.log.read_bytes() == before
