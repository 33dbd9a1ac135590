"""The work of the past: what a difference showed at a position, it shows of that position for ever."""

import json
from functools import partial
from pathlib import Path

import anyio
import pytest

from desk_sandbox import talking
from fleet_sandbox import Sandbox
from lifefold.core.fleet.board.fleet_task import FleetTask
from lifefold.core.lifecycles.task import State
from lifefold.interpreters.cli.commands.diff import task_of
from lifefold.interpreters.desk.changes import NoChangesError, Repository, Then
from lifefold.interpreters.desk.history import History
from lifefold.interpreters.desk.verifications import Verification, begun_by
from lifefold.interpreters.store import SqliteStore
from lifefold.interpreters.store.past import log_at
from web_desk import served

FAR_MS = 4_000_000_000_000
"""After all tests."""


def newest(sandbox: Sandbox) -> int:
    with SqliteStore.peek(sandbox.log) as store:
        return len(anyio.run(store.read))


def positions_of(sandbox: Sandbox, task: str, state: State) -> list[int]:
    """Return the positions at which a task is in a state."""
    found: list[int] = []
    for seq in range(1, newest(sandbox) + 1):
        with log_at(sandbox.log, seq) as store:
            record: FleetTask | None = None
            try:
                record = task_of(store, task, History())
            except Exception:  # noqa: BLE001, S112 - the task is not there yet
                continue
            if record.state is state:
                found.append(seq)
    return found


def test_the_work_at_each_position_stays_what_it_was_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waited, was rejected, waited again, and is merged now: terminal and browser show each of these moments."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sandbox = talking(tmp_path, "asks").demand("asks", 'approval = "merge"')
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait", code=4)
    then: dict[int, str] = {newest(sandbox): sandbox.json("diff", "asks")["diff"]}
    sandbox.call("reject", "asks", "--reason", "it has to name its author")
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait", code=4)
    then[newest(sandbox)] = sandbox.json("diff", "asks")["diff"]
    sandbox.call("approve", "asks")
    sandbox.run()
    first, second = then
    with served([sandbox.log]) as desk:
        for seq, text in then.items():
            assert sandbox.json("diff", "asks", "--at", str(seq))["diff"] == text
            page = desk.json(f"/fleets/sandbox/tasks/asks/diff.json?at={seq}")
            assert page["diff"]["text"].rstrip("\n").endswith(text.rstrip("\n"))
            assert page["diff"]["about"].startswith("asks waits for your approval: commit ")
            assert [each["ended"] for each in page["verifications"]] == ["succeeded"]
            assert page["at"]["seq"] == seq
        assert desk.json(f"/fleets/sandbox/tasks/asks/diff.json?at={first}")["attempts"] == 1
        assert desk.json("/fleets/sandbox/tasks/asks/diff.json")["diff"]["about"].startswith("asks is merged into")
        since = desk.json(f"/fleets/sandbox/tasks/asks/diff.json?at={second}&since=1")
        assert "against attempt 1" in since["diff"]["about"]
        desk.json(f"/fleets/sandbox/tasks/asks/diff.json?at={first}&attempt=2", 404)
        html = desk.get(f"/fleets/sandbox/tasks/asks/diff?at={second}").text
        assert f"?since=1&amp;at={second}" in html
        working = positions_of(sandbox, "asks", State.IN_PROGRESS)[0]
        assert "had committed nothing" in desk.json(f"/fleets/sandbox/tasks/asks/diff.json?at={working}")["why_not"]
        assert desk.json(f"/fleets/sandbox/tasks/asks.json?at={working}")["verifications"] == []
    shown = sandbox.json("show", "asks", "--at", str(first))
    assert shown["changes"]["kind"] == "parked"
    refused = sandbox.call("diff", "asks", "--at", str(working), code=2)
    assert "the claim of asks went on at this moment, and had committed nothing" in refused.stderr


def test_a_claim_that_goes_on_has_its_commits_up_to_that_time(tmp_path: Path) -> None:
    sandbox = talking(tmp_path, "asks").demand("asks", 'approval = "merge"')
    sandbox.call("run", str(sandbox.fleet), "--transitions", "--no-wait", code=4)
    sandbox.call("reject", "asks", "--reason", "no")
    with SqliteStore.peek(sandbox.log) as store:
        task = task_of(store, "asks", History())
        repository = Repository(store)
        found = anyio.run(partial(repository.of_attempt, task, 1, (1,), Then(FAR_MS, frozenset({1}))))
        assert found.kind == "branch"
        assert "its last commit by then, " in found.said
        assert "files that were not committed by then are not known" in found.said
        with pytest.raises(NoChangesError, match="had committed nothing"):
            anyio.run(partial(repository.of_attempt, task, 1, (1,), Then(0, frozenset({1}))))


def test_a_verification_is_shown_as_far_as_it_had_come() -> None:
    whole = Verification(
        1, "make test", ok=True, ended="succeeded", began_ms=10, ended_ms=20, output=("fine",), path="/out"
    )
    assert begun_by([whole], 9) == ()
    (running,) = begun_by([whole], 15)
    assert (running.ok, running.ended, running.ended_ms, running.output) == (None, "ran then", 0, ())
    assert begun_by([whole], 20) == (whole,)


def test_two_logs_have_no_moment(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path).prepare("plain-1", repository=False)
    sandbox.run()
    refused = sandbox.call("diff", str(sandbox.log), str(sandbox.log), "--at", "3", code=2)
    assert "--at means nothing with two logs" in refused.stderr


def test_each_session_has_its_cost_and_the_page_of_its_agent_lists_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sessions are those of ``show``; in the past those that had begun, with the output of those that had ended."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sandbox = talking(tmp_path, "one", "two")
    sandbox.run()
    shown = sandbox.json("show", "agent")
    with served([sandbox.log]) as desk:
        page = desk.json("/fleets/sandbox/agents/agent.json")
        assert [(each["number"], each["task"], each["claim"], each["from_ms"]) for each in page["past"]] == [
            (each["number"], each["task"], each["claim"], each["began_ms"]) for each in shown["sessions"]
        ][::-1]
        assert [each["ended"] for each in page["past"]] == ["success", "success"]
        assert {each["became"] for each in page["past"]} == {"closed"}
        assert [each["attempt"] for each in page["past"]] == [1, 1]
        (end,) = positions_of(sandbox, page["past"][1]["task"], State.CLOSED)[:1]
        past = desk.json(f"/fleets/sandbox/agents/agent.json?at={end}")
        assert [each["number"] for each in past["past"]] == [1]
        assert [each["text"] for each in past["printed"]] == [
            each["text"] for each in desk.json("/fleets/sandbox/agents/agent.json?session=1")["printed"]
        ]
        begun = positions_of(sandbox, page["past"][1]["task"], State.IN_PROGRESS)[0]
        going_on = desk.json(f"/fleets/sandbox/agents/agent.json?at={begun}")
        assert going_on["printed"] == []
        assert json.dumps(going_on["past"])
        html = desk.get(f"/fleets/sandbox/agents/agent?at={end}").text
        assert f"?session=1&amp;at={end}#printed" in html
