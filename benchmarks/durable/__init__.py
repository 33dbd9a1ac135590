"""The durable steps of one agent in other libraries, each as a program of its own, and as its documentation advises.

A step is one of the four of a session: the prompt is ready, the session has started, it has ended, the worktree is
ready. A step may use the state that the one before it has left: the phase, the number of sessions, the prompt. The next
step begins when this one is on the disk. ``python -m benchmarks.durable.NAME FOLDER STEPS`` prints one line of JSON
(``work.Measured``).
"""

PEERS = {
    "eventsourcing": "eventsourcing_steps",
    "langgraph-checkpoint-sqlite": "checkpointer_steps",
    "dbos": "dbos_steps",
    "temporalio": "temporal_steps",
}
"""The modules of the peers, by the name of the package."""
