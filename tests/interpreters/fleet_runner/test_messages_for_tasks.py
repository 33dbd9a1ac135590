"""Operator messages for tasks, from the command line to the prompts of sessions."""

from pathlib import Path

from fleet_sandbox import Sandbox


def test_a_message_for_a_task_is_in_its_prompt_at_once_or_with_the_next_claim(tmp_path: Path) -> None:
    """The session of the task at work is interrupted; the other task has no agent yet, and its first prompt has it."""
    sandbox = Sandbox(tmp_path).prepare("slow", "later").demand("later", 'depends_on = ["slow"]')
    with sandbox.running() as run:
        run.until("Spawning -> Running")
        waits = sandbox.call("send", "later", "in German").stdout
        assert waits.startswith("later: accepted; no agent works at it (it is not begun)")
        has_it = sandbox.call("send", "slow", "hurry").stdout
        assert has_it.startswith("slow: accepted; agent has the task")
        run.rest()
    assert "- About slow: hurry" in sandbox.git("show", "main:slow.txt")
    assert "There are messages about this task:\n- in German" in sandbox.git("show", "main:later.txt")
    assert "sent a message for it: in German" in sandbox.call("why", "later").stdout
    logged = sandbox.call("log", "--task", "later").stdout
    assert "  later           got an urgent message: in German (by " in logged
    assert "hurry" not in logged
    assert {each["state"] for each in sandbox.json("tasks")} == {"CLOSED"}


def test_a_message_that_comes_after_the_session_is_counted_when_its_task_is_closed(tmp_path: Path) -> None:
    """The end of the run, ``status`` and ``why`` tell it: the message was accepted, and no prompt had it."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", gates=("verify",))
    words = f'["cat", "{tmp_path}/counts/verify.gate"]'
    text = sandbox.fleet.read_text().replace('["test", "-s", "plain-1.txt"]', words)
    sandbox.fleet.write_text(text)
    with sandbox.running() as run:
        run.until("IN_PROGRESS -> DONE")
        said = sandbox.call("send", "plain-1", "too late").stdout
        assert "only a later try has the message" in said
        with sandbox.at_gate("verify"):
            pass
        summary = run.rest()
    lost = "plain-1: 1 message undelivered: it is closed, and no prompt will have it"
    assert f"  {lost}" in summary
    assert f"! {lost}" in sandbox.call("status").stdout
    assert sandbox.json("status")["unread"] == {"plain-1": 1}
    assert lost[1:] in sandbox.call("why", "plain-1").stdout
