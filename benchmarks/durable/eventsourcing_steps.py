"""The steps as events of an aggregate of ``eventsourcing``, saved one by one in SQLite."""

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.durable.work import BEGIN, State, Watch, after, run, stepped


def agent_of(domain: Any) -> Any:
    """Return the class of an agent, with one event."""

    def begin(self: Any) -> None:
        self.state = BEGIN

    def take(self: Any, state: State) -> None:
        self.state = state

    names = {"__init__": begin, "take": domain.event("Taken")(take), "__module__": __name__, "__qualname__": "Agent"}
    return type(domain.Aggregate)("Agent", (domain.Aggregate,), names)


Agent = agent_of(import_module("eventsourcing.domain"))


def measure(folder: Path, steps: int) -> None:
    """Save an agent after each of its events."""
    settings = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(folder / "events.db")}
    application = import_module("eventsourcing.application").Application(env=settings)
    agent = Agent()
    application.save(agent)
    watch = Watch()
    for _ in range(steps):
        agent.take(state=stepped(agent.state))
        application.save(agent)
    watch.printed("eventsourcing", steps)
    assert application.repository.get(agent.id).state == after(steps)


if __name__ == "__main__":
    run(measure)
