"""Two attempts at a task, of which an operator has rejected the first: each is shown, and both are compared."""

from pathlib import Path

import pytest

from fleet_sandbox import Sandbox
from web_desk import served

REASON = "the tone is wrong"


def test_a_rejected_attempt_is_shown_and_compared_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outcome, its reason, its work, its sessions; and what the next attempt has made different.

    The browser has the same.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sandbox = Sandbox(tmp_path).prepare("plain-1").demand("plain-1", 'approval = "merge"')
    run = ("run", str(sandbox.fleet), "--no-live", "--no-wait")
    sandbox.call(*run, code=4)
    sandbox.call("reject", "plain-1", "--reason", REASON)
    sandbox.call(*run, code=4)
    shown = sandbox.call("show", "plain-1", COLUMNS="200").stdout
    attempts = [line for line in shown.splitlines() if "; session " in line]
    assert f": rejected: {REASON}; session 1: success" in attempts[0]
    assert ": waiting for approval; session 2: success" in attempts[1]
    assert [each["outcome"] for each in sandbox.json("show", "plain-1")["claims"]] == ["rejected", "PENDING_APPROVAL"]
    first = sandbox.call("diff", "plain-1", "--attempt", "1")
    assert first.stderr.startswith("attempt 1, claim 1 of plain-1: its salvage refs/lifefold/sandbox/salvage/")
    assert "+Write plain-1.txt" in first.stdout
    assert REASON not in first.stdout
    since = sandbox.call("diff", "plain-1", "--since", "1")
    assert since.stderr.startswith("plain-1 waits for your approval: commit ")
    assert " against attempt 1 (" in since.stderr
    added = [line for line in since.stdout.splitlines() if line.startswith("+")]
    assert any(REASON in line for line in added)
    assert "new file mode" in first.stdout
    assert "new file mode" not in since.stdout
    same = sandbox.json("diff", "plain-1", "--attempt", "1", "--since", "1")
    assert same["diff"] == ""
    assert sandbox.json("diff", "plain-1", "--since", "1", "--stat")["changes"]["base"]
    with served([sandbox.log]) as desk:
        page = "/fleets/sandbox/tasks/plain-1"
        for query, words in (("attempt=1", ("--attempt", "1")), ("since=1", ("--since", "1")), ("", ())):
            part = desk.json(f"{page}/diff.json?{query}")
            assert part["diff"]["text"].endswith(sandbox.call("diff", "plain-1", *words).stdout.removesuffix("\n"))
            assert part["attempts"] == 2
        assert 'href="/fleets/sandbox/tasks/plain-1/diff?since=1"' in desk.get(f"{page}/diff", accept="text/html").text
        desk.json(f"{page}/diff.json?attempt=3", 404)
        assert desk.json(f"{page}.json")["claims"][0]["ended"] == f"rejected: {REASON}"
    refused = sandbox.call("diff", "plain-1", "--attempt", "3", code=2).stderr
    assert "--attempt 3: plain-1 has no such attempt; accepted: 1 to 2" in refused
    said = sandbox.call("output", "plain-1", "--attempt", "2").stdout
    assert said.startswith("== session 2 of agent at plain-1, attempt 2")
    sandbox.call("diff", "plain-1", "--attempt", "2")
    sandbox.git("branch", "-D", "lifefold/sandbox/plain-1/1")
    for salvage in sandbox.git("for-each-ref", "--format=%(refname)", "refs/lifefold/sandbox/salvage").split():
        sandbox.git("update-ref", "-d", salvage)
    gone = sandbox.call("diff", "plain-1", "--since", "1", code=2).stderr
    assert "no work of attempt 1 at plain-1 is left: neither in a worktree nor on a branch" in gone
