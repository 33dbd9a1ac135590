"""The steps as steps of a workflow of DBOS, with its system database in SQLite."""

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.durable.work import BEGIN, State, Watch, after, run, stepped


def measure(folder: Path, steps: int) -> None:
    """Run a workflow of so many steps."""
    dbos: Any = import_module("dbos").DBOS
    dbos(config={"name": "steps", "system_database_url": f"sqlite:///{folder / 'dbos.db'}", "log_level": "ERROR"})
    step = dbos.step()(stepped)

    def work() -> State:
        state = BEGIN
        for _ in range(steps):
            state = step(state)
        return state

    workflow = dbos.workflow()(work)
    dbos.launch()
    watch = Watch()
    state = workflow()
    watch.printed("dbos", steps)
    assert state == after(steps)
    dbos.destroy()


if __name__ == "__main__":
    run(measure)
