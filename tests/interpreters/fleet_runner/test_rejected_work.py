"""A rejection with a reason, from the operator's command to the next prompt, and the work before and after it."""

from pathlib import Path
from typing import Final

from fleet_sandbox import Sandbox

REASON: Final = 'cover the "empty" list, too:\n  - no items -> []\n  - $HOME and `ls` stay as they are, 100 %'


def test_the_reason_of_a_rejection_reaches_the_next_prompt_word_for_word(tmp_path: Path) -> None:
    """The agent writes its prompt into its file, so the difference has the reason only after the rejection."""
    sandbox = Sandbox(tmp_path).prepare("plain-1", agents=1).demand("plain-1", 'approval = "merge"')
    with sandbox.running() as run:
        run.until("! plain-1 is done and waits for your approval")
        before = sandbox.call("diff", "plain-1").stdout
        assert "+++ b/plain-1.txt" in before
        assert "no items" not in before
        sandbox.call("reject", "plain-1", "--reason", REASON)
        run.until("task plain-1", "FAILED -> OPEN")
        run.until("task plain-1", "DONE -> PENDING_APPROVAL")
        after = sandbox.call("diff", "plain-1").stdout
        added = "\n".join(
            line[1:] for line in after.splitlines() if line.startswith("+") and not line.startswith("+++")
        )
        assert REASON in added
        sandbox.call("approve", "plain-1")
        run.rest()
    assert REASON in sandbox.git("show", "main:plain-1.txt")
    assert "attempt 1 was rejected: " + " ".join(REASON.split()) in sandbox.call("log").stdout
    (task,) = sandbox.json("tasks")
    assert (task["state"], task["attempts"]) == ("CLOSED", 2)
