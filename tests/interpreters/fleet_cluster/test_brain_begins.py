"""What a brain does before it decides anything, and at its end. The server is none here."""

from pathlib import Path

import pytest

pytest.importorskip("temporalio", reason="needs the extra temporal")

from temporalio.client import Client, WorkflowHandle

from lifefold.core.fleet import opening
from lifefold.core.kernel import encode
from lifefold.interpreters.fleet_cluster.brain import FleetBrain
from lifefold.interpreters.fleet_file import load
from lifefold.interpreters.fleet_runner import OtherFleetError
from lifefold.interpreters.fleet_runner.hosts import brain_said, digest_of
from lifefold.interpreters.store import Fenced, SqliteStore
from lifefold.interpreters.temporal import Cluster
from lifefold.interpreters.temporal.wire import Commit
from small_fleet_file import SMALL_FLEET

pytestmark = pytest.mark.anyio


class BegunError(Exception):
    """The worker of the brain has begun to decide."""


@pytest.fixture(name="begun")
def _begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have a worker that ends the brain instead of deciding."""
    begun: list[str] = []

    def worker(_client: Client, *, task_queue: str, **_of: object) -> None:
        begun.append(task_queue)
        raise BegunError

    monkeypatch.setattr("lifefold.interpreters.temporal.brain.Worker", worker)
    return begun


async def run_brain(folder: Path, text: str) -> None:
    """Run a brain with this fleet file."""
    (folder / "fleet.toml").write_text(text)
    client = await Client.connect("127.0.0.1:1", lazy=True)
    brain = await FleetBrain.open(load(folder / "fleet.toml"), folder / "log.db", Cluster(client, "demo"), lambda _: {})
    try:
        await brain.run()
    finally:
        brain.close()


async def test_the_plan_is_said_before_anything_is_decided(tmp_path: Path, begun: list[str]) -> None:
    """Work of an earlier brain may be decided at once, and a host would begin it with an old fleet file."""
    with pytest.RaisesGroup(BegunError, flatten_subgroups=True):
        await run_brain(tmp_path, SMALL_FLEET)
    with SqliteStore.peek(tmp_path / "log.db") as store:
        said = brain_said(await store.members())
    assert said is not None
    assert said.plan == digest_of(load(tmp_path / "fleet.toml").meaning)
    assert len(begun) == 1


async def test_a_brain_with_another_plan_decides_nothing(tmp_path: Path, begun: list[str]) -> None:
    """It is refused before its worker begins."""
    with pytest.RaisesGroup(BegunError, flatten_subgroups=True):
        await run_brain(tmp_path, SMALL_FLEET)
    with pytest.RaisesGroup(OtherFleetError, flatten_subgroups=True):
        await run_brain(tmp_path, SMALL_FLEET + '[[tasks]]\nid = "u"\nprompt = "y"\n')
    assert len(begun) == 1


async def test_a_brain_that_another_one_has_replaced_ends_no_further_workflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been frozen while it ended them. The workflows are those of the other one now."""
    (tmp_path / "fleet.toml").write_text(SMALL_FLEET)
    fleet, client = load(tmp_path / "fleet.toml"), await Client.connect("127.0.0.1:1", lazy=True)
    brain = await FleetBrain.open(fleet, tmp_path / "log.db", Cluster(client, "demo"), lambda _: {})
    for name, envelope in opening(fleet.plan, 0):
        await brain.commits.commit(Commit(name, 0, 0, (encode(envelope).decode(),)))
    ended: list[str] = []

    async def terminate(self: WorkflowHandle[object, object], *_reasons: str) -> None:
        ended.append(self.id)

    async def say(_self: SqliteStore, _said: str | None) -> None:
        if ended:
            raise Fenced("another process is the writer now")

    monkeypatch.setattr(WorkflowHandle, "terminate", terminate)
    monkeypatch.setattr(SqliteStore, "say_as_writer", say)
    with pytest.raises(Fenced):
        await brain._end_workflows()
    brain.close()
    assert len(brain.aggregates) == 2
    assert len(ended) == 1
