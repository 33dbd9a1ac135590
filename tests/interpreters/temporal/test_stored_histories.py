"""Workflows that earlier versions have begun go on: their stored histories lead the present loop to the same commands.

A workflow at work is replayed by the next brain. A change of the loop that arranges other commands for the same past
would stop it. ``tools/cluster/record_histories.py`` records histories; no server is needed to replay them.
"""

from pathlib import Path
from typing import Final

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import NondeterminismError

from lifefold.interpreters.temporal.brain import WORKFLOWS
from lifefold.interpreters.temporal.converter import CONVERTER
from lifefold.interpreters.temporal.wire import NO_ROOM

pytestmark = pytest.mark.anyio

STORED: Final = sorted((Path(__file__).parents[2] / "data" / "workflow_histories").glob("*.json"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def replayer() -> Replayer:
    """Return a replayer in the sandbox of the SDK, which refuses clocks, files and random numbers."""
    runner = SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules("lifefold", "msgspec")
    )
    return Replayer(workflows=list(WORKFLOWS), workflow_runner=runner, data_converter=CONVERTER)


def history_of(file: Path, text: str = "") -> WorkflowHistory:
    """Return the history in a file."""
    return WorkflowHistory.from_json(file.stem, text or file.read_text())


@pytest.mark.parametrize("file", STORED, ids=lambda file: file.stem)
async def test_a_stored_history_replays(file: Path) -> None:
    """The replayer compares each command with the one that the history has."""
    assert (await replayer().replay_workflow(history_of(file))).replay_failure is None


async def test_a_history_with_another_command_does_not_replay() -> None:
    """So a loop that arranges other commands is noticed."""
    (file,) = (each for each in STORED if each.stem == "aggregate-pottery-kiln-a")
    text = file.read_text()
    changed = text.replace('"name": "lifefold-place"', '"name": "another"', 1)
    assert changed != text
    with pytest.raises(NondeterminismError):
        await replayer().replay_workflow(history_of(file, changed))


def test_there_is_a_history_of_each_kind_of_workflow() -> None:
    """And one in which a host was lost."""
    found = [history_of(file) for file in STORED]
    kinds = {each.events[0].workflow_execution_started_event_attributes.workflow_type.name for each in found}
    assert len(kinds) == len(WORKFLOWS)


def test_there_is_a_history_in_which_a_host_had_no_room() -> None:
    """The session's workflow has the error of the host, and that of the aggregate has started the session again."""
    events = [event for file in STORED for event in history_of(file).events]
    failed = [each.activity_task_failed_event_attributes.failure for each in events]
    assert NO_ROOM in {each.application_failure_info.type for each in failed}
    started = [
        each.start_child_workflow_execution_initiated_event_attributes.workflow_id
        for each in events
        if each.HasField("start_child_workflow_execution_initiated_event_attributes")
    ]
    assert len(started) > len(set(started))
