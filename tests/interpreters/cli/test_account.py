"""The account of a log: the tries at a task, and where the output of its last session is."""

from fleet_sandbox import Sandbox
from lifefold.interpreters.cli.account import MOST_OUTPUTS
from lifefold.interpreters.cli.run_summary import strange


def test_work_that_is_handed_over_to_be_merged_counts_as_one_claim(sandbox: Sandbox) -> None:
    """Its merge has a number of its own in the log, and is no further try."""
    sandbox.prepare("plain-1", "plain-2")
    sandbox.demand("plain-1", 'approval = "merge"')
    with sandbox.running() as run:
        run.until("plain-1 is done and waits for your approval")
        sandbox.call("approve", "plain-1")
        run.rest()
    assert {each["id"]: each["attempts"] for each in sandbox.json("tasks")} == {"plain-1": 1, "plain-2": 1}
    log = [each for each in sandbox.json("log") if each["entity_id"] == "plain-1"]
    assert any(each["metadata"]["event"] == "Handed" for each in log)


def test_the_output_of_a_failed_session_is_named_by_run_status_and_why(sandbox: Sandbox) -> None:
    """The file has what the agent has printed; a task that is closed needs none."""
    sandbox.prepare("plain-1", "crash-1", repository=False)
    sandbox.demand("crash-1", "max_retries = 0")
    told = sandbox.run(code=1)
    output = sandbox.log.with_name("sandbox.db.files") / "sessions" / "agent" / "0002" / "start-1" / "output.log"
    assert "I crash" in output.read_text()
    line = f"the output of the last session at crash-1 is in {output}"
    assert f"\n  {line}\n" in told
    assert f"\n! {line}\n" in sandbox.call("status").stdout
    assert f"\nThe output of its last session is in {output}.\n" in sandbox.call("why", "crash-1").stdout
    assert sandbox.json("why", "crash-1")["output"] == str(output)
    for said in (told, sandbox.call("status").stdout, sandbox.call("why", "plain-1").stdout):
        assert "output of the last session at plain-1" not in said
        assert "0001/start-1" not in said
    output.unlink()
    assert "output of" not in sandbox.call("status").stdout
    assert sandbox.json("why", "crash-1")["output"] == ""


def test_of_many_outputs_some_are_named_and_the_command_for_the_others(sandbox: Sandbox) -> None:
    """They would hide what else is to be seen."""
    names = [f"crash-{number}" for number in range(MOST_OUTPUTS + 2)]
    sandbox.prepare(*names, repository=False)
    for name in names:
        sandbox.demand(name, "max_retries = 0")
    told = sandbox.run(code=1)
    assert told.count("the output of the last session at") == MOST_OUTPUTS
    assert "lifefold why TASK names the output of 2 more\n" in told
    assert "lifefold why TASK names the output of 2 more\n" in sandbox.call("status").stdout


def test_refusals_of_an_orderly_run_alarm_no_operator() -> None:
    """A repetition, and what came too late, are in the file; what points to a mistake is in the summary, too."""
    assert list(strange({"duplicate": 2, "early": 1, "illegal": 1, "stale": 3})) == []
    assert list(strange({"illegal": 1, "unknown": 2, "failed": 1})) == ["refused events: 1 failed, 2 unknown"]


def test_a_drained_fleet_ends_without_an_alarm(sandbox: Sandbox) -> None:
    """The board stops workers that have stopped already, as it does not know that."""
    sandbox.prepare("plain-1", gates=["plain-1"], repository=False)
    with sandbox.running() as run:
        with sandbox.at_gate("plain-1"):
            sandbox.call("stop", "--drain", "--all")
        assert "refused events" not in run.rest()
    assert '"kind": "illegal"' in sandbox.log.with_name("sandbox.db.files").joinpath("refused.jsonl").read_text()
