"""A process that spends from one agent's budget, told by its arguments: file, agent, its own name, how often."""

import sys

from lifefold.interpreters.facades.status import BudgetRefused, Runtime, SqliteStateManager


def main(path: str, agent_id: str, name: str, times: str) -> None:
    """Reserve 10 and settle 7 so many times; print how often the money was there."""
    store = SqliteStateManager(path)
    runtime, admitted = Runtime(store), 0
    for number in range(int(times)):
        try:
            runtime.reserve(agent_id, f"{name}-{number}", 10)
        except BudgetRefused:
            continue
        runtime.settle(agent_id, f"{name}-{number}", 7)
        runtime.record_pii_detection(agent_id)
        admitted += 1
    store.close()
    print(admitted)  # noqa: T201 - this is what the parent reads


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4])
