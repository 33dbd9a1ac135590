"""The steps as a graph of LangGraph, with a checkpoint in SQLite before the next step (``durability="sync"``)."""

from importlib import import_module
from pathlib import Path
from typing import TypedDict

from benchmarks.durable.work import BEGIN, State, Watch, after, run, stepped


class Graph(TypedDict):
    """The state of the graph."""

    agent: State
    left: int


def step(state: Graph) -> Graph:
    """Take one step."""
    return {"agent": stepped(state["agent"]), "left": state["left"] - 1}


def measure(folder: Path, steps: int) -> None:
    """Run a graph of one node that follows itself."""
    graphs, savers = import_module("langgraph.graph"), import_module("langgraph.checkpoint.sqlite")
    builder = graphs.StateGraph(Graph)
    builder.add_node("step", step)
    builder.add_edge(graphs.START, "step")

    def following(state: Graph) -> object:
        return "step" if state["left"] else graphs.END

    builder.add_conditional_edges("step", following)
    with savers.SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        graph = builder.compile(checkpointer=saver)
        saver.setup()
        config = {"configurable": {"thread_id": "1"}, "recursion_limit": steps + 1}
        watch = Watch()
        graph.invoke({"agent": BEGIN, "left": steps}, config, durability="sync")
        watch.printed("langgraph-checkpoint-sqlite", steps)
        assert graph.get_state(config).values["agent"] == after(steps)


if __name__ == "__main__":
    run(measure)
