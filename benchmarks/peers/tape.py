"""The events for all peers, as names with arguments, and their translation into calls."""

from collections.abc import Callable, Iterable

SymbolicEvent = tuple[str, *tuple[object, ...]]
Call = tuple[Callable[..., object], tuple[object, ...]]

BEGIN: SymbolicEvent = ("worktree_ready",)
"""Leads from Initializing to BuildingPrompt, where a cycle starts and ends."""


def cycle(session_seq: int = 0) -> list[SymbolicEvent]:
    """Return 22 legal events from BuildingPrompt back to it, after ``session_seq`` completed sessions.

    One session succeeds. Two are interrupted: one exits, one exceeds its grace. Three fail: two in a row while
    spawning, and one while running, after a start that resets the count. ``total_errors`` increases by 3, and
    ``session_seq`` by 1.
    """
    prompt: SymbolicEvent = ("prompt_ready", "text")
    started: SymbolicEvent = ("session_started", session_seq + 1)
    error: SymbolicEvent = ("session_exited", "error")
    timeout: SymbolicEvent = ("session_exited", "timeout")
    urgent: SymbolicEvent = ("urgent_message",)
    elapsed: SymbolicEvent = ("backoff_elapsed",)
    succeed: list[SymbolicEvent] = [
        prompt,
        ("session_started", session_seq),
        ("session_exited", "success"),
        ("worktree_ready",),
    ]
    interrupt: list[SymbolicEvent] = [prompt, started, urgent, error, prompt, started, urgent, ("grace_exceeded",)]
    fail: list[SymbolicEvent] = [prompt, error, elapsed, prompt, timeout, elapsed, prompt, started, error, elapsed]
    return [*succeed, *interrupt, *fail]


def cycles(count: int) -> list[SymbolicEvent]:
    """Return a tape of ``count`` cycles from the initial state, with consecutive session numbers."""
    return [BEGIN, *(event for session_seq in range(count) for event in cycle(session_seq))]


def compile_tape(machine: object, tape: Iterable[SymbolicEvent]) -> list[Call]:
    """Look up, once, the bound method of ``machine`` for each event.

    The outcome of a session selects the method, so no peer needs a guard for it.
    """
    calls: list[Call] = []
    for name, *args in tape:
        if (name, *args) == ("session_exited", "success"):
            calls.append((getattr(machine, "session_succeeded"), ()))  # noqa: B009 - typed as an object
        else:
            method = "session_failed" if name == "session_exited" else name
            calls.append((getattr(machine, method), tuple(args)))
    return calls


def run(machine: object, tape: Iterable[SymbolicEvent]) -> None:
    """Send every event of the tape to the machine."""
    for method, args in compile_tape(machine, tape):
        method(*args)
