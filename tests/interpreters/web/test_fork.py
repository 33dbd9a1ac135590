"""A fork of the past: a log of its own with the same states, in which commands can be tried, and which no run takes."""

import json
from pathlib import Path

import anyio
import pytest

from asking_log import LEAVE, WORDS, at_work
from fleet_log import folded, said
from fleet_sandbox import Sandbox
from lifefold.core.fleet.worker.question import REF
from lifefold.interpreters.cli.app import main
from lifefold.interpreters.store import SqliteStore
from web_desk import Served, served
from web_logs import run_of, written

ENTRIES = run_of(2, 4).entries


def fork(desk: Served, folder: Path, seq: int) -> Path:
    """Download a fork of the only fleet."""
    answer = desk.get(f"/fleets/fleet/fork?at={seq}")
    assert answer.status_code == 200, answer.text
    assert f'filename="fleet-at-{seq}.db"' in answer.headers["content-disposition"]
    path = folder / f"fleet-at-{seq}.db"
    path.write_bytes(answer.content)
    return path


@pytest.mark.parametrize("seq", [1, len(ENTRIES) // 2, len(ENTRIES)])
def test_a_fork_has_the_entries_up_to_its_position_and_their_states(tmp_path: Path, seq: int) -> None:
    with served([written(tmp_path / "fleet.db", ENTRIES)]) as desk:
        path = fork(desk, tmp_path, seq)
        shown = desk.json(f"/fleets/fleet/board.json?at={seq}")["columns"]
    with SqliteStore.peek(path) as store:
        assert list(anyio.run(store.read)) == ENTRIES[:seq]
        assert store.meta("fleet") == f"fleet forked at {seq}"
    with served([path]) as desk:
        states = {card["status"]["id"]: card["status"]["state"] for column in shown for card in column["tasks"]}
        columns = desk.json(f"/fleets/fleet-at-{seq}/board.json")["columns"]
        assert states == {card["status"]["id"]: card["status"]["state"] for each in columns for card in each["tasks"]}


def test_a_command_can_be_tried_in_a_fork_and_the_original_stays_as_it_is(log: Path, tmp_path: Path) -> None:
    with served([log]) as desk:
        newest = desk.json("/fleets/fleet.json")["at"]["seq"]
        path = fork(desk, tmp_path, newest)
    assert main(["answer", "ann/Q2", "blue", "--db", str(path)]) == 0
    assert len(folded(path).record("worker/ann", REF).waiting) == 1
    assert len(folded(log).record("worker/ann", REF).waiting) == 2
    assert said(log) == []


def test_no_run_goes_on_with_a_fork(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path).prepare("plain-1", repository=False)
    sandbox.run()
    with served([sandbox.log]) as desk:
        (over,) = desk.json("/index.json")["fleets"]
        answer = desk.get(f"/fleets/sandbox/fork?at={over['at']['seq'] // 2}")
    path = tmp_path / "fork.db"
    path.write_bytes(answer.content)
    refused = sandbox.call("run", str(sandbox.fleet), "--transitions", "--db", str(path), code=2)
    assert "is the log of the fleet 'sandbox forked at " in refused.stderr
    assert json.loads(sandbox.call("tasks", "--json", "--db", str(path)).stdout)


def test_a_fork_has_no_position_that_the_log_does_not_have(tmp_path: Path) -> None:
    with served([at_work(tmp_path / "fleet.db", LEAVE, WORDS).path]) as desk:
        assert desk.get("/fleets/fleet/fork?at=9999", accept="application/json").status_code == 404
        assert desk.get("/fleets/other/fork?at=1", accept="application/json").status_code == 404
